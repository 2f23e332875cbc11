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
from muster.text.durations import format_calendar_duration, parse_duration
from muster.text.phrases import phrase

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
        raise UsageError(phrase("cli.when_done_dry_run_cancel_exclude_each"), hint=phrase("cli.choose_one"))
    left = None if countdown is None else parse_duration(countdown, "--countdown")
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    if not (dry_run or cancel):
        refuse_unless_started_here(desk.state, phrase("cli.powered_off"))
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
            print(phrase("cli.cancelled_machine_stays_2"))
        raise


def _print_cancelled_shutdown(desk: CampaignHandle, as_json_: bool) -> int:
    wanted = cancel_shutdown(desk)
    if as_json_:
        print_json(shutdown_as_json(desk, "cancelled"))
    elif wanted:
        print(phrase("cli.cancelled_machine_stays_until_shutdown"))
    else:
        print(phrase("cli.nothing_wished_shutdown_somebody"))
    return 0


def _print_shutdown_wish(desk: CampaignHandle, left: float | None, as_json_: bool) -> int:
    wish = record_shutdown_wish(desk, left)
    if as_json_:
        print_json(shutdown_as_json(desk, "wished"))
        return 0
    print(phrase("cli.recorded_when_all_done_machine_powered", command=wish.command))
    if wish.intent != "running":
        print(phrase("cli.campaign_nothing_happens_before_goes", intent=wish.intent))
    print(phrase("cli.shutdown_cancel_takes_back_shutdown"))
    return 0


def _print_shutdown(told: ShutdownResult, shutting: ShutdownRun, as_json_: bool) -> int:
    code = 0 if told.ok else REFUSED_EXIT_CODE
    if told.what == "failed":
        raise MusterError(
            phrase("cli.machine_could_not_powered_off", reasons=told.reasons[0]),
            where=str(shutting.desk.state / "finish" / "shutdown.log"),
            hint=phrase("cli.container_only_host_can_name_command"),
        )
    if as_json_:
        print_json(shutdown_as_json(shutting.desk, told.what, told))
        return code
    if told.what == "refused":
        print(
            paint_text(
                phrase(
                    "cli.not_now_reason_against", reasons=len(told.reasons), value="s" if len(told.reasons) != 1 else ""
                ),
                "yellow",
            )
        )
        for reason in told.reasons:
            print(f"  {reason}")
    elif told.what == "would shut down":
        print(phrase("cli.nothing_stands_against_now_would_shut", command=told.command))
        for other in told.others:
            print(f"  ignored: {other}")
        print(phrase("cli.after_second_look_60_s_later_countdown"))
    else:
        print(phrase("cli.powering_off") if told.what == "shut down" else phrase("cli.cancelled_machine_stays"))
    return code


class CountdownLine:
    """One line that counts on a terminal; elsewhere a line at the beginning of each part."""

    def __init__(self) -> None:
        self._part = ""

    def __call__(self, part: str, left_s: float) -> None:
        text = phrase(
            "cli.nothing_stands_against_second_look", calendar_duration=format_calendar_duration(math.ceil(left_s))
        )
        if part == "counting down":
            text = phrase(
                "cli.powering_off_ctrl_c_shutdown_cancel", calendar_duration=format_calendar_duration(math.ceil(left_s))
            )
        if sys.stdout.isatty():
            sys.stdout.write(f"{clear_line()}{text}")
            sys.stdout.flush()
        elif part != self._part:
            print(text, flush=True)
        self._part = part


def _ignore_tick(part: str, left_s: float) -> None:
    """With --json there is one object, at the end."""
