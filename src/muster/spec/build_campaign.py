"""Builds the Campaign of `model` from the validated campaign file."""

from __future__ import annotations

import os.path
from typing import Any, cast

from muster.model.campaign import (
    Axis,
    AxisValue,
    Campaign,
    CheckpointProof,
    DeclaredProgress,
    DeclaredResult,
    Job,
    Money,
    ProgressKind,
    Proof,
    Slots,
    SlotUse,
    StepProof,
    WandbSettings,
)
from muster.spec.field_kinds import CommandWords, FileModel
from muster.spec.lint_context import written_values
from muster.spec.model_campaign import CampaignFile, MoneySection, Wandb
from muster.spec.model_job import JobSection, Progress, ProofSection, Result
from muster.spec.yaml_tree import YamlDocument
from muster.text.command_template import split_shell_words

_DEFAULT_STEP = {"jsonl": "step", "csv": "step", "wandb": "_step"}


def build_campaign(model: CampaignFile, document: YamlDocument, folder: str) -> Campaign:
    return Campaign(
        name=model.campaign,
        language=model.language,
        axes=build_axes(model, document),
        env=model.env,
        slots=Slots(model.slots.gpus, model.slots.per_gpu, model.slots.cpus),
        money=_build_money(model.money) if model.money else None,
        wandb=_build_wandb(model.wandb, folder) if model.wandb or model.loop else None,
        jobs=tuple(_build_job(name, job, folder, _metrics_better_low(model)) for name, job in model.jobs.items()),
        decision=_model_as_data(model.decision),
        report=_model_as_data(model.report),
        loop=_model_as_data(model.loop),
        gates={name: _model_as_data(gate) for name, gate in model.gates.items()} if model.gates else None,
        notify=tuple(model.notify),
        finish=_model_as_data(model.finish),
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


def _build_job(name: str, job: JobSection, folder: str, lower: frozenset[str]) -> Job:
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
        uses=SlotUse(job.uses.gpu, job.uses.cpu),
        output=job.output,
        mkdir=job.mkdir,
        artifacts=tuple(job.artifacts),
        env=job.env,
        progress=tuple(_build_progress(entry) for entry in job.progress),
        proof=_build_proof(job.proof),
        results=tuple(_build_result(key, result, lower) for key, result in job.results.items()),
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


def _build_proof(proof: ProofSection) -> Proof:
    return Proof(
        step=StepProof(proof.step.min, proof.step.within) if proof.step else None,
        checkpoint=CheckpointProof(proof.checkpoint.path, proof.checkpoint.saved_after) if proof.checkpoint else None,
        files=tuple(proof.files),
    )


def _metrics_better_low(model: CampaignFile) -> frozenset[str]:
    """The metrics that the decision wants to be low; of all others more is better."""
    decision = model.decision
    if decision is None:
        return frozenset()
    low = {decision.primary.metric} if decision.primary.better == "lower" else set()
    if decision.limit and decision.limit.max is not None:
        low.add(decision.limit.metric)
    return frozenset(low)


def _build_result(name: str, result: Result, lower: frozenset[str]) -> DeclaredResult:
    reduce: Any = result.reduce
    if not isinstance(reduce, str):
        best = reduce.at.best
        reduce = {"at": {"best": best, "better": "lower" if best in lower else "higher"}}
    kind = cast(Any, result.kind)
    path = result.path(result.kind) or ""
    return DeclaredResult(name, kind, path, result.key, reduce, result.grain, result.min, result.max)


def _build_money(money: MoneySection) -> Money:
    return Money(money.price, money.currency, money.per, money.budget, money.paid, money.since, money.at_cap)


def _build_wandb(wandb: Wandb | None, folder: str) -> WandbSettings:
    cache = os.path.join(folder, ".muster", "wandb")  # noqa: PTH118 lexical, no I/O
    return WandbSettings(cache, wandb.mode, wandb.entity or "", wandb.project or "") if wandb else WandbSettings(cache)


def _model_as_data(model: FileModel | None) -> dict[str, Any] | None:
    """For rooms that come later: plain data, defaults filled in, keys without a value left out."""
    # `forms` tells values as they are written apart, and is asked here about models: its guess is wrong, the data right
    return None if model is None else model.model_dump(exclude_none=True, warnings=False)
