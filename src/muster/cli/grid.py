"""The matrix of a job as a grid: one mark per cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muster.acts.status import CellStatus, Status
from muster.cli.paint import paint, utf8

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
}


def mark(state: str) -> str:
    fancy, plain, colour = MARKS[state]
    return paint(fancy if utf8() else plain, colour)


def grids(status: Status) -> Iterator[str]:
    for job in status.state.campaign.jobs:
        cells = [cell for cell in status.cells if cell.record.cell.job == job.name]
        if cells:
            yield from _grid(job.name, job.axes, cells)
            yield ""


def _grid(job: str, axes: Sequence[str], cells: Sequence[CellStatus]) -> Iterator[str]:
    done = sum(cell.verdict.state == "DONE" for cell in cells)
    across = "seed" if "seed" in axes else axes[-1] if axes else ""
    rows: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for cell in cells:
        names = {axis: value.name for axis, value in cell.record.cell.values}
        column = names.pop(across, "")
        columns[column] = None
        rows.setdefault(" ".join(names.values()), {})[column] = mark(cell.verdict.state)
    width = max(len(job) + 12, *(len(row) + 2 for row in rows))
    heads = [name if len(name) <= 12 else name[:11] + "…" for name in columns]
    widths = [max(1, len(head)) for head in heads]
    title = f"{job}  {done}/{len(cells)}"
    yield paint(title, "bold") + " " * (width - len(title)) + (f"{across} " if across else "") + " ".join(heads)
    pad = " " * (len(across) + 1 if across else 0)
    for name, marks in rows.items():
        line = " ".join(marks.get(column, " ") + " " * (w - 1) for column, w in zip(columns, widths, strict=True))
        yield f"  {name}".ljust(width) + pad + line


def legend(status: Status) -> str:
    present = [state for state, count in status.counts.items() if count]
    return "  ".join(f"{mark(state)} {state} {status.counts[state]}" for state in present)
