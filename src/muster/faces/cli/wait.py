"""muster wait"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import status_as_json
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_json
from muster.text.phrases import phrase
from muster.text.sentences import parse_duration

app = typer.Typer(add_completion=False)


@app.command("wait", epilog="Example:  muster wait --timeout 2h --json")
def wait_command(
    ctx: typer.Context,
    timeout: Annotated[
        str | None, typer.Option(help="Wait at most this long: 90s, 10m, 2h. Default: without end.", show_default=False)
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the status as one JSON object at the end.")] = False,
) -> int:
    """Blocks until the campaign is complete or stuck. Ctrl-C ends the waiting and nothing else.

    Exit code: 0 complete, 3 stopped short, 4 still going on when the time was up.
    """
    limit = None if timeout is None else parse_duration(timeout)
    desk = CampaignHandle.open(folder_of_context(ctx))
    from muster.faces.cli.common.live_view import show_campaign_progress

    last = show_campaign_progress(desk, quiet=as_json_, timeout_s=limit)
    if as_json_:
        print_json(status_as_json(last))
    elif last.going_on:
        settled = last.counts["DONE"] + last.counts["GIVEN_UP"]
        print(phrase("cli.some_cells_settled", settled=settled, cells=phrase("count.cell", n=len(last.cells))))
    return last.exit
