"""A table as data: what is in it and what is told under it, before any format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Align = Literal["l", "c", "r"]


@dataclass(frozen=True, slots=True)
class Cell:
    text: str  # as it is read; escaped by the format
    bold: bool = False
    mark: str = ""  # † or ?, explained under the table
    below: str = ""  # the interval of what stands above
    rests: tuple[str, ...] = ()  # the cells of the matrix behind a number


@dataclass(frozen=True, slots=True)
class Grid:
    caption: str  # with the mark of a partial report
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    align: tuple[Align, ...]
    notes: tuple[str, ...] = ()


def cells(*texts: str) -> tuple[Cell, ...]:
    return tuple(Cell(text) for text in texts)


def aligned(left: int, columns: Sequence[object], right: int = 0) -> tuple[Align, ...]:
    """The first ones to the left, the numbers to the right; `right` is where they end, counted from behind."""
    end = len(columns) + right
    return tuple("r" if left <= index < end else "l" for index in range(len(columns)))
