"""muster status"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.status_view import print_status

app = typer.Typer(add_completion=False)


@app.command("status", epilog="Example:  muster status --json | jq .counts")
def status_command(
    ctx: typer.Context,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every second until it is over.")] = False,
) -> int:
    """The truth now: a grid per job, and every cell that is not done with its reason.

    Exit code: 0 complete, 3 stopped short, 4 still going on.
    """
    return print_status(folder_of_context(ctx), as_json_=as_json_, watch=watch)
