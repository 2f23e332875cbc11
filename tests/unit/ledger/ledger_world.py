"""Campaign states made by hand, for the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from muster.ledger.billed_spans import LedgerTime
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign import Axis, AxisValue, Campaign, Job, Money, Slots
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from muster.model.verdict import Cause, VerdictState

HOUR = 3600.0
WALL = 1_770_000_000.0  # of boot time 0
BOOT = "boot-a"


def iso(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds")


def now(boot: float, boot_id: str = BOOT) -> LedgerTime:
    return LedgerTime(WALL + boot, boot, boot_id)


def world(
    money: Money | None = None, jobs: Sequence[Job] = (), seeds: int = 4, slots: Slots | None = None, **more: Any
) -> CampaignState:
    axis = Axis("seed", tuple(AxisValue(str(seed), seed) for seed in range(seeds)))
    jobs = tuple(jobs) or (Job("train", ("seed",), ("true",), steps=100),)
    campaign = Campaign("c", (axis,), jobs, slots=slots or Slots(gpus=(0, 1)), money=money)
    records = {cell.id: CellRecord(cell, at) for at, cell in enumerate(list_campaign_cells(campaign))}
    return CampaignState(campaign, "h", "", Intent(), 1, (), records, **more)


def attempt(
    cell: str,
    start: float,
    slots: Sequence[str] = ("gpu0.0",),
    n: int = 1,
    *,
    lead: float = 0.0,
    ran: float | None = None,
    tail: float = 0.0,
    cause: str | None = None,
    boot_id: str = BOOT,
    **more: Any,
) -> Attempt:
    """Claimed at `start`, run for `ran` after `lead`; without `ran` it is open. With a cause it died."""
    outcome = None
    if ran is not None:
        verdict = VerdictState.DEAD if cause else VerdictState.DONE
        began = WALL + start + lead
        outcome = Outcome(
            verdict, Cause(cause) if cause else None, started=began, ended=began + ran, duration_s=ran,
            held_s=lead + ran + tail,
        )  # fmt: skip
    retry = None if n == 1 else "unknown"
    return Attempt(cell, n, f"{cell}@{n}", 1, tuple(slots), "", iso(WALL + start), start, boot_id, retry,
                   outcome=outcome, **more)  # fmt: skip


def put(state: CampaignState, *attempts: Attempt, **changes: Any) -> None:
    cell = attempts[0].cell
    state.cells[cell] = replace(state.cells[cell], attempts=tuple(attempts), **changes)


def adopted(cell: str, started: float, lasted: float) -> Attempt:
    outcome = Outcome(VerdictState.DONE, started=started, ended=started + lasted, duration_s=lasted, output="/runs/x")
    return Attempt(cell, 1, f"{cell}-adopted", 0, (), "", iso(WALL), 0.0, BOOT, adopted=True, outcome=outcome)
