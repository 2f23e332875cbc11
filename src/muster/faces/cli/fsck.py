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
from muster.text.phrases import phrase

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
    cells, attempts = phrase("count.cell", n=found.cells), phrase("count.attempt", n=found.attempts)
    decisions = phrase("count.decision", n=found.decisions)
    yield paint_text(phrase("cli.rebuilt_from", cells=cells, attempts=attempts, decisions=decisions), "green")
    if found.old == "sound":
        yield phrase("cli.old_database_sound", differences=len(found.differences))
        yield from _format_item_list("  ", found.differences)
        if found.behind:
            yield phrase("cli.old_database_behind", decisions=phrase("count.decision", n=found.behind))
    else:
        yield phrase("cli.old_database_was", state=found.old)
    if found.old != "missing":
        yield phrase("cli.old_database_kept")
    if found.torn:
        yield phrase("cli.log_lines_unreadable", lines=phrase("count.line", n=len(found.torn)))
        yield from _format_item_list("  ", found.torn)
    if found.restored:
        yield phrase("cli.decisions_restored", n=found.restored)
    for code, items in (
        ("cli.attempts_recovered", found.recovered),
        ("cli.attempts_unplaced", found.unplaced),
        ("cli.attempts_without_folder", found.folderless),
        ("cli.attempts_ended_unrecorded", found.ended),
    ):
        if items:
            yield phrase(code, n=len(items))
            yield from _format_item_list("  ", items)


def _format_item_list(indent: str, items: tuple[str, ...]) -> Iterator[str]:
    yield from (f"{indent}{item}" for item in items[:MOST_ITEMS])
    if len(items) > MOST_ITEMS:
        yield indent + phrase("cli.more_json_has", count=len(items) - MOST_ITEMS)
