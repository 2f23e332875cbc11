"""`muster check`: what it found, as one object. Facts about the machine come in as values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.app.campaign.preflight.python_environments import find_gpu_variable
from muster.engine.plan.cell_command import uses_placeholder
from muster.engine.plan.scheduling import slots_needed
from muster.model.campaign import Campaign, Job
from muster.model.cell import list_cells_of_job
from muster.model.errors import Mistake
from muster.text.phrases import phrase

LITTLE_DISK = 2 << 30  # bytes: a checkpoint or two


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What a run would find here."""

    gpus: tuple[Mapping[str, Any], ...]  # index, name, busy, why
    disk_free: int | None  # bytes; None: it can't be told
    record: Mapping[str, Any]  # everything, as it is saved


@dataclass(frozen=True, slots=True)
class CheckResult:
    file: str
    mistakes: tuple[Mistake, ...] = ()
    warnings: tuple[Mistake, ...] = ()
    failures: tuple[Mistake, ...] = ()  # the file is right, and this machine lacks what it asks for
    notes: tuple[Mistake, ...] = ()  # nothing to fix, good to know
    preflight: Mapping[str, Any] | None = None
    saved: str | None = None  # where the record was written

    @property
    def valid(self) -> bool:
        return not self.mistakes

    @property
    def exit(self) -> int:
        return 2 if self.mistakes else 1 if self.failures else 0


def find_machine_mistakes(
    campaign: Campaign, machine: MachineFacts, todo: Collection[str] | None = None
) -> Iterator[Mistake]:
    """What can't run here as declared. `todo`: the jobs that still have something to run; None: all.

    A GPU that such a job asks for and that is missing is a failure: it stops a campaign before it costs anything.
    """
    present = {int(gpu["index"]) for gpu in machine.gpus}
    jobs = [job for job in campaign.jobs if todo is None or job.name in todo]
    yield from _missing_gpus(campaign, present, any(slots_needed(job, has_gpus=True)[0] for job in jobs))
    if campaign.slots.gpus is None and not present and any(_takes_any_slot(job) for job in campaign.jobs):
        yield _machine_warning(
            phrase("campaign.gpus_auto_without_gpu"),
            phrase("campaign.write_slots_no_gpus"),
            "slots.gpus",
        )
    usable = len(campaign.slots.gpus) if campaign.slots.gpus is not None else len(present)
    for job in campaign.jobs:
        gpus, _ = slots_needed(job, has_gpus=usable > 0)
        if gpus > usable:
            level = "failure" if job in jobs else "warning"
            takes = phrase("campaign.cell_takes", count=phrase("count.gpu", n=gpus))
            what = phrase("campaign.job_would_never_start", name=job.name, takes=takes, usable=usable)
            yield Mistake(what, hint=phrase("campaign.change_uses_or_slots"), path=f"jobs.{job.name}.uses", level=level)
    yield from _gpu_variable_without_slot(campaign, jobs, usable)
    yield from _empty_gpu_placeholders(campaign, jobs, usable)
    if machine.disk_free is not None and machine.disk_free < LITTLE_DISK:
        what = phrase("campaign.little_disk_free", mib=machine.disk_free >> 20)
        yield _machine_warning(what, phrase("campaign.full_disk_ends_runs"), "")


def _missing_gpus(campaign: Campaign, present: set[int], required: bool) -> Iterator[Mistake]:
    missing = [str(index) for index in campaign.slots.gpus or () if index not in present]
    if missing:
        found = (
            phrase("campaign.machine_has_gpus", present=", ".join(map(str, sorted(present))))
            if present
            else phrase("campaign.no_gpu_found")
        )
        what = phrase("campaign.machine_lacks_gpu", gpus=", ".join(missing), found=found)
        hint = phrase("campaign.name_existing_gpus")
        yield Mistake(what, hint=hint, path="slots.gpus", level="failure" if required else "warning")


def _gpu_variable_without_slot(campaign: Campaign, jobs: Sequence[Job], usable: int) -> Iterator[Mistake]:
    """A variable asks for a GPU, and the slots give none: JAX would not start at all."""
    asked: dict[str, list[str]] = {}
    for job in jobs:
        if (
            job.uses.gpu != 0
            and not slots_needed(job, has_gpus=usable > 0)[0]
            and (wanted := _gpu_variable_of_job(campaign, job))
        ):
            asked.setdefault(wanted, []).append(job.name)
    for wanted, names in asked.items():
        what = phrase(
            "campaign.variable_asks_gpu_no_slot",
            n=len(names),
            names=", ".join(names),
            wanted=wanted,
        )
        hint = phrase("campaign.check_driver_slots_uses")
        yield Mistake(what, hint=hint, path=f"jobs.{names[0]}", level="failure")


def _empty_gpu_placeholders(campaign: Campaign, jobs: Sequence[Job], usable: int) -> Iterator[Mistake]:
    """`--device {gpu}` on a machine without a GPU. A campaign that declares none was told when it was read."""
    if usable or campaign.slots.gpus is not None:
        return
    for job in jobs:
        used = [name for name in ("gpu", "device") if uses_placeholder(job, name)]
        if used and not slots_needed(job, has_gpus=False)[0]:
            what = phrase("campaign.gpu_placeholder_empty", name=job.name, used=used[0])
            hint = phrase("campaign.check_driver_or_drop_gpu", used=used[0])
            yield _machine_warning(what, hint, f"jobs.{job.name}.command")


def _gpu_variable_of_job(campaign: Campaign, job: Job) -> str | None:
    """`JAX_PLATFORM_NAME=gpu`, declared for the campaign, the job or a value of its axes."""
    for cell in list_cells_of_job(campaign, job):
        declared = {**campaign.env, **job.env}
        for _, value in cell.values:
            declared.update(value.env)
        if wanted := find_gpu_variable(declared):
            return wanted
    return None


def _takes_any_slot(job: Job) -> bool:
    """Whether it goes where there is a slot: on a GPU if there is one."""
    return job.uses.gpu is None and job.uses.cpu is None


def check_as_json(check: CheckResult) -> dict[str, Any]:
    """The object of `muster check --json`."""
    return {
        "mistakes": [_mistake_as_json(item) for item in check.mistakes],
        "warnings": [_mistake_as_json(item) for item in check.warnings],
        "failures": [_mistake_as_json(item) for item in check.failures],
        "notes": [_mistake_as_json(item) for item in check.notes],
        "preflight": dict(check.preflight) if check.preflight is not None else None,
        "saved": check.saved,
        "valid": check.valid,
    }


def _mistake_as_json(item: Mistake) -> dict[str, Any]:
    return {
        "line": item.line,
        "column": item.column,
        "path": item.path,
        "message": item.message,
        "hint": item.hint,
    }


def _machine_warning(what: str, hint: str, path: str) -> Mistake:
    return Mistake(what, hint=hint, path=path, level="warning")
