"""Jobs: names, axes, needs, commands, placeholders, progress and proof."""

from __future__ import annotations

import re

from muster.spec.field_kinds import CommandWords, suggest_closest
from muster.spec.lint_axes import NAME_PATTERN, lint_env
from muster.spec.lint_context import (
    LintContext,
    allowed_placeholders,
    check_placeholders,
    lint_patterns,
    lint_shell,
    written_values,
)
from muster.spec.model_job import JobSection
from muster.spec.yaml_tree import NodePath, shorten_text
from muster.text.command_template import list_placeholders, split_shell_words
from muster.text.phrases import phrase

_STEPPED = ("jsonl", "csv", "wandb", "tensorboard", "stdout")
SHELL_WORDS = {"|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1", "&>"}
_MANY_RETRIES = 10


def lint_jobs(lint: LintContext) -> None:
    if not lint.jobs and lint.whole.has(("jobs",)) and not lint.wrong_below(("jobs",)):
        lint.add(("jobs",), "there is no job", "a campaign needs one job at least", key=True)
    for name in lint.jobs:
        _lint_job_name(lint, name)
    for name, job in lint.model.jobs.items():
        _lint_job_axes(lint, name, job)
        _lint_exclusions(lint, name, job)
        _lint_needs(lint, name, job)
        _lint_commands(lint, name, job)
        _lint_templates(lint, name, job)
        _lint_job_config(lint, name, job)
        _lint_proof(lint, name, job)
        _lint_results(lint, name, job)
        lint_patterns(lint, name, job)
        _lint_slots(lint, name, job)
        _lint_times(lint, name, job)
        lint_env(lint, ("jobs", name, "env"))
    _lint_need_cycles(lint)


def _lint_job_name(lint: LintContext, name: str) -> None:
    path: NodePath = ("jobs", name)
    if not NAME_PATTERN.fullmatch(name):
        hint = "letters, digits, '_' and '-', and a letter first"
        lint.add(path, f"{shorten_text(name)} can't be the name of a job", hint, key=True)
    elif name == "last":
        lint.add(
            path, "a job can't be named 'last': {last.output} means something else", "choose another name", key=True
        )


def _lint_job_axes(lint: LintContext, name: str, job: JobSection) -> None:
    path: NodePath = ("jobs", name, "axes")
    unsaid = not lint.whole.has(path) and not lint.misspelt(("jobs", name), "axes")
    if unsaid and lint.axes and not _is_loop_job(lint, name):
        hint = f"add `axes: [{', '.join(lint.axes)}]`, or `axes: []` for a job that runs once"
        lint.add(("jobs", name), f"'axes' is missing in jobs.{name}", hint, key=True)
    for index, axis in enumerate(job.axes or ()):
        if axis == "variant" and _is_loop_job(lint, name):
            lint.add((*path, index), "the loop adds the axis 'variant' itself", "remove it here")
        elif axis not in lint.axes or (axis == "variant" and axis not in lint.model.axes):
            lint.unknown((*path, index), f"there is no axis '{axis}'", axis, lint.axes)
        elif axis in (job.axes or ())[:index]:
            lint.add((*path, index), f"axis '{axis}' is listed twice", "keep one")


def _is_loop_job(lint: LintContext, name: str) -> bool:
    return lint.model.loop is not None and lint.model.loop.job == name


def _lint_exclusions(lint: LintContext, name: str, job: JobSection) -> None:
    for index, point in enumerate(job.exclude):
        path: NodePath = ("jobs", name, "exclude", index)
        if not point:
            lint.add(path, "an empty exclusion would leave out every cell", "name a value: {seed: 4}")
        for axis, scalar in point.items():
            if axis not in (job.axes or ()):
                if not lint.wrong_below(("jobs", name, "axes")):
                    what = f"'{axis}' is not an axis of job '{name}'"
                    lint.unknown((*path, axis), what, axis, list(job.axes or ()), key=True)
            elif axis in lint.axes and scalar.text not in lint.values(axis):
                what = f"axis '{axis}' has no value {shorten_text(scalar.text)}"
                lint.unknown((*path, axis), what, scalar.text, lint.values(axis))


def _lint_needs(lint: LintContext, name: str, job: JobSection) -> None:
    for index, need in enumerate(job.needs):
        path: NodePath = ("jobs", name, "needs", index)
        if need == name:
            lint.add(path, f"job '{name}' needs itself", "remove it")
        elif need not in lint.jobs:
            others = [job for job in lint.jobs if job != name]
            hint = suggest_closest(need, others) or (f"known: {', '.join(others[:12])}" if others else "")
            lint.add(path, f"there is no job '{need}'", hint or f"'{name}' is the only job: it can need no other")
        elif need in job.needs[:index]:
            lint.add(path, f"job '{need}' is listed twice", "keep one")


