"""The matrix of each job: too large, empty, a need without a cell, outputs that two cells would share."""

from __future__ import annotations

import math
from collections.abc import Iterator

from muster.domain.campaign import Campaign
from muster.domain.campaign import Job as DomainJob
from muster.domain.cell import Cell, cells_of
from muster.spec.document import Path, shorten
from muster.spec.lint import Lint, written_values
from muster.spec.lint_jobs import path_texts
from muster.spec.outputs import shared_output
from muster.spec.resolve import axes_of, job_outline

_MOST_CELLS = 100_000


def lint_cells(lint: Lint) -> None:
    if lint.wrong_below(("axes",)) or lint.wrong_below(("loop",)):
        return
    outline = Campaign("", axes_of(lint.model, lint.document), ())
    cells: dict[str, list[Cell]] = {}
    for name, model in lint.model.jobs.items():
        if any(lint.wrong_below(("jobs", name, key)) for key in ("axes", "exclude")) or (
            model.axes is None and lint.axes
        ):
            continue
        job = job_outline(name, model)
        if _too_many(lint, outline, job):
            continue
        cells[name] = list(cells_of(outline, job))
        if not cells[name]:
            lint.add(
                ("jobs", name, "exclude"), f"job '{name}' has no cells: all are excluded", "exclude fewer", key=True
            )
            continue
        if not lint.wrong_below(("jobs", name, "output")):
            _outputs(lint, job, cells[name])
        _shared_files(lint, name, cells[name])
    for name in cells:
        _needs(lint, name, cells)


def _too_many(lint: Lint, outline: Campaign, job: DomainJob) -> bool:
    count = math.prod(len(outline.axis(axis).values) for axis in job.axes)
    if count > _MOST_CELLS:
        what = f"job '{job.name}' has {count} cells, more than {_MOST_CELLS}"
        lint.add(("jobs", job.name, "axes"), what, "use fewer axes or values", key=True)
    return count > _MOST_CELLS


def _outputs(lint: Lint, job: DomainJob, cells: list[Cell]) -> None:
    found = shared_output(job.output, cells)
    if found is None:
        return
    path: Path = ("jobs", job.name, "output")
    first, second, same = found
    if same:
        differing = [axis for axis, value in first.values if value.name != second.value(axis).name]
        hint = (
            f"put {' and '.join(f'{{{axis}}}' for axis in differing)} into it, or leave it out: the default is {{out}}"
        )
        lint.add(path, f"{first.id} and {second.id} would have the same output", hint)
    else:
        what = f"the output of {first.id} also fits what {second.id} writes"
        hint = "rename a value so that none is a part of another, or put more of the folder's name into the pattern"
        lint.add(path, what, hint)


def _shared_files(lint: Lint, name: str, cells: list[Cell]) -> None:
    """A path from / on that is the same for two cells: each would be told the other's numbers."""
    for path, text in path_texts(name, lint.model.jobs[name]):
        section = path[2]
        if section not in ("results", "progress", "proof") or not text.startswith("/"):
            continue
        found = shared_output(text, cells)
        if found is None or not found[2] or lint.wrong_below(path):
            continue
        what = f"{found[0].id} and {found[1].id} would be read from the same file, {shorten(text)}"
        hint = "write it relative to the output, or put {out} or the axes into it"
        lint.add(path, what, hint, level="error" if section == "results" else "warning")


def _needs(lint: Lint, name: str, cells: dict[str, list[Cell]]) -> None:
    model = lint.model.jobs[name]
    for index, need in enumerate(model.needs):
        if need not in cells or need == name or not cells[need]:
            continue
        shared = [axis for axis in model.axes or () if axis in (lint.model.jobs[need].axes or ())]
        counts: dict[tuple[str, ...], int] = {}
        for cell in cells[need]:
            key = _key(cell, shared)
            counts[key] = counts.get(key, 0) + 1
        lonely = [cell for cell in cells[name] if _key(cell, shared) not in counts]
        path: Path = ("jobs", name, "needs", index)
        if lonely:
            more = f" (and {len(lonely) - 1} more)" if len(lonely) > 1 else ""
            what = f"{lonely[0].id}{more} needs a cell of '{need}' that does not exist"
            lint.add(path, what, f"exclude the same points in '{name}' as in '{need}'")
        elif max(counts.values()) > 1:
            _many_outputs(lint, name, need, max(counts.values()))


def _many_outputs(lint: Lint, name: str, need: str, count: int) -> None:
    wanted = f"{{{need}.output}}"
    for path, text in _texts(lint, name):
        if wanted in text:
            what = f"{wanted} stands for {count} folders: a cell of '{name}' needs {count} cells of '{need}'"
            hint = f"give '{name}' the axes of '{need}', or let the command ask `muster status --json` for them"
            lint.add(path, what, hint, part=wanted)


def _texts(lint: Lint, name: str) -> Iterator[tuple[Path, str]]:
    """Every text of a job in which placeholders are filled."""
    model = lint.model.jobs[name]
    for key, words in (("command", model.command), ("resume", model.resume), ("within", model.within)):
        yield from ((("jobs", name, key), text) for text in (words.texts if words else ()))
    yield from path_texts(name, model)
    used = " ".join([*model.command.texts, *(model.resume.texts if model.resume else ())])
    for axis in model.axes or ():
        if axis in lint.model.axes and f"{{{axis}.args}}" in used:
            for value in written_values(lint.model, lint.document, axis):
                yield (*value.path, "args"), value.settings.args


def _key(cell: Cell, axes: list[str]) -> tuple[str, ...]:
    names = {axis: value.name for axis, value in cell.values}
    return tuple(names[axis] for axis in axes)
