"""muster ls"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.acts.register import Listed, listed_json
from muster.cli.app import open_folder
from muster.cli.paint import paint
from muster.cli.words import padded, say_json, width
from muster.wiring.registering import forget, listed

app = typer.Typer(add_completion=False)
COLOURS = {"complete": "green", "stopped": "red", "unread": "red", "gone": "yellow", "held": "yellow"}


@app.command(
    "ls", epilog="Example:  muster ls   then, to drop one that was deleted,   muster ls --forget /data/old_sprint"
)
def ls(
    ctx: typer.Context,
    forgotten: Annotated[
        str | None,
        typer.Option("--forget", metavar="PATH|ID", help="Drop this campaign from the list; its files stay."),
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Lists the campaigns that this user's `up` started on this machine, wherever they lie: one line each."""
    if forgotten is not None:
        given = open_folder(ctx) / forgotten
        dropped = forget(str(given) if given.exists() else forgotten)
        if as_json_:
            say_json({"muster": 1, "forgotten": {"id": dropped.id, "path": dropped.path}})
        else:
            print(f"forgotten: {dropped.path}. `muster up` there enters it again")
        return 0
    found = listed()
    if as_json_:
        say_json({"muster": 1, "campaigns": [listed_json(each) for each in found]})
    elif not found:
        print("no campaign yet; `muster up` enters its campaign here")
    else:
        widest = max(width(each.path) for each in found)
        for each in found:
            state = paint(f"{each.state:<9}", COLOURS.get(each.state, ""))
            print(f"{padded(each.path, widest)}  {state}  {_rest(each)}".rstrip())
    return 0


def _rest(each: Listed) -> str:
    if each.state == "gone":
        return f"{each.name}; deleted or moved: any `muster up` there enters it again, `muster ls --forget` drops it"
    if each.status is None:
        return f"it can't be read: {each.why}"
    done = f"{each.status.counts['DONE']} of {len(each.status.cells)}"
    dead = not each.status.controller.alive and each.state in ("running", "finishing")
    notes = ["no controller: `muster up` goes on"] if dead else []
    notes += [f"renamed, was {each.before}"] if each.before else []
    return "  ".join([done, each.name, *([each.verdict] if each.verdict else []), *notes])