def _lint_need_cycles(lint: LintContext) -> None:
    """Depth first; the first need that leads back is the one to point at."""
    jobs = lint.model.jobs
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> None:
        for index, need in enumerate(jobs[name].needs):
            if need in trail and need != name:
                ring = " -> ".join([*trail[trail.index(need) :], need])
                lint.add(("jobs", name, "needs", index), f"the needs go in a circle: {ring}", "one of them must go")
            elif need in jobs and need not in done and need not in trail:
                visit(need, [*trail, need])
        done.add(name)

    for name in jobs:
        if name not in done:
            visit(name, [name])


def _lint_commands(lint: LintContext, name: str, job: JobSection) -> None:
    if not lint.whole.has(("jobs", name, "command")):
        if not lint.misspelt(("jobs", name), "command"):
            lint.add(("jobs", name), f"'command' is missing in jobs.{name}", "add `command:`", key=True)
        return
    lines = {"command": job.command, "resume": job.resume, "within": job.within}
    for key, words in lines.items():
        if words is not None:
            _lint_command_line(lint, name, key, words, job.shell and key != "within")
    has_checkpoint = job.proof.checkpoint or any(entry.checkpoint for entry in job.progress)
    if job.resume and not has_checkpoint and not lint.wrong_below(("jobs", name)):
        what = "resume is never used: no checkpoint is declared"
        lint.warn(("jobs", name, "resume"), what, "add `{checkpoint: FILE}` to progress", key=True)


def _lint_command_line(lint: LintContext, name: str, key: str, words: CommandWords, shell: bool) -> None:
    path: NodePath = ("jobs", name, key)
    names = allowed_placeholders(lint, name, later=key == "resume")
    for index, text in enumerate(words.texts):
        check_placeholders(lint, name, (*path, index) if words.is_list else path, text, names)
    if shell and words.is_list:
        lint.add(path, "with `shell: true` the command is one text, found a list", "write it as one text")
    lint_shell(lint, name, key, words, shell=shell)
    if shell or words.is_list:
        return
    try:
        split = split_shell_words(words.texts[0])
    except ValueError:
        lint.add(path, f"a quote in '{key}' is opened and never closed", "close it, or write \\' for a lone one")
        return
    odd = [word for word in split if word in SHELL_WORDS]
    if odd:
        what = f"no shell runs this: the program gets '{odd[0]}' as a word"
        lint.warn(path, what, "add `shell: true`, or put the commands into a script")
    elif key == "command" and re.match(r"[A-Za-z_]\w*=", split[0]) and not has_within(lint, name):
        lint.warn(path, f"no shell runs this: '{split[0]}' is taken for a program", "use `env:`")


def has_within(lint: LintContext, name: str) -> bool:
    return lint.model.jobs[name].within is not None


def _lint_templates(lint: LintContext, name: str, job: JobSection) -> None:
    names = allowed_placeholders(lint, name)
    for path, text in path_texts_of_job(name, job):
        check_placeholders(lint, name, path, text, names)
    if job.cwd is not None:
        for item in dict.fromkeys(list_placeholders(job.cwd)):
            hint = "one folder serves the whole job; let the command change it"
            lint.add(("jobs", name, "cwd"), f"cwd takes no placeholders, found {{{item}}}", hint)
        if job.cwd.startswith("~"):
            lint.add(
                ("jobs", name, "cwd"), "'~' is not expanded", "write the path from / on, or relative to the campaign"
            )
    _lint_value_args(lint, name, job)
    gpu_used = [item for item in ("{gpu}", "{device}") for text in job.command.texts if item in text]
    if gpu_used and job.uses.gpu == 0:
        what = f"{gpu_used[0]} has no value: job '{name}' uses no GPU"
        lint.add(("jobs", name, "command"), what, "remove it, or `uses: {gpu: 1}`", part=gpu_used[0])


def path_texts_of_job(name: str, job: JobSection) -> list[tuple[NodePath, str]]:
    """All texts of a job that are paths with placeholders."""
    base: NodePath = ("jobs", name)
    found: list[tuple[NodePath, str]] = [((*base, "output"), job.output)]
    found += [((*base, "artifacts", index), text) for index, text in enumerate(job.artifacts)]
    for index, entry in enumerate(job.progress):
        if entry.kind != "stdout":
            found.append(((*base, "progress", index, entry.kind), getattr(entry, entry.kind)))
    for key, result in job.results.items():
        if result.kind != "stdout":
            found.append(((*base, "results", key, result.kind), result.path(result.kind) or ""))
    if job.proof.checkpoint:
        found.append(((*base, "proof", "checkpoint", "path"), job.proof.checkpoint.path))
    found += [((*base, "proof", "files", index), text) for index, text in enumerate(job.proof.files)]
    return found


