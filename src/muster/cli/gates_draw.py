"""muster gates draw"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from muster.cli.app import open_folder
from muster.cli.cells import declared, looked, one, withdrawn
from muster.cli.paint import paint
from muster.cli.words import say_json
from muster.domain.errors import UsageError
from muster.report.figures.staged.artifacts import ENDINGS, kind_of
from muster.report.figures.staged.words import LANGUAGES
from muster.wiring.desk import Desk
from muster.wiring.measuring import cells_named
from muster.wiring.owner import NOT_YOURS
from muster.wiring.roots import find_root_to_read
from muster.wiring.staged_drawing import DrawnFiles, draw_cell, draw_folder

EXAMPLE = "Example:  muster gates draw runs/v40 --language zh   or   muster gates draw train/v2_full/2"


def draw(
    ctx: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="PATH|CELL", help="The folder of a run, or a cell.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where to; default: PATH/figures, of a cell reports/gates/CELL.", show_default=False
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(metavar="zh|en", help="Of captions and notes; else the campaign's, or en.", show_default=False),
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Draws what a staged training left: gate timelines, events by stage, warnings, survival. PNG, SVG and PDF.

    Labels in the data that contradict the schedule are hatched in the pictures and named.
    """
    if language is not None and language not in LANGUAGES:
        raise UsageError(f"--language {language}: expected {' or '.join(LANGUAGES)}")
    base = open_folder(ctx)
    made = _made(target, base, base / out if out else None, language)
    if as_json_:
        say_json(_json(made))
    else:
        for line in _lines(made):
            print(line)
    return 0


def _made(target: str, base: Path, out: Path | None, language: str | None) -> DrawnFiles:
    """What exists as a path is a path."""
    path = base / target
    if target.strip() and path.exists():
        return draw_folder(_folder(path, target), out, language or "en")
    try:
        find_root_to_read(base)
    except UsageError as error:
        if error.code == NOT_YOURS:
            raise
        raise UsageError(
            f"there is no folder {target!r}", hint="name the folder of a run, or a cell where a campaign is"
        ) from None
    desk = Desk.open(base)
    desk.refuse_stranger()
    status = looked(desk)
    name = one(target, declared(status.state), withdrawn(status.state))
    (cell,) = cells_named(status, [name])
    return draw_cell(desk, status, cell, out, language or status.state.campaign.language)


def _folder(path: Path, target: str) -> Path:
    if path.is_dir():
        return path
    if kind_of(path.name) is None:
        raise UsageError(f"{target} is none of the files of a run", hint=f"those are called {', '.join(ENDINGS)}")
    return path.parent


def _lines(made: DrawnFiles) -> Iterator[str]:
    for stem in made.captions:
        first, *others = (path for path in made.files if path.name.partition(".")[0] == stem)
        also = f" ({', '.join(path.suffix for path in others)})" if others else ""
        yield f"{paint(os.path.relpath(first), 'bold')}{also}"
        yield f"  {made.captions[stem]}"
    yield from (paint(note, "yellow") for note in made.notes)


def _json(made: DrawnFiles) -> dict[str, Any]:
    return {
        "folder": str(made.folder),
        "files": [str(path) for path in made.files],
        "captions": dict(made.captions),
        "notes": list(made.notes),
        "contradictions": list(made.contradictions),
        "inputs": [{"path": path, "sha256": digest} for path, digest in made.inputs.items()],
        "stamped": made.stamped,
    }
