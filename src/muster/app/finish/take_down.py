"""The controller is ended, so that nothing new starts; and the runs with it, where that is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.verbs.await_attempts import AttemptEndWaiter
from muster.app.campaign.verbs.choose_cells import require_shared_reason
from muster.app.campaign.verbs.stop_cells import StoppedAttempt, await_stop
from muster.files.campaign_ownership import refuse_unless_started_here
from muster.model.attempt import Attempt
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from muster.model.errors import MusterError
from muster.text.phrases import phrase

LOCK_PATIENCE_S = 15.0
GUARD_PATIENCE_S = 3.0
LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class StoppedStep:
    """A command of the finish that was stopped like a run."""

    name: str
    lives: bool  # still, when the time was up


@dataclass(frozen=True, slots=True)
class DownResult:
    was_down: bool  # already: nothing was decided
    late: bool  # something still lives that was told to stop
    step: StoppedStep | None
    living: tuple[str, ...]  # cells whose runs were left alone


def take_down(
    desk: CampaignHandle,
    *,
    runs: bool,
    because: str | None,
    limit_s: float,
    on_stopped: Callable[[Sequence[StoppedAttempt]], None],
) -> DownResult:
    """`runs`: stop them, too. `on_stopped` gets what became of them before the controller's end is waited for."""
    state = desk.load()
    open_ = state.open_attempts if runs else []
    meant = living_cells(desk) if len(open_) > 1 and because is None else []
    reason = require_shared_reason(phrase("campaign.stopped"), meant, because, "")
    lives = state.open_attempts or any(step.ended is None for step in state.finish.steps.values())
    if _is_campaign_down(state) and desk.controller() is None and not (runs and lives):
        return DownResult(True, False, None, tuple(living_cells(desk)))
    if runs and lives:
        refuse_unless_started_here(desk.state, phrase("campaign.stopped"))
    # in this order: a slot that a stopped run gives back must not be taken by the next cell
    going = desk.person("intent", _reason_of_command("muster down", reason), data={"intent": "down"})
    desk.decide([going, *_stop_decisions(desk, open_, reason)])
    late = False
    if runs:
        stopped = _stop_runs(desk, open_, limit_s, reason)
        on_stopped(stopped)
        late = any(each.lives for each in stopped)
    if not late:
        _wait_for_free_lock(desk)
        _wait_for_no_guard(desk)
    step = _stop_finish_step(desk, limit_s) if runs else None
    late = late or (step is not None and step.lives)
    return DownResult(False, late, step, () if runs else tuple(living_cells(desk)))


def living_cells(desk: CampaignHandle) -> list[str]:
    return [cell.record.cell.id for cell in observe_campaign(desk).cells if cell.record.open and not cell.verdict.final]


def _is_campaign_down(state: CampaignState) -> bool:
    intent = state.intent
    return intent.kind == "down" or (intent.kind == "held" and intent.before == "down")


def _wait_for_free_lock(desk: CampaignHandle) -> None:
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while holder := desk.controller():
        if time.monotonic() > deadline:
            raise MusterError(
                f"the controller (pid {holder.pid}) has not ended yet; the decision is recorded",
                where=str(desk.state / "controller.lock"),
                hint="`muster status` shows what keeps it",
            )
        time.sleep(LOOK_S)


def _wait_for_no_guard(desk: CampaignHandle) -> None:
    """It sees by itself that it is not wanted any more. A stopped one is left: it leaves when it goes on."""
    deadline = time.monotonic() + GUARD_PATIENCE_S
    while desk.services.host.guard_lives(desk.state) and time.monotonic() < deadline:
        time.sleep(LOOK_S)


def _stop_decisions(desk: CampaignHandle, attempts: Sequence[Attempt], reason: str) -> list[Decision]:
    told = _reason_of_command("muster down --runs", reason)
    return [desk.person("stop", told, cell=each.cell, attempt=each.n) for each in attempts]


def _reason_of_command(command: str, reason: str) -> str:
    return f"{command}: {reason}" if reason else command


def _stop_runs(desk: CampaignHandle, attempts: list[Attempt], limit_s: float, reason: str) -> list[StoppedAttempt]:
    known = {attempt.key for attempt in attempts}
    later = [attempt for attempt in desk.load().open_attempts if attempt.key not in known]  # claimed in between
    if later:
        desk.decide(_stop_decisions(desk, later, reason))
    return await_stop(AttemptEndWaiter(desk), attempts + later, limit_s)


def _stop_finish_step(desk: CampaignHandle, limit_s: float) -> StoppedStep | None:
    state = desk.load()
    if not state.finish.steps:
        return None
    from muster.app.finish.run_finish import stop_open_step

    found = stop_open_step(desk, state, limit_s)
    return StoppedStep(found[0], not found[1]) if found else None
