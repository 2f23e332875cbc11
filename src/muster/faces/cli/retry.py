"""muster retry"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.choose_cells import require_reason
from muster.app.campaign.verbs.retry_cells import retry_cells
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_notice, print_refusals
from muster.text.phrases import phrase

app = typer.Typer(add_completion=False)


@app.command("retry", epilog="Example:  muster retry train/v2_full/2 --because 'more memory since'")
def retry_command(
    ctx: typer.Context,
    cells: Annotated[list[str], typer.Argument(metavar="CELL...", help="Cells, or globs.", show_default=False)],
    because: Annotated[str, typer.Option(help="What changed, so that it may go well now.", show_default=False)],
) -> int:
    """Lets dead or given-up cells start again. The reason is recorded with the new attempt.

    Where campaign.yaml or a config has changed since it was taken in, `muster up` takes it in first.
    """
    reason = require_reason(because)
    done = retry_cells(CampaignHandle.open_to_act(folder_of_context(ctx)), cells, reason, print_notice)
    print_refusals(done.refused, "cli.not_retried")
    for each in done.retried:
        if each.attempt:
            print(phrase("cli.cell_retried", cell=each.cell, attempt=each.attempt, state=each.state))
        else:
            print(phrase("cli.cell_to_be_retried", cell=each.cell, next=each.next))
    return 1 if done.refused else 0
