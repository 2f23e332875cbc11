"""`muster check`: what it found, as one object. Facts about the machine come in as values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from muster.acts.environments import gpu_variable
from muster.domain.campaign import Campaign, Job
from muster.domain.cell import cells_of
from muster.domain.errors import Mistake
from muster.domain.wording import counted
from muster.plan.commands import uses_placeholder
from muster.plan.slots import need

if TYPE_CHECKING:
    from muster.spec.document import Document

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
    failures: tuple[Mistake, ...] = ()  # the file is right, and this machine lacks what it asks for
    notes: tuple[Mistake, ...] = ()  # nothing to mend, good to know
    preflight: Mapping[str, Any] | None = None
    saved: str | None = None  # where the record was written

    @property
    def valid(self) -> bool:
        return not self.mistakes

    @property
    def exit(self) -> int:
        return 2 if self.mistakes else 1 if self.failures else 0


def advise(campaign: Campaign, machine: Machine, todo: Collection[str] | None = None) -> Iterator[Mistake]:
    """What can't run here as declared. `todo`: the jobs that still have something to run; None: all.

    A GPU that such a job asks for and that is missing is a failure: it stops a campaign before it costs anything.
    """
    present = {int(gpu["index"]) for gpu in machine.gpus}
    jobs = [job for job in campaign.jobs if todo is None or job.name in todo]
    yield from _missing(campaign, present, any(need(job, has_gpus=True)[0] for job in jobs))
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
            level = "failure" if job in jobs else "warning"
            takes = f"a cell takes {counted(gpus, 'GPU')}"
            what = f"job {job.name}: {takes} and {usable} can be used here: it would never start"
            yield Mistake(what, hint="change `uses:` or `slots:`", path=f"jobs.{job.name}.uses", level=level)
    yield from _unheard(campaign, jobs, usable)
    yield from _empty_words(campaign, jobs, usable)
    if machine.disk_free is not None and machine.disk_free < LITTLE_DISK:
        what = f"only {machine.disk_free >> 20} MiB are free on the campaign's disk"
        yield _warning(what, "a full disk ends runs; free some space first", "")


def _missing(campaign: Campaign, present: set[int], required: bool) -> Iterator[Mistake]:
    missing = [str(index) for index in campaign.slots.gpus or () if index not in present]
    if missing:
        found = f"it has {', '.join(map(str, sorted(present)))}" if present else "none was found"
        what = f"this machine has no GPU {', '.join(missing)}: {found}"
        hint = "name those that exist; if they should be there, see whether the driver works (`nvidia-smi`)"
        yield Mistake(what, hint=hint, path="slots.gpus", level="failure" if required else "warning")


def _unheard(campaign: Campaign, jobs: Sequence[Job], usable: int) -> Iterator[Mistake]:
    """A variable asks for a GPU, and the slots give none: JAX would not start at all."""
    asked: dict[str, list[str]] = {}
    for job in jobs:
        if job.uses.gpu != 0 and not need(job, has_gpus=usable > 0)[0] and (wanted := _variable(campaign, job)):
            asked.setdefault(wanted, []).append(job.name)
    for wanted, names in asked.items():
        what = (
            f"job{'s' if len(names) > 1 else ''} {', '.join(names)}: {wanted} asks for a GPU, and no slot here has one"
        )
        hint = "does the driver work (`nvidia-smi`), and what do `slots:` and `uses:` say? Else drop the variable"
        yield Mistake(what, hint=hint, path=f"jobs.{names[0]}", level="failure")


def _empty_words(campaign: Campaign, jobs: Sequence[Job], usable: int) -> Iterator[Mistake]:
    """`--device {gpu}` on a machine without a GPU. A campaign that declares none was told when it was read."""
    if usable or campaign.slots.gpus is not None:
        return
    for job in jobs:
        used = [name for name in ("gpu", "device") if uses_placeholder(job, name)]
        if used and not need(job, has_gpus=False)[0]:
            what = f"job {job.name}: {{{used[0]}}} is empty here: no slot has a GPU, and the command gets an empty word"
            hint = f"see whether the driver works (`nvidia-smi`); for CPUs take {{{used[0]}}} out, with its option"
            yield _warning(what, hint, f"jobs.{job.name}.command")


def _variable(campaign: Campaign, job: Job) -> str | None:
    """`JAX_PLATFORM_NAME=gpu`, declared for the campaign, the job or a value of its axes."""
    for cell in cells_of(campaign, job):
        declared = {**campaign.env, **job.env}
        for _, value in cell.values:
            declared.update(value.env)
        if wanted := gpu_variable(declared):
            return wanted
    return None


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
            line, column = document.place(_path(document, mistake.path))
            placed.append(replace(mistake, line=line, column=column))
        else:
            placed.append(mistake)
    return tuple(placed)


def _path(document: Document, dotted: str) -> tuple[str | int, ...]:
    """`finish.run.0`: in a list a part is an index, in a mapping a name."""
    from muster.spec.document import Items

    found: tuple[str | int, ...] = ()
    parts = dotted.split(".")
    while parts:
        listed = isinstance(document.get(found), Items) and parts[0].isdecimal()
        length = _name_length(document, found, parts)
        found = (*found, int(parts[0]) if listed else ".".join(parts[:length]))
        parts = parts[length:]
    return found


def _name_length(document: Document, found: tuple[str | int, ...], parts: Sequence[str]) -> int:
    """How many parts are one name: a name may have dots in it."""
    return next((n for n in range(1, len(parts) + 1) if document.has((*found, ".".join(parts[:n])))), 1)


def as_json(check: Check) -> dict[str, Any]:
    """The object of `muster check --json`."""
    return {
        "mistakes": [_mistake(item) for item in check.mistakes],
        "warnings": [_mistake(item) for item in check.warnings],
        "failures": [_mistake(item) for item in check.failures],
        "notes": [_mistake(item) for item in check.notes],
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
