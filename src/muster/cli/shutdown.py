"""muster shutdown"""

from __future__ import annotations

import math
import sys
from typing import Annotated, Any

import typer

from muster.acts import finish
from muster.cli.app import open_folder
from muster.cli.durations import seconds, span
from muster.cli.paint import paint
from muster.cli.terminal import clear_line
from muster.cli.up import start
from muster.cli.words import say_json
from muster.domain.errors import MusterError, UsageError
from muster.domain.state import CampaignState
from muster.wiring.desk import Desk
from muster.wiring.shutting import Shutting, Told
from muster.wiring.started_here import refuse_to_end
from muster.wiring.survey import look

app = typer.Typer(add_completion=False)
REFUSED = 3


@app.command(
    "shutdown", epilog="Example:  muster shutdown --when-done   then, to take it back,   muster shutdown --cancel"
)
def shutdown(
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
    left = None if countdown is None else seconds(countdown, "--countdown")
    desk = Desk.open_to_act(open_folder(ctx))
    if not (dry_run or cancel):
        refuse_to_end(desk.state, "powered off")
    if cancel:
        return _cancel(desk, as_json_)
    if when_done:
        return _wish(desk, left, as_json_)
    shutting = Shutting(desk, left)
    if dry_run:
        return _tell(shutting.would(quick=quick), shutting, as_json_)
    try:
        return _tell(shutting.run(_silent if as_json_ else Ticker()), shutting, as_json_)
    except KeyboardInterrupt:
        shutting.drop()
        if not as_json_:
            print("\ncancelled; the machine stays on")
        raise


def _cancel(desk: Desk, as_json_: bool) -> int:
    state = desk.load()
    wanted = _wanted(state)
    desk.decide([desk.person("shutdown", "taken back by a person", data={"what": "cancel"})])
    if as_json_:
        say_json(_object(desk, "cancelled", finish.power_off(state)))
    elif wanted:
        print("cancelled: the machine stays on until `muster shutdown` or `muster shutdown --when-done` asks again")
    else:
        print("nothing was wished for; a shutdown that somebody counts down to now is cancelled too")
    return 0


def _wish(desk: Desk, left: float | None, as_json_: bool) -> int:
    data = {"what": "wish", "countdown_s": left}
    refused = desk.decide([desk.person("shutdown", "power off when all is done", data=data)])[0]
    if refused:
        raise MusterError(f"not recorded: {refused}")
    state = desk.load()
    if state.intent.kind == "running":
        start(desk)
    if as_json_:
        say_json(_object(desk, "wished", finish.power_off(state)))
        return 0
    print(f"recorded: when all is done, the machine is powered off by `{finish.power_off(state)}`")
    if state.intent.kind != "running":
        print(f"the campaign is {state.intent.kind}: nothing happens before it goes on")
    print("`muster shutdown --cancel` takes it back; `muster shutdown --dry-run` shows what stands against it now")
    return 0


def _wanted(state: CampaignState) -> bool:
    return any(step.kind == "shutdown" for step in finish.steps(state)) and not state.finish.cancelled


def _tell(told: Told, shutting: Shutting, as_json_: bool) -> int:
    code = 0 if told.what in ("would shut down", "shut down") else REFUSED
    if told.what == "failed":
        raise MusterError(
            f"the machine could not be powered off: {told.reasons[0]}",
            where=str(shutting.desk.state / "finish" / "shutdown.log"),
            hint="in a container only its host can: name a command that reaches it in campaign.yaml, `finish.shutdown`",
        )
    if as_json_:
        say_json(_object(shutting.desk, told.what, told.command, told))
        return code
    if told.what == "refused":
        print(paint(f"not now: {len(told.reasons)} reason{'s' if len(told.reasons) != 1 else ''} against it", "yellow"))
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


def _object(desk: Desk, what: str, command: str, told: Told | None = None) -> dict[str, Any]:
    status = told.status if told else look(desk)
    wish = desk.load().finish.wish
    return {
        "muster": 1,
        "campaign": status.state.campaign.name,
        "as_of": status.as_of,
        "what": what,
        "reasons": list(told.reasons) if told else [],
        "others": list(told.others) if told else [],
        "command": command,
        "countdown_s": finish.countdown_s(status.state),
        "wish": {"who": wish.who, "at": wish.at, "command": wish.command, "countdown_s": wish.countdown_s}
        if wish
        else None,
    }


class Ticker:
    """One line that counts on a terminal; elsewhere a line at the beginning of each part."""

    def __init__(self) -> None:
        self._part = ""

    def __call__(self, part: str, left_s: float) -> None:
        text = f"nothing stands against it; a second look in {span(math.ceil(left_s))}"
        if part == "counting down":
            text = f"powering off in {span(math.ceil(left_s))}; Ctrl-C or `muster shutdown --cancel` stops it"
        if sys.stdout.isatty():
            sys.stdout.write(f"{clear_line()}{text}")
            sys.stdout.flush()
        elif part != self._part:
            print(text, flush=True)
        self._part = part


def _silent(part: str, left_s: float) -> None:
    """With --json there is one object, at the end."""
