"""muster manifest"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.file_manifest import HashProgress, ManifestEntry, campaign_files, campaign_files_with_hashes
from muster.app.campaign.start_controller import observe_and_revive
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import paint_text, print_json, print_notice, rich_console
from muster.text.number_format import format_file_size
from muster.text.phrases import phrase
from muster.text.terminal_text import escape_terminal_line

app = typer.Typer(add_completion=False)
MUCH_TO_HASH = 1 << 28  # bytes that take longer to read than a person waits without a word
SHORT_HASH = 12  # of a hash, for people; the JSON has it whole
KIND_TITLES = {
    "state": "cli.title_state",
    "attempt": "cli.title_attempt_files",
    "output": "cli.title_outputs",
    "artifact": "cli.title_artifacts",
    "adopted": "cli.title_adopted_outputs",
    "report": "cli.title_reports",
    "lease": "cli.title_leases",
}


@app.command("manifest", epilog="Example:  muster manifest --json | jq -r '.[] | select(.kind == \"output\") | .path'")
def manifest_command(
    ctx: typer.Context,
    hashes: Annotated[
        bool, typer.Option("--hashes/--no-hashes", help="Read every file for its SHA-256, or only list them.")
    ] = True,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> int:
    """Every file that the campaign created or changed, with absolute paths, sizes and SHA-256 hashes."""
    desk = CampaignHandle.open(folder_of_context(ctx))
    state = observe_and_revive(desk, print_notice).state
    desk.close()  # the database's own side files are gone with its last reader
    entries = campaign_files(desk.root, state)
    if hashes:
        with _hash_progress_bar() as progress:
            entries = campaign_files_with_hashes(desk.root, entries, progress)
    if as_json_:
        rows = [{"path": e.path, "bytes": e.bytes, "sha256": e.sha256, "kind": e.kind, "cell": e.cell} for e in entries]
        print_json(rows)
        return 0
    for kind, group in groupby(entries, key=lambda entry: entry.kind):
        _print_file_group(phrase(KIND_TITLES[kind]), list(group), hashes)
    print(f"{phrase('count.file', n=len(entries))}, {format_file_size(sum(entry.bytes for entry in entries))}")
    return 0


def _print_file_group(title: str, entries: Sequence[ManifestEntry], hashes: bool) -> None:
    print(
        f"{paint_text(title, 'bold')}  {phrase('count.file', n=len(entries))}, "
        f"{format_file_size(sum(entry.bytes for entry in entries))}"
    )
    for cell, group in groupby(entries, key=lambda entry: entry.cell):
        if cell:
            print(f"  {escape_terminal_line(cell)}")
        for entry in group:
            digest = f"  {(entry.sha256 or '-')[:SHORT_HASH]:<{SHORT_HASH}}" if hashes else ""
            print(f"{format_file_size(entry.bytes):>12}{digest}  {escape_terminal_line(str(entry.path))}")
    print()


@contextlib.contextmanager
def _hash_progress_bar() -> Iterator[HashProgress]:
    """On a terminal, and only where much is read."""
    with contextlib.ExitStack() as stack:

        def begin(files: int, amount: int) -> Callable[[int], None]:
            if amount < MUCH_TO_HASH or not sys.stderr.isatty():
                return lambda _: None
            from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
            console = rich_console(sys.stderr)
            drawn = Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            bar = stack.enter_context(drawn)
            row = bar.add_task(phrase("cli.hashing_files", n=files), total=amount)
            return lambda count: bar.advance(row, count)

        yield begin
