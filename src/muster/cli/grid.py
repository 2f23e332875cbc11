"""The matrix of a job as a grid: one mark per cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muster.acts.status import CellStatus, Status
from muster.cli.paint import paint, utf8
from muster.cli.words import cut, padded, screen_columns, width
from muster.plan.standing import outdated

OUTDATED = "outdated"  # DONE, by a definition that the campaign no longer has
MARKS = {
    "DONE": ("✔", "D", "green"),
    "RUNNING": ("▶", "R", "blue"),
    "QUIET": ("◐", "Q", "cyan"),
    "STALLED": ("⏸", "S", "yellow"),
    "DEAD": ("✘", "X", "red"),
    "UNKNOWN": ("?", "?", "magenta"),
    "PENDING": ("·", ".", "dim"),
    "BLOCKED": ("○", "o", "dim"),
    "HELD": ("‖", "H", "yellow"),
    "GIVEN_UP": ("—", "-", "dim"),
    OUTDATED: ("≠", "d", "yellow"),
}
LONGEST_HEAD = 12


def mark(state: str) -> str:
    fancy, plain, colour = MARKS[state]
    return paint(fancy if utf8() else plain, colour)


def mark_of(cell: CellStatus) -> str:
    return mark(OUTDATED if outdated(cell.record) else cell.verdict.state)


def grids(status: Status) -> Iterator[str]:
    for job in status.state.campaign.jobs:
        cells = [cell for cell in status.cells if cell.record.cell.job == job.name]
        if cells:
            yield from _grid(job.name, job.axes, cells)
            yield ""


def _grid(job: str, axes: Sequence[str], cells: Sequence[CellStatus]) -> Iterator[str]:
    done = sum(cell.verdict.state == "DONE" for cell in cells)
    title = paint(f"{job}  {done}/{len(cells)}", "bold")
    if not axes:
        yield f"{title}  {mark_of(cells[0])}"
        return
    yield f"{title}   {'/'.join([job, *(axis.upper() for axis in axes)])}"  # how its cells are named
    across = "seed" if "seed" in axes else axes[-1]
    rows: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for cell in cells:
        names = {axis: value.name for axis, value in cell.record.cell.values}
        column = names.pop(across)
        columns[column] = None
        rows.setdefault(" ".join(names.values()), {})[column] = mark_of(cell)
    left = max(4 + max(width(row) for row in rows), 3 + width(across))
    heads = _heads(list(columns))
    for block in _blocks(heads, screen_columns() - left):
        yield f"{across:>{left - 1}} " + " ".join(heads[column] for column in block)
        for name, marks in rows.items():
            line = " ".join(marks.get(column, " ") + " " * (width(heads[column]) - 1) for column in block)
            yield (padded(f"  {name}", left) + line).rstrip()


def _heads(columns: Sequence[str]) -> dict[str, str]:
    """Column -> what stands above it: cut where it is long, unless two would then look the same."""
    short = {column: cut(column, LONGEST_HEAD) for column in columns}
    return short if len(set(short.values())) == len(short) else {column: column for column in columns}


def _blocks(heads: dict[str, str], room: int) -> Iterator[list[str]]:
    """The columns in parts that fit the screen beside the rows' names."""
    block: list[str] = []
    used = 0
    for column, head in heads.items():
        if block and used + 1 + width(head) > room:
            yield block
            block, used = [], 0
        used += width(head) + (1 if block else 0)
        block.append(column)
    if block:
        yield block


def legend(status: Status) -> str:
    present = [state for state, count in status.counts.items() if count]
    told = [f"{mark(state)} {state} {status.counts[state]}" for state in present]
    old = sum(outdated(cell.record) for cell in status.cells)
    return "  ".join([*told, *([f"{mark(OUTDATED)} {old} of them outdated"] if old else [])])
