"""The checkpoint that a later attempt may go on from: the newest one that opens."""

# ruff: noqa: PTH118 - globs are no paths

from __future__ import annotations

import glob
import os

from muster.domain.campaign import Job
from muster.domain.cell import Cell
from muster.domain.order import Order
from muster.domain.template import render
from muster.observe.checkpoints import open_checkpoint, saved_at
from muster.observe.matches import newest_first
from muster.observe.outputs import find_output, folder_of, slack_of, there_of
from muster.observe.proof import path_values
from muster.observe.window import began_at, started_at


def saved_any(job: Job, cell: Cell, order: Order) -> bool | None:
    """Whether the attempt saved a whole checkpoint of its own; None: none is declared, or its start is not known."""
    began = started_at(order)
    if began is None or not _patterns(job):
        return None
    newest = last_checkpoint(job, cell, order)
    if newest is None:
        return False
    before = max((at for path, at in there_of(order).items() if newest.startswith(f"{path}/")), default=float("-inf"))
    return saved_at(newest) >= began - slack_of(order) and saved_at(newest) > before


def last_checkpoint(job: Job, cell: Cell, order: Order) -> str | None:
    output = find_output(order, began_at(order))
    if output is None:
        return None
    patterns = _patterns(job)
    filled = {name: glob.escape(value) for name, value in path_values(job, cell, order).items()}
    for pattern in dict.fromkeys(patterns):
        for path in newest_first(os.path.join(glob.escape(folder_of(output)), render(pattern, filled))):
            if open_checkpoint(path).valid:
                return path
    return None


def _patterns(job: Job) -> list[str]:
    patterns = [source.path for source in job.progress if source.kind == "checkpoint"]
    if job.proof.checkpoint:
        patterns.append(job.proof.checkpoint.path)
    return patterns
