"""The Python environments that a campaign's jobs run in, and what follows from what their frameworks see."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.app.campaign.preflight.launched_command import find_interpreter, find_launched_target, make_shebang_reader
from muster.engine.plan.cell_command import (
    build_run_environment,
    command_for_checking,
    context_for_checking,
)
from muster.engine.plan.scheduling import slots_needed
from muster.engine.ports.machine import PythonAnswer
from muster.model.campaign import Campaign, Job
from muster.model.cell import Cell, list_cells_of_job
from muster.model.errors import Mistake
from muster.text.phrases import join_phrases, phrase

ATTEMPT_VARIABLES = ("MUSTER_CELL", "MUSTER_ATTEMPT", "MUSTER_OUT")


@dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """One Python with its folder and variables, and the jobs that run in it."""

    jobs: tuple[str, ...]
    words: tuple[str, ...]  # what starts it; empty: the command names none
    cwd: str
    added: Mapping[str, str]  # to the environment of whoever asks
    certain: bool  # it is the command's own
    gpus: int  # that one cell takes
    required: bool  # the campaign asks for a GPU; False: it takes one because there is one
    framework: str | None = None  # the one that the job is known to use
    modules: tuple[str, ...] = ()  # top-level names that `-m` asks for, where the working folder has none of them

    @property
    def name(self) -> str:
        return f"`{' '.join(self.words)}`"


def find_python_environments(
    campaign: Campaign, root: str, gpus: Sequence[Mapping[str, Any]], environ: Mapping[str, str]
) -> list[PythonEnvironment]:
    """One for each that differs, in the order of the jobs. Values of axes: those of a job's first cell."""
    found: dict[object, PythonEnvironment] = {}
    for job in campaign.jobs:
        cell = next(list_cells_of_job(campaign, job), None)
        each = _environment_of_job(campaign, job, cell, root, gpus, environ) if cell else None
        if each is None:
            continue
        key = (each.words, each.cwd, tuple(sorted(each.added.items())))
        known = found.get(key)
        found[key] = _join_environments(known, each) if known else each
    return list(found.values())


def _join_environments(one: PythonEnvironment, other: PythonEnvironment) -> PythonEnvironment:
    return replace(
        one,
        jobs=(*one.jobs, *other.jobs),
        certain=one.certain or other.certain,
        gpus=max(one.gpus, other.gpus),
        required=one.required or other.required,
        framework=one.framework or other.framework,
        modules=tuple(dict.fromkeys((*one.modules, *other.modules))),
    )


