"""muster stop"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.stop_cells import StoppedAttempt, await_stop, request_stop
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_notice, print_refusals
from muster.model.attempt import Attempt
from muster.text.phrases import join_phrases, phrase
from muster.text.sentences import format_calendar_duration, parse_duration

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
    request = request_stop(desk, cells or [], because, print_notice)
    if request.meant_nothing:
        print(phrase("cli.nothing_of_it_runs"))
        return 0
    print_refusals(request.refused, "cli.not_stopped")
    code = 1 if request.refused else 0
    if not wait:
        request.waiter.ensure_controller()
        for attempt in request.attempts:
            print(phrase("cli.cell_stop_requested", cell=attempt.cell))
        return code
    stopped = await_stop(request.waiter, request.attempts, limit)
    print_stopped(stopped, limit)
    return STILL_GOING_ON if any(each.lives for each in stopped) else code


def print_stopped(stopped: Sequence[StoppedAttempt], limit: float) -> None:
    for each in stopped:
        if each.lives:
            waited = format_calendar_duration(limit)
            print(phrase("cli.cell_still_alive", cell=each.attempt.cell, duration=waited))
        else:
            print(join_phrases(": ", (each.attempt.cell, _format_end(each.attempt))))


def _format_end(attempt: Attempt) -> str:
    outcome = attempt.outcome
    if outcome is None:
        return phrase("cli.stop_requested")
    if outcome.cause is None:
        return phrase("cli.had_ended_as", state=outcome.verdict, reason=outcome.reason)
    took = None if outcome.duration_s is None else format_calendar_duration(outcome.duration_s)
    if outcome.cause.kind == "user_stop":
        return phrase("cli.cell_stopped") if took is None else phrase("cli.cell_stopped_after", duration=took)
    state = f"{outcome.verdict}({outcome.cause})"
    if took is None:
        return phrase("cli.had_ended_as", state=state, reason=outcome.reason)
    return phrase("cli.had_ended_after", duration=took, state=state, reason=outcome.reason)
