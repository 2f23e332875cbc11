"""muster release"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.hold_campaign import release_campaign
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_notice
from muster.text.phrases import phrase

app = typer.Typer(add_completion=False)


@app.command("release", epilog="Example:  muster release --because 'the disk was enlarged'")
def release_command(
    ctx: typer.Context,
    because: Annotated[str, typer.Option(help="Why, for the record.")] = "released by a person",
) -> int:
    """Ends a hold: the campaign goes on as it was before."""
    found = release_campaign(CampaignHandle.open_to_act(folder_of_context(ctx)), because, print_notice)
    if found.state.intent.kind == "down":
        print(phrase("cli.released_but_down"))
    elif found.complete:
        print(phrase("cli.released_and_complete"))
    elif found.going_on:
        print(phrase("cli.released_goes_on"))
    else:
        print(phrase("cli.released_nothing_starts"))
    return 0