def _environment_of_job(
    campaign: Campaign, job: Job, cell: Cell, root: str, gpus: Sequence[Mapping[str, Any]], environ: Mapping[str, str]
) -> PythonEnvironment | None:
    place = context_for_checking(job, "")
    words = command_for_checking(job, cell, place)
    bare = command_for_checking(replace(job, within=()), cell, place)
    if words is None or bare is None:
        return None
    within = words[: len(words) - len(bare)]
    added = {
        name: text
        for name, text in build_run_environment(campaign, job, cell, place, "").items()
        if name not in ATTEMPT_VARIABLES
    }
    cwd = job.cwd or root
    shebang = make_shebang_reader(cwd, added.get("PATH", environ.get("PATH", os.defpath)))
    found = find_interpreter(within, words[len(within) :], shell=job.shell, shebang=shebang)
    takes, _ = slots_needed(job, has_gpus=campaign.slots.gpus != () and bool(gpus))
    shown = choose_visible_gpus(campaign, gpus) if takes else ()
    added["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, shown))
    return PythonEnvironment(
        (job.name,),
        found.words,
        cwd,
        added,
        found.certain,
        takes,
        bool(requires_gpu(campaign, job, added)),
        _guess_framework(words, added),
        () if job.shell else _modules(words, Path(cwd)),
    )


def choose_visible_gpus(campaign: Campaign, gpus: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """The GPUs to ask with: those that nobody uses; where all are in use, one: a look costs little of its memory."""
    named = campaign.slots.gpus
    here = [gpu for gpu in gpus if named is None or gpu["index"] in named]
    idle = tuple(int(gpu["index"]) for gpu in here if not gpu.get("busy"))
    return idle or tuple(int(gpu["index"]) for gpu in here[:1])


def requires_gpu(campaign: Campaign, job: Job, env: Mapping[str, str]) -> str | None:
    """How the campaign asks for a GPU for this job; None: it would run without one."""
    if job.uses.gpu == 0:
        return None
    if job.uses.gpu:
        return f"uses: {{gpu: {job.uses.gpu}}}"
    wanted = find_gpu_variable(env)
    if wanted:
        return wanted
    return f"slots: {{gpus: {list(campaign.slots.gpus)}}}" if campaign.slots.gpus and job.uses.cpu is None else None


def find_gpu_variable(env: Mapping[str, str]) -> str | None:
    """A variable with which JAX runs on a GPU or not at all: `JAX_PLATFORM_NAME=gpu`."""
    for name in ("JAX_PLATFORMS", "JAX_PLATFORM_NAME", "JAX_PLATFORM"):
        platforms = [each.strip().lower() for each in env.get(name, "").split(",")]
        if {"gpu", "cuda", "rocm"} & set(platforms):
            return f"{name}={env[name]}"
    return None


def _modules(words: Sequence[str], cwd: Path) -> tuple[str, ...]:
    """`python -m NAME` looks in its working folder first: what lies there `missing_programs` has looked at."""
    target = find_launched_target(words)
    if target is None or target.kind != "module" or not target.sure:
        return ()
    first = target.name.partition(".")[0]
    if not first.isidentifier() or (cwd / first).exists() or any(cwd.glob(f"{first}.*")):
        return ()
    return (first,)


def _guess_framework(words: Sequence[str], env: Mapping[str, str]) -> str | None:
    """By the options and variables that only one of them has."""
    if find_gpu_variable(env) or any(word.startswith("--jax.") for word in words):
        return "jax"
    starts_torch = any(Path(word).name in ("torchrun", "accelerate", "deepspeed") for word in words)
    return "torch" if starts_torch or "torch.distributed.run" in words else None


def find_environment_mistakes(asked: PythonEnvironment, answer: PythonAnswer) -> Iterator[Mistake]:
    """What a person should know before the first run."""
    jobs = phrase("campaign.jobs_named", n=len(asked.jobs), jobs=", ".join(asked.jobs))
    path = f"jobs.{asked.jobs[0]}.command"
    if answer.python is None:
        yield _python_not_started(asked, answer, jobs, path)
        return
    for name in answer.lacking:
        hint = phrase("campaign.install_or_fix_module")
        level = "failure" if asked.certain else "warning"
        yield Mistake(
            phrase("campaign.job_lacks_module", jobs=jobs, python=asked.name, module=name),
            hint=hint,
            path=path,
            level=level,
        )
    if answer.timed_out:
        what = phrase("campaign.devices_not_told_in_time", jobs=jobs, python=asked.name)
        yield Mistake(what, hint=phrase("campaign.try_by_hand"), path=path, level="warning")
    elif asked.gpus:
        yield from _framework_sees_too_few_gpus(asked, answer.frameworks, jobs, path)


def _python_not_started(asked: PythonEnvironment, answer: PythonAnswer, jobs: str, path: str) -> Mistake:
    last = answer.stderr.strip().splitlines()[-1:] or [""]
    how = (
        phrase("campaign.did_not_answer_time")
        if answer.timed_out
        else phrase("campaign.exit_code", code=answer.exit)
        if answer.exit is not None
        else ""
    )
    why = answer.trouble or join_phrases(": ", [part for part in (how, last[0][:300]) if part])
    hint = phrase("campaign.check_environment_whole")
    level = "failure" if asked.certain and not answer.timed_out else "warning"
    return Mistake(
        phrase("campaign.python_cannot_start", jobs=jobs, python=asked.name, reason=why),
        hint=hint,
        path=path,
        level=level,
    )


def _framework_sees_too_few_gpus(
    asked: PythonEnvironment, frameworks: Sequence[Mapping[str, Any]], jobs: str, path: str
) -> Iterator[Mistake]:
    """The framework that the jobs use sees too few GPUs; where that can't be told, all that are installed."""
    wanted = min(asked.gpus, len(_shown_gpu_indexes(asked)))
    blind = [each for each in frameworks if each["gpus"] < max(1, wanted)]
    used = [each for each in frameworks if each["name"] == asked.framework]
    known = bool(used) or len(blind) == len(frameworks)
    for each in [one for one in used if one in blind] if used else blind:
        level = "failure" if asked.required and known else "warning"
        seen = phrase("campaign.framework_sees_none")
        if each.get("trouble"):
            seen = phrase("campaign.framework_fails", trouble=each["trouble"])
        elif each["gpus"]:
            seen = phrase("campaign.framework_sees", gpus=each["gpus"])
        if each["devices"]:
            seen = join_phrases(" ", (seen, f"({', '.join(each['devices'][:4])})"))
        needs = phrase("campaign.needs_gpu", n=len(asked.jobs))
        if wanted > 1:
            needs = phrase("campaign.needs_gpus", n=len(asked.jobs), gpus=wanted)
        what = phrase(
            "campaign.framework_sees_too_few",
            jobs=jobs,
            needs=needs,
            framework=f"{each['name']} {each.get('version') or ''}".rstrip(),
            python=asked.name,
            seen=seen,
        )
        hint = phrase("campaign.install_cuda_build", name=each["name"])
        yield Mistake(what, hint=hint, path=path, level=level)


def _shown_gpu_indexes(asked: PythonEnvironment) -> Collection[str]:
    return [each for each in asked.added.get("CUDA_VISIBLE_DEVICES", "").split(",") if each]


def environment_as_json(asked: PythonEnvironment, answer: Any) -> dict[str, Any]:
    """As it is saved. Values of variables stay in campaign.yaml."""
    if answer is None:
        note = phrase("campaign.command_names_no_python")
        return {"jobs": list(asked.jobs), "command": None, "note": note}
    return {
        "jobs": list(asked.jobs),
        "command": list(asked.words),
        "cwd": asked.cwd,
        "env": sorted(asked.added),
        "gpus_shown": asked.added.get("CUDA_VISIBLE_DEVICES", ""),
        "exit": answer.exit,
        "timed_out": answer.timed_out,
        "trouble": answer.trouble or None,
        "python": answer.python,
        "frameworks": [dict(each) for each in answer.frameworks],
        "packages": dict(answer.packages),
        "stdout": answer.stdout,
        "stderr": answer.stderr,
    }
