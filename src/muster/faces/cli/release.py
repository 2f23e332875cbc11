"""muster release"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.faces.cli.common.choose_cells import start_if_running
from muster.faces.cli.common.command_line import folder_of_context
from muster.model.errors import MusterError

app = typer.Typer(add_completion=False)


@app.command("release", epilog="Example:  muster release --because 'the disk was enlarged'")
def release_command(
    ctx: typer.Context,
    because: Annotated[str, typer.Option(help="Why, for the record.")] = "released by a person",
) -> int:
    """Ends a hold: the campaign goes on as it was before."""
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    refused = desk.decide([desk.person("release", because)])[0]
    if refused:
        raise MusterError(f"not released: {refused}")
    found = start_if_running(desk)
    if found.state.intent.kind == "down":
        print("released; the campaign is down as it was before the hold, `muster up` starts it")
    elif found.complete:
        print("released; the campaign is complete")
    elif found.going_on:
        print("released; it goes on")
    else:
        print("released; nothing may start now: `muster status` says why")
    return 0
