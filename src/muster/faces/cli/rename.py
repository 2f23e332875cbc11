"""muster rename"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.rename_axis_value import RenameResult, rename_as_json, rename_axis_value
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_json
from muster.model.errors import UsageError
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names

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
        raise UsageError(phrase("cli.has_that_name", name=old), hint=f"muster rename {axis} {old}=NEW")
    if not sign or not old or not new:
        raise UsageError(phrase("cli.not_old_equals_new", text=names), hint=f"muster rename {axis} large=big")
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    done = rename_axis_value(desk, axis, old, new, " ".join(because.split()))
    if as_json_:
        print_json(rename_as_json(done))
    else:
        _print_rename(done)
    return 0


def _print_rename(done: RenameResult) -> None:
    what = phrase("cli.value_renamed", axis=done.axis, old=done.old, new=done.new)
    if done.already:
        print(phrase("cli.renamed_before_file_edited" if done.edited else "cli.renamed_before", renamed=what))
        return
    cells = join_few_names(list(done.cells))
    print(phrase("cli.cells_keep_what_is_done", renamed=what, n=len(done.cells), cells=cells))
    print(phrase("cli.file_has_new_name" if done.edited else "cli.file_had_new_name"))
    if done.passed_by:
        print(
            phrase(
                "cli.later_runs_get_new_name",
                jobs=", ".join(done.passed_by),
                axis=done.axis,
                old=done.old,
                new=done.new,
            )
        )
