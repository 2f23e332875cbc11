"""muster rename"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.rename_axis_value import RenameResult, rename_as_json, rename_axis_value
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_json
from muster.model.errors import UsageError
from muster.text.sentences import format_count, join_few_names

app = typer.Typer(add_completion=False)


@app.command("rename", epilog="Example:  muster rename config large=big")
def rename_command(
    ctx: typer.Context,
    axis: Annotated[str, typer.Argument(metavar="AXIS", help="The axis.", show_default=False)],
    names: Annotated[str, typer.Argument(metavar="OLD=NEW", help="Its value, and the new name.", show_default=False)],
    because: Annotated[str, typer.Option(help="Why, for the record.")] = "",
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Gives a value of an axis another name and keeps what is done: its cells, attempts and results.

    Edits the name in campaign.yaml, and nothing else there; a name that was changed there by hand is recognised.
    Refused while a run of it is open. Exit code: 0 renamed, 1 it could not be, 2 wrong use; nothing was changed.
    """
    old, sign, new = names.partition("=")
    if old and old == new:
        raise UsageError(
            f"{old!r} is the name that it has; nothing was changed", hint=f"muster rename {axis} {old}=NEW"
        )
    if not sign or not old or not new:
        raise UsageError(f"{names!r} is not OLD=NEW", hint=f"muster rename {axis} large=big")
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    done = rename_axis_value(desk, axis, old, new, " ".join(because.split()))
    if as_json_:
        print_json(rename_as_json(done))
    else:
        _print_rename(done)
    return 0


def _print_rename(done: RenameResult) -> None:
    what = f"{done.axis} {done.old} is {done.new} now"
    if done.already:
        print(f"{what}: it was renamed before" + (", and campaign.yaml has the new name now" if done.edited else ""))
        return
    keep = "keeps" if len(done.cells) == 1 else "keep"
    print(f"{what}: {format_count(len(done.cells))} {keep} what is done: {join_few_names(list(done.cells))}")
    print(
        "campaign.yaml has the new name" + ("" if done.edited else " already") + "; reports with the old one are stale"
    )
    if done.passed_by:
        runs = f"later runs of {', '.join(done.passed_by)} are given {done.new}, by {{{done.axis}}} in the command"
        print(f"{runs}: see that they do with it what they did with {done.old}")
