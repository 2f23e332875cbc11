"""muster redo"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.choose_cells import require_reason
from muster.app.campaign.verbs.redo_cells import RedoResult, redo_as_json, redo_cells
from muster.app.campaign.verbs.retry_cells import RestartedCell
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_json, print_notice, print_refusals
from muster.model.errors import UsageError
from muster.text.phrases import join_phrases, phrase
from muster.text.sentences import join_few_names

app = typer.Typer(add_completion=False)


@app.command("redo", epilog="Example:  muster redo train/v2_full/2 --because 'the reward had the wrong sign'")
def redo_command(
    ctx: typer.Context,
    because: Annotated[str, typer.Option(help="Why what is DONE must be run again.", show_default=False)],
    cells: Annotated[
        list[str] | None, typer.Argument(metavar="CELL...", help="DONE cells, or globs.", show_default=False)
    ] = None,
    outdated_: Annotated[
        bool, typer.Option("--outdated", help="All DONE cells whose definition has changed since they ran.")
    ] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Runs DONE cells again, from scratch. The old attempts stay, superseded: nothing rests on them any more.

    DONE cells that need one of them, such as its evaluations, are run again with it. Exit code: 0 all that was named
    will run again, 1 some of it can't.
    """
    reason = require_reason(because)
    if bool(cells) == outdated_:
        raise UsageError(phrase("cli.name_cells_or_outdated"), hint="muster redo 'train/*/2' --because TEXT")
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    done = redo_cells(desk, cells or [], reason, print_notice, outdated=outdated_)
    if as_json_:
        print_json(redo_as_json(done))
    else:
        _print_redo(done)
    return 1 if done.refused else 0


def _print_redo(done: RedoResult) -> None:
    print_refusals(done.refused, "cli.not_redone")
    for each in done.redone:
        if each.cell not in done.followers:
            print(f"{each.cell}: {_format_redone_cell(each)}")
    if done.followers:
        count, names = phrase("count.cell", n=len(done.followers)), join_few_names(done.followers)
        print(phrase("cli.followers_run_again", count=count, cells=names))
    if done.overwritten:
        names = join_few_names(done.overwritten)
        print(phrase("cli.outputs_may_be_overwritten", cells=names))
    if not done.redone and not done.refused:
        print(phrase("cli.nothing_to_redo"))


def _format_redone_cell(each: RestartedCell) -> str:
    old = phrase("cli.attempt_superseded", attempt=each.tried)
    if each.attempt:
        return join_phrases("; ", (old, phrase("cli.new_attempt", attempt=each.attempt, state=each.state)))
    return join_phrases("; ", filter(None, (old, each.reason, each.next)))
