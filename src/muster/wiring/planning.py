"""What a campaign would do now, whether or not it was ever started. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from muster.acts.check import locate
from muster.acts.periods import period_warnings
from muster.acts.status import ControllerStatus, Status, survey
from muster.acts.take_in import Changes, changes, hashes
from muster.domain.campaign import Campaign
from muster.domain.errors import Mistake
from muster.domain.whereabouts import STAYED
from muster.observe.process import boot_id
from muster.plan.order import Estimate, estimate
from muster.plan.outlook import Outlook, WouldNot, as_if_taken_in, outlook
from muster.ports.clock import SystemClock
from muster.wiring.codes import CodeReader
from muster.wiring.desk import FILE, Desk
from muster.wiring.fitting import misfits
from muster.wiring.hand_started import names_told, with_unknown_runs
from muster.wiring.survey import look
from muster.wiring.taking import noticed_here, read


@dataclass(frozen=True, slots=True)
class Foreseen:
    status: Status
    outlook: Outlook
    changes: Changes  # what `up` would take in; empty before the first time
    estimate: Estimate
    slots: int
    started: bool  # whether the campaign was ever taken in
    warnings: tuple[Mistake, ...]
    mistakes: int = 0  # that `check` finds, and that keep `up` from starting


def foresee(root: Path) -> Foreseen:
    found = read(root / FILE)
    desk = Desk.open(root) if was_begun(root) else None
    origin = desk.store.origin() if desk else STAYED
    hashed = hashes(found.campaign, str(root), CodeReader(found.campaign, root), origin)
    before = desk.store.load() if desk else None
    state = as_if_taken_in(found.campaign, hashed, before)
    if desk and before:
        status = look(desk, state)
    else:
        clock = SystemClock()
        status = survey(state, {}, ControllerStatus(False), wall=clock.wall(), boot=clock.boot(), boot_id=boot_id())
    status = with_unknown_runs(root, status)
    slots = slot_count(found.campaign)
    noticed = [*noticed_here(found, root), *misfits(found.campaign, before)]
    return Foreseen(
        status,
        without_unknown_runs(outlook(state, status.spending.purse if status.spending else None), status),
        changes(before, hashed) if before else Changes(),
        estimate(state, slots),
        slots,
        before is not None,
        (*found.warnings, *locate(period_warnings(found.campaign, str(root), state.declared), found.text)),
        sum(each.level in ("error", "failure") for each in noticed),
    )


def without_unknown_runs(found: Outlook, status: Status) -> Outlook:
    """`up` starts no cell whose run lives without being known to the state."""
    told = {cell.record.cell.id: cell for cell in status.cells}
    names = names_told(status.cells)
    start = [item for item in found.would_run if item.cell not in names]
    left = [
        WouldNot(item.cell, told[item.cell].verdict.state, told[item.cell].verdict.reason, told[item.cell].next)
        for item in found.would_run
        if item.cell in names
    ]
    return Outlook(tuple(replace(item, position=at) for at, item in enumerate(start, 1)), (*left, *found.others))


def was_begun(root: Path) -> bool:
    state = root / ".muster"
    return (state / "campaign.db").exists() or (state / "decisions.jsonl").exists()


def slot_count(campaign: Campaign) -> int:
    """GPU slots where there are any, else CPU slots; for an estimate, not for a lease."""
    slots = campaign.slots
    if slots.gpus is None:
        from muster.execute.gpus import GpuWatch, find_gpus

        gpus = sum(not gpu.busy for gpu in GpuWatch(find_gpus).gpus)
    else:
        gpus = len(slots.gpus)
    return gpus * slots.per_gpu or slots.cpus
