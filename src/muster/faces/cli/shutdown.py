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
        raise UsageError("--when-done, --dry-run and --cancel exclude each other", hint="choose one")
    left = None if countdown is None else parse_duration(countdown, "--countdown")
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    if not (dry_run or cancel):
        refuse_unless_started_here(desk.state, "powered off")
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
            print("\ncancelled; the machine stays on")
        raise


def _print_cancelled_shutdown(desk: CampaignHandle, as_json_: bool) -> int:
    wanted = cancel_shutdown(desk)
    if as_json_:
        print_json(shutdown_as_json(desk, "cancelled"))
    elif wanted:
        print("cancelled: the machine stays on until `muster shutdown` or `muster shutdown --when-done` asks again")
    else:
        print("nothing was wished for; a shutdown that somebody counts down to now is cancelled too")
    return 0


def _print_shutdown_wish(desk: CampaignHandle, left: float | None, as_json_: bool) -> int:
    wish = record_shutdown_wish(desk, left)
    if as_json_:
        print_json(shutdown_as_json(desk, "wished"))
        return 0
    print(f"recorded: when all is done, the machine is powered off by `{wish.command}`")
    if wish.intent != "running":
        print(f"the campaign is {wish.intent}: nothing happens before it goes on")
    print("`muster shutdown --cancel` takes it back; `muster shutdown --dry-run` shows what stands against it now")
    return 0


def _print_shutdown(told: ShutdownResult, shutting: ShutdownRun, as_json_: bool) -> int:
    code = 0 if told.ok else REFUSED_EXIT_CODE
    if told.what == "failed":
        raise MusterError(
            f"the machine could not be powered off: {told.reasons[0]}",
            where=str(shutting.desk.state / "finish" / "shutdown.log"),
            hint="in a container only its host can: name a command that reaches it in campaign.yaml, `finish.shutdown`",
        )
    if as_json_:
        print_json(shutdown_as_json(shutting.desk, told.what, told))
        return code
    if told.what == "refused":
        print(
            paint_text(
                f"not now: {len(told.reasons)} reason{'s' if len(told.reasons) != 1 else ''} against it", "yellow"
            )
        )
        for reason in told.reasons:
            print(f"  {reason}")
    elif told.what == "would shut down":
        print(f"nothing stands against it now: would shut down by `{told.command}`")
        for other in told.others:
            print(f"  ignored: {other}")
        print("after a second look 60 s later, a countdown and a last look; nothing was done")
    else:
        print("powering off" if told.what == "shut down" else "cancelled; the machine stays on")
    return code


class CountdownLine:
    """One line that counts on a terminal; elsewhere a line at the beginning of each part."""

    def __init__(self) -> None:
        self._part = ""

    def __call__(self, part: str, left_s: float) -> None:
        text = f"nothing stands against it; a second look in {format_calendar_duration(math.ceil(left_s))}"
        if part == "counting down":
            text = (
                f"powering off in {format_calendar_duration(math.ceil(left_s))}; Ctrl-C or `muster shutdown "
                "--cancel` stops it"
            )
        if sys.stdout.isatty():
            sys.stdout.write(f"{clear_line()}{text}")
            sys.stdout.flush()
        elif part != self._part:
            print(text, flush=True)
        self._part = part


def _ignore_tick(part: str, left_s: float) -> None:
    """With --json there is one object, at the end."""
