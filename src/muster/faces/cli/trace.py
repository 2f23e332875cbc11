"""muster trace"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.report.trace_files import format_trace_lines, trace_as_json, trace_derived_file
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_json

app = typer.Typer(add_completion=False)


@app.command(
    "trace", epilog="Example:  muster trace reports/decision.md --claim E3   or   trace reports/tables/main.md:5"
)
def trace_command(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE[:LINE]", help="A file that Muster derived.", show_default=False)],
    claim: Annotated[
        str | None, typer.Option("--claim", help="One sentence of it, by its mark: E3; one number of a table: L5.3.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show every cell.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """From a derived file, or a line in it, back to result files, checkpoints, attempts, definition and commit.

    FILE:LINE means the sentences in that line of a report, or the numbers in that row of a table (csv, md, tex).
    """
    folder = folder_of_context(ctx)
    desk = CampaignHandle.open(folder)
    found = trace_derived_file(desk, Path(file), folder, claim)
    if as_json_:
        print_json(trace_as_json(found))
    else:
        for line in format_trace_lines(found, every=every):
            print(line)
    return 0
