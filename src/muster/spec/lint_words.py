"""What a command would get and what it would not: `~` and `$X` that nobody expands, axes that go nowhere, no GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muster.domain.template import for_shell, split_words
from muster.spec.document import Path, shorten
from muster.spec.fields import Words
from muster.spec.lint import Lint, written_values
from muster.spec.lint_jobs import path_texts
from muster.spec.model_job import Job

_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z|k|fi)?sh")
_SCRIPTS = (".py", ".sh")
_GPU = ("{gpu}", "{device}")
_TELLS_CELL = ("{cell}", "MUSTER_CELL")


def lint_words(lint: Lint) -> None:
    for name, job in lint.model.jobs.items():
        for key, words in (("command", job.command), ("resume", job.resume), ("within", job.within)):
            if words is not None and not (job.shell and key != "within"):
                _unexpanded(lint, name, key, words)
        for path, text in path_texts(name, job):
            if text.startswith("~"):
                lint.add(path, "'~' is not expanded", "write the path from / on")
            elif (part := for_shell(text)).startswith("$"):
                lint.add(
                    path, f"'{part}' is not expanded", "write the path itself; {placeholders} are replaced", part=part
                )
        _no_gpu(lint, name, job)
        if not lint.wrong_below(("axes",)) and not lint.wrong_below(("jobs", name)):
            _unused_axes(lint, name, job)
    if not lint.wrong_below(("axes",)) and not lint.wrong_below(("jobs",)):
        _args_for_nobody(lint)


def _unexpanded(lint: Lint, name: str, key: str, words: Words) -> None:
    split = _split(words)
    if _has_shell(split) or (key != "within" and _has_shell(_split(lint.model.jobs[name].within))):
        return
    for at, word in enumerate(split):
        part = for_shell(word)
        if not part:
            continue
        path: Path = ("jobs", name, key, at) if words.is_list else ("jobs", name, key)
        script = word.endswith(_SCRIPTS) and at > 0 and not split[at - 1].startswith("-")
        surely = script or (at == 0 and key == "command")
        what = f"no shell runs this: {part} in {shorten(word)} stays as it is"
        end = "" if surely else "; fine if the program itself replaces it"
        hint = f"write the path or value itself, or `shell: true`{end}"
        lint.add(path, what, hint, part=word, level="error" if surely else "warning")


def _split(words: Words | None) -> list[str]:
    if words is None:
        return []
    try:
        return list(words.texts) if words.is_list else list(split_words(words.texts[0]))
    except ValueError:  # an open quote was told
        return []


def _has_shell(words: list[str]) -> bool:
    """`bash -lc '...'`: a shell after all."""
    return any(
        _SHELL.fullmatch(word) and any(re.fullmatch(r"-\w*c", later) for later in words[at + 1 : at + 4])
        for at, word in enumerate(words)
    )


def _no_gpu(lint: Lint, name: str, job: Job) -> None:
    """Declared without GPUs; what this machine lacks is told by `check`."""
    if lint.model.slots.gpus != () or job.uses.gpu is not None:
        return
    for key, words in (("command", job.command), ("resume", job.resume)):
        used = [item for text in (words.texts if words else ()) for item in _GPU if item in text]
        if used:
            what = f"{used[0]} is empty on a CPU slot, and the campaign has no others"
            hint = f"take {used[0]} out, with its option, or give the campaign GPUs: `slots: {{gpus: auto}}`"
            lint.warn(("jobs", name, key), what, hint, part=used[0])


def _unused_axes(lint: Lint, name: str, job: Job) -> None:
    texts = _texts(name, job)
    if any(mark in text for text in texts for mark in _TELLS_CELL):
        return
    for axis in [axis for axis in job.axes or () if axis in lint.model.axes]:
        if len(lint.values(axis)) < 2 or any(mark in text for text in texts for mark in _marks(lint, job, axis)):
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


def _texts(name: str, job: Job) -> list[str]:
    """Every text of a job that may tell its run which cell it is."""
    lines = [text for words in (job.command, job.resume, job.within) if words for text in words.texts]
    return [*lines, *(text for _, text in path_texts(name, job)), *job.env.values()]


def _marks(lint: Lint, job: Job, axis: str) -> Iterator[str]:
    """What in a text differs from one value of the axis to the next."""
    yield f"{{{axis}}}"
    yield f"{{{axis}.args}}"
    for need in job.needs:
        if need in lint.model.jobs and axis in lint.axes_of(need):
            yield f"{{{need}.output}}"


def _args_for_nobody(lint: Lint) -> None:
    for axis in lint.model.axes:
        told = [value for value in written_values(lint.model, lint.document, axis) if value.settings.args]
        mark = f"{{{axis}.args}}"
        jobs = {name: job for name, job in lint.model.jobs.items() if axis in (job.axes or ())}
        if told and jobs and not any(mark in text for name, job in jobs.items() for text in _texts(name, job)):
            more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
            what = f"the args of {axis} {told[0].scalar.text}{more} go nowhere: no command has {mark}"
            lint.warn((*told[0].path, "args"), what, f"put {mark} into the command", key=True)
