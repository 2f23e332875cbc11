"""muster hold"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.acts.decisions import given
from muster.cli.app import open_folder
from muster.domain.errors import MusterError
from muster.domain.wording import full_stop
from muster.wiring.desk import Desk

app = typer.Typer(add_completion=False)


@app.command("hold", epilog='Example:  muster hold --because "waiting for the new data"')
def hold(
    ctx: typer.Context,
    because: Annotated[str, typer.Option(help="Why, for whoever wants to go on.", show_default=False)],
) -> int:
    """Nothing new starts, whoever asks, until `muster release`. What runs goes on."""
    reason = given(because)
    desk = Desk.open_to_act(open_folder(ctx))
    before = desk.load().intent
    refused = desk.decide([desk.person("hold", reason)])[0]
    if refused:
        raise MusterError(f"not held: {refused}")
    living = len(desk.load().open_attempts)
    go_on = f"; {living} running {'cell goes' if living == 1 else 'cells go'} on" if living else ""
    print(f"held: {full_stop(reason)} Nothing new starts until `muster release`{go_on}")
    if before.kind == "held":
        print(f"it was held before: {before.reason}")
    return 0
