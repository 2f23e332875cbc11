"""Two cells whose outputs can't be told apart: the same path, or a glob that fits the other one's folder."""

from __future__ import annotations

import fnmatch
import glob
import itertools
from collections.abc import Iterator, Mapping

from muster.domain.cell import Cell
from muster.domain.template import placeholders, render

_UNIQUE = {"out", "cell"}  # a path with one of these belongs to one cell by its nature
_MOST_PAIRS = 250_000  # pairs that are tried one by one; beyond, only values that contain one another are


def shared_output(output: str, cells: list[Cell]) -> tuple[Cell, Cell, bool] | None:
    """Two cells that would share their output, and whether the paths are the same; None: all can be told apart."""
    if _UNIQUE & set(placeholders(output)):
        return None
    first_with: dict[str, Cell] = {}
    for cell in cells:
        path = _render(output, cell)
        if path in first_with:
            return first_with[path], cell, True
        first_with[path] = cell
    if not glob.has_magic(_fixed(output)):
        return None
    for one, other in _pairs(cells):
        if _fits(_pattern(output, one), _example(output, other)):
            return one, other, False
    return None


def _pairs(cells: list[Cell]) -> Iterator[tuple[Cell, Cell]]:
    if len(cells) ** 2 <= _MOST_PAIRS:
        yield from itertools.permutations(cells, 2)
        return
    # for many cells: those that differ in one axis only, one line of the matrix per axis
    for axis, _ in cells[0].values:
        line = _longest_line(cells, axis)
        yield from _nested(line, axis) if len(line) ** 2 > _MOST_PAIRS else itertools.permutations(line, 2)


def _longest_line(cells: list[Cell], axis: str) -> list[Cell]:
    lines: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        lines.setdefault(tuple(value.name for name, value in cell.values if name != axis), []).append(cell)
    return max(lines.values(), key=len)


def _nested(line: list[Cell], axis: str) -> Iterator[tuple[Cell, Cell]]:
    """Pairs where one value is a part of the other between separators: `v2` in `v2_full`."""
    by_name = {cell.value(axis).name: cell for cell in line}
    for name, cell in by_name.items():
        parts = name.replace("-", "_").split("_")
        for start, end in itertools.combinations(range(min(len(parts), 12) + 1), 2):
            inner = name[len("_".join(parts[:start])) + (start > 0) :][: len("_".join(parts[start:end]))]
            if inner != name and inner in by_name:
                yield by_name[inner], cell


def _values(cell: Cell) -> dict[str, str]:
    values = {axis: value.name for axis, value in cell.values}
    return values | {f"{axis}.args": value.args for axis, value in cell.values}


class _Any(dict[str, str]):
    """What is not known before the run stands for the same thing in every cell."""

    def __missing__(self, key: str) -> str:
        return "x"


def _render(output: str, cell: Cell) -> str:
    return render(output, _Any(_values(cell)))


def _fixed(output: str) -> str:
    """The output with its placeholders taken out: only what the person wrote may hold wildcards."""
    return render(output, _Any())


def _pattern(output: str, cell: Cell) -> str:
    escaped: Mapping[str, str] = {name: glob.escape(value) for name, value in _values(cell).items()}
    return render(output, _Any(escaped))


def _example(output: str, cell: Cell) -> str:
    """A path that the cell's own run could write."""
    return render(output.replace("*", "x").replace("?", "x"), _Any(_values(cell)))


def _fits(pattern: str, path: str) -> bool:
    if "**" in pattern:
        return fnmatch.fnmatchcase(path, pattern)
    parts, names = pattern.split("/"), path.split("/")
    return len(parts) == len(names) and all(
        fnmatch.fnmatchcase(name, part) for name, part in zip(names, parts, strict=True)
    )
