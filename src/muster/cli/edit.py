"""muster edit"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.acts.edit import Made, as_json
from muster.cli.app import open_folder
from muster.cli.paint import paint
from muster.cli.words import counted, padded, say_json, width
from muster.domain.terminal_text import safe_line
from muster.rounds.texts import shown
from muster.wiring.editing import edited

if TYPE_CHECKING:
    from muster.wiring.one_more import Ready

app = typer.Typer(add_completion=False)


@app.command(
    "edit",
    epilog="Example:  muster edit configs/base.json --change 'ot.window@mul=1.5@max=10' --reason 'mass too small'",
)
def edit(
    ctx: typer.Context,
    base: Annotated[
        str, typer.Argument(metavar="BASE", help="A config: .json, .yaml, .yml or .toml.", show_default=False)
    ],
    change: Annotated[
        list[str],
        typer.Option("--change", metavar="EDIT", help="PATH@set=V, @mul=F or @add=F; repeated: one after the other."),
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it is tried, for the lineage.")],
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Where it goes, instead of beside the base.")
    ] = None,
    run: Annotated[
        bool, typer.Option("--run", help="Run it, too: as one more variant of the campaign's loop.")
    ] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Writes one variant of a config, with its reason and parent recorded. The base is only read.

    Needs no campaign, unless --run is given. Exit code with --run: 0 it is done, or waits for its turn in a campaign
    that is running; 3 it stopped short, 4 detached while it runs.
    """
    folder = open_folder(ctx)
    where = _ready(folder) if run else None
    made = edited(folder / base, change, reason, folder / out if out else None, tried=where.tried if where else None)
    if not as_json_:
        for line in lines(made):
            print(line)
    if where:
        return _run(where, made, as_json_)
    if as_json_:
        say_json(as_json(made))
    return 0


def _ready(folder: Path) -> Ready:
    from muster.wiring.one_more import ready

    return ready(folder)


def _run(where: Ready, made: Made, as_json_: bool) -> int:
    from muster.acts.status import cell_json
    from muster.cli.up import see_through, start
    from muster.wiring.one_more import run_variant
    from muster.wiring.survey import look

    joined = run_variant(where, made)
    if joined.warnings:
        from muster.cli.mistakes import show

        show(str(joined.desk.file), joined.warnings)
    if joined.going_on:
        start(joined.desk)
        status = look(joined.desk)
    else:
        status = see_through(joined.desk, quiet=as_json_)
    cells = [cell for cell in status.cells if joined.has(cell.record.cell)]
    if as_json_:
        say_json(as_json(made) | {"cells": [cell_json(cell, status) for cell in cells]})
    elif joined.going_on:
        print(f"{counted(len(cells))} more; the campaign goes on: `muster wait` waits, `muster status` tells")
    if joined.going_on or all(cell.record.done for cell in cells):
        return 0
    return 4 if status.going_on else 3


def lines(made: Made) -> Iterator[str]:
    yield f"{paint(str(made.path), 'bold')}   from {made.parent.name}: {safe_line(made.reason)}"
    rows = [("path", "before", "after", "")]
    rows += [
        (safe_line(each.path), safe_line(shown(each.old)), safe_line(shown(each.new)), each.note)
        for each in made.changes
    ]
    widths = [max(width(row[column]) for row in rows) for column in range(4)]
    for number, row in enumerate(rows):
        line = "  ".join(padded(text, most) for text, most in zip(row, widths, strict=True)).rstrip()
        yield "  " + (paint(line, "dim") if number == 0 else line)
    yield f"recorded in {made.record}"
