"""muster wait"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.acts.status import as_json
from muster.cli.app import open_folder
from muster.cli.durations import seconds
from muster.cli.words import counted, say_json
from muster.wiring.desk import Desk

app = typer.Typer(add_completion=False)


@app.command("wait", epilog="Example:  muster wait --timeout 2h --json")
def wait(
    ctx: typer.Context,
    timeout: Annotated[
        str | None, typer.Option(help="Wait at most this long: 90s, 10m, 2h. Default: without end.", show_default=False)
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the status as one JSON object at the end.")] = False,
) -> int:
    """Blocks until the campaign is complete or stuck. Ctrl-C ends the waiting and nothing else.

    Exit code: 0 complete, 3 stopped short, 4 still going on when the time was up.
    """
    limit = None if timeout is None else seconds(timeout)
    desk = Desk.open(open_folder(ctx))
    from muster.cli.live import follow

    last = follow(desk, quiet=as_json_, timeout_s=limit)
    if as_json_:
        say_json(as_json(last))
    elif last.going_on:
        settled = last.counts["DONE"] + last.counts["GIVEN_UP"]
        print(f"still going on: {settled} of {counted(len(last.cells))} {'is' if settled == 1 else 'are'} settled")
    return last.exit
