"""muster down"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

import typer

from muster.cli.app import open_folder
from muster.cli.durations import seconds
from muster.cli.reasons import reason_for
from muster.cli.stop import STILL_GOING_ON, await_end
from muster.domain.attempt import Attempt
from muster.domain.decision import Decision
from muster.domain.errors import MusterError
from muster.domain.state import CampaignState
from muster.execute.guards import guard_pid
from muster.wiring.desk import Desk
from muster.wiring.started_here import refuse_to_end
from muster.wiring.stopping import Stopping
from muster.wiring.survey import look

app = typer.Typer(add_completion=False)
PATIENCE_S = 15.0
GUARD_S = 3.0
NAMED = 8


@app.command("down", epilog="Example:  muster down --runs --because 'the machine is needed'")
def down(
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
    limit = seconds(timeout)
    desk = Desk.open_to_act(open_folder(ctx))
    state = desk.load()
    open_ = state.open_attempts if runs else []
    living = _living(desk) if len(open_) > 1 and because is None else []
    reason = reason_for("stopped", living, because, "")
    lives = state.open_attempts or any(step.ended is None for step in state.finish.steps.values())
    if _is_down(state) and desk.controller() is None and not (runs and lives):
        print("the campaign is down already")
        _tell_living(desk)
        return 0
    if runs and lives:
        refuse_to_end(desk.state, "stopped")
    # in this order: a slot that a stopped run gives back must not be taken by the next cell
    going = desk.person("intent", _told("muster down", reason), data={"intent": "down"})
    desk.decide([going, *_stops(desk, open_, reason)])
    late = _end_runs(desk, open_, limit, reason) if runs else False
    if not late:
        _await_free_lock(desk)
        _await_no_guard(desk)
    late = (runs and _end_step(desk, limit)) or late
    print("the campaign is down; nothing starts until `muster up`")
    if not runs:
        _tell_living(desk)
    return STILL_GOING_ON if late else 0


def _is_down(state: CampaignState) -> bool:
    intent = state.intent
    return intent.kind == "down" or (intent.kind == "held" and intent.before == "down")


def _await_free_lock(desk: Desk) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while holder := desk.controller():
        if time.monotonic() > deadline:
            raise MusterError(
                f"the controller (pid {holder.pid}) has not ended yet; the decision is recorded",
                where=str(desk.state / "controller.lock"),
                hint="`muster status` shows what keeps it",
            )
        time.sleep(0.02)


def _await_no_guard(desk: Desk) -> None:
    """It sees by itself that it is not wanted any more. A stopped one is left: it leaves when it goes on."""
    deadline = time.monotonic() + GUARD_S
    while guard_pid(desk.state) and time.monotonic() < deadline:
        time.sleep(0.02)


def _stops(desk: Desk, attempts: Sequence[Attempt], reason: str) -> list[Decision]:
    told = _told("muster down --runs", reason)
    return [desk.person("stop", told, cell=each.cell, attempt=each.n) for each in attempts]


def _told(command: str, reason: str) -> str:
    return f"{command}: {reason}" if reason else command


def _end_runs(desk: Desk, attempts: list[Attempt], limit: float, reason: str) -> bool:
    known = {attempt.key for attempt in attempts}
    later = [attempt for attempt in desk.load().open_attempts if attempt.key not in known]  # claimed in between
    if later:
        desk.decide(_stops(desk, later, reason))
    late = await_end(desk, Stopping(desk), attempts + later, limit)
    if attempts or later:
        print("`muster retry CELL --because ...` takes a stopped cell up again")
    return late


def _end_step(desk: Desk, limit: float) -> bool:
    """A command of the finish is stopped like a run; True: it still lives when the time is up."""
    state = desk.load()
    if not state.finish.steps:
        return False
    from muster.wiring.finishing import stop_open

    found = stop_open(desk.state, state, desk.clock, limit)
    if found is None:
        return False
    step, ended = found
    print(f"finish {step}: {'stopped; `muster up` does it again' if ended else 'still alive; the request stands'}")
    return not ended


def _living(desk: Desk) -> list[str]:
    return [cell.record.cell.id for cell in look(desk).cells if cell.record.open and not cell.verdict.final]


def _tell_living(desk: Desk) -> None:
    living = _living(desk)
    if living:
        more = f" and {len(living) - NAMED} more" if len(living) > NAMED else ""
        stops = (
            "`muster down --runs` stops it" if len(living) == 1 else "`muster down --runs --because '...'` stops them"
        )
        plural = "run was left alone and lives" if len(living) == 1 else "runs were left alone and live"
        print(f"{len(living)} {plural} on: {', '.join(living[:NAMED])}{more}; {stops} too")
