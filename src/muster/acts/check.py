"""`muster check`: what it found, as one object. Facts about the machine come in as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.domain.campaign import Campaign, Job
from muster.domain.errors import Mistake
from muster.plan.slots import need

LITTLE_DISK = 2 << 30  # bytes: a checkpoint or two


@dataclass(frozen=True, slots=True)
class Machine:
    """What a run would find here."""

    gpus: tuple[Mapping[str, Any], ...]  # index, name, busy, why
    disk_free: int | None  # bytes; None: it can't be told
    record: Mapping[str, Any]  # everything, as it is saved


@dataclass(frozen=True, slots=True)
class Check:
    file: str
    mistakes: tuple[Mistake, ...] = ()
    warnings: tuple[Mistake, ...] = ()
    preflight: Mapping[str, Any] | None = None
    saved: str | None = None  # where the record was written

    @property
    def valid(self) -> bool:
        return not self.mistakes


def advise(campaign: Campaign, machine: Machine) -> Iterator[Mistake]:
    """Warnings about this machine: the campaign is right, but not everything in it can run here."""
    present = {int(gpu["index"]) for gpu in machine.gpus}
    if campaign.slots.gpus:
        missing = [str(index) for index in campaign.slots.gpus if index not in present]
        if missing:
            found = f"it has {', '.join(map(str, sorted(present)))}" if present else "none was found"
            yield _warning(
                f"this machine has no GPU {', '.join(missing)}: {found}", "name those that exist", "slots.gpus"
            )
    if campaign.slots.gpus is None and not present and any(_takes_any(job) for job in campaign.jobs):
        yield _warning(
            "`gpus: auto`, and this machine has no GPU: cells run on CPU slots",
            "write `slots: {gpus: 0}` if that is meant; else see whether the driver works (`nvidia-smi`)",
            "slots.gpus",
        )
    usable = len(campaign.slots.gpus) if campaign.slots.gpus is not None else len(present)
    for job in campaign.jobs:
        gpus, _ = need(job, has_gpus=usable > 0)
        if gpus > usable:
            what = f"job {job.name}: a cell takes {gpus} GPUs and {usable} can be used here: it would never start"
            yield _warning(what, "change `uses:` or `slots:`", f"jobs.{job.name}.uses")
    if machine.disk_free is not None and machine.disk_free < LITTLE_DISK:
        what = f"only {machine.disk_free >> 20} MiB are free on the campaign's disk"
        yield _warning(what, "a full disk ends runs; free some space first", "")


def _takes_any(job: Job) -> bool:
    """Whether it goes where there is a slot: on a GPU if there is one."""
    return job.uses.gpu is None and job.uses.cpu is None


def locate(mistakes: Sequence[Mistake], text: str) -> tuple[Mistake, ...]:
    """Line and column for mistakes that know only their path in the file."""
    from muster.spec.syntax import read_document

    document, _ = read_document(text)
    if document is None:
        return tuple(mistakes)
    placed = []
    for mistake in mistakes:
        if not mistake.line and mistake.path:
            line, column = document.place(tuple(mistake.path.split(".")))
            placed.append(replace(mistake, line=line, column=column))
        else:
            placed.append(mistake)
    return tuple(placed)


def as_json(check: Check) -> dict[str, Any]:
    """The object of `muster check --json`."""
    return {
        "mistakes": [_mistake(item) for item in check.mistakes],
        "warnings": [_mistake(item) for item in check.warnings],
        "preflight": dict(check.preflight) if check.preflight is not None else None,
        "saved": check.saved,
        "valid": check.valid,
    }


def _mistake(item: Mistake) -> dict[str, Any]:
    return {
        "line": item.line, "column": item.column, "path": item.path, "message": item.message, "hint": item.hint,
    }  # fmt: skip


def _warning(what: str, hint: str, path: str) -> Mistake:
    return Mistake(what, hint=hint, path=path, level="warning")
