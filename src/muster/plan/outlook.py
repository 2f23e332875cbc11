"""What `muster up` would do now: which cells would run and in which order, which follow, and why the rest does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from muster.domain.attempt import CellRecord
from muster.domain.campaign import Campaign
from muster.domain.cell import all_cells, needed_cells
from muster.domain.state import CampaignState, Intent
from muster.domain.verdict import State
from muster.ledger.budget import Purse
from muster.plan.order import durations, in_order
from muster.plan.standing import Needs, Standing, standing, unmet, wanted


@dataclass(frozen=True, slots=True)
class WouldRun:
    cell: str
    why: str
    position: int  # from 1, in the order of starting


@dataclass(frozen=True, slots=True)
class WouldNot:
    cell: str
    verdict: State | None  # None: it has an open attempt, and only a look at it tells
    reason: str
    next: str
    later: bool = False  # it would follow by itself once what it needs is DONE


@dataclass(frozen=True, slots=True)
class Outlook:
    would_run: tuple[WouldRun, ...]
    others: tuple[WouldNot, ...]


def as_if_taken_in(campaign: Campaign, hashes: Mapping[str, str], before: CampaignState | None) -> CampaignState:
    """The state that `up` would begin from: the campaign as it is written now, with all that was done before."""
    known = before.cells if before else {}
    cells: dict[str, CellRecord] = {}
    for position, cell in enumerate(all_cells(campaign)):
        record = known.get(cell.id) or CellRecord(cell, position)
        cells[cell.id] = replace(record, cell=cell, position=position, declared=True, hash=hashes.get(cell.id, ""))
    for name, record in known.items():
        if name not in cells:
            cells[name] = replace(record, declared=False)
    if before is None:
        return CampaignState(campaign, "", "", Intent("down", "not started yet"), 0, (), cells)
    return replace(before, campaign=campaign, cells=cells)


def outlook(state: CampaignState, purse: Purse | None = None) -> Outlook:
    needs = needed_cells(state.campaign, [record.cell for record in state.declared])
    standings = {record.cell.id: standing(record, state, needs, purse) for record in state.declared if not record.open}
    start = [record for record in state.declared if record.cell.id in standings and standings[record.cell.id].startable]
    ordered = in_order(start, state.campaign, durations(state.declared))
    would_run = [
        WouldRun(record.cell.id, _why(record, standings[record.cell.id]), at) for at, record in enumerate(ordered, 1)
    ]
    later = _later(state, needs, standings)
    others = [
        _other(record, standings.get(record.cell.id), record.cell.id in later)
        for record in state.declared
        if record.cell.id not in standings or not standings[record.cell.id].startable
    ]
    return Outlook(tuple(would_run), tuple(others))


def _why(record: CellRecord, where: Standing) -> str:
    return where.next if record.attempts else "it has not run yet"


def _other(record: CellRecord, where: Standing | None, later: bool) -> WouldNot:
    if where is None:
        return WouldNot(record.cell.id, None, "it has an open attempt", "nothing to do")
    return WouldNot(record.cell.id, where.state, where.reason, where.next, later)


def _later(state: CampaignState, needs: Needs, standings: Mapping[str, Standing]) -> set[str]:
    """Cells that only wait for cells that run, would run or follow themselves."""
    coming = {record.cell.id for record in state.declared if record.open}
    coming |= {cell for cell, where in standings.items() if where.startable}
    later: set[str] = set()
    blocked = [
        record for record in state.declared
        if record.cell.id in standings and standings[record.cell.id].state == State.BLOCKED
        and wanted(record.cell, state.only)
    ]  # fmt: skip
    while True:
        found = {
            record.cell.id
            for record in blocked
            if record.cell.id not in later and all(need in coming for need in unmet(record.cell, state, needs))
        }
        if not found:
            return later
        later |= found
        coming |= found
