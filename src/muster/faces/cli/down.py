"""muster down"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.verbs.act_on_cells import AttemptEndWaiter
from muster.faces.cli.common.choose_cells import require_shared_reason
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.stop import STILL_GOING_ON, wait_and_print_ends
from muster.files.campaign_ownership import refuse_unless_started_here
from muster.hosts.local.guard_keeper import living_guard_pid
from muster.model.attempt import Attempt
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from muster.model.errors import MusterError
from muster.text.durations import parse_duration

app = typer.Typer(add_completion=False)
LOCK_PATIENCE_S = 15.0
GUARD_PATIENCE_S = 3.0
MOST_NAMED = 8


@app.command("down", epilog="Example:  muster down --runs --because 'the machine is needed'")
def down_command(
    ctx: typer.Context,
    runs: Annotated[bool, typer.Option("--runs", help="Stop the runs too.")] = False,
    because: Annotated[
        str | None, typer.Option(help="Why, for the record; to stop more than one run needs it.", show_default=False)
    ] = None,
    timeout: Annotated[str, typer.Option(help="With --runs: wait at most this long for their end.")] = "60s",
) -> int:
    """Ends the controller, so that nothing new starts until `muster up`. The runs live on unless you say --runs.

    Exit code: 0 down, 4 something still lives when the time is up.
    """
    limit = parse_duration(timeout)
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    state = desk.load()
    open_ = state.open_attempts if runs else []
    living = _living_cells(desk) if len(open_) > 1 and because is None else []
    reason = require_shared_reason("stopped", living, because, "")
    lives = state.open_attempts or any(step.ended is None for step in state.finish.steps.values())
    if _is_campaign_down(state) and desk.controller() is None and not (runs and lives):
        print("the campaign is down already")
        _print_living_cells(desk)
        return 0
    if runs and lives:
        refuse_unless_started_here(desk.state, "stopped")
    # in this order: a slot that a stopped run gives back must not be taken by the next cell
    going = desk.person("intent", _reason_of_command("muster down", reason), data={"intent": "down"})
    desk.decide([going, *_stop_decisions(desk, open_, reason)])
    late = _stop_runs(desk, open_, limit, reason) if runs else False
    if not late:
        _wait_for_free_lock(desk)
        _wait_for_no_guard(desk)
    late = (runs and _stop_finish_step(desk, limit)) or late
    print("the campaign is down; nothing starts until `muster up`")
    if not runs:
        _print_living_cells(desk)
    return STILL_GOING_ON if late else 0


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
        time.sleep(0.02)


def _wait_for_no_guard(desk: CampaignHandle) -> None:
    """It sees by itself that it is not wanted any more. A stopped one is left: it leaves when it goes on."""
    deadline = time.monotonic() + GUARD_PATIENCE_S
    while living_guard_pid(desk.state) and time.monotonic() < deadline:
        time.sleep(0.02)


def _stop_decisions(desk: CampaignHandle, attempts: Sequence[Attempt], reason: str) -> list[Decision]:
    told = _reason_of_command("muster down --runs", reason)
    return [desk.person("stop", told, cell=each.cell, attempt=each.n) for each in attempts]


def _reason_of_command(command: str, reason: str) -> str:
    return f"{command}: {reason}" if reason else command


def _stop_runs(desk: CampaignHandle, attempts: list[Attempt], limit: float, reason: str) -> bool:
    known = {attempt.key for attempt in attempts}
    later = [attempt for attempt in desk.load().open_attempts if attempt.key not in known]  # claimed in between
    if later:
        desk.decide(_stop_decisions(desk, later, reason))
    late = wait_and_print_ends(desk, AttemptEndWaiter(desk), attempts + later, limit)
    if attempts or later:
        print("`muster retry CELL --because ...` takes a stopped cell up again")
    return late


def _stop_finish_step(desk: CampaignHandle, limit: float) -> bool:
    """A command of the finish is stopped like a run; True: it still lives when the time is up."""
    state = desk.load()
    if not state.finish.steps:
        return False
    from muster.app.finish.run_finish import stop_open_step

    found = stop_open_step(desk.state, state, desk.clock, limit)
    if found is None:
        return False
    step, ended = found
    print(f"finish {step}: {'stopped; `muster up` does it again' if ended else 'still alive; the request stands'}")
    return not ended


def _living_cells(desk: CampaignHandle) -> list[str]:
    return [cell.record.cell.id for cell in observe_campaign(desk).cells if cell.record.open and not cell.verdict.final]


def _print_living_cells(desk: CampaignHandle) -> None:
    living = _living_cells(desk)
    if living:
        more = f" and {len(living) - MOST_NAMED} more" if len(living) > MOST_NAMED else ""
        stops = (
            "`muster down --runs` stops it" if len(living) == 1 else "`muster down --runs --because '...'` stops them"
        )
        plural = "run was left alone and lives" if len(living) == 1 else "runs were left alone and live"
        print(f"{len(living)} {plural} on: {', '.join(living[:MOST_NAMED])}{more}; {stops} too")
