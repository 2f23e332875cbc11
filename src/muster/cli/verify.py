"""muster verify"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.acts.remake import remade_by
from muster.acts.stamping import stamps
from muster.acts.verify import as_json
from muster.cli.app import open_folder
from muster.cli.paint import paint
from muster.cli.words import counted, say_json
from muster.wiring.desk import Desk
from muster.wiring.verifying import verified

app = typer.Typer(add_completion=False)
COLOURS = {"fresh": "green", "stale": "yellow", "broken": "red"}


@app.command("verify", epilog="Example:  muster verify && echo 'every table is what its results make of it'")
def verify(
    ctx: typer.Context,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Holds every derived file against its inputs: fresh, stale (an input changed) or broken (it can't be told)."""
    desk = Desk.open(open_folder(ctx))
    found = verified(desk)
    if as_json_:
        say_json(as_json(found))
    elif not found:
        print("nothing was derived yet; `muster report` makes tables, figures and the decision report")
    else:
        for each in found:
            because = f"  {each.because}" if each.because else ""
            print(f"{paint(f'{each.state:<6}', COLOURS[each.state])}  {each.path}{because}")
        bad = [each for each in found if each.state != "fresh"]
        commands = remade_by([each.path for each in bad], stamps(desk.root))
        again = f"; made anew by {', '.join(f'`{each}`' for each in commands)}" if bad else ""
        print(f"{counted(len(found), 'file')}, {len(found) - len(bad)} fresh, {len(bad)} not{again}")
    return 1 if any(each.state != "fresh" for each in found) else 0
