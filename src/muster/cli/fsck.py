"""muster fsck"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from muster.cli.app import open_folder
from muster.cli.paint import paint
from muster.cli.words import counted, say_json
from muster.domain.wording import filled
from muster.store.fsck import Findings
from muster.wiring.mending import mend
from muster.wiring.roots import find_root

app = typer.Typer(add_completion=False)
LISTED = 20


@app.command("fsck", epilog="Example:  muster down && muster fsck && muster up --detach")
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
            yield f"it had not seen the last {counted(found.behind, 'decision')}"
    else:
        yield f"the old campaign.db was {found.old}"
    if found.old != "missing":
        yield "the old one is kept as .muster/campaign.db.before-fsck"
    if found.torn:
        yield f"{counted(len(found.torn), 'line')} of decisions.jsonl could not be read, now in decisions.torn:"
        yield from _list("  ", found.torn)
    if found.restored:
        missing = counted(found.restored, "decision was", "decisions were")
        yield f"{missing} missing in decisions.jsonl and came back, from the old campaign.db"
    for items, text in (
        (
            found.recovered,
            "{n:attempt was|attempts were} known only by {n:its folder|their folders}; now recorded",
        ),
        (found.unplaced, "attempt {n:folder fits|folders fit} nothing: left as {n:it is|they are}"),
        (found.folderless, "{n:attempt has|attempts have} no folder any more; {n:its|their} record is kept"),
        (
            found.ended,
            "{n:attempt has|attempts have} ended, not recorded yet; `muster up` judges {n:it|them}",
        ),
    ):
        if items:
            yield filled(f"{len(items)} {text}:", {"n": len(items)})
            yield from _list("  ", items)


def _list(indent: str, items: tuple[str, ...]) -> Iterator[str]:
    yield from (f"{indent}{item}" for item in items[:LISTED])
    if len(items) > LISTED:
        yield f"{indent}and {len(items) - LISTED} more; --json has them all"
