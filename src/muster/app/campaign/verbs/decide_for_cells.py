"""Decisions about several cells at once: which of them took effect; and giving cells up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.start_controller import Tell, observe_and_revive, start_if_running
from muster.app.campaign.verbs.await_attempts import AttemptEndWaiter
from muster.app.campaign.verbs.choose_cells import choose_cells
from muster.model.decision import Decision


@dataclass(slots=True)
class CellAnswers:
    accepted: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # cell -> why


def decide_for_cells(desk: CampaignHandle, decisions: Sequence[Decision]) -> CellAnswers:
    answers = CellAnswers()
    for decision, refused in zip(decisions, desk.decide(decisions) if decisions else [], strict=True):
        cell = decision.cell or ""
        if refused:
            answers.refused[cell] = refused
        else:
            answers.accepted.append(cell)
    return answers


def give_up_cells(desk: CampaignHandle, patterns: Sequence[str], reason: str, tell: Tell) -> CellAnswers:
    AttemptEndWaiter(desk).record_ended()
    names = choose_cells("giveup", patterns, observe_and_revive(desk, tell))
    answers = decide_for_cells(desk, [desk.person("giveup", reason, cell=name) for name in names])
    if answers.accepted:
        start_if_running(desk, tell)  # it may have been the last one that the finish waited for
    return answers
