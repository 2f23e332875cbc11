"""muster verify"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.report.verify_files import file_states_as_json, verify_with_commands
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import paint_text, print_json
from muster.text.phrases import phrase

app = typer.Typer(add_completion=False)
FILE_STATE_COLOURS = {"fresh": "green", "stale": "yellow", "broken": "red"}


@app.command("verify", epilog="Example:  muster verify && echo 'every table is what its results make of it'")
def verify_command(
    ctx: typer.Context,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Holds every derived file against its inputs: fresh, stale (an input changed) or broken (it can't be told)."""
    desk = CampaignHandle.open(folder_of_context(ctx))
    found = verify_with_commands(desk)
    if as_json_:
        print_json(file_states_as_json(found.files))
    elif not found.files:
        print(phrase("cli.nothing_derived_yet_report_makes"))
    else:
        for each in found.files:
            because = f"  {each.because}" if each.because else ""
            print(f"{paint_text(f'{each.state:<6}', FILE_STATE_COLOURS[each.state])}  {each.path}{because}")
        again = (
            phrase("cli.made_anew", commands=", ".join(f"`{each}`" for each in found.commands))
            if found.commands
            else ""
        )
        good = len(found.files) - len(found.bad)
        print(
            phrase(
                "cli.fresh_not",
                count=phrase("count.file", n=len(found.files)),
                good=good,
                bad=len(found.bad),
                again=again,
            )
        )
    return 1 if found.bad else 0
