"""muster release"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.cli.app import open_folder
from muster.cli.deciding import go_on
from muster.domain.errors import MusterError
from muster.wiring.desk import Desk

app = typer.Typer(add_completion=False)


@app.command("release", epilog="Example:  muster release --because 'the disk was enlarged'")
def release(
    ctx: typer.Context,
    because: Annotated[str, typer.Option(help="Why, for the record.")] = "released by a person",
) -> int:
    """Ends a hold: the campaign goes on as it was before."""
    desk = Desk.open_to_act(open_folder(ctx))
    refused = desk.decide([desk.person("release", because)])[0]
    if refused:
        raise MusterError(f"not released: {refused}")
    found = go_on(desk)
    if found.state.intent.kind == "down":
        print("released; the campaign is down as it was before the hold, `muster up` starts it")
    elif found.complete:
        print("released; the campaign is complete")
    elif found.going_on:
        print("released; it goes on")
    else:
        print("released; nothing may start now: `muster status` says why")
    return 0
