"""Which placeholders a job may use where, and what is wrong with one that it may not."""

from __future__ import annotations

from muster.domain.template import placeholders, stray_brace
from muster.spec.document import Path, shorten
from muster.spec.fields import closest
from muster.spec.lint import Lint

RESERVED = ("steps", "gpu", "device", "slot", "port", "out", "cell", "attempt", "config_file", "last")
_ALWAYS = ("gpu", "device", "slot", "port", "out", "cell", "attempt")
_LAST = ("last.output", "last.checkpoint")
_BRACES = "for a real brace write {{ and }}"


def allowed(lint: Lint, job: str, *, later: bool = False) -> list[str]:
    """Names that have a value in this job; `later` adds what only a later attempt has."""
    model = lint.model.jobs[job]
    axes = lint.axes_of(job)
    names = [*axes, *(f"{axis}.args" for axis in axes), *_ALWAYS]
    if model.steps is not None or lint.whole.has(("jobs", job, "steps")):
        names.append("steps")
    if _has_config_file(lint, job):
        names.append("config_file")
    if lint.model.loop and lint.model.loop.job == job and "seed" not in lint.axes:
        names.append("seed")  # 0 where nothing is repeated: `repeats:` may come and go
    names += [f"{need}.output" for need in model.needs]
    return [*names, *_LAST] if later else names


def _has_config_file(lint: Lint, job: str) -> bool:
    if lint.model.loop is None and lint.whole.has(("loop",)):
        return True  # the loop is there but wrong
    if lint.model.loop and lint.model.loop.job == job:
        return True
    return lint.whole.has(("jobs", job, "config"))


def check(lint: Lint, job: str, path: Path, text: str, names: list[str]) -> None:
    """Tells every placeholder in a text that has no value in this job, and a lone brace."""
    known = set(names)
    for name in dict.fromkeys(placeholders(text)):
        if name not in known:
            what, hint = _explain(lint, job, name, names)
            lint.add(path, what, hint, part=f"{{{name}}}")
    position = stray_brace(text)
    if position is not None:
        lint.add(path, f"a lone '{text[position]}' in {shorten(text[max(0, position - 20) :])}", _BRACES)


def _explain(lint: Lint, job: str, name: str, names: list[str]) -> tuple[str, str]:
    head, _, tail = name.partition(".")
    if tail == "output" and head in lint.jobs and head != job:
        return (
            f"{{{name}}}: job '{job}' does not need '{head}'",
            f"add '{head}' to the needs of '{job}'",
        )
    if tail in ("", "args") and head in lint.axes:
        return f"{{{name}}}: '{head}' is not an axis of job '{job}'", f"add '{head}' to the axes of '{job}'"
    if name == "steps":
        return f"{{steps}} is used, but job '{job}' has no steps", "add `steps:` to the job"
    if name in _LAST:
        return f"{{{name}}} has no value in a first attempt", "use it in `resume:` only"
    if name == "config_file":
        return (
            f"{{config_file}} has no value in job '{job}'",
            "add `config: FILE` to the job, or make it the loop's job",
        )
    hint = closest(name.strip(), names)
    return f"unknown placeholder {{{name}}}", hint.replace("'", "{", 1).replace("'", "}", 1) if hint else _BRACES
