"""Decisions about several cells at once: which of them took effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from muster.app.campaign.campaign_handle import CampaignHandle
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
