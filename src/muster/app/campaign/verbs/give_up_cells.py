"""Cells that will never be done are settled: reports count them as missing."""

from __future__ import annotations

from collections.abc import Sequence

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.start_controller import Tell, observe_and_revive, start_if_running
from muster.app.campaign.verbs.await_attempts import AttemptEndWaiter
from muster.app.campaign.verbs.choose_cells import choose_cells
from muster.app.campaign.verbs.decide_for_cells import CellAnswers, decide_for_cells


def give_up_cells(desk: CampaignHandle, patterns: Sequence[str], reason: str, tell: Tell) -> CellAnswers:
    AttemptEndWaiter(desk).record_ended()
    names = choose_cells("giveup", patterns, observe_and_revive(desk, tell))
    answers = decide_for_cells(desk, [desk.person("giveup", reason, cell=name) for name in names])
    if answers.accepted:
        start_if_running(desk, tell)  # it may have been the last one that the finish waited for
    return answers
