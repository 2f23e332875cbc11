"""muster accept"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.accept_attempts import accept_attempts
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_notice, print_refusals
from muster.text.phrases import phrase

app = typer.Typer(add_completion=False)


@app.command("accept", epilog="Example:  muster accept train/v2_full/2 --because 'it failed in its teardown only'")
def accept_command(
    ctx: typer.Context,
    cells: Annotated[list[str], typer.Argument(metavar="CELL...", help="Cells, or globs.", show_default=False)],
    because: Annotated[
        str | None, typer.Option(help="Why, for the record; more than one cell needs it.", show_default=False)
    ] = None,
    attempt: Annotated[
        int | None,
        typer.Option("--attempt", metavar="N", help="This attempt and no other.", show_default=False),
    ] = None,
) -> int:
    """Takes an attempt of a dead cell as DONE although it did not exit with 0: the newest whose proof holds.

    Proofs are read again.
    """
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    done = accept_attempts(desk, cells, because, print_notice, attempt=attempt)
    print_refusals(done.refused, "cli.not_accepted")
    for each in done.accepted:
        if each.of > 1:
            print(phrase("cli.attempt_accepted", cell=each.cell, attempt=each.attempt, of=each.of))
        else:
            print(phrase("cli.cell_accepted", cell=each.cell))
    return 1 if done.refused else 0
