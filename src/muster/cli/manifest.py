"""muster manifest"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Annotated

import typer

from muster.acts.manifest import Entry
from muster.cli.app import open_folder
from muster.cli.cells import looked
from muster.cli.paint import paint
from muster.cli.terminal import rich_console
from muster.cli.words import counted, say_json
from muster.domain.terminal_text import safe_line
from muster.wiring.desk import Desk
from muster.wiring.listing import Progress, files_of, hashed

app = typer.Typer(add_completion=False)
MUCH = 1 << 28  # bytes that take longer to read than a person waits without a word
SHORT = 12  # of a hash, for people; the JSON has it whole
TITLES = {
    "state": "State",
    "attempt": "Attempts: their facts and logs",
    "output": "Outputs of attempts",
    "artifact": "Further files of attempts",
    "adopted": "Outputs of adopted runs",
    "report": "Reports",
    "lease": "Slot leases, shared by all campaigns of this machine",
}


@app.command("manifest", epilog="Example:  muster manifest --json | jq -r '.[] | select(.kind == \"output\") | .path'")
def manifest(
    ctx: typer.Context,
    hashes: Annotated[
        bool, typer.Option("--hashes/--no-hashes", help="Read every file for its SHA-256, or only list them.")
    ] = True,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> int:
    """Every file that the campaign created or changed, with absolute paths, sizes and SHA-256 hashes."""
    desk = Desk.open(open_folder(ctx))
    state = looked(desk).state
    desk.close()  # the database's own side files are gone with its last reader
    entries = files_of(desk.root, state)
    if hashes:
        with _bar() as progress:
            entries = hashed(desk.root, entries, progress)
    if as_json_:
        rows = [{"path": e.path, "bytes": e.bytes, "sha256": e.sha256, "kind": e.kind, "cell": e.cell} for e in entries]
        say_json(rows)
        return 0
    for kind, group in groupby(entries, key=lambda entry: entry.kind):
        _show(TITLES[kind], list(group), hashes)
    print(f"{counted(len(entries), 'file')}, {size(sum(entry.bytes for entry in entries))}")
    return 0


def _show(title: str, entries: Sequence[Entry], hashes: bool) -> None:
    print(f"{paint(title, 'bold')}  {counted(len(entries), 'file')}, {size(sum(entry.bytes for entry in entries))}")
    for cell, group in groupby(entries, key=lambda entry: entry.cell):
        if cell:
            print(f"  {safe_line(cell)}")
        for entry in group:
            digest = f"  {(entry.sha256 or '-')[:SHORT]:<{SHORT}}" if hashes else ""
            print(f"{size(entry.bytes):>12}{digest}  {safe_line(str(entry.path))}")
    print()


@contextlib.contextmanager
def _bar() -> Iterator[Progress]:
    """On a terminal, and only where much is read."""
    with contextlib.ExitStack() as stack:

        def begin(files: int, amount: int) -> Callable[[int], None]:
            if amount < MUCH or not sys.stderr.isatty():
                return lambda _: None
            from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
            console = rich_console(sys.stderr)
            drawn = Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            bar = stack.enter_context(drawn)
            row = bar.add_task(f"hashing {counted(files, 'file')}", total=amount)
            return lambda count: bar.advance(row, count)

        yield begin


def size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
