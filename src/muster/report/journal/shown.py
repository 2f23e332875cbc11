"""Numbers and tables of the journal, as they are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from muster.report.grid import Align, Cell, Grid
from muster.report.table_markdown import body

Form = Callable[[float], str]
DIGITS = 4
_LARGE = 1e7


def number(value: float, digits: int = DIGITS) -> str:
    """`0.7164`, `83`, `NaN`, `1.2e-05`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if float(value).is_integer() and abs(value) < _LARGE:
        return str(int(value))
    return f"{value:.{digits}g}"


def column(values: Sequence[float], digits: int = DIGITS) -> Form:
    """One number of decimals for all of a column, as few as tell its values apart."""
    finite = [value for value in values if math.isfinite(value)]
    texts = [number(value, digits) for value in finite]
    if not texts or any("e" in text for text in texts):
        return lambda value: number(value, digits)
    decimals = max(len(text.partition(".")[2]) for text in texts)
    return lambda value: f"{value:.{decimals}f}" if math.isfinite(value) else number(value)


def iteration(value: float | None) -> str:
    return "?" if value is None else number(value, 12)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, words: int = 0) -> str:
    """Markdown; the first `left` columns and the last `words` ones stand to the left, numbers to the right."""
    end = len(head) - words
    align: tuple[Align, ...] = tuple("r" if left <= at < end else "l" for at in range(len(head)))
    cells = tuple(tuple(Cell(text) for text in row) for row in rows)
    return body(Grid("", tuple(head), cells, align))


def fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for line in text.splitlines() for run in [_ticks(line)]), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _ticks(line: str) -> str:
    found = best = ""
    for letter in line:
        found = found + letter if letter == "`" else ""
        best = max(best, found, key=len)
    return best
