"""Builds the Campaign of `model` from the validated campaign file."""

from __future__ import annotations

import os.path
from dataclasses import replace
from typing import Any, cast

from muster.model.campaign import (
    Axis,
    AxisValue,
    Campaign,
    DeclaredDecision,
    DeclaredProgress,
    DeclaredResult,
    Job,
    ProgressKind,
    TakenAt,
    WandbSettings,
)
from muster.spec.field_kinds import CommandWords, build_section
from muster.spec.lint_context import written_values
from muster.spec.model_campaign import CampaignFile, Wandb
from muster.spec.model_job import JobSection, Progress, Result
from muster.spec.yaml_tree import YamlDocument
from muster.text.command_template import split_shell_words

_DEFAULT_STEP = {"jsonl": "step", "csv": "step", "wandb": "_step"}


def build_campaign(model: CampaignFile, document: YamlDocument, folder: str) -> Campaign:
    decision: DeclaredDecision | None = build_section(model.decision)
    return Campaign(
        name=model.campaign,
        language=model.language,
        axes=build_axes(model, document),
        env=model.env,
        slots=build_section(model.slots),
        money=build_section(model.money),
        wandb=_build_wandb(model.wandb, folder) if model.wandb or model.loop else None,
        jobs=tuple(_build_job(name, job, folder, decision) for name, job in model.jobs.items()),
        decision=decision,
        report=build_section(model.report),
        loop=build_section(model.loop),
        gates=build_section(model.gates) or None,
        notify=build_section(model.notify),
        finish=build_section(model.finish),
        log_max=model.logs.max if model.logs else None,
    )


def build_axes(model: CampaignFile, document: YamlDocument) -> tuple[Axis, ...]:
    return tuple(
        Axis(name, tuple(_build_axis_value(value) for value in written_values(model, document, name)))
        for name in model.axes
    )


def _build_axis_value(written: Any) -> AxisValue:
    settings = written.settings
    return AxisValue(
        name=written.scalar.text,
        value=written.scalar.value,
        args=settings.args,
        env=settings.env,
        edits=tuple(settings.edits),
        note=settings.note,
        proxy=settings.proxy.strip(),
    )


def build_job_outline(name: str, job: JobSection) -> Job:
    """The job as far as its matrix goes: all that naming its cells takes."""
    return Job(
        name=name,
        axes=tuple(job.axes or ()),
        command=(),
        exclude=tuple({axis: scalar.text for axis, scalar in point.items()} for point in job.exclude),
        needs=tuple(job.needs),
        output=job.output,
    )


def _build_job(name: str, job: JobSection, folder: str, decision: DeclaredDecision | None) -> Job:
    outline = build_job_outline(name, job)
    return Job(
        name=name,
        axes=outline.axes,
        command=_split_command(job.command, shell=job.shell),
        exclude=outline.exclude,
        needs=outline.needs,
        steps=job.steps,
        within=_split_command(job.within) if job.within else (),
        cwd=os.path.normpath(os.path.join(folder, job.cwd)) if job.cwd else None,  # noqa: PTH118 lexical, no I/O
        config=os.path.normpath(os.path.join(folder, job.config)) if job.config else "",  # noqa: PTH118 lexical, no I/O
        resume=_split_command(job.resume, shell=job.shell) if job.resume else None,
        shell=job.shell,
        uses=build_section(job.uses),
        output=job.output,
        mkdir=job.mkdir,
        artifacts=tuple(job.artifacts),
        env=job.env,
        progress=tuple(_build_progress(entry) for entry in job.progress),
        proof=build_section(job.proof),
        results=tuple(_build_result(key, result, decision) for key, result in job.results.items()),
        max_retries=job.retry.max,
        on_stall=job.on_stall,
        grace_s=job.grace,
        timeout_s=job.timeout,
    )


def _split_command(words: CommandWords, *, shell: bool = False) -> tuple[str, ...]:
    return words.texts if shell or words.is_list else split_shell_words(words.texts[0])


def _build_progress(entry: Progress) -> DeclaredProgress:
    kind = cast(ProgressKind, entry.kind)
    step = entry.step or _DEFAULT_STEP.get(kind)
    return DeclaredProgress(kind, getattr(entry, kind), step, entry.every, entry.scale)


def _build_result(name: str, result: Result, decision: DeclaredDecision | None) -> DeclaredResult:
    """The best is the highest, unless the decision wants that metric to be low."""
    reduce: Any = build_section(result.reduce)
    if isinstance(reduce, TakenAt):
        better = (decision.metrics if decision else {}).get(reduce.at.best, "higher")
        reduce = TakenAt(replace(reduce.at, better=better))
    kind = cast(Any, result.kind)
    path = result.path(result.kind) or ""
    return DeclaredResult(name, kind, path, result.key, reduce, result.grain, result.min, result.max)


def _build_wandb(wandb: Wandb | None, folder: str) -> WandbSettings:
    cache = os.path.join(folder, ".muster", "wandb")  # noqa: PTH118 lexical, no I/O
    return WandbSettings(cache, wandb.mode, wandb.entity or "", wandb.project or "") if wandb else WandbSettings(cache)
