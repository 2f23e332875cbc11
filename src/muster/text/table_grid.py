"""A table as data, before any format, and its rendering in Markdown and LaTeX (booktabs).

In LaTeX the notes of a table are part of its caption: papers have no other place for them. Chinese stands in captions
only, and a comment says what they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from muster.text.escape_markup import contains_chinese, escape_latex, escape_markdown

CellAlignment = Literal["l", "c", "r"]


@dataclass(frozen=True, slots=True)
class TableCell:
    text: str  # as it is read; escaped by the format
    bold: bool = False
    mark: str = ""  # † or ?, explained under the table
    below: str = ""  # the interval of what stands above
    rests: tuple[str, ...] = ()  # the cells of the matrix behind a number


@dataclass(frozen=True, slots=True)
class TableGrid:
    caption: str  # with the mark of a partial report
    head: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    align: tuple[CellAlignment, ...]
    notes: tuple[str, ...] = ()


def cells_from_texts(*texts: str) -> tuple[TableCell, ...]:
    return tuple(TableCell(text) for text in texts)


def align_columns(left: int, columns: Sequence[object], right: int = 0) -> tuple[CellAlignment, ...]:
    """The first ones to the left, the numbers to the right; `right` is where they end, counted from behind."""
    end = len(columns) + right
    return tuple("r" if left <= index < end else "l" for index in range(len(columns)))


_PACKAGES_COMMENT = r"% Needs \usepackage{booktabs} and \usepackage{amssymb}."
_CHINESE_COMMENT = r"% Holds Chinese text: compile with XeLaTeX and \usepackage{xeCJK}."


def render_latex_tables(grids: Sequence[TableGrid], label: str, about: str) -> str:
    tables = [_latex_table(grid, label if not index else f"{label}-{index + 1}") for index, grid in enumerate(grids)]
    body = "\n".join(tables)
    comments = [f"% {escape_latex(about)}", _PACKAGES_COMMENT, *([_CHINESE_COMMENT] if contains_chinese(body) else [])]
    return "\n".join([*comments, body])


def _latex_table(grid: TableGrid, label: str) -> str:
    lines = [
        r"\begin{table}[t]",
        r"  \centering",
        rf"  \caption{{{escape_latex(grid.caption)}}}",
        rf"  \label{{tab:{label}}}",
        rf"  \begin{{tabular}}{{{''.join(grid.align)}}}",
        r"    \toprule",
        f"    {_join_latex_row([escape_latex(name) for name in grid.head])}",
        r"    \midrule",
        *(f"    {line}" for row in grid.rows for line in latex_row_lines(row)),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def latex_row_lines(row: Sequence[TableCell]) -> list[str]:
    """The intervals stand in a second, smaller row."""
    lines = [_join_latex_row([_latex_grid_cell(cell) for cell in row])]
    if any(cell.below for cell in row):
        lines.append(
            _join_latex_row([rf"{{\scriptsize {escape_latex(cell.below)}}}" if cell.below else "" for cell in row])
        )
    return lines


def _join_latex_row(parts: Sequence[str]) -> str:
    return rf"{' & '.join(parts)} \\"


def _latex_grid_cell(cell: TableCell) -> str:
    text = escape_latex(cell.text)
    if cell.bold:
        text = rf"\textbf{{{text}}}"
    return text + ("$^{?}$" if cell.mark == "?" else escape_latex(cell.mark))


_MARKDOWN_RULES: dict[CellAlignment, str] = {"l": "---", "c": ":---:", "r": "---:"}


def render_markdown_table(grid: TableGrid) -> str:
    """With its caption above and its notes below."""
    return f"**{escape_markdown(grid.caption)}**\n\n{markdown_table_with_notes(grid)}\n"


def markdown_table_with_notes(grid: TableGrid) -> str:
    """Without its caption."""
    told = "\n".join(f"- {escape_markdown(note)}" for note in grid.notes)
    return f"{markdown_table_body(grid)}\n\n{told}" if told else markdown_table_body(grid)


def markdown_table_body(grid: TableGrid) -> str:
    lines = [
        _join_markdown_row([escape_markdown(name) for name in grid.head]),
        _join_markdown_row([_MARKDOWN_RULES[each] for each in grid.align]),
        *(markdown_row_line(row) for row in grid.rows),
    ]
    return "\n".join(lines)


def markdown_row_line(row: Sequence[TableCell]) -> str:
    return _join_markdown_row([_markdown_grid_cell(cell) for cell in row])


def _join_markdown_row(parts: list[str]) -> str:
    return f"| {' | '.join(parts)} |"


def _markdown_grid_cell(cell: TableCell) -> str:
    text = escape_markdown(cell.text)
    if cell.bold:
        text = f"**{text}**"
    return " ".join(part for part in (text, cell.mark, cell.below) if part)