def _lint_value_args(lint: LintContext, name: str, job: JobSection) -> None:
    """The args of axis values are templates too, in every job that puts them in."""
    names = allowed_placeholders(lint, name, later=True)
    texts = " ".join([*job.command.texts, *(job.resume.texts if job.resume else ())])
    for axis in job.axes or ():
        if axis not in lint.model.axes or f"{{{axis}.args}}" not in texts:
            continue
        for value in written_values(lint.model, lint.document, axis):
            path = (*value.path, "args")
            if not value.settings.args or lint.wrong_below(path):
                continue
            check_placeholders(lint, name, path, value.settings.args, names)
            try:
                split_shell_words(value.settings.args)
            except ValueError:
                lint.add(path, "a quote in 'args' is opened and never closed", "close it")


def _lint_job_config(lint: LintContext, name: str, job: JobSection) -> None:
    path: NodePath = ("jobs", name, "config")
    if job.config is None:
        return
    texts = [text for words in (job.command, job.resume, job.within) if words for text in words.texts]
    if _is_loop_job(lint, name):
        what = f"job '{name}' is the loop's: its configs are the variants"
        lint.add(path, what, "name the file in `loop: {base: [...]}` instead", key=True)
    elif not any("{config_file}" in text for text in texts):
        what = f"config is never used: the command of '{name}' has no {{config_file}}"
        lint.add(path, what, "put {config_file} where the trainer expects its config", key=True)
    for item in dict.fromkeys(list_placeholders(job.config)):
        lint.add(path, f"config takes no placeholders, found {{{item}}}", "`edits:` of axis values change it")


def _lint_proof(lint: LintContext, name: str, job: JobSection) -> None:
    step = job.proof.step
    path: NodePath = ("jobs", name, "proof", "step")
    if step is None:
        return
    if not re.fullmatch(r"\d+(\.\d+)?|\{steps\}", step.min):
        lint.add((*path, "min"), f"expected a number or '{{steps}}', found {shorten_text(step.min)}")
    elif step.min == "{steps}" and job.steps is None and not lint.whole.has(("jobs", name, "steps")):
        lint.add((*path, "min"), f"{{steps}} is used, but job '{name}' has no steps", "add `steps:` to the job")
    if not any(entry.kind in _STEPPED for entry in job.progress) and not lint.wrong_below(("jobs", name, "progress")):
        what = "the step can't be proved: no progress entry has a step"
        lint.add(path, what, "add one to progress: {jsonl: metrics.jsonl, step: step}", key=True)


def _lint_results(lint: LintContext, name: str, job: JobSection) -> None:
    for key, result in job.results.items():
        path: NodePath = ("jobs", name, "results", key)
        if "/" in key or not key.strip() or not key.isprintable():
            lint.add(
                path, f"{shorten_text(key)} can't be the name of a result", "no slash: columns are JOB/RESULT", key=True
            )
        best = None if isinstance(result.reduce, str) else result.reduce.at.best
        known = [item.text for item in lint.whole.keys(("jobs", name, "results"))]
        if best is not None and best not in known:
            what = f"job '{name}' has no result '{best}'"
            lint.unknown((*path, "reduce", "at", "best"), what, best, known)


def _lint_slots(lint: LintContext, name: str, job: JobSection) -> None:
    slots, uses = lint.model.slots, job.uses
    path: NodePath = ("jobs", name, "uses")
    if uses.gpu and slots.gpus is not None and uses.gpu > len(slots.gpus):
        what = f"job '{name}' uses {phrase('count.gpu', n=uses.gpu)}, the campaign has {len(slots.gpus)}"
        lint.add((*path, "gpu"), what, "it could never start; change `slots.gpus` or `uses`")
    if uses.cpu and uses.cpu > slots.cpus:
        what = f"job '{name}' uses {uses.cpu} CPU slots, the campaign has {slots.cpus}"
        lint.add((*path, "cpu"), what, f"it could never start; write `slots: {{cpus: {uses.cpu}}}`")
    takes_cpu = uses.gpu == 0 or (uses.gpu is None and slots.gpus == ())
    if takes_cpu and uses.cpu is None and slots.cpus == 0:
        lint.add(
            ("jobs", name),
            f"job '{name}' uses no GPU, and the campaign has no CPU slot",
            "write `slots: {cpus: 1}`",
            key=True,
        )


def _lint_times(lint: LintContext, name: str, job: JobSection) -> None:
    if job.timeout is not None and job.grace is not None and job.timeout < job.grace:
        what = "timeout is shorter than grace: a run is stopped before its first progress is due"
        lint.warn(("jobs", name, "timeout"), what, "make timeout longer")
    if job.retry.max > _MANY_RETRIES:
        what = f"{job.retry.max} retries repeat a failure more often than they fix it"
        lint.warn(("jobs", name, "retry", "max"), what, "3 is usual")
    for index, entry in enumerate(job.progress):
        if entry.every and job.timeout and entry.every > job.timeout:
            what = "it is written less often than the timeout lets a run live"
            lint.warn(("jobs", name, "progress", index, "every"), what, "a period shorter than `timeout`")
