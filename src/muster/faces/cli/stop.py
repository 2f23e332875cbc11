"""muster stop"""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.unknown_runs import add_unknown_runs, describe_unknown_runs
from muster.app.campaign.verbs.act_on_cells import AttemptEndWaiter
from muster.faces.cli.common.choose_cells import (
    apply_decisions,
    choose_cells,
    observe_and_revive,
    print_refusal,
    refuse_many_without_reason,
    require_shared_reason,
    running_names,
)
from muster.faces.cli.common.command_line import folder_of_context
from muster.files.campaign_ownership import refuse_to_revive, refuse_unless_started_here
from muster.model.attempt import Attempt
from muster.text.durations import format_calendar_duration, parse_duration

app = typer.Typer(add_completion=False)
STILL_GOING_ON = 4


@app.command("stop", epilog="Example:  muster stop 'train/v2_full/*' --because 'wrong learning rate'")
def stop_command(
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
    limit = parse_duration(timeout)
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    refuse_many_without_reason("stop", cells or [], because, add_unknown_runs(desk.root, observe_campaign(desk)))
    refuse_unless_started_here(desk.state, "stopped")
    refuse_to_revive(desk.state, "stopped")
    stopping = AttemptEndWaiter(desk)
    stopping.record_ended()
    found = add_unknown_runs(desk.root, observe_and_revive(desk))
    unknown = describe_unknown_runs(found.cells)
    now = found.state.cells
    waiting = {cell.record.cell.id: cell.verdict.state for cell in found.cells if not cell.record.attempts}
    wanted = choose_cells("stop", cells or [], found)
    if not wanted:
        print("nothing of it runs")
        return 0
    reason = require_shared_reason("stopped", running_names(wanted, found), because, "asked by a person")
    for name in (name for name in wanted if name in waiting):
        keeps = f"`muster giveup {shlex.quote(name)}` or `muster hold` keeps it from starting"
        print_refusal(name, "stopped", unknown.get(name) or f"it is not running, it is {waiting[name]}; {keeps}")
    decisions = [
        desk.person("stop", reason, cell=name, attempt=last.n if (last := now[name].last) else None)
        for name in wanted
        if name not in waiting
    ]
    names, code = apply_decisions(desk, decisions, "stopped") if decisions else ([], 1)
    code = 1 if len(decisions) < len(wanted) else code
    attempts = [last for name in names if (last := now[name].last)]
    if not wait:
        stopping.ensure_controller()
        for name in names:
            print(f"{name}: a stop was requested")
        return code
    late = wait_and_print_ends(desk, stopping, attempts, limit)
    return STILL_GOING_ON if late else code


def wait_and_print_ends(
    desk: CampaignHandle, stopping: AttemptEndWaiter, attempts: list[Attempt], limit: float
) -> bool:
    """Tells what became of each; True: some still live when the time is up."""
    left = {attempt.key for attempt in stopping.until_ended({attempt.key for attempt in attempts}, limit)}
    cells = desk.load().cells
    for attempt in attempts:
        if attempt.key in left:
            print(
                f"{attempt.cell}: still alive after {format_calendar_duration(limit)}; the request stands, "
                "`muster why` shows it"
            )
        else:
            print(f"{attempt.cell}: {_format_end(cells[attempt.cell].attempts[attempt.n - 1])}")
    return bool(left)


def _format_end(attempt: Attempt) -> str:
    outcome = attempt.outcome
    if outcome is None:
        return "a stop was requested"
    if outcome.cause is None:
        return f"had ended: {outcome.verdict}, {outcome.reason}"
    took = f" after {format_calendar_duration(outcome.duration_s)}" if outcome.duration_s is not None else ""
    if outcome.cause.kind == "user_stop":
        return f"stopped{took}"
    return f"had ended{took}: {outcome.verdict}({outcome.cause}), {outcome.reason}"
