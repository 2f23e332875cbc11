"""Living runs that the state does not know: left over after `.muster` was deleted, or started by hand. Their cells
are refused, so that nothing runs twice in one folder.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.app.campaign.campaign_status import CellStatus, Status
from muster.engine.plan.cell_standing import passes_filter
from muster.engine.ports.processes import LeftRun
from muster.engine.ports.services import installed_services
from muster.files.bounded_walk import glob_paths
from muster.model.campaign import Campaign
from muster.model.campaign_state import CampaignState, CellFilter
from muster.model.cell import Cell, list_campaign_cells
from muster.model.errors import UsageError
from muster.model.verdict import VerdictState
from muster.text.phrases import join_phrases, phrase
from muster.text.sentences import join_few_names

MOST_RUNS_NAMED = 5


def refuse_left_runs(root: Path, campaign: Campaign, before: CampaignState | None, only: CellFilter) -> None:
    """Those that `only` leaves out may live on."""
    names = {cell.id for cell in list_campaign_cells(campaign) if passes_filter(cell, only)}
    found = [run for run in find_unknown_runs(root, before) if run.cell in names]
    if not found:
        return
    error = UsageError(
        phrase("campaign.unknown_runs_live", runs=describe_left_runs(found)),
        where=str(root / ".muster"),
        hint=phrase("campaign.wait_or_kill_then_up"),
        code="left_runs",
    )
    error.exit = 3
    raise error


def find_unknown_runs(root: Path, before: CampaignState | None) -> list[LeftRun]:
    attempts = [each for record in before.cells.values() for each in record.attempts] if before else []
    places = {each.place for each in attempts}
    found = installed_services().processes.left_runs(root / ".muster", {each.token for each in attempts})
    return [run for run in found if run.token or (run.cell, run.n) not in places]


def describe_left_runs(runs: Sequence[LeftRun]) -> str:
    """One pid of each cell."""
    first: dict[str, int] = {}
    for run in runs:
        first.setdefault(run.cell, run.pid)
    return join_few_names(
        [phrase("campaign.cell_with_pid", cell=cell, pid=pid) for cell, pid in first.items()], MOST_RUNS_NAMED
    )


MOST_CELLS_NAMED = 5


@dataclass(frozen=True, slots=True)
class HandStartedCell:
    cell: str
    pid: int
    folder: str

    @property
    def told(self) -> str:
        return phrase("campaign.pid_writes", pid=self.pid, folder=self.folder)


def refuse_hand_started(root: Path, campaign: Campaign, before: CampaignState | None, only: CellFilter) -> None:
    """Those that `only` leaves out may live on."""
    known = before.cells if before else {}
    over = {name for name, record in known.items() if record.done or record.open or record.given_up is not None}
    cells = [cell for cell in list_campaign_cells(campaign) if cell.id not in over and passes_filter(cell, only)]
    found = find_hand_started_cells(root, campaign, before, cells)
    if not found:
        return
    shown = join_few_names(
        [phrase("campaign.cell_with_run", cell=each.cell, run=each.told) for each in found], MOST_CELLS_NAMED
    )
    error = UsageError(
        phrase("campaign.cells_would_run_twice", shown=shown),
        where=str(root),
        hint=phrase("campaign.wait_adopt_or_kill"),
        code="hand_started",
    )
    error.exit = 3
    raise error


def find_hand_started_cells(
    root: Path, campaign: Campaign, before: CampaignState | None, cells: Iterable[Cell]
) -> list[HandStartedCell]:
    """Processes are looked at only where an output of these cells exists."""
    places = _existing_output_folders(root, campaign, cells)
    if not places:
        return []
    tokens = {each.token for record in before.cells.values() for each in record.attempts} if before else set()
    found: dict[str, HandStartedCell] = {}
    for folder, pid in installed_services().processes.strange_writers(places, root / ".muster", tokens).items():
        for cell in places[folder]:
            found.setdefault(cell, HandStartedCell(cell, pid, folder))
    return list(found.values())


def _existing_output_folders(root: Path, campaign: Campaign, cells: Iterable[Cell]) -> dict[str, list[str]]:
    """Folder, without links in it, -> the cells whose output it is, or whose glob it fits."""
    from muster.readers.output_files import has_searchable_output, output_pattern_of_cell  # `status` rarely needs it

    found: dict[str, list[str]] = {}
    jobs = {job.name: job for job in campaign.jobs if has_searchable_output(job)}
    for cell in cells:
        if job := jobs.get(cell.job):
            pattern = os.path.join(glob.escape(job.cwd or str(root)), output_pattern_of_cell(job, cell))  # noqa: PTH118
            for path in glob_paths(pattern):
                found.setdefault(os.path.realpath(path), []).append(cell.id)
    return found


# -- what commands tell that only look


def add_unknown_runs(root: Path, status: Status) -> Status:
    """Cells that have not started, and whose run lives all the same: the state was deleted, or a person started it.

    Processes are looked at only where a cell waits for a person's `up`: others the controller starts in a moment.
    """
    running, only = status.state.intent.kind == "running", status.state.only
    waits = [
        cell.record.cell
        for cell in status.cells
        if cell.verdict.state == VerdictState.PENDING
        and not cell.record.attempts
        and not (running and passes_filter(cell.record.cell, only))
    ]
    if not waits:
        return status
    names = {cell.id for cell in waits}
    told = {
        each.cell: (
            each.pid,
            phrase("campaign.not_started_by_campaign", told=each.told),
            phrase("campaign.wait_then_adopt"),
        )
        for each in find_hand_started_cells(root, status.state.campaign, status.state, waits)
    }
    for run in reversed(find_unknown_runs(root, status.state)):  # the first of a cell is the one that `up` names, too
        if run.cell in names:
            reason = phrase("campaign.unknown_run_lives", pid=run.pid)
            told[run.cell] = (run.pid, reason, phrase("campaign.wait_then_up"))
    cells = tuple(
        _status_with_unknown_run(cell, *told[name]) if (name := cell.record.cell.id) in told else cell
        for cell in status.cells
    )
    return replace(status, cells=cells) if told else status


def _status_with_unknown_run(cell: CellStatus, pid: int, reason: str, wait: str) -> CellStatus:
    following = phrase("campaign.wait_or_kill", wait=wait, pid=pid)
    verdict = replace(cell.verdict, reason=reason, confidence="presumed")
    return replace(cell, verdict=verdict, next=following, pid=pid)


def describe_unknown_runs(cells: Sequence[CellStatus]) -> dict[str, str]:
    """Cells without an attempt whose run lives all the same -> what is said of them."""
    return {
        cell.record.cell.id: join_phrases("; ", (cell.verdict.reason, cell.next))
        for cell in cells
        if not cell.record.attempts and cell.pid is not None
    }
