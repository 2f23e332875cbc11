"""muster verify"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.stamp_files import read_all_stamps
from muster.app.report.verify_files import commands_to_remake, file_states_as_json, verify_campaign_files
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import paint_text, print_json
from muster.text.sentences import format_count

app = typer.Typer(add_completion=False)
FILE_STATE_COLOURS = {"fresh": "green", "stale": "yellow", "broken": "red"}


@app.command("verify", epilog="Example:  muster verify && echo 'every table is what its results make of it'")
def verify_command(
    ctx: typer.Context,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Holds every derived file against its inputs: fresh, stale (an input changed) or broken (it can't be told)."""
    desk = CampaignHandle.open(folder_of_context(ctx))
    found = verify_campaign_files(desk)
    if as_json_:
        print_json(file_states_as_json(found))
    elif not found:
        print("nothing was derived yet; `muster report` makes tables, figures and the decision report")
    else:
        for each in found:
            because = f"  {each.because}" if each.because else ""
            print(f"{paint_text(f'{each.state:<6}', FILE_STATE_COLOURS[each.state])}  {each.path}{because}")
        bad = [each for each in found if each.state != "fresh"]
        commands = commands_to_remake([each.path for each in bad], read_all_stamps(desk.root))
        again = f"; made anew by {', '.join(f'`{each}`' for each in commands)}" if bad else ""
        print(f"{format_count(len(found), 'file')}, {len(found) - len(bad)} fresh, {len(bad)} not{again}")
    return 1 if any(each.state != "fresh" for each in found) else 0
