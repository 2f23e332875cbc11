"""muster fsck"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from muster.cli.app import open_folder
from muster.cli.paint import paint
from muster.cli.words import counted, say_json
from muster.store.fsck import Findings
from muster.wiring.desk import find_root
from muster.wiring.mending import mend

app = typer.Typer(add_completion=False)
LISTED = 20


@app.command(epilog="Example:  muster down && muster fsck && muster up --detach")
def fsck(
    ctx: typer.Context,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Rebuilds campaign.db from decisions.jsonl and the attempt folders; the old one is kept beside it.

    Runs are left alone. Needs that no controller is at work: `muster down` first.
    """
    found = mend(find_root(open_folder(ctx)))
    if as_json_:
        say_json(asdict(found))
        return 0
    for line in lines(found):
        print(line)
    return 0


def lines(found: Findings) -> Iterator[str]:
    held = f"{counted(found.cells)}, {counted(found.attempts, 'attempt')}"
    yield paint(f"rebuilt: {held}, from {counted(found.decisions, 'decision')}", "green")
    if found.old == "sound":
        yield f"the old campaign.db was sound; differences to the rebuilt one: {len(found.differences)}"
        yield from _list("  ", found.differences)
        if found.behind:
            yield f"it had not seen the last {found.behind} decisions"
    else:
        yield f"the old campaign.db was {found.old}"
    if found.old != "missing":
        yield "the old one is kept as .muster/campaign.db.before-fsck"
    if found.torn:
        yield f"{len(found.torn)} lines of decisions.jsonl could not be read and are in decisions.torn now:"
        yield from _list("  ", found.torn)
    if found.restored:
        yield f"{found.restored} decisions were missing in decisions.jsonl and are back, from the old campaign.db"
    for items, text in (
        (found.recovered, "attempts were known only by their folders and are back in the record"),
        (found.unplaced, "attempt folders fit nothing; they are left as they are"),
        (found.folderless, "attempts have no folder any more; their record is kept"),
        (found.ended, "attempts have ended and are not recorded yet; `muster up` judges them"),
    ):
        if items:
            yield f"{len(items)} {text}:"
            yield from _list("  ", items)


def _list(indent: str, items: tuple[str, ...]) -> Iterator[str]:
    yield from (f"{indent}{item}" for item in items[:LISTED])
    if len(items) > LISTED:
        yield f"{indent}and {len(items) - LISTED} more; --json has them all"
