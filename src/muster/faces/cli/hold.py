"""muster hold"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.act_on_cells import require_reason
from muster.faces.cli.common.command_line import folder_of_context
from muster.model.errors import MusterError
from muster.text.sentences import end_with_full_stop

app = typer.Typer(add_completion=False)


@app.command("hold", epilog='Example:  muster hold --because "waiting for the new data"')
def hold_command(
    ctx: typer.Context,
    because: Annotated[str, typer.Option(help="Why, for whoever wants to go on.", show_default=False)],
) -> int:
    """Nothing new starts, whoever asks, until `muster release`. What runs goes on."""
    reason = require_reason(because)
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    before = desk.load().intent
    refused = desk.decide([desk.person("hold", reason)])[0]
    if refused:
        raise MusterError(f"not held: {refused}")
    living = len(desk.load().open_attempts)
    go_on = f"; {living} running {'cell goes' if living == 1 else 'cells go'} on" if living else ""
    print(f"held: {end_with_full_stop(reason)} Nothing new starts until `muster release`{go_on}")
    if before.kind == "held":
        print(f"it was held before: {before.reason}")
    return 0
