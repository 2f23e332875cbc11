"""Before anything is spent: can the commands be found, do the folders exist?"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from muster.acts.afterwards import afterwards
from muster.acts.config_names import unknown_configs
from muster.acts.launched import launched
from muster.acts.scripts import UNKNOWN, Told, missing, missing_in_shell
from muster.domain.campaign import Campaign, Job
from muster.domain.cell import Cell, cells_of
from muster.domain.errors import Mistake
from muster.domain.template import placeholders
from muster.plan.commands import Place, command, environment, values
from muster.ports.regular_files import read_start


def preflight(campaign: Campaign, root: str, environ: Mapping[str, str]) -> list[Mistake]:
    jobs = [mistake for job in campaign.jobs for mistake in _job(campaign, job, root, environ)]
    return [*jobs, *unknown_configs(campaign, root), *_wandb(campaign, environ), *afterwards(campaign, root, environ)]


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
        return server in read_start(file, 1 << 20).decode("utf-8", "replace")
    except OSError:
        return False


def _job(campaign: Campaign, job: Job, root: str, environ: Mapping[str, str]) -> Iterator[Mistake]:
    cwd = job.cwd or root
    if not Path(cwd).is_dir():
        yield Mistake(f"job {job.name}: its folder {cwd} does not exist", hint="mend `cwd:` or create it",
                      path=f"jobs.{job.name}.cwd")  # fmt: skip
        return
    said: set[str] = set()
    for key, cells in _cells_to_look_at(campaign, job):
        for cell in cells:
            told = _missing(job, cell, key, cwd, _path(campaign, job, cell, environ))
            if told and told[0] not in said:
                said.add(told[0])
                what = f"job {job.name}: {told[0]} (cell {cell.id})"
                level = "error" if told[2] else "warning"
                yield Mistake(what, hint=told[1], path=f"jobs.{job.name}.{key}", level=level)


def _cells_to_look_at(campaign: Campaign, job: Job) -> Iterator[tuple[str, Iterator[Cell]]]:
    """One cell is enough where the words up to what is run are the same for all."""
    for key, words in (("command", job.command), ("resume", job.resume)):
        if not words:
            continue
        template = [*job.within, *words]
        target = None if job.shell else launched(template)
        until = template if target is None else template[: target.at + 1]
        differ = any(True for word in until for _ in placeholders(word)) or any(
            "PATH" in value.env for axis in job.axes for value in campaign.axis(axis).values
        )
        yield key, cells_of(campaign, job) if differ else itertools.islice(cells_of(campaign, job), 1)


def _missing(job: Job, cell: Cell, key: str, cwd: str, path: str) -> Told | None:
    later = UNKNOWN if key == "resume" else ""
    place = Place(n=1, out=UNKNOWN, outputs=dict.fromkeys(job.needs, UNKNOWN), last_output=later, last_checkpoint=later)
    try:
        words = command(job, values(job, cell, place))
    except (KeyError, ValueError):
        return None
    if not words:
        return None
    if job.shell:
        return missing(words[: len(job.within) + 1], cwd, path) or missing_in_shell(words[-1], cwd)
    return missing(words, cwd, path)


def _path(campaign: Campaign, job: Job, cell: Cell, environ: Mapping[str, str]) -> str:
    added = environment(campaign, job, cell, Place(n=1, out=""), "")
    return added.get("PATH", environ.get("PATH", os.defpath))
