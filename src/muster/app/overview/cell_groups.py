"""Cells that share why they are where they are: those that wait, those that are blocked, those that lack a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.app.campaign.campaign_status import CellStatus, Status
from muster.engine.plan.cell_standing import passes_filter, unmet_needs
from muster.model.campaign_state import CampaignState

WAITING_STATES = ("PENDING", "HELD", "GIVEN_UP")


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """Cells that did not start, for one and the same reason."""

    cells: tuple[CellStatus, ...]
    state: str
    reason: str
    next: str


@dataclass(frozen=True, slots=True)
class BlockedGroup:
    """Blocked cells of a job."""

    cells: tuple[CellStatus, ...]
    job: str
    needs: tuple[str, ...]  # what any of them lacks; none: a gate is shut
    hopeless: bool  # something that they need was given up
    asked: bool  # False: a filter leaves them out, too


def group_waiting_cells(cells: Sequence[CellStatus]) -> list[WaitingGroup]:
    groups: dict[tuple[str, str, str], list[CellStatus]] = {}
    for cell in cells:
        if cell.verdict.state in WAITING_STATES:
            groups.setdefault((cell.verdict.state, cell.verdict.reason, cell.next), []).append(cell)
    return [WaitingGroup(tuple(members), *key) for key, members in groups.items()]


def group_blocked_cells(cells: Sequence[CellStatus], state: CampaignState) -> list[BlockedGroup]:
    """By job, by whether what they lack can still come, and by whether a filter is in the way. First the shut gates,
    each cell alone.
    """
    blocked = [cell for cell in cells if cell.verdict.state == "BLOCKED"]
    if not blocked:
        return []
    needs = state.needs
    gated: list[BlockedGroup] = []
    groups: dict[tuple[str, bool, bool], tuple[list[CellStatus], dict[str, None]]] = {}
    for cell in blocked:
        job = cell.record.cell.job
        lacks = unmet_needs(cell.record.cell, state, needs)
        if not lacks:
            gated.append(BlockedGroup((cell,), job, (), hopeless=False, asked=True))
            continue
        hopeless = any(state.cells[need].given_up is not None for need in lacks)
        members, lacking = groups.setdefault((job, hopeless, passes_filter(cell.record.cell, state.only)), ([], {}))
        members.append(cell)
        lacking.update(dict.fromkeys(lacks))
    return gated + [
        BlockedGroup(tuple(members), job, tuple(lacking), hopeless, asked)
        for (job, hopeless, asked), (members, lacking) in groups.items()
    ]


def cells_by_missing_result(found: Status) -> dict[str, list[str]]:
    """Result -> DONE cells whose record lacks it: it was declared later, and no report has found it in their files."""
    if found.report and not found.report.stale:
        return {}
    lacking: dict[str, list[str]] = {}
    for cell in found.cells:
        done = cell.record.completed
        if done is None or done.accepted:
            continue
        for result in found.state.job(cell.record.cell.job).results:
            if result.name not in done.results:
                lacking.setdefault(result.name, []).append(cell.record.cell.id)
    return lacking
