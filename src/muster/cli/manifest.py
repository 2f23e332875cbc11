"""muster manifest"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

import typer

from muster.acts.manifest import Entry, Places, began
from muster.acts.manifest import manifest as listed
from muster.cli.app import open_folder
from muster.cli.cells import looked
from muster.cli.paint import paint
from muster.cli.words import say_json
from muster.domain.attempt import Attempt
from muster.execute.local import read_order
from muster.execute.paths import attempt_folder
from muster.execute.slots import home
from muster.observe.outputs import find_output
from muster.wiring.desk import Desk

app = typer.Typer(add_completion=False)
TITLES = {
    "state": "State",
    "attempt": "Attempts: their facts and logs",
    "output": "Outputs of attempts",
    "artifact": "Further files of attempts",
    "adopted": "Outputs of adopted runs",
    "report": "Reports",
    "lease": "Slot leases, shared by all campaigns of this machine",
}


@app.command(epilog="Example:  muster manifest --json | jq -r '.[] | select(.kind == \"output\") | .path'")
def manifest(
    ctx: typer.Context,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> int:
    """Every file that the campaign created or changed, with absolute paths and sizes."""
    desk = Desk.open(open_folder(ctx))
    state = looked(desk).state
    desk.close()  # the database's own side files are gone with its last reader

    def output_of(attempt: Attempt) -> str | None:
        order = read_order(attempt_folder(desk.state, *attempt.key))
        return find_output(order, began(attempt)) if order else None

    entries = listed(state, Places(desk.root, desk.state, home() / "slots", output_of))
    if as_json_:
        rows = [{"path": e.path, "bytes": e.bytes, "kind": e.kind, "cell": e.cell} for e in entries]
        say_json(rows)
        return 0
    for kind, group in groupby(entries, key=lambda entry: entry.kind):
        _show(TITLES[kind], list(group))
    print(f"{len(entries)} files, {size(sum(entry.bytes for entry in entries))}")
    return 0


def _show(title: str, entries: Sequence[Entry]) -> None:
    print(f"{paint(title, 'bold')}  {len(entries)} files, {size(sum(entry.bytes for entry in entries))}")
    for cell, group in groupby(entries, key=lambda entry: entry.cell):
        if cell:
            print(f"  {cell}")
        for entry in group:
            print(f"{size(entry.bytes):>12}  {entry.path}")
    print()


def size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
