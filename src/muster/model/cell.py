"""Cells: the points of a job's matrix, their names, and which cells need which."""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.model.campaign import AxisValue, Campaign, Job

LONGEST_VALUE = 200  # bytes: a value becomes one folder name, and file systems stop at 255


@dataclass(frozen=True, slots=True)
class Cell:
    """`train/v2_full/2`: the job, then one value per axis in declared order."""

    id: str
    job: str
    values: tuple[tuple[str, AxisValue], ...]  # (axis name, value)

    def value(self, axis: str) -> AxisValue:
        return dict(self.values)[axis]

    @property
    def names(self) -> dict[str, str]:
        """Axis -> the name of its value."""
        return {axis: value.name for axis, value in self.values}

    @property
    def axes(self) -> dict[str, object]:
        return {axis: value.value for axis, value in self.values}


def escape_cell_value(value: str) -> str:
    """A value as part of a cell name: a slash would look like one more axis, a leading dot like a hidden folder."""
    text = value.replace("%", "%25").replace("/", "%2F")
    return "%2E" + text[1:] if text.startswith(".") else text


def make_cell_id(job: str, values: Sequence[AxisValue]) -> str:
    return "/".join([job, *(escape_cell_value(value.name) for value in values)])


def parse_value_names(name: str, cell: Cell) -> list[str]:
    """The values in a cell's name, as they were when something ran under it: the cell may have been renamed since."""
    parts = name.split("/")[1:]
    if len(parts) != len(cell.values):
        return [value.name for _, value in cell.values]
    return [part.replace("%2E", ".").replace("%2F", "/").replace("%25", "%") for part in parts]


def edit_combination_key(values: Iterable[tuple[str, AxisValue]]) -> str:
    """Which combination of edits a cell has; "": none. Values of two axes may have the same name."""
    return ", ".join(f"{axis} {value.name}" for axis, value in values if value.edits)


def list_cells_of_job(campaign: Campaign, job: Job) -> Iterator[Cell]:
    """The job's matrix in declared order, less what it excludes."""
    axes = [campaign.axis(name) for name in job.axes]
    for point in itertools.product(*(axis.values for axis in axes)):
        values = tuple(zip(job.axes, point, strict=True))
        if not any(_matches_exclusion(values, exclusion) for exclusion in job.exclude):
            yield Cell(make_cell_id(job.name, point), job.name, values)


def list_campaign_cells(campaign: Campaign) -> list[Cell]:
    return [cell for job in campaign.jobs for cell in list_cells_of_job(campaign, job)]


def _matches_exclusion(values: Sequence[tuple[str, AxisValue]], condition: Mapping[str, str]) -> bool:
    names = {axis: value.name for axis, value in values}
    return all(names.get(axis) == name for axis, name in condition.items())


def map_needed_cells(campaign: Campaign, cells: Sequence[Cell]) -> dict[str, tuple[str, ...]]:
    """For each cell the cells it waits for: those of the needed jobs that agree on every shared axis."""
    by_job: dict[str, list[Cell]] = {}
    for cell in cells:
        by_job.setdefault(cell.job, []).append(cell)
    needs: dict[str, tuple[str, ...]] = {}
    for job in campaign.jobs:
        indexes = [_index_by_shared_axes(by_job.get(need, []), job, campaign.job(need)) for need in job.needs]
        for cell in by_job.get(job.name, []):
            found = [index.get(_shared_axis_values(cell, shared), ()) for shared, index in indexes]
            needs[cell.id] = tuple(itertools.chain.from_iterable(found))
    return needs


def _index_by_shared_axes(
    cells: Sequence[Cell], job: Job, needed: Job
) -> tuple[tuple[str, ...], dict[tuple[str, ...], tuple[str, ...]]]:
    shared = tuple(axis for axis in job.axes if axis in needed.axes)
    index: dict[tuple[str, ...], list[str]] = {}
    for cell in cells:
        index.setdefault(_shared_axis_values(cell, shared), []).append(cell.id)
    return shared, {key: tuple(ids) for key, ids in index.items()}


def _shared_axis_values(cell: Cell, axes: Sequence[str]) -> tuple[str, ...]:
    names = {axis: value.name for axis, value in cell.values}
    return tuple(names[axis] for axis in axes)


def cells_with_needs(names: Iterable[str], needs: Mapping[str, Sequence[str]]) -> list[str]:
    """These cells and all that they rest on, each once."""
    seen: dict[str, None] = {}
    left = list(dict.fromkeys(names))[::-1]
    while left:
        name = left.pop()
        if name not in seen:
            seen[name] = None
            left += list(needs.get(name, ()))[::-1]
    return list(seen)


def match_cell_patterns(patterns: Sequence[str], ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """Cell names that fit the globs, in declared order, and the patterns that fit none."""
    found: set[str] = set()
    useless = []
    for pattern in patterns:
        hits = [pattern] if pattern in ids else [name for name in ids if fnmatch.fnmatchcase(name, pattern)]
        found.update(hits)
        if not hits:
            useless.append(pattern)
    return [name for name in ids if name in found], useless
