"""A table in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from muster.report.escape import markdown
from muster.report.grid import Align, Cell, Grid

_RULE: dict[Align, str] = {"l": "---", "c": ":---:", "r": "---:"}


def render(grid: Grid) -> str:
    """With its caption above and its notes below."""
    return f"**{markdown(grid.caption)}**\n\n{with_notes(grid)}\n"


def with_notes(grid: Grid) -> str:
    """Without its caption."""
    told = "\n".join(f"- {markdown(note)}" for note in grid.notes)
    return f"{body(grid)}\n\n{told}" if told else body(grid)


def body(grid: Grid) -> str:
    lines = [
        _line([markdown(name) for name in grid.head]),
        _line([_RULE[each] for each in grid.align]),
        *(row_line(row) for row in grid.rows),
    ]
    return "\n".join(lines)


def row_line(row: Sequence[Cell]) -> str:
    return _line([_cell(cell) for cell in row])


def _line(parts: list[str]) -> str:
    return f"| {' | '.join(parts)} |"


def _cell(cell: Cell) -> str:
    text = markdown(cell.text)
    if cell.bold:
        text = f"**{text}**"
    return " ".join(part for part in (text, cell.mark, cell.below) if part)
