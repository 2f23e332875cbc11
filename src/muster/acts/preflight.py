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
    return [*jobs, *afterwards(campaign, root, environ)]


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
