"""What the numbers in each line of a table rest on: `muster trace reports/tables/main.md:5` walks on from here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from muster.report import table_csv
from muster.report.analysis import Analysis
from muster.report.claims import Claim
from muster.report.grid import Cell, Grid

Rendered = Callable[[Sequence[Cell]], list[str]]  # the lines that a row has in a format


def of_csv(analysis: Analysis, factors: Sequence[str] = ()) -> tuple[Claim, ...]:
    """`L2`, ...: one config in one column each."""
    return tuple(
        Claim(f"L{line}", f"{config}, {column.name}", cells, (column.name,))
        for line, (config, column) in enumerate(table_csv.rows(analysis, factors), 2)
        if (cells := analysis.cells(config, column))
    )


def of_text(text: str, grids: Sequence[Grid], rendered: Rendered) -> tuple[Claim, ...]:
    """`L5.3`: what stands in line 5, third column."""
    lines, at = text.split("\n"), 0
    found: list[Claim] = []
    for grid in grids:
        for row in grid.rows:
            for part, shown in enumerate(rendered(row)):
                at = next(place for place in range(at, len(lines)) if lines[place].strip() == shown.strip()) + 1
                found += _of_row(grid, row, at, intervals=part > 0)
    return tuple(found)


def _of_row(grid: Grid, row: Sequence[Cell], line: int, *, intervals: bool) -> Iterator[Claim]:
    """`intervals`: they alone stand in this line."""
    for number, (cell, head) in enumerate(zip(row, grid.head, strict=True), 1):
        if cell.rests and (cell.below or not intervals):
            shown = " ".join(part for part in (cell.text, cell.below) if part)
            yield Claim(f"L{line}.{number}", f"{row[0].text}, {head}: {shown}", tuple(dict.fromkeys(cell.rests)))
