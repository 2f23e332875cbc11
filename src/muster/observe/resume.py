"""The checkpoint that a later attempt may go on from: the newest one that opens."""

# ruff: noqa: PTH118 - globs are no paths

from __future__ import annotations

import glob
import os

from muster.domain.campaign import Job
from muster.domain.cell import Cell
from muster.domain.order import Order
from muster.domain.template import render
from muster.observe.checkpoints import open_checkpoint
from muster.observe.outputs import find_output, folder_of
from muster.observe.proof import newest_first, path_values
from muster.observe.window import started_at


def last_checkpoint(job: Job, cell: Cell, order: Order) -> str | None:
    output = find_output(order, started_at(order))
    if output is None:
        return None
    patterns = [source.path for source in job.progress if source.kind == "checkpoint"]
    if job.proof.checkpoint:
        patterns.append(job.proof.checkpoint.path)
    filled = {name: glob.escape(value) for name, value in path_values(job, cell, order).items()}
    for pattern in dict.fromkeys(patterns):
        for path in newest_first(os.path.join(glob.escape(folder_of(output)), render(pattern, filled))):
            if open_checkpoint(path).valid:
                return path
    return None
