"""A cell's command as it is executed: placeholders filled, environment complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muster.domain.campaign import Campaign, Job
from muster.domain.cell import Cell, edit_key
from muster.domain.shell_text import render_shell
from muster.domain.template import render_words
from muster.domain.variants import AXIS
from muster.plan import wandb
from muster.plan.grow import SEED


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attempt runs and what it may build on."""

    n: int
    out: str
    slots: tuple[str, ...] = ()
    gpus: tuple[int, ...] = ()
    port: int = 0
    outputs: Mapping[str, str] = field(default_factory=dict)  # job -> output of the needed cell
    last_output: str = ""
    last_checkpoint: str = ""


def values(job: Job, cell: Cell, place: Place) -> dict[str, str]:
    """Every placeholder and its text."""
    found = {
        "cell": cell.id,
        "attempt": str(place.n),
        "out": place.out,
        "slot": ",".join(place.slots),
        "gpu": ",".join(map(str, place.gpus)),
        "device": ",".join(map(str, range(len(place.gpus)))),
        "port": str(place.port),
        "steps": "" if job.steps is None else str(job.steps),
        "last.output": place.last_output,
        "last.checkpoint": place.last_checkpoint,
        "config_file": _config_file(job, cell),
    }
    found.update({f"{name}.output": path for name, path in place.outputs.items()})
    if any(axis == AXIS for axis, _ in cell.values):
        found[SEED] = "0"  # of a loop's run that nobody repeats
    for axis, value in cell.values:
        found[axis] = value.name
        found[f"{axis}.args"] = value.args
    return found


def _config_file(job: Job, cell: Cell) -> str:
    """A variant's own, or the job's with the edits of the cell's values."""
    own = next((value.config for _, value in cell.values if value.config), "")
    return own or job.configs.get(edit_key(cell.values), job.config)


def command(job: Job, filled: Mapping[str, str]) -> list[str]:
    """The words to execute; a resume command where there is a checkpoint to resume from."""
    words = job.resume if job.resume and filled["last.checkpoint"] else job.command
    within = render_words(job.within, filled)
    if job.shell:
        return [*within, "/bin/sh", "-c", render_shell(words[0], filled)]
    return within + render_words(words, filled)


def environment(campaign: Campaign, job: Job, cell: Cell, place: Place, token: str) -> dict[str, str]:
    """What is added to the recorded environment of `up`."""
    added = {**wandb.declared(campaign.wandb, job, place.out), **campaign.env, **job.env}
    for _, value in cell.values:
        added.update(value.env)
    added["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, place.gpus))
    added.update(MUSTER_CELL=cell.id, MUSTER_ATTEMPT=token, MUSTER_OUT=place.out)
    return added


def uses_placeholder(job: Job, name: str) -> bool:
    texts: Sequence[str] = (*job.within, *job.command, *(job.resume or ()), job.output)
    return any("{" + name + "}" in text for text in texts)
