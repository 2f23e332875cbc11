"""Cells that a person started by hand: their output is written by others, and they must not run twice in a folder."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.acts.status import CellStatus, Status
from muster.domain.campaign import Campaign
from muster.domain.cell import Cell, all_cells
from muster.domain.errors import UsageError
from muster.domain.look_facts import Who
from muster.domain.state import CampaignState, Only
from muster.domain.verdict import State
from muster.plan.standing import wanted
from muster.ports.folders import glob_paths
from muster.wiring.left_behind import unknown_runs

MOST = 5
SURE = ("has it open", "names it", "names the folder above")  # who only works there may be an editor


@dataclass(frozen=True, slots=True)
class HandStarted:
    cell: str
    pid: int
    folder: str

    @property
    def told(self) -> str:
        return f"pid {self.pid} writes in {self.folder}"


def refuse_hand_started(root: Path, campaign: Campaign, before: CampaignState | None, only: Only) -> None:
    """Those that `only` leaves out may live on."""
    known = before.cells if before else {}
    over = {name for name, record in known.items() if record.done or record.open or record.given_up is not None}
    cells = [cell for cell in all_cells(campaign) if cell.id not in over and wanted(cell, only)]
    found = hand_started(root, campaign, before, cells)
    if not found:
        return
    shown = ", ".join(f"{each.cell} ({each.told})" for each in found[:MOST])
    more = f" and {len(found) - MOST} more" if len(found) > MOST else ""
    error = UsageError(
        f"cells would run twice in one folder, where a process writes that this campaign did not start: {shown}{more}; "
        "nothing was changed",
        where=str(root),
        hint="wait for its end, then `muster adopt` takes the run in; or end it with `kill PID`, then `muster up` "
        "again; `muster up --only AXIS=VALUE` starts the other cells now",
        code="hand_started",
    )
    error.exit = 3
    raise error


def hand_started(
    root: Path, campaign: Campaign, before: CampaignState | None, cells: Iterable[Cell]
) -> list[HandStarted]:
    """Processes are looked at only where an output of these cells exists."""
    places = _existing_outputs(root, campaign, cells)
    if not places:
        return []
    from muster.observe.written_folders import folders_in_use, is_our_own

    try:
        near = folders_in_use(places)
    except OSError:  # no /proc
        return []
    if not near:
        return []
    from muster.wiring.folder_writers import FolderWriters

    state, writers = str(root / ".muster"), FolderWriters()
    tokens = {each.token for record in before.cells.values() for each in record.attempts} if before else set()
    found: dict[str, HandStarted] = {}
    for folder in near:
        looked = writers.find(folder)
        others: list[Who] = [looked.main, *looked.others] if looked.main else []
        others += [who for who in looked.doubtful if writers.may_write(who, folder)]
        strange = [who for who in others if who.sure in SURE and not is_our_own(who.pid, state, tokens)]
        for cell in places[folder] if strange else ():
            found.setdefault(cell, HandStarted(cell, strange[0].pid, folder))
    return list(found.values())


def _existing_outputs(root: Path, campaign: Campaign, cells: Iterable[Cell]) -> dict[str, list[str]]:
    """Folder, without links in it, -> the cells whose output it is, or whose glob it fits."""
    from muster.acts.run_match import has_searchable_output, output_pattern  # `status` rarely needs it

    found: dict[str, list[str]] = {}
    jobs = {job.name: job for job in campaign.jobs if has_searchable_output(job)}
    for cell in cells:
        if job := jobs.get(cell.job):
            pattern = os.path.join(glob.escape(job.cwd or str(root)), output_pattern(job, cell))  # noqa: PTH118
            for path in glob_paths(pattern):
                found.setdefault(os.path.realpath(path), []).append(cell.id)
    return found


# -- what commands tell that only look


def with_unknown_runs(root: Path, status: Status) -> Status:
    """Cells that have not started, and whose run lives all the same: the state was deleted, or a person started it.

    Processes are looked at only where a cell waits for a person's `up`: others the controller starts in a moment.
    """
    running, only = status.state.intent.kind == "running", status.state.only
    waits = [
        cell.record.cell
        for cell in status.cells
        if cell.verdict.state == State.PENDING
        and not cell.record.attempts
        and not (running and wanted(cell.record.cell, only))
    ]
    if not waits:
        return status
    names = {cell.id for cell in waits}
    told = {
        each.cell: (
            each.pid,
            f"{each.told}, and this campaign did not start it",
            "wait for its end, then `muster adopt`",
        )
        for each in hand_started(root, status.state.campaign, status.state, waits)
    }
    for run in reversed(unknown_runs(root, status.state)):  # the first of a cell is the one that `up` names, too
        if run.cell in names:
            reason = f"a run of it lives (pid {run.pid}) that the state does not know, because it was deleted"
            told[run.cell] = (run.pid, reason, "wait for its end, then `muster up`")
    cells = tuple(
        _as_told(cell, *told[name]) if (name := cell.record.cell.id) in told else cell for cell in status.cells
    )
    return replace(status, cells=cells) if told else status


def _as_told(cell: CellStatus, pid: int, reason: str, wait: str) -> CellStatus:
    following = f"{wait}; or end it with `kill {pid}`; `muster up` does not start it before"
    verdict = replace(cell.verdict, reason=reason, confidence="presumed")
    return replace(cell, verdict=verdict, next=following, pid=pid)


def names_told(cells: Sequence[CellStatus]) -> dict[str, str]:
    """Cells without an attempt whose run lives all the same -> what is said of them."""
    return {
        cell.record.cell.id: f"{cell.verdict.reason}; {cell.next}"
        for cell in cells
        if not cell.record.attempts and cell.pid is not None
    }
