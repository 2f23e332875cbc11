"""muster stop"""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from muster.cli.app import open_folder
from muster.cli.cells import looked
from muster.cli.deciding import carry, meant, refuse
from muster.cli.durations import seconds, span
from muster.cli.reasons import going_on, reason_for, refuse_many
from muster.domain.attempt import Attempt
from muster.wiring.desk import Desk
from muster.wiring.hand_started import names_told, with_unknown_runs
from muster.wiring.started_here import refuse_to_end, refuse_to_revive
from muster.wiring.stopping import Stopping
from muster.wiring.survey import look

app = typer.Typer(add_completion=False)
STILL_GOING_ON = 4


@app.command("stop", epilog="Example:  muster stop 'train/v2_full/*' --because 'wrong learning rate'")
def stop(
    ctx: typer.Context,
    cells: Annotated[
        list[str] | None, typer.Argument(metavar="CELL...", help="Cells, or globs: 'train/*/2'.", show_default=False)
    ] = None,
    because: Annotated[
        str | None, typer.Option(help="Why, for the record; more than one cell needs it.", show_default=False)
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until they have ended.")] = True,
    timeout: Annotated[str, typer.Option(help="Wait at most this long.")] = "60s",
) -> int:
    """Stops running cells: the whole process tree, written down. They stay stopped until `muster retry`.

    Exit code: 0 stopped, 1 something was not running, 4 something still lives when the time is up.
    """
    limit = seconds(timeout)
    desk = Desk.open_to_act(open_folder(ctx))
    refuse_many("stop", cells or [], because, with_unknown_runs(desk.root, look(desk)))
    refuse_to_end(desk.state, "stopped")
    refuse_to_revive(desk.state, "stopped")
    stopping = Stopping(desk)
    stopping.record_ended()
    found = with_unknown_runs(desk.root, looked(desk))
    unknown = names_told(found.cells)
    now = found.state.cells
    waiting = {cell.record.cell.id: cell.verdict.state for cell in found.cells if not cell.record.attempts}
    wanted = meant("stop", cells or [], found)
    if not wanted:
        print("nothing of it runs")
        return 0
    reason = reason_for("stopped", going_on(wanted, found), because, "asked by a person")
    for name in (name for name in wanted if name in waiting):
        keeps = f"`muster giveup {shlex.quote(name)}` or `muster hold` keeps it from starting"
        refuse(name, "stopped", unknown.get(name) or f"it is not running, it is {waiting[name]}; {keeps}")
    decisions = [
        desk.person("stop", reason, cell=name, attempt=last.n if (last := now[name].last) else None)
        for name in wanted
        if name not in waiting
    ]
    names, code = carry(desk, decisions, "stopped") if decisions else ([], 1)
    code = 1 if len(decisions) < len(wanted) else code
    attempts = [last for name in names if (last := now[name].last)]
    if not wait:
        stopping.ensure_controller()
        for name in names:
            print(f"{name}: a stop was requested")
        return code
    late = await_end(desk, stopping, attempts, limit)
    return STILL_GOING_ON if late else code


def await_end(desk: Desk, stopping: Stopping, attempts: list[Attempt], limit: float) -> bool:
    """Tells what became of each; True: some still live when the time is up."""
    left = {attempt.key for attempt in stopping.until_ended({attempt.key for attempt in attempts}, limit)}
    cells = desk.load().cells
    for attempt in attempts:
        if attempt.key in left:
            print(f"{attempt.cell}: still alive after {span(limit)}; the request stands, `muster why` shows it")
        else:
            print(f"{attempt.cell}: {_became(cells[attempt.cell].attempts[attempt.n - 1])}")
    return bool(left)


def _became(attempt: Attempt) -> str:
    outcome = attempt.outcome
    if outcome is None:
        return "a stop was requested"
    if outcome.cause is None:
        return f"had ended: {outcome.verdict}, {outcome.reason}"
    took = f" after {span(outcome.duration_s)}" if outcome.duration_s is not None else ""
    if outcome.cause.kind == "user_stop":
        return f"stopped{took}"
    return f"had ended{took}: {outcome.verdict}({outcome.cause}), {outcome.reason}"
