"""A table in LaTeX, with booktabs. Chinese stands in captions only, and a comment says what they need.

The notes of a table are part of its caption: papers have no other place for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from muster.report.escape import has_chinese, latex
from muster.report.grid import Cell, Grid

_NEEDS = r"% Needs \usepackage{booktabs} and \usepackage{amssymb}."
_CHINESE = r"% Holds Chinese text: compile with XeLaTeX and \usepackage{xeCJK}."


def render(grids: Sequence[Grid], label: str, about: str) -> str:
    tables = [_table(grid, label if not index else f"{label}-{index + 1}") for index, grid in enumerate(grids)]
    body = "\n".join(tables)
    comments = [f"% {latex(about)}", _NEEDS, *([_CHINESE] if has_chinese(body) else [])]
    return "\n".join([*comments, body])


def _table(grid: Grid, label: str) -> str:
    lines = [
        r"\begin{table}[t]",
        r"  \centering",
        rf"  \caption{{{latex(grid.caption)}}}",
        rf"  \label{{tab:{label}}}",
        rf"  \begin{{tabular}}{{{''.join(grid.align)}}}",
        r"    \toprule",
        f"    {_row([latex(name) for name in grid.head])}",
        r"    \midrule",
        *(f"    {line}" for row in grid.rows for line in row_lines(row)),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def row_lines(row: Sequence[Cell]) -> list[str]:
    """The intervals stand in a second, smaller row."""
    lines = [_row([_cell(cell) for cell in row])]
    if any(cell.below for cell in row):
        lines.append(_row([rf"{{\scriptsize {latex(cell.below)}}}" if cell.below else "" for cell in row]))
    return lines


def _row(parts: Sequence[str]) -> str:
    return rf"{' & '.join(parts)} \\"


def _cell(cell: Cell) -> str:
    text = latex(cell.text)
    if cell.bold:
        text = rf"\textbf{{{text}}}"
    return text + ("$^{?}$" if cell.mark == "?" else latex(cell.mark))
