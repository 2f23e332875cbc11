"""A cell's command as it is executed: placeholders filled, environment complete, with what W&B is told (where it may
write, whether it may call home).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muster.model.campaign import Campaign, Job, WandbSettings
from muster.model.cell import Cell, edit_combination_key
from muster.model.variant import SEED_AXIS, VARIANT_AXIS
from muster.text.command_template import render_template_words
from muster.text.shell_quoting import render_shell_text


def wandb_default_environment(wandb: WandbSettings | None) -> dict[str, str]:
    """Unless the environment of `up` says otherwise: no network, no artifacts, nothing in the home folder."""
    if wandb is None:
        return {}
    folders = dict.fromkeys(("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_CONFIG_DIR"), wandb.folder)
    return {"WANDB_MODE": "offline", "WANDB_LOG_MODEL": "false", "WANDB_DISABLE_CODE": "true", **folders}


def wandb_declared_environment(wandb: WandbSettings | None, job: Job, out: str) -> dict[str, str]:
    """What the campaign says; `env:` may still say otherwise. Each run logs into its own folder, where that exists."""
    if wandb is None:
        return {}
    said = {"WANDB_MODE": wandb.mode, "WANDB_ENTITY": wandb.entity, "WANDB_PROJECT": wandb.project}
    where = {"WANDB_DIR": out} if job.mkdir else {}
    return {**{name: value for name, value in said.items() if value}, **where}


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """Where an attempt runs and what it may build on."""

    n: int
    out: str
    slots: tuple[str, ...] = ()
    gpus: tuple[int, ...] = ()
    port: int = 0
    outputs: Mapping[str, str] = field(default_factory=dict)  # job -> output of the needed cell
    last_output: str = ""
    last_checkpoint: str = ""


def cell_placeholder_values(job: Job, cell: Cell, place: AttemptContext) -> dict[str, str]:
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
        "config_file": _config_file_of_cell(job, cell),
    }
    found.update({f"{name}.output": path for name, path in place.outputs.items()})
    if any(axis == VARIANT_AXIS for axis, _ in cell.values):
        found[SEED_AXIS] = "0"  # of a loop's run that nobody repeats
    for axis, value in cell.values:
        found[axis] = value.name
        found[f"{axis}.args"] = value.args
    return found


def _config_file_of_cell(job: Job, cell: Cell) -> str:
    """A variant's own, or the job's with the edits of the cell's values."""
    own = next((value.config for _, value in cell.values if value.config), "")
    return own or job.configs.get(edit_combination_key(cell.values), job.config)


def build_command(job: Job, filled: Mapping[str, str]) -> list[str]:
    """The words to execute; a resume command where there is a checkpoint to resume from."""
    words = job.resume if job.resume and filled["last.checkpoint"] else job.command
    within = render_template_words(job.within, filled)
    if job.shell:
        return [*within, "/bin/sh", "-c", render_shell_text(words[0], filled)]
    return within + render_template_words(words, filled)


def context_for_checking(job: Job, unknown: str) -> AttemptContext:
    """`unknown` stands for what only an attempt knows."""
    return AttemptContext(n=1, out=unknown, outputs=dict.fromkeys(job.needs, unknown))


def command_for_checking(job: Job, cell: Cell, context: AttemptContext) -> list[str] | None:
    """None: it can't be filled, which another check tells."""
    try:
        return build_command(job, cell_placeholder_values(job, cell, context))
    except (KeyError, ValueError):
        return None


def build_run_environment(
    campaign: Campaign, job: Job, cell: Cell, place: AttemptContext, token: str
) -> dict[str, str]:
    """What is added to the recorded environment of `up`."""
    added = {**wandb_declared_environment(campaign.wandb, job, place.out), **campaign.env, **job.env}
    for _, value in cell.values:
        added.update(value.env)
    added["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, place.gpus))
    added.update(MUSTER_CELL=cell.id, MUSTER_ATTEMPT=token, MUSTER_OUT=place.out)
    return added


def uses_placeholder(job: Job, name: str) -> bool:
    texts: Sequence[str] = (*job.within, *job.command, *(job.resume or ()), job.output)
    return any("{" + name + "}" in text for text in texts)
