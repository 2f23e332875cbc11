"""muster giveup"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.act_on_cells import AttemptEndWaiter, require_reason
from muster.faces.cli.common.choose_cells import apply_decisions, choose_cells, observe_and_revive, start_if_running
from muster.faces.cli.common.command_line import folder_of_context

app = typer.Typer(add_completion=False)


@app.command("giveup", epilog="Example:  muster giveup train/v2_full/4 --because 'this seed diverges'")
def giveup_command(
    ctx: typer.Context,
    cells: Annotated[list[str], typer.Argument(metavar="CELL...", help="Cells, or globs.", show_default=False)],
    because: Annotated[str, typer.Option(help="Why it will never be done.", show_default=False)],
) -> int:
    """Settles cells that will never be done. Reports count them as missing; `muster retry` takes them up again."""
    reason = require_reason(because)
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    AttemptEndWaiter(desk).record_ended()
    names = choose_cells("giveup", cells, observe_and_revive(desk))
    accepted, code = apply_decisions(desk, [desk.person("giveup", reason, cell=name) for name in names], "given up")
    for name in accepted:
        print(f"{name}: given up; reports count it as missing, `muster retry` takes it up again")
    if accepted:
        start_if_running(desk)  # it may have been the last one that the finish waited for
    return code
