"""What `muster up` would do now: which cells would run and in which order, which follow, and why the rest does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from muster.engine.plan.cell_standing import CellNeeds, CellStanding, passes_filter, standing_of_cell, unmet_needs
from muster.engine.plan.scheduling import median_durations, sort_by_chain_length
from muster.ledger.budget_forecast import BudgetState
from muster.model.attempt import CellRecord
from muster.model.campaign import Campaign
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from muster.model.verdict import VerdictState
from muster.text.phrases import phrase


@dataclass(frozen=True, slots=True)
class PlannedStart:
    cell: str
    why: str
    position: int  # from 1, in the order of starting


@dataclass(frozen=True, slots=True)
class SkippedCell:
    cell: str
    verdict: VerdictState | None  # None: it has an open attempt, and only a look at it tells
    reason: str
    next: str
    later: bool = False  # it would follow by itself once what it needs is DONE


@dataclass(frozen=True, slots=True)
class UpPreview:
    would_run: tuple[PlannedStart, ...]
    others: tuple[SkippedCell, ...]


def state_as_declared(campaign: Campaign, hashes: Mapping[str, str], before: CampaignState | None) -> CampaignState:
    """The state that `up` would begin from: the campaign as it is written now, with all that was done before."""
    known = before.cells if before else {}
    cells: dict[str, CellRecord] = {}
    for position, cell in enumerate(list_campaign_cells(campaign)):
        record = known.get(cell.id) or CellRecord(cell, position)
        cells[cell.id] = replace(record, cell=cell, position=position, declared=True, hash=hashes.get(cell.id, ""))
    for name, record in known.items():
        if name not in cells:
            cells[name] = replace(record, declared=False)
    if before is None:
        return CampaignState(campaign, "", "", Intent("down", phrase("plan.not_started_yet")), 0, (), cells)
    return replace(before, campaign=campaign, cells=cells)


def preview_up(state: CampaignState, purse: BudgetState | None = None) -> UpPreview:
    needs = state.needs
    standings = {
        record.cell.id: standing_of_cell(record, state, needs, purse) for record in state.declared if not record.open
    }
    start = [record for record in state.declared if record.cell.id in standings and standings[record.cell.id].startable]
    ordered = sort_by_chain_length(start, state.campaign, median_durations(state.declared))
    would_run = [
        PlannedStart(record.cell.id, _planned_start_reason(record, standings[record.cell.id]), at)
        for at, record in enumerate(ordered, 1)
    ]
    later = _cells_that_follow(state, needs, standings)
    others = [
        _skipped_cell(record, standings.get(record.cell.id), record.cell.id in later)
        for record in state.declared
        if record.cell.id not in standings or not standings[record.cell.id].startable
    ]
    return UpPreview(tuple(would_run), tuple(others))


def _planned_start_reason(record: CellRecord, where: CellStanding) -> str:
    return where.next if record.attempts else phrase("plan.not_run_yet")


def _skipped_cell(record: CellRecord, where: CellStanding | None, later: bool) -> SkippedCell:
    if where is None:
        return SkippedCell(record.cell.id, None, phrase("plan.open_attempt"), phrase("plan.nothing_do"))
    return SkippedCell(record.cell.id, where.state, where.reason, where.next, later)


def _cells_that_follow(state: CampaignState, needs: CellNeeds, standings: Mapping[str, CellStanding]) -> set[str]:
    """Cells that only wait for cells that run, would run or follow themselves."""
    coming = {record.cell.id for record in state.declared if record.open}
    coming |= {cell for cell, where in standings.items() if where.startable}
    later: set[str] = set()
    blocked = [
        record
        for record in state.declared
        if record.cell.id in standings
        and standings[record.cell.id].state == VerdictState.BLOCKED
        and passes_filter(record.cell, state.only)
    ]
    while True:
        found = {
            record.cell.id
            for record in blocked
            if record.cell.id not in later and all(need in coming for need in unmet_needs(record.cell, state, needs))
        }
        if not found:
            return later
        later |= found
        coming |= found
