"""muster edit"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from muster.acts.edit import Made, as_json
from muster.cli.app import open_folder
from muster.cli.paint import paint
from muster.cli.words import padded, say_json, width
from muster.rounds.texts import shown
from muster.wiring.editing import edited

app = typer.Typer(add_completion=False)


@app.command(
    epilog="Example:  muster edit configs/base.json --change 'ot.window@mul=1.5@max=10' --reason 'mass too small'"
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
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Writes one variant of a config, with its reason and parent recorded. The base is only read; needs no campaign."""
    folder = open_folder(ctx)
    made = edited(folder / base, change, reason, folder / out if out else None)
    if as_json_:
        say_json(as_json(made))
    else:
        for line in lines(made):
            print(line)
    return 0


def lines(made: Made) -> Iterator[str]:
    yield f"{paint(str(made.path), 'bold')}   from {made.parent.name}: {_plain(made.reason)}"
    rows = [("path", "before", "after", "")]
    rows += [(_plain(each.path), _plain(shown(each.old)), _plain(shown(each.new)), each.note) for each in made.changes]
    widths = [max(width(row[column]) for row in rows) for column in range(4)]
    for number, row in enumerate(rows):
        line = "  ".join(padded(text, most) for text, most in zip(row, widths, strict=True)).rstrip()
        yield "  " + (paint(line, "dim") if number == 0 else line)
    yield f"recorded in {made.record}"


def _plain(text: str) -> str:
    """Nothing that would play with the terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)
