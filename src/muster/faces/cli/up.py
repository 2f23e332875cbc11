"""muster up"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from muster.app.campaign.campaign_code import describe_slow_git
from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME, CampaignHandle
from muster.app.campaign.campaign_status import Status, status_as_json
from muster.app.campaign.cell_definitions import DefinitionChanges
from muster.app.campaign.load_campaign import read_runnable_campaign
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.start_controller import ensure_controller_started
from muster.app.campaign.verbs.start_campaign import StartListener, start_campaign
from muster.engine.ports.services import installed_services
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.live_view import show_campaign_progress
from muster.faces.cli.common.terminal_output import (
    format_change_lines,
    print_asked_environment,
    print_json,
    print_mistakes,
    print_notice,
)
from muster.files.campaign_ownership import find_campaign_root
from muster.model.errors import Mistake, UsageError
from muster.text.phrases import phrase

app = typer.Typer(add_completion=False)


@app.command("up", epilog="Example:  muster up --detach --only seed=2 --only config=v2_full,v2_u_only")
def up_command(
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
    folder = folder_of_context(ctx)
    if at_boot is not None and not at_boot:
        return remove_boot_start(find_campaign_root(folder))
    if at_boot:
        install_boot_start(find_campaign_root(folder), yes=yes)
    elif yes:
        raise UsageError(phrase("cli.yes_needs_at_boot"), where="--yes")
    return run_campaign(folder, only or [], detach=detach, as_json_=as_json_)


def run_campaign(
    folder: Path, only: list[str], *, detach: bool, as_json_: bool, rounds: int | None = None, loop: bool = False
) -> int:
    started = start_campaign(folder, only, _start_listener(), rounds=rounds, loop=loop)
    if not as_json_:
        print_changes(started.changes)
    if detach:
        ensure_controller_started(started.desk)
        return print_handed_over(started.desk, as_json_)
    last = attach_until_end(started.desk, quiet=as_json_)
    if as_json_:
        print_json(status_as_json(last))
    return last.exit


def _start_listener() -> StartListener:
    return StartListener(
        warnings=_print_warnings,
        asking=print_asked_environment,
        slow_git=lambda folder: print_notice(describe_slow_git(folder)),
    )


def _print_warnings(file: Path, warnings: Sequence[Mistake]) -> None:
    if warnings:
        print_mistakes(str(file), warnings)


def install_boot_start(root: Path, *, yes: bool) -> None:
    """Shows what would be installed, and installs it if that is wanted. Wrong use, or a no, changes nothing."""
    read_runnable_campaign(root / CAMPAIGN_FILE_NAME)
    machine = installed_services().machine
    who, wanted = machine.boot_keeper(), machine.boot_entry(root)
    if who.installed(wanted):
        print(phrase("cli.boot_start_is_installed", kind=who.kind), file=sys.stderr)
        return
    print(f"{phrase('cli.boot_start_would_install', kind=who.kind)}\n{who.shown(wanted)}", file=sys.stderr)
    if not yes and not (sys.stdin.isatty() and typer.confirm(phrase("cli.install_it"), err=True)):
        raise UsageError(phrase("cli.nothing_installed"), hint=phrase("cli.say_yes_to_install"))
    if more := who.install(wanted):
        print(more, file=sys.stderr)
    print(phrase("cli.boot_start_installed"), file=sys.stderr)


def remove_boot_start(root: Path) -> int:
    machine = installed_services().machine
    wanted = machine.boot_entry(root)
    gone = [who.kind for who in machine.boot_keepers() if who.remove(wanted)]
    print(phrase("cli.taken_back", kinds=", ".join(gone)) if gone else phrase("cli.nothing_to_take_back"))
    return 0


def attach_until_end(desk: CampaignHandle, *, quiet: bool) -> Status:
    """To the end, or until Ctrl-C."""
    before = observe_campaign(desk)
    try:
        ensure_controller_started(desk)
        return show_campaign_progress(desk, quiet=quiet, before=before)
    except KeyboardInterrupt:
        if not quiet:
            print("\n" + phrase("cli.detached"))
        return observe_campaign(desk)


def print_handed_over(desk: CampaignHandle, as_json_: bool) -> int:
    holder = desk.controller()
    if as_json_:
        print_json(status_as_json(observe_campaign(desk)))
    else:
        said = phrase("cli.handed_over", pid=holder.pid) if holder else phrase("cli.nothing_to_hand_over")
        print(phrase("cli.status_and_wait_tell", said=said))
    return 0


def print_changes(changes: DefinitionChanges) -> None:
    for line in format_change_lines(changes):
        print(line)
    if changes.code_changed:
        print(phrase("cli.code_changed_since_taken_in"))
