"""Resumed runs: which attempts of a cell go on from a checkpoint of the one before, and the newest whole checkpoint
that the next one may use.
"""

# ruff: noqa: PTH118

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path

from muster.files.state_folder import attempt_folder
from muster.model.attempt import Attempt, Order
from muster.model.campaign import Job
from muster.model.cell import Cell
from muster.readers.attempt_facts import read_order
from muster.readers.checkpoints.whole_checkpoints import check_checkpoint, checkpoint_saved_at
from muster.readers.output_files import find_attempt_output, folder_of_output, newest_paths_first, slack_of, there_of
from muster.readers.proof import placeholder_values_of_cell
from muster.readers.run_times import attempt_began_at, attempt_started_at
from muster.text.command_template import render_template


@dataclass(frozen=True, slots=True)
class ResumedAttempt:
    """One attempt of the chain."""

    cell: str  # as its folder is called: a cell that was renamed keeps those of its old attempts
    n: int
    order: Order | None  # None: its attempt.json is gone, and what was before it is not known
    resumed_from: str | None = None  # the checkpoint that it went on from; None: it began anew


def resume_chain(state: Path, cell: str, n: int) -> tuple[ResumedAttempt, ...]:
    """The attempt and those that it goes on from, the first one first. An attempt that began anew is one by itself."""
    chain: list[ResumedAttempt] = []
    while n > 0:
        order = read_order(attempt_folder(state, cell, n))
        chain.append(ResumedAttempt(cell, n, order, order.resumed_from if order else None))
        if order is None or not order.resumed_from:
            break
        cell, n = _attempt_gone_on_from(state, order, cell, n)
    return tuple(reversed(chain))


def numbers_of_attempts_before(state: Path, attempt: Attempt) -> tuple[int, ...]:
    """The numbers of those that this one goes on from."""
    return tuple(link.n for link in resume_chain(state, *attempt.place)[:-1])


def orders_before(order: Order) -> tuple[Order, ...]:
    """Of the attempts that this one goes on from, as far as they are known."""
    chain = resume_chain(Path(order.state), order.cell, order.n)[:-1] if order.resumed_from else ()
    return tuple(link.order for link in chain if link.order)


def _attempt_gone_on_from(state: Path, order: Order, cell: str, n: int) -> tuple[str, int]:
    """The attempt whose checkpoint it is. In a folder that all of them share it is the one before."""
    inside = (order.resumed_from or "").removeprefix(f"{state}/attempts/").split("/")
    for at, part in enumerate(inside if inside[0] else ()):
        if part.isdecimal() and inside[at + 1 : at + 2] == ["out"]:
            before = int(part)
            return ("/".join(inside[:at]), before) if before < n else (cell, n - 1)
    return cell, n - 1


def saved_own_checkpoint(job: Job, cell: Cell, order: Order) -> bool | None:
    """Whether the attempt saved a whole checkpoint of its own; None: none is declared, or its start is not known."""
    began = attempt_started_at(order)
    if began is None or not _checkpoint_patterns(job):
        return None
    newest = newest_whole_checkpoint(job, cell, order)
    if newest is None:
        return False
    before = max((at for path, at in there_of(order).items() if newest.startswith(f"{path}/")), default=float("-inf"))
    return checkpoint_saved_at(newest) >= began - slack_of(order) and checkpoint_saved_at(newest) > before


def newest_whole_checkpoint(job: Job, cell: Cell, order: Order) -> str | None:
    output = find_attempt_output(order, attempt_began_at(order))
    if output is None:
        return None
    patterns = _checkpoint_patterns(job)
    filled = {name: glob.escape(value) for name, value in placeholder_values_of_cell(job, cell, order).items()}
    for pattern in dict.fromkeys(patterns):
        for path in newest_paths_first(
            os.path.join(glob.escape(folder_of_output(output)), render_template(pattern, filled))
        ):
            if check_checkpoint(path).valid:
                return path
    return None


def _checkpoint_patterns(job: Job) -> list[str]:
    patterns = [source.path for source in job.progress if source.kind == "checkpoint"]
    if job.proof.checkpoint:
        patterns.append(job.proof.checkpoint.path)
    return patterns
