"""The model of a campaign file as the domain's Campaign."""

from __future__ import annotations

import os.path
from typing import Any, cast

from muster.domain import campaign as domain
from muster.domain.template import split_words
from muster.spec.base import Model
from muster.spec.document import Document
from muster.spec.fields import Words
from muster.spec.lint import written_values
from muster.spec.model import CampaignFile, Money, Wandb
from muster.spec.model_job import Job, Progress, Proof, Result

_DEFAULT_STEP = {"jsonl": "step", "csv": "step", "wandb": "_step"}


def campaign_of(model: CampaignFile, document: Document, folder: str) -> domain.Campaign:
    return domain.Campaign(
        name=model.campaign,
        language=model.language,
        axes=axes_of(model, document),
        env=model.env,
        slots=domain.Slots(model.slots.gpus, model.slots.per_gpu, model.slots.cpus),
        money=_money(model.money) if model.money else None,
        wandb=_wandb(model.wandb, folder) if model.wandb or model.loop else None,
        jobs=tuple(_job(name, job, folder, _lower_is_better(model)) for name, job in model.jobs.items()),
        decision=_plain(model.decision),
        report=_plain(model.report),
        loop=_plain(model.loop),
        gates={name: _plain(gate) for name, gate in model.gates.items()} if model.gates else None,
        notify=tuple(model.notify),
        finish=_plain(model.finish),
        log_max=model.logs.max if model.logs else None,
    )


def axes_of(model: CampaignFile, document: Document) -> tuple[domain.Axis, ...]:
    return tuple(
        domain.Axis(name, tuple(_value(value) for value in written_values(model, document, name)))
        for name in model.axes
    )


def _value(written: Any) -> domain.AxisValue:
    settings = written.settings
    return domain.AxisValue(
        name=written.scalar.text,
        value=written.scalar.value,
        args=settings.args,
        env=settings.env,
        edits=tuple(settings.edits),
        note=settings.note,
        proxy=settings.proxy.strip(),
    )


def job_outline(name: str, job: Job) -> domain.Job:
    """The job as far as its matrix goes: all that naming its cells takes."""
    return domain.Job(
        name=name,
        axes=tuple(job.axes or ()),
        command=(),
        exclude=tuple({axis: scalar.text for axis, scalar in point.items()} for point in job.exclude),
        needs=tuple(job.needs),
        output=job.output,
    )


def _job(name: str, job: Job, folder: str, lower: frozenset[str]) -> domain.Job:
    outline = job_outline(name, job)
    return domain.Job(
        name=name,
        axes=outline.axes,
        command=_words(job.command, shell=job.shell),
        exclude=outline.exclude,
        needs=outline.needs,
        steps=job.steps,
        within=_words(job.within) if job.within else (),
        cwd=os.path.normpath(os.path.join(folder, job.cwd)) if job.cwd else None,  # noqa: PTH118 lexical, no I/O
        config=os.path.normpath(os.path.join(folder, job.config)) if job.config else "",  # noqa: PTH118 lexical, no I/O
        resume=_words(job.resume, shell=job.shell) if job.resume else None,
        shell=job.shell,
        uses=domain.Uses(job.uses.gpu, job.uses.cpu),
        output=job.output,
        mkdir=job.mkdir,
        artifacts=tuple(job.artifacts),
        env=job.env,
        progress=tuple(_progress(entry) for entry in job.progress),
        proof=_proof(job.proof),
        results=tuple(_result(key, result, lower) for key, result in job.results.items()),
        max_retries=job.retry.max,
        on_stall=job.on_stall,
        grace_s=job.grace,
        timeout_s=job.timeout,
    )


def _words(words: Words, *, shell: bool = False) -> tuple[str, ...]:
    return words.texts if shell or words.is_list else split_words(words.texts[0])


def _progress(entry: Progress) -> domain.Progress:
    kind = cast(domain.ProgressKind, entry.kind)
    step = entry.step or _DEFAULT_STEP.get(kind)
    return domain.Progress(kind, getattr(entry, kind), step, entry.every, entry.scale)


def _proof(proof: Proof) -> domain.Proof:
    return domain.Proof(
        step=domain.StepProof(proof.step.min, proof.step.within) if proof.step else None,
        checkpoint=domain.CheckpointProof(proof.checkpoint.path, proof.checkpoint.saved_after)
        if proof.checkpoint
        else None,
        files=tuple(proof.files),
    )


def _lower_is_better(model: CampaignFile) -> frozenset[str]:
    """The metrics that the decision wants to be low; of all others more is better."""
    decision = model.decision
    if decision is None:
        return frozenset()
    low = {decision.primary.metric} if decision.primary.better == "lower" else set()
    if decision.limit and decision.limit.max is not None:
        low.add(decision.limit.metric)
    return frozenset(low)


def _result(name: str, result: Result, lower: frozenset[str]) -> domain.Result:
    reduce: Any = result.reduce
    if not isinstance(reduce, str):
        best = reduce.at.best
        reduce = {"at": {"best": best, "better": "lower" if best in lower else "higher"}}
    kind = cast(Any, result.kind)
    path = result.path(result.kind) or ""
    return domain.Result(name, kind, path, result.key, reduce, result.grain, result.min, result.max)


def _money(money: Money) -> domain.Money:
    return domain.Money(money.price, money.currency, money.per, money.budget, money.paid, money.since, money.at_cap)


def _wandb(wandb: Wandb | None, folder: str) -> domain.Wandb:
    cache = os.path.join(folder, ".muster", "wandb")  # noqa: PTH118 lexical, no I/O
    return domain.Wandb(cache, wandb.mode, wandb.entity or "", wandb.project or "") if wandb else domain.Wandb(cache)


def _plain(model: Model | None) -> dict[str, Any] | None:
    """For rooms that come later: plain data, defaults filled in, keys without a value left out."""
    # `forms` tells values as they are written apart, and is asked here about models: its guess is wrong, the data right
    return None if model is None else model.model_dump(exclude_none=True, warnings=False)
