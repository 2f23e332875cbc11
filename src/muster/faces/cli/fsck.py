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
from muster.text.sentences import fill_sentence

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
    held = f"{phrase('count.cell', n=found.cells)}, {phrase('count.attempt', n=found.attempts)}"
    yield paint_text(phrase("cli.rebuilt_from", held=held, count=phrase("count.decision", n=found.decisions)), "green")
    if found.old == "sound":
        yield phrase("cli.old_campaign_db_sound_differences", differences=len(found.differences))
        yield from _format_item_list("  ", found.differences)
        if found.behind:
            yield phrase("cli.not_seen_last", count=phrase("count.decision", n=found.behind))
    else:
        yield phrase("cli.old_campaign_db", old=found.old)
    if found.old != "missing":
        yield phrase("cli.old_one_kept_campaign_db_before_fsck")
    if found.torn:
        yield phrase("cli.decisions_jsonl_could_not_read_now", count=phrase("count.line", n=len(found.torn)))
        yield from _format_item_list("  ", found.torn)
    if found.restored:
        missing = phrase("count.decision_was", n=found.restored)
        yield phrase("cli.missing_decisions_jsonl_came_back_from", missing=missing)
    for items, text in (
        (
            found.recovered,
            phrase("cli.known_only_now_recorded"),
        ),
        (found.unplaced, phrase("cli.attempt_nothing_left")),
        (found.folderless, phrase("cli.no_folder_any_more_record_kept")),
        (
            found.ended,
            phrase("cli.ended_not_recorded_yet_up_judges"),
        ),
    ):
        if items:
            yield fill_sentence(f"{len(items)} {text}:", {"n": len(items)})
            yield from _format_item_list("  ", items)


def _format_item_list(indent: str, items: tuple[str, ...]) -> Iterator[str]:
    yield from (f"{indent}{item}" for item in items[:MOST_ITEMS])
    if len(items) > MOST_ITEMS:
        yield phrase("cli.more_json_them_all", indent=indent, items=len(items) - MOST_ITEMS)
