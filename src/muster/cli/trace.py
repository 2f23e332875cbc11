"""muster trace"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muster.acts.trace import as_json, lines
from muster.cli.app import open_folder
from muster.cli.words import say_json
from muster.wiring.desk import Desk
from muster.wiring.tracing import traced

app = typer.Typer(add_completion=False)


@app.command(
    "trace", epilog="Example:  muster trace reports/decision.md --claim E3   or   trace reports/tables/main.md:5"
)
def trace(
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
    folder = open_folder(ctx)
    desk = Desk.open(folder)
    found = traced(desk, Path(file), folder, claim)
    if as_json_:
        say_json(as_json(found))
    else:
        for line in lines(found, every=every):
            print(line)
    return 0
