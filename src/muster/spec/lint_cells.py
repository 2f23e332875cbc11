"""Lints the cells: a matrix that is too large or empty, needs without a cell, outputs that two cells would share,
words of commands that nobody expands (`~`, `$X`), axes that go nowhere.
"""

from __future__ import annotations

import fnmatch
import glob
import itertools
import math
import re
from collections.abc import Iterator, Mapping

from muster.model.campaign import Campaign, Job
from muster.model.cell import Cell, list_cells_of_job
from muster.spec.build_campaign import build_axes, build_job_outline
from muster.spec.field_kinds import CommandWords
from muster.spec.lint_context import LintContext, written_values
from muster.spec.lint_jobs import path_texts_of_job
from muster.spec.model_job import JobSection
from muster.spec.yaml_tree import NodePath, shorten_text
from muster.text.command_template import find_shell_expansion, list_placeholders, render_template, split_shell_words

_SHELL_NAME = re.compile(r"(?:.*/)?(?:ba|da|z|k|fi)?sh")
_SCRIPT_ENDINGS = (".py", ".sh")
_GPU_PLACEHOLDERS = ("{gpu}", "{device}")
_CELL_MARKS = ("{cell}", "MUSTER_CELL")


def lint_command_words(lint: LintContext) -> None:
    for name, job in lint.model.jobs.items():
        for key, words in (("command", job.command), ("resume", job.resume), ("within", job.within)):
            if words is not None and not (job.shell and key != "within"):
                _lint_unexpanded(lint, name, key, words)
        for path, text in path_texts_of_job(name, job):
            if text.startswith("~"):
                lint.add(path, "'~' is not expanded", "write the path from / on")
            elif (part := find_shell_expansion(text)).startswith("$"):
                lint.add(
                    path, f"'{part}' is not expanded", "write the path itself; {placeholders} are replaced", part=part
                )
        _lint_missing_gpu(lint, name, job)
        if not lint.wrong_below(("axes",)) and not lint.wrong_below(("jobs", name)):
            _lint_unused_axes(lint, name, job)
    if not lint.wrong_below(("axes",)) and not lint.wrong_below(("jobs",)):
        _lint_unused_args(lint)


def _lint_unexpanded(lint: LintContext, name: str, key: str, words: CommandWords) -> None:
    split = _words_of_command_line(words)
    if _starts_shell(split) or (
        key != "within" and _starts_shell(_words_of_command_line(lint.model.jobs[name].within))
    ):
        return
    for at, word in enumerate(split):
        part = find_shell_expansion(word)
        if not part:
            continue
        path: NodePath = ("jobs", name, key, at) if words.is_list else ("jobs", name, key)
        script = word.endswith(_SCRIPT_ENDINGS) and at > 0 and not split[at - 1].startswith("-")
        surely = script or (at == 0 and key == "command")
        what = f"no shell runs this: {part} in {shorten_text(word)} stays as it is"
        end = "" if surely else "; fine if the program itself replaces it"
        hint = f"write the path or value itself, or `shell: true`{end}"
        lint.add(path, what, hint, part=word, level="error" if surely else "warning")


def _words_of_command_line(words: CommandWords | None) -> list[str]:
    if words is None:
        return []
    try:
        return list(words.texts) if words.is_list else list(split_shell_words(words.texts[0]))
    except ValueError:  # an open quote was told
        return []


def _starts_shell(words: list[str]) -> bool:
    """`bash -lc '...'`: a shell after all."""
    return any(
        _SHELL_NAME.fullmatch(word) and any(re.fullmatch(r"-\w*c", later) for later in words[at + 1 : at + 4])
        for at, word in enumerate(words)
    )


def _lint_missing_gpu(lint: LintContext, name: str, job: JobSection) -> None:
    """Declared without GPUs; what this machine lacks is told by `check`."""
    if lint.model.slots.gpus != () or job.uses.gpu is not None:
        return
    for key, words in (("command", job.command), ("resume", job.resume)):
        used = [item for text in (words.texts if words else ()) for item in _GPU_PLACEHOLDERS if item in text]
        if used:
            what = f"{used[0]} is empty on a CPU slot, and the campaign has no others"
            hint = f"take {used[0]} out, with its option, or give the campaign GPUs: `slots: {{gpus: auto}}`"
            lint.warn(("jobs", name, key), what, hint, part=used[0])


def _lint_unused_axes(lint: LintContext, name: str, job: JobSection) -> None:
    texts = _cell_telling_texts(name, job)
    if any(mark in text for text in texts for mark in _CELL_MARKS):
        return
    for axis in [axis for axis in job.axes or () if axis in lint.model.axes]:
        if len(lint.values(axis)) < 2 or any(
            mark in text for text in texts for mark in _marks_of_axis(lint, job, axis)
        ):
            continue
        values = written_values(lint.model, lint.document, axis)
        if not any(value.settings.env or value.settings.edits for value in values):
            what = f"axis '{axis}' changes nothing in job '{name}': its cells would all be the same run along it"
            hint = f"put {{{axis}}} into the command; a script may also read MUSTER_CELL"
            lint.warn(("jobs", name, "command"), what, hint)
    variant = lint.model.loop is not None and lint.model.loop.job == name
    if variant and not any(mark in text for text in texts for mark in ("{variant}", "{config_file}")):
        what = f"the loop's configs reach no run: job '{name}' has no {{config_file}}"
        lint.warn(("jobs", name, "command"), what, "put {config_file} where the trainer expects its config")


