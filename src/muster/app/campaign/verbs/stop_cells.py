"""Running cells are stopped: first it is decided, then their end is waited for."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.start_controller import Tell, observe_and_revive
from muster.app.campaign.unknown_runs import add_unknown_runs, describe_unknown_runs
from muster.app.campaign.verbs.await_attempts import AttemptEndWaiter
from muster.app.campaign.verbs.choose_cells import (
    choose_cells,
    refuse_many_without_reason,
    require_shared_reason,
    running_names,
)
from muster.app.campaign.verbs.decide_for_cells import decide_for_cells
from muster.files.campaign_ownership import refuse_to_revive, refuse_unless_started_here
from muster.model.attempt import Attempt
from muster.text.phrases import phrase


@dataclass(frozen=True, slots=True)
class StopRequest:
    attempts: tuple[Attempt, ...]  # which are told to stop
    refused: Mapping[str, str]  # cell -> why
    waiter: AttemptEndWaiter

    @property
    def meant_nothing(self) -> bool:
        return not self.attempts and not self.refused


@dataclass(frozen=True, slots=True)
class StoppedAttempt:
    attempt: Attempt  # as it is recorded when the waiting is over
    lives: bool  # still, when the time was up


def request_stop(desk: CampaignHandle, patterns: Sequence[str], because: str | None, tell: Tell) -> StopRequest:
    refuse_many_without_reason("stop", patterns, because, add_unknown_runs(desk.root, observe_campaign(desk)))
    refuse_unless_started_here(desk.state, phrase("campaign.stopped"))
    refuse_to_revive(desk.state, phrase("campaign.stopped"))
    waiter = AttemptEndWaiter(desk)
    waiter.record_ended()
    found = add_unknown_runs(desk.root, observe_and_revive(desk, tell))
    wanted = choose_cells("stop", patterns, found)
    if not wanted:
        return StopRequest((), {}, waiter)
    reason = require_shared_reason(
        phrase("campaign.stopped"), running_names(wanted, found), because, phrase("campaign.asked_by_person")
    )
    unknown = describe_unknown_runs(found.cells)
    waiting = {cell.record.cell.id: cell.verdict.state for cell in found.cells if not cell.record.attempts}
    refused = {
        name: unknown.get(name)
        or phrase("campaign.not_running", state=waiting[name], hint=_how_to_keep_from_starting(name))
        for name in wanted
        if name in waiting
    }
    now = found.state.cells
    decisions = [
        desk.person("stop", reason, cell=name, attempt=last.n if (last := now[name].last) else None)
        for name in wanted
        if name not in waiting
    ]
    answers = decide_for_cells(desk, decisions)
    attempts = tuple(last for name in answers.accepted if (last := now[name].last))
    return StopRequest(attempts, refused | answers.refused, waiter)


def _how_to_keep_from_starting(name: str) -> str:
    return phrase("campaign.giveup_or_hold", name=shlex.quote(name))


def await_stop(waiter: AttemptEndWaiter, attempts: Sequence[Attempt], limit_s: float) -> list[StoppedAttempt]:
    """What became of each, when all have ended or the time is up."""
    left = {each.key for each in waiter.until_ended({each.key for each in attempts}, limit_s)}
    cells = waiter.desk.load().cells
    return [StoppedAttempt(cells[each.cell].attempts[each.n - 1], each.key in left) for each in attempts]
