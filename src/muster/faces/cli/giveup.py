"""muster giveup"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.choose_cells import require_reason
from muster.app.campaign.verbs.decide_for_cells import give_up_cells
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_notice, print_refusals
from muster.text.phrases import phrase

app = typer.Typer(add_completion=False)


@app.command("giveup", epilog="Example:  muster giveup train/v2_full/4 --because 'this seed diverges'")
def giveup_command(
    ctx: typer.Context,
    cells: Annotated[list[str], typer.Argument(metavar="CELL...", help="Cells, or globs.", show_default=False)],
    because: Annotated[str, typer.Option(help="Why it will never be done.", show_default=False)],
) -> int:
    """Settles cells that will never be done. Reports count them as missing; `muster retry` takes them up again."""
    reason = require_reason(because)
    answers = give_up_cells(CampaignHandle.open_to_act(folder_of_context(ctx)), cells, reason, print_notice)
    print_refusals(answers.refused, "cli.not_given_up")
    for name in answers.accepted:
        print(phrase("cli.cell_given_up", cell=name))
    return 1 if answers.refused else 0
