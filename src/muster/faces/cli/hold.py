"""muster hold"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.choose_cells import require_reason
from muster.app.campaign.verbs.hold_campaign import hold_campaign
from muster.faces.cli.common.command_line import folder_of_context
from muster.text.phrases import join_phrases, phrase
from muster.text.sentences import end_with_full_stop

app = typer.Typer(add_completion=False)


@app.command("hold", epilog='Example:  muster hold --because "waiting for the new data"')
def hold_command(
    ctx: typer.Context,
    because: Annotated[str, typer.Option(help="Why, for whoever wants to go on.", show_default=False)],
) -> int:
    """Nothing new starts, whoever asks, until `muster release`. What runs goes on."""
    reason = require_reason(because)
    done = hold_campaign(CampaignHandle.open_to_act(folder_of_context(ctx)), reason)
    said = [phrase("cli.campaign_held", reason=end_with_full_stop(reason))]
    said += [phrase("cli.cells_run_on", n=done.living)] if done.living else []
    print(join_phrases("; ", said))
    if done.before.kind == "held":
        print(phrase("cli.was_held_before", reason=done.before.reason))
    return 0