def _cell_telling_texts(name: str, job: JobSection) -> list[str]:
    """Every text of a job that may tell its run which cell it is."""
    lines = [text for words in (job.command, job.resume, job.within) if words for text in words.texts]
    return [*lines, *(text for _, text in path_texts_of_job(name, job)), *job.env.values()]


def _marks_of_axis(lint: LintContext, job: JobSection, axis: str) -> Iterator[str]:
    """What in a text differs from one value of the axis to the next."""
    yield f"{{{axis}}}"
    yield f"{{{axis}.args}}"
    for need in job.needs:
        if need in lint.model.jobs and axis in lint.axes_of(need):
            yield f"{{{need}.output}}"


def _lint_unused_args(lint: LintContext) -> None:
    for axis in lint.model.axes:
        told = [value for value in written_values(lint.model, lint.document, axis) if value.settings.args]
        mark = f"{{{axis}.args}}"
        jobs = {name: job for name, job in lint.model.jobs.items() if axis in (job.axes or ())}
        if (
            told
            and jobs
            and not any(mark in text for name, job in jobs.items() for text in _cell_telling_texts(name, job))
        ):
            more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
            what = f"the args of {axis} {told[0].scalar.text}{more} go nowhere: no command has {mark}"
            lint.warn((*told[0].path, "args"), what, f"put {mark} into the command", key=True)


_UNIQUE = {"out", "cell"}  # a path with one of these belongs to one cell by its nature
_MOST_PAIRS = 250_000  # pairs that are tried one by one; beyond, only values that contain one another are


def find_shared_output(output: str, cells: list[Cell]) -> tuple[Cell, Cell, bool] | None:
    """Two cells that would share their output, and whether the paths are the same; None: all can be told apart."""
    if _UNIQUE & set(list_placeholders(output)):
        return None
    first_with: dict[str, Cell] = {}
    for cell in cells:
        path = _render_output(output, cell)
        if path in first_with:
            return first_with[path], cell, True
        first_with[path] = cell
    if not glob.has_magic(_output_without_placeholders(output)):
        return None
    for one, other in _cell_pairs(cells):
        if _fits_output_pattern(_output_pattern(output, one), _example_output(output, other)):
            return one, other, False
    return None


def _cell_pairs(cells: list[Cell]) -> Iterator[tuple[Cell, Cell]]:
    if len(cells) ** 2 <= _MOST_PAIRS:
        yield from itertools.permutations(cells, 2)
        return
    # for many cells: those that differ in one axis only, one line of the matrix per axis
    for axis, _ in cells[0].values:
        line = _longest_matrix_line(cells, axis)
        yield from _nested_value_pairs(line, axis) if len(line) ** 2 > _MOST_PAIRS else itertools.permutations(line, 2)


def _longest_matrix_line(cells: list[Cell], axis: str) -> list[Cell]:
    lines: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        lines.setdefault(tuple(value.name for name, value in cell.values if name != axis), []).append(cell)
    return max(lines.values(), key=len)


def _nested_value_pairs(line: list[Cell], axis: str) -> Iterator[tuple[Cell, Cell]]:
    """Pairs where one value is a part of the other between separators: `v2` in `v2_full`."""
    by_name = {cell.value(axis).name: cell for cell in line}
    for name, cell in by_name.items():
        parts = name.replace("-", "_").split("_")
        for start, end in itertools.combinations(range(min(len(parts), 12) + 1), 2):
            inner = name[len("_".join(parts[:start])) + (start > 0) :][: len("_".join(parts[start:end]))]
            if inner != name and inner in by_name:
                yield by_name[inner], cell


def _axis_value_texts(cell: Cell) -> dict[str, str]:
    values = cell.names
    return values | {f"{axis}.args": value.args for axis, value in cell.values}


class _AnyValue(dict[str, str]):
    """What is not known before the run stands for the same thing in every cell."""

    def __missing__(self, key: str) -> str:
        return "x"


def _render_output(output: str, cell: Cell) -> str:
    return render_template(output, _AnyValue(_axis_value_texts(cell)))


def _output_without_placeholders(output: str) -> str:
    """The output with its placeholders taken out: only what the person wrote may hold wildcards."""
    return render_template(output, _AnyValue())


def _output_pattern(output: str, cell: Cell) -> str:
    escaped: Mapping[str, str] = {name: glob.escape(value) for name, value in _axis_value_texts(cell).items()}
    return render_template(output, _AnyValue(escaped))


def _example_output(output: str, cell: Cell) -> str:
    """A path that the cell's own run could write."""
    return render_template(output.replace("*", "x").replace("?", "x"), _AnyValue(_axis_value_texts(cell)))


