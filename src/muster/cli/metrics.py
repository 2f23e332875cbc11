"""muster metrics"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from muster.acts.metrics import CLOCKS, COLUMNS, Block, age, as_json, rows
from muster.cli.app import open_folder
from muster.cli.cells import declared, looked, resolve, withdrawn
from muster.cli.durations import span
from muster.cli.paint import paint
from muster.cli.words import padded, say_json, width
from muster.domain.errors import UsageError
from muster.domain.terminal_text import safe_line
from muster.wiring.desk import Desk
from muster.wiring.measuring import (
    Asked,
    Wanted,
    asked_cell,
    asked_path,
    cells_named,
    of_all,
    online,
    paths_meant,
)
from muster.wiring.owner import NOT_YOURS
from muster.wiring.roots import find_root_to_read

app = typer.Typer(add_completion=False)


@app.command(
    "metrics",
    epilog="Example:  muster metrics outputs/train --key 'train/*'   or   muster metrics train/v2_full/2 --json",
)
def metrics(
    ctx: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CELL|DIR...]",
            help="A cell, a folder with one or more runs in it, a file of one; globs will do.",
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option("--key", metavar="GLOB", help="Only these keys.", show_default=False)
    ] = None,
    wandb_online: Annotated[
        str | None,
        typer.Option(
            "--wandb-online",
            metavar="ENTITY/PROJECT",
            help="Runs on a W&B server; needs its package.",
            show_default=False,
        ),
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object; a list for several runs.")] = False,
) -> int:
    """First, last, best, delta, % and mean of each key, from whatever the run wrote. A folder needs no campaign."""
    if not targets and not wandb_online:
        raise UsageError("which run?", hint="for example: muster metrics outputs/train")
    keys = Wanted(tuple(key or ()))
    asked: list[Asked] = [(wandb_online, partial(online, wandb_online, keys))] if wandb_online else []
    for target in targets or []:
        asked += _asked(target, open_folder(ctx), keys)
    blocks = of_all(asked, keys)
    now = time.time()
    if as_json_:
        objects = [as_json(block, now) for block in blocks]
        say_json(objects if len(objects) > 1 else objects[0])
        return 0
    for number, block in enumerate(blocks):
        if number:
            print()
        _show(block, now, clocks=any(each in CLOCKS for each in key or []))
    return 0


def _asked(target: str, folder: Path, keys: Wanted) -> list[Asked]:
    """A folder, or a cell; what exists as a path is a path."""
    if paths := paths_meant(target, folder):
        return [asked_path(path, folder, keys) for path in paths]
    try:
        find_root_to_read(folder)
    except UsageError as error:
        if error.code == NOT_YOURS:
            raise
        raise UsageError(f"there is no {target}", hint="name a folder, or a cell where a campaign is") from None
    desk = Desk.open(folder)
    status = looked(desk)
    names = resolve([target], declared(status.state), withdrawn(status.state))
    return [asked_cell(desk, cell, keys) for cell in cells_named(status, names)]


def _show(block: Block, now: float, *, clocks: bool) -> None:
    print(paint(block.name, "bold"))
    for said, why in block.sources:
        print(f"  {said.format}: {said.path} ({why})")
        for each in said.skipped:
            print(f"    {each}")
    for note in block.notes:
        print(f"  {note}")
    table = rows(block, clocks=clocks)
    if not table:
        if block.sources and not block.others:
            print("  no values yet")
        return
    _table([COLUMNS, *table])
    ended = f"; it ended with exit code {block.ended.code}" if block.ended else ""
    seconds = age(block, now)
    if seconds is not None:
        print(f"  the last value is {span(seconds)} old{ended}")


def _table(table: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(width, column)) for column in zip(*table, strict=True)]
    for row in table:
        first, *rest = (
            padded(cell, size) if at == 0 else " " * (size - width(cell)) + safe_line(cell)
            for at, (cell, size) in enumerate(zip(row, widths, strict=True))
        )
        print("  " + "  ".join([first, *rest]).rstrip())
