"""muster shutdown"""

from __future__ import annotations

import math
import sys
from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.finish.power_off import ShutdownResult, ShutdownRun
from muster.app.finish.shutdown_wish import cancel_shutdown, record_shutdown_wish, shutdown_as_json
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import clear_line, paint_text, print_json
from muster.files.campaign_ownership import refuse_unless_started_here
from muster.model.errors import MusterError, UsageError
from muster.text.phrases import phrase
from muster.text.sentences import format_calendar_duration, parse_duration

app = typer.Typer(add_completion=False)
REFUSED_EXIT_CODE = 3


@app.command(
    "shutdown", epilog="Example:  muster shutdown --when-done   then, to take it back,   muster shutdown --cancel"
)
def shutdown_command(
    ctx: typer.Context,
    when_done: Annotated[
        bool, typer.Option("--when-done", help="Record the wish; the controller does it when all is done.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="One look: say what stands against it, or what would be run.")
    ] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Take a wish or a countdown back.")] = False,
    countdown: Annotated[
        str | None, typer.Option(help="How long it can be cancelled: 90s, 5m. Default: 60s.", show_default=False)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", hidden=True)] = False,  # the controller's looks, one each minute
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Powers the machine off, but only with proof that all is done: two looks 60 s apart, then a countdown.

    Exit code: 0 done, recorded, or (--dry-run) nothing stands against it; 3 refused or cancelled; 1 the command failed.
    """
    if sum((when_done, dry_run, cancel)) > 1:
        raise UsageError(phrase("cli.shutdown_options_exclude"), hint=phrase("cli.choose_one_of_them"))
    left = None if countdown is None else parse_duration(countdown, "--countdown")
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    if not (dry_run or cancel):
        refuse_unless_started_here(desk.state, phrase("cli.is_powered_off"))
    if cancel:
        return _print_cancelled_shutdown(desk, as_json_)
    if when_done:
        return _print_shutdown_wish(desk, left, as_json_)
    shutting = ShutdownRun(desk, left)
    if dry_run:
        return _print_shutdown(shutting.would(quick=quick), shutting, as_json_)
    try:
        return _print_shutdown(shutting.run(_ignore_tick if as_json_ else CountdownLine()), shutting, as_json_)
    except KeyboardInterrupt:
        shutting.drop()
        if not as_json_:
            print("\n" + phrase("cli.shutdown_cancelled"))
        raise


def _print_cancelled_shutdown(desk: CampaignHandle, as_json_: bool) -> int:
    wanted = cancel_shutdown(desk)
    if as_json_:
        print_json(shutdown_as_json(desk, "cancelled"))
    elif wanted:
        print(phrase("cli.shutdown_cancelled_until"))
    else:
        print(phrase("cli.no_shutdown_wished"))
    return 0


def _print_shutdown_wish(desk: CampaignHandle, left: float | None, as_json_: bool) -> int:
    wish = record_shutdown_wish(desk, left)
    if as_json_:
        print_json(shutdown_as_json(desk, "wished"))
        return 0
    print(phrase("cli.shutdown_recorded", command=wish.command))
    if wish.intent != "running":
        print(phrase("cli.shutdown_waits_for_campaign", state=wish.intent))
    print(phrase("cli.shutdown_can_be_cancelled"))
    return 0


def _print_shutdown(told: ShutdownResult, shutting: ShutdownRun, as_json_: bool) -> int:
    code = 0 if told.ok else REFUSED_EXIT_CODE
    if told.what == "failed":
        raise MusterError(
            phrase("cli.machine_not_powered_off", reason=told.reasons[0]),
            where=str(shutting.desk.state / "finish" / "shutdown.log"),
            hint=phrase("cli.host_powers_container_off"),
        )
    if as_json_:
        print_json(shutdown_as_json(shutting.desk, told.what, told))
        return code
    if told.what == "refused":
        print(
            paint_text(
                phrase("cli.reasons_against_shutdown", n=len(told.reasons)),
                "yellow",
            )
        )
        for reason in told.reasons:
            print(f"  {reason}")
    elif told.what == "would shut down":
        print(phrase("cli.would_shut_down", command=told.command))
        for other in told.others:
            print(f"  {phrase('cli.ignored', text=other)}")
        print(phrase("cli.nothing_was_done_in_dry_run"))
    else:
        print(phrase("cli.powering_off_now") if told.what == "shut down" else phrase("cli.shutdown_cancelled"))
    return code


class CountdownLine:
    """One line that counts on a terminal; elsewhere a line at the beginning of each part."""

    def __init__(self) -> None:
        self._part = ""

    def __call__(self, part: str, left_s: float) -> None:
        text = phrase("cli.second_look_in", duration=format_calendar_duration(math.ceil(left_s)))
        if part == "counting down":
            text = phrase("cli.powering_off_in", duration=format_calendar_duration(math.ceil(left_s)))
        if sys.stdout.isatty():
            sys.stdout.write(f"{clear_line()}{text}")
            sys.stdout.flush()
        elif part != self._part:
            print(text, flush=True)
        self._part = part


def _ignore_tick(part: str, left_s: float) -> None:
    """With --json there is one object, at the end."""