def _fits_output_pattern(pattern: str, path: str) -> bool:
    if "**" in pattern:
        return fnmatch.fnmatchcase(path, pattern)
    parts, names = pattern.split("/"), path.split("/")
    return len(parts) == len(names) and all(
        fnmatch.fnmatchcase(name, part) for name, part in zip(names, parts, strict=True)
    )


_MOST_CELLS = 100_000


def lint_cells(lint: LintContext) -> None:
    if lint.wrong_below(("axes",)) or lint.wrong_below(("loop",)):
        return
    outline = Campaign("", build_axes(lint.model, lint.document), ())
    cells: dict[str, list[Cell]] = {}
    for name, model in lint.model.jobs.items():
        if any(lint.wrong_below(("jobs", name, key)) for key in ("axes", "exclude")) or (
            model.axes is None and lint.axes
        ):
            continue
        job = build_job_outline(name, model)
        if _has_too_many_cells(lint, outline, job):
            continue
        cells[name] = list(list_cells_of_job(outline, job))
        if not cells[name]:
            lint.add(
                ("jobs", name, "exclude"), f"job '{name}' has no cells: all are excluded", "exclude fewer", key=True
            )
            continue
        if not lint.wrong_below(("jobs", name, "output")):
            _lint_shared_output(lint, job, cells[name])
        _lint_shared_files(lint, name, cells[name])
    for name in cells:
        _lint_needed_cells(lint, name, cells)


def _has_too_many_cells(lint: LintContext, outline: Campaign, job: Job) -> bool:
    count = math.prod(len(outline.axis(axis).values) for axis in job.axes)
    if count > _MOST_CELLS:
        what = f"job '{job.name}' has {count} cells, more than {_MOST_CELLS}"
        lint.add(("jobs", job.name, "axes"), what, "use fewer axes or values", key=True)
    return count > _MOST_CELLS


def _lint_shared_output(lint: LintContext, job: Job, cells: list[Cell]) -> None:
    found = find_shared_output(job.output, cells)
    if found is None:
        return
    path: NodePath = ("jobs", job.name, "output")
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


def _lint_shared_files(lint: LintContext, name: str, cells: list[Cell]) -> None:
    """A path from / on that is the same for two cells: each would be told the other's numbers."""
    for path, text in path_texts_of_job(name, lint.model.jobs[name]):
        section = path[2]
        if section not in ("results", "progress", "proof") or not text.startswith("/"):
            continue
        found = find_shared_output(text, cells)
        if found is None or not found[2] or lint.wrong_below(path):
            continue
        what = f"{found[0].id} and {found[1].id} would be read from the same file, {shorten_text(text)}"
        hint = "write it relative to the output, or put {out} or the axes into it"
        lint.add(path, what, hint, level="error" if section == "results" else "warning")


def _lint_needed_cells(lint: LintContext, name: str, cells: dict[str, list[Cell]]) -> None:
    model = lint.model.jobs[name]
    for index, need in enumerate(model.needs):
        if need not in cells or need == name or not cells[need]:
            continue
        shared = [axis for axis in model.axes or () if axis in (lint.model.jobs[need].axes or ())]
        counts: dict[tuple[str, ...], int] = {}
        for cell in cells[need]:
            key = _shared_axis_names(cell, shared)
            counts[key] = counts.get(key, 0) + 1
        lonely = [cell for cell in cells[name] if _shared_axis_names(cell, shared) not in counts]
        path: NodePath = ("jobs", name, "needs", index)
        if lonely:
            more = f" (and {len(lonely) - 1} more)" if len(lonely) > 1 else ""
            what = f"{lonely[0].id}{more} needs a cell of '{need}' that does not exist"
            lint.add(path, what, f"exclude the same points in '{name}' as in '{need}'")
        elif max(counts.values()) > 1:
            _lint_many_outputs(lint, name, need, max(counts.values()))


def _lint_many_outputs(lint: LintContext, name: str, need: str, count: int) -> None:
    wanted = f"{{{need}.output}}"
    for path, text in _template_texts(lint, name):
        if wanted in text:
            what = f"{wanted} stands for {count} folders: a cell of '{name}' needs {count} cells of '{need}'"
            hint = f"give '{name}' the axes of '{need}', or let the command ask `muster status --json` for them"
            lint.add(path, what, hint, part=wanted)


def _template_texts(lint: LintContext, name: str) -> Iterator[tuple[NodePath, str]]:
    """Every text of a job in which placeholders are filled."""
    model = lint.model.jobs[name]
    for key, words in (("command", model.command), ("resume", model.resume), ("within", model.within)):
        yield from ((("jobs", name, key), text) for text in (words.texts if words else ()))
    yield from path_texts_of_job(name, model)
    used = " ".join([*model.command.texts, *(model.resume.texts if model.resume else ())])
    for axis in model.axes or ():
        if axis in lint.model.axes and f"{{{axis}.args}}" in used:
            for value in written_values(lint.model, lint.document, axis):
                yield (*value.path, "args"), value.settings.args


def _shared_axis_names(cell: Cell, axes: list[str]) -> tuple[str, ...]:
    names = cell.names
    return tuple(names[axis] for axis in axes)
