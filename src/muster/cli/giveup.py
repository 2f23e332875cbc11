"""muster giveup"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.acts.decisions import given
from muster.cli.app import open_folder
from muster.cli.cells import looked
from muster.cli.deciding import carry, go_on, meant
from muster.wiring.desk import Desk
from muster.wiring.stopping import Stopping

app = typer.Typer(add_completion=False)


@app.command("giveup", epilog="Example:  muster giveup train/v2_full/4 --because 'this seed diverges'")
def giveup(
    ctx: typer.Context,
    cells: Annotated[list[str], typer.Argument(metavar="CELL...", help="Cells, or globs.", show_default=False)],
    because: Annotated[str, typer.Option(help="Why it will never be done.", show_default=False)],
) -> int:
    """Settles cells that will never be done. Reports count them as missing; `muster retry` takes them up again."""
    reason = given(because)
    desk = Desk.open_to_act(open_folder(ctx))
    Stopping(desk).record_ended()
    names = meant("giveup", cells, looked(desk))
    accepted, code = carry(desk, [desk.person("giveup", reason, cell=name) for name in names], "given up")
    for name in accepted:
        print(f"{name}: given up; reports count it as missing, `muster retry` takes it up again")
    if accepted:
        go_on(desk)  # it may have been the last one that the finish waited for
    return code
