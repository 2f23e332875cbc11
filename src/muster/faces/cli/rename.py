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
        raise UsageError(phrase("cli.name_nothing_changed", old=old), hint=f"muster rename {axis} {old}=NEW")
    if not sign or not old or not new:
        raise UsageError(phrase("cli.not_old_new", names=names), hint=f"muster rename {axis} large=big")
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    done = rename_axis_value(desk, axis, old, new, " ".join(because.split()))
    if as_json_:
        print_json(rename_as_json(done))
    else:
        _print_rename(done)
    return 0


def _print_rename(done: RenameResult) -> None:
    what = phrase("cli.now", axis=done.axis, old=done.old, new=done.new)
    if done.already:
        print(
            phrase("cli.renamed_before", what=what) + (phrase("cli.campaign_yaml_new_name_now") if done.edited else "")
        )
        return
    keep = "keeps" if len(done.cells) == 1 else "keep"
    print(
        phrase(
            "cli.what_done",
            what=what,
            count=phrase("count.cell", n=len(done.cells)),
            keep=keep,
            few_names=join_few_names(list(done.cells)),
        )
    )
    print(
        phrase("cli.campaign_yaml_new_name") + ("" if done.edited else " already") + phrase("cli.reports_old_one_stale")
    )
    if done.passed_by:
        runs = phrase("cli.later_runs_given_command", passed_by=", ".join(done.passed_by), new=done.new, axis=done.axis)
        print(phrase("cli.see_they_do_what_they_did", runs=runs, old=done.old))
