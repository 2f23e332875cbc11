"""muster fsck"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from muster.app.campaign.verbs.rebuild_state import rebuild_campaign_state
from muster.engine.ports.store import FsckReport
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import paint_text, print_json
from muster.files.campaign_ownership import find_campaign_root
from muster.text.sentences import fill_sentence, format_count

app = typer.Typer(add_completion=False)
MOST_ITEMS = 20


@app.command("fsck", epilog="Example:  muster down && muster fsck && muster up --detach")
def fsck_command(
    ctx: typer.Context,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Rebuilds campaign.db from decisions.jsonl and the attempt folders; the old one is kept beside it.

    Runs are left alone. Needs that no controller is at work: `muster down` first.
    """
    found = rebuild_campaign_state(find_campaign_root(folder_of_context(ctx)))
    if as_json_:
        print_json(asdict(found))
        return 0
    for line in format_fsck_lines(found):
        print(line)
    return 0


def format_fsck_lines(found: FsckReport) -> Iterator[str]:
    held = f"{format_count(found.cells)}, {format_count(found.attempts, 'attempt')}"
    yield paint_text(f"rebuilt: {held}, from {format_count(found.decisions, 'decision')}", "green")
    if found.old == "sound":
        yield f"the old campaign.db was sound; differences to the rebuilt one: {len(found.differences)}"
        yield from _format_item_list("  ", found.differences)
        if found.behind:
            yield f"it had not seen the last {format_count(found.behind, 'decision')}"
    else:
        yield f"the old campaign.db was {found.old}"
    if found.old != "missing":
        yield "the old one is kept as .muster/campaign.db.before-fsck"
    if found.torn:
        yield f"{format_count(len(found.torn), 'line')} of decisions.jsonl could not be read, now in decisions.torn:"
        yield from _format_item_list("  ", found.torn)
    if found.restored:
        missing = format_count(found.restored, "decision was", "decisions were")
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
            yield fill_sentence(f"{len(items)} {text}:", {"n": len(items)})
            yield from _format_item_list("  ", items)


def _format_item_list(indent: str, items: tuple[str, ...]) -> Iterator[str]:
    yield from (f"{indent}{item}" for item in items[:MOST_ITEMS])
    if len(items) > MOST_ITEMS:
        yield f"{indent}and {len(items) - MOST_ITEMS} more; --json has them all"
