"""muster verify"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.report.verify_files import file_states_as_json, verify_with_commands
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import pad_name, paint_text, print_json
from muster.text.phrases import join_phrases, phrase

app = typer.Typer(add_completion=False)
FILE_STATES = {"fresh": "cli.file_fresh", "stale": "cli.file_stale", "broken": "cli.file_broken"}
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
        print(phrase("cli.nothing_derived_yet"))
    else:
        for each in found.files:
            because = f"  {each.because}" if each.because else ""
            state = pad_name(phrase(FILE_STATES[each.state]), 6)
            print(f"{paint_text(state, FILE_STATE_COLOURS[each.state])}  {each.path}{because}")
        fresh, files = len(found.files) - len(found.bad), phrase("count.file", n=len(found.files))
        said = [phrase("cli.files_fresh", files=files, fresh=fresh, bad=len(found.bad))]
        if found.commands:
            said.append(phrase("cli.made_anew_by", commands=", ".join(f"`{each}`" for each in found.commands)))
        print(join_phrases("; ", said))
    return 1 if found.bad else 0
