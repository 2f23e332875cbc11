"""muster ls"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.registered_campaigns import (
    ListedCampaign,
    forget_campaign,
    list_campaigns,
    listed_campaign_as_json,
)
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import display_width, pad_name, paint_text, print_json
from muster.text.phrases import phrase

app = typer.Typer(add_completion=False)
STATE_WORDS = {
    "complete": "cli.campaign_is_complete",
    "stopped": "cli.campaign_is_stopped",
    "finishing": "cli.campaign_is_finishing",
    "running": "cli.campaign_is_running",
    "held": "cli.campaign_is_held",
    "down": "cli.campaign_is_down",
    "gone": "cli.campaign_is_gone",
    "unread": "cli.campaign_is_unread",
}
LIST_COLOURS = {"complete": "green", "stopped": "red", "unread": "red", "gone": "yellow", "held": "yellow"}


@app.command(
    "ls", epilog="Example:  muster ls   then, to drop one that was deleted,   muster ls --forget /data/old_sprint"
)
def ls_command(
    ctx: typer.Context,
    forgotten: Annotated[
        str | None,
        typer.Option("--forget", metavar="PATH|ID", help="Drop this campaign from the list; its files stay."),
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Lists the campaigns that this user's `up` started on this machine, wherever they lie: one line each."""
    if forgotten is not None:
        given = folder_of_context(ctx) / forgotten
        dropped = forget_campaign(str(given) if given.exists() else forgotten)
        if as_json_:
            print_json({"muster": 1, "forgotten": {"id": dropped.id, "path": dropped.path}})
        else:
            print(phrase("cli.campaign_forgotten", path=dropped.path))
        return 0
    found = list_campaigns()
    if as_json_:
        print_json({"muster": 1, "campaigns": [listed_campaign_as_json(each) for each in found]})
    elif not found:
        print(phrase("cli.no_campaign_listed"))
    else:
        widest = max(display_width(each.path) for each in found)
        for each in found:
            state = paint_text(pad_name(_say_state(each.state), 9), LIST_COLOURS.get(each.state, ""))
            print(f"{pad_name(each.path, widest)}  {state}  {_format_list_rest(each)}".rstrip())
    return 0


def _say_state(state: str) -> str:
    return phrase(STATE_WORDS[state]) if state in STATE_WORDS else state


def _format_list_rest(each: ListedCampaign) -> str:
    if each.state == "gone":
        return phrase("cli.campaign_gone", campaign=each.name)
    if each.status is None:
        return phrase("cli.campaign_cant_be_read", reason=each.why)
    done = phrase("cli.count_of", count=each.status.counts["DONE"], total=len(each.status.cells))
    dead = not each.status.controller.alive and each.state in ("running", "finishing")
    notes = [phrase("cli.no_controller_up_goes_on")] if dead else []
    notes += [phrase("cli.campaign_renamed", before=each.before)] if each.before else []
    return "  ".join([done, each.name, *([each.verdict] if each.verdict else []), *notes])
