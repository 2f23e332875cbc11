"""muster up"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from muster.acts.status import Status, as_json
from muster.acts.take_in import Changes
from muster.cli.app import open_folder
from muster.cli.live import follow
from muster.cli.words import change_lines, say_json
from muster.domain.errors import Mistake, MusterError, UsageError
from muster.domain.state import Only
from muster.store.place import refuse_copy
from muster.wiring.codes import say_slow
from muster.wiring.desk import FILE, Desk
from muster.wiring.fitting import fit, known_state
from muster.wiring.hand_started import refuse_hand_started
from muster.wiring.left_behind import refuse_left_runs
from muster.wiring.roots import find_root
from muster.wiring.started_here import started_here
from muster.wiring.survey import look
from muster.wiring.taking import Read, checked, parse_only, take_in

app = typer.Typer(add_completion=False)
TRIES = 3  # another command that decides something holds the lock for a moment; a controller that meets it ends


@app.command("up", epilog="Example:  muster up --detach --only seed=2 --only config=v2_full,v2_u_only")
def up(
    ctx: typer.Context,
    detach: Annotated[bool, typer.Option("--detach", help="Hand over and return; do not stay attached.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Run only these: AXIS=VALUE[,VALUE...]. Repeated: combined by and.")
    ] = None,
    at_boot: Annotated[
        bool | None,
        typer.Option(
            "--at-boot/--no-at-boot",
            help="Have the machine look after it when it starts and every 5 minutes; or take that back and do no more.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --at-boot: install what is shown without a question.")
    ] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the final status as one JSON object.")] = False,
) -> int:
    """Runs the campaign to its goal. Ctrl-C only detaches: the runs and their controller live on.

    Exit code: 0 complete (with --detach: handed over), 1 a GPU that it needs is missing and nothing was started,
    3 stopped short, 4 detached while still going on.
    """
    folder = open_folder(ctx)
    if at_boot is not None and not at_boot:
        return leave_to_people(find_root(folder))
    if at_boot:
        look_after(find_root(folder), yes=yes)
    elif yes:
        raise UsageError("--yes answers the question of --at-boot, which you did not ask for", where="--yes")
    return carry_out(folder, only or [], detach=detach, as_json_=as_json_)


def carry_out(
    folder: Path, only: list[str], *, detach: bool, as_json_: bool, rounds: int | None = None, loop: bool = False
) -> int:
    root = find_root(folder)
    refuse_copy(root / ".muster")  # who is in the wrong folder need not mend its file first
    found = checked(root / FILE)
    if loop and not found.campaign.loop:
        raise UsageError(
            "this campaign has no loop", where=str(root / FILE), hint="declare `loop:`, or use `muster up`"
        )
    chosen = parse_only(found.campaign, only)
    _show(root, (*found.warnings, *fit(root, found, chosen)))
    before = known_state(root)
    refuse_left_runs(root, found.campaign, before, chosen)
    refuse_hand_started(root, found.campaign, before, chosen)
    if found.campaign.slots.gpus != () and not started_here(root / ".muster"):
        _ask_pythons(root, found, chosen)
    desk = Desk.create(root)
    changes = take_in(desk, found, chosen, rounds=rounds, slow=_tell_slow)
    if not as_json_:
        tell(changes)
    if detach:
        start(desk)
        return handed_over(desk, as_json_)
    last = see_through(desk, quiet=as_json_)
    if as_json_:
        say_json(as_json(last))
    return last.exit


def _show(root: Path, warnings: Sequence[Mistake]) -> None:
    if warnings:
        from muster.cli.mistakes import show

        show(str(root / FILE), warnings)


def _ask_pythons(root: Path, found: Read, only: Only) -> None:
    """Before the first start: what is executed next anyway says whether it sees the GPUs that it takes."""
    from muster.cli.check import tell_asking
    from muster.wiring.asking import ask_gpu_users

    _show(root, ask_gpu_users(root, found, only, tell_asking))


def look_after(root: Path, *, yes: bool) -> None:
    """Shows what would be installed, and installs it if that is wanted. Wrong use, or a no, changes nothing."""
    from muster.wiring.at_boot import keeper, wanted_for

    checked(root / FILE)
    who, wanted = keeper(), wanted_for(root)
    if who.installed(wanted):
        print(f"the machine looks after it already ({who.kind})", file=sys.stderr)
        return
    print(f"this has the machine look after the campaign ({who.kind}):\n{who.shown(wanted)}", file=sys.stderr)
    if not yes and not (sys.stdin.isatty() and typer.confirm("install it?", err=True)):
        raise UsageError(
            "nothing was installed and nothing started", hint="say --yes to install it, or leave --at-boot out"
        )
    if more := who.install(wanted):
        print(more, file=sys.stderr)
    print("installed; `muster up --no-at-boot` takes it back", file=sys.stderr)


def leave_to_people(root: Path) -> int:
    from muster.wiring.at_boot import every_keeper, wanted_for

    wanted = wanted_for(root)
    gone = [who.kind for who in every_keeper() if who.remove(wanted)]
    print(f"taken back ({', '.join(gone)})" if gone else "there was nothing to take back")
    return 0


def _tell_slow(folder: str) -> None:
    print(say_slow(folder), file=sys.stderr, flush=True)


def see_through(desk: Desk, *, quiet: bool) -> Status:
    """To the end, or until Ctrl-C."""
    before = look(desk)
    try:
        start(desk)
        return follow(desk, quiet=quiet, before=before)
    except KeyboardInterrupt:
        if not quiet:
            print(
                "\ndetached; the runs and their controller live on. `muster up` attaches again, `muster down` ends it"
            )
        return look(desk)


def start(desk: Desk) -> None:
    """One controller, whoever starts it; a hung one is taken over from by the one we start."""
    if desk.controller() is None or desk.lock.hung():
        for _ in range(TRIES):
            if not look(desk).going_on or desk.await_controller(desk.start_controller()) is not None:
                return
        if look(desk).going_on:
            raise MusterError(
                "the controller did not start", where=str(desk.state / "controller.log"), hint="that file says why"
            )


def handed_over(desk: Desk, as_json_: bool) -> int:
    holder = desk.controller()
    if as_json_:
        say_json(as_json(look(desk)))
    else:
        said = f"handed over to controller {holder.pid}" if holder else "there was nothing to hand over"
        print(f"{said}; `muster status` tells the truth, `muster wait` waits")
    return 0


def tell(changes: Changes) -> None:
    for line in change_lines(changes):
        print(line)
    if changes.code_changed:
        print("the code changed since the campaign was last taken in; held cells may start again")
