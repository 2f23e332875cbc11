"""Before anything is spent: can the commands be found, do the folders exist?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from muster.acts.afterwards import afterwards
from muster.acts.programs import found
from muster.domain.campaign import Campaign, Job
from muster.domain.cell import Cell, cells_of
from muster.domain.errors import Mistake
from muster.plan.commands import Place, command, environment, values


def preflight(campaign: Campaign, root: str, environ: Mapping[str, str]) -> list[Mistake]:
    jobs = [mistake for job in campaign.jobs for mistake in _job(campaign, job, root, environ)]
    return [*jobs, *_wandb(campaign, environ), *afterwards(campaign, root, environ)]


def _wandb(campaign: Campaign, environ: Mapping[str, str]) -> Iterator[Mistake]:
    """A run that is to go online without a key asks for one, and nobody answers."""
    if campaign.wandb is None or campaign.wandb.mode != "online":
        return
    told = {**environ, **campaign.env}
    if not told.get("WANDB_API_KEY") and not _logged_in(told):
        hint = "`wandb login` once, or set WANDB_API_KEY where you call `muster up`; or `wandb: {mode: offline}`"
        yield Mistake("W&B is to be online, and no key for it was found", hint=hint, path="wandb.mode", level="warning")


def _logged_in(environ: Mapping[str, str]) -> bool:
    file = Path(environ.get("NETRC") or Path(environ.get("HOME", "/nowhere")) / ".netrc")
    server = environ.get("WANDB_BASE_URL", "wandb").rpartition("/")[2].partition(":")[0]
    try:
        return server in file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _job(campaign: Campaign, job: Job, root: str, environ: Mapping[str, str]) -> Iterator[Mistake]:
    cwd = job.cwd or root
    if not Path(cwd).is_dir():
        yield Mistake(f"job {job.name}: its folder {cwd} does not exist", hint="mend `cwd:` or create it",
                      path=f"jobs.{job.name}.cwd")  # fmt: skip
        return
    said: set[str] = set()
    for cell in cells_of(campaign, job):
        program = _program(job, cell)
        if program and program not in said and not found(program, cwd, _path(campaign, job, cell, environ)):
            said.add(program)
            yield Mistake(
                f"job {job.name}: the command {program!r} was not found (cell {cell.id})",
                hint=f"is it installed, and is the right environment active? It is looked for in PATH and in {cwd}",
                path=f"jobs.{job.name}.command",
            )


def _program(job: Job, cell: Cell) -> str | None:
    place = Place(n=1, out="", outputs=dict.fromkeys(job.needs, ""))
    try:
        words = command(job, values(job, cell, place))
    except (KeyError, ValueError):
        return None
    return words[0] if words else None


def _path(campaign: Campaign, job: Job, cell: Cell, environ: Mapping[str, str]) -> str:
    added = environment(campaign, job, cell, Place(n=1, out=""), "")
    return added.get("PATH", environ.get("PATH", os.defpath))
