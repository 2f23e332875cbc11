"""Which startable cell goes first: the one with the longest remaining chain behind it. Estimates from siblings."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.domain.attempt import CellRecord
from muster.domain.campaign import Campaign
from muster.domain.state import CampaignState
from muster.ledger.forecast import Interval, ahead
from muster.ledger.units import asked, share

UNKNOWN_DURATION_S = 60.0  # only the order of jobs depends on it, never a figure that is shown


@dataclass(frozen=True, slots=True)
class Estimate:
    cells: int  # cells still to run
    slot_seconds: float | None  # of slots; None: no sibling has finished yet
    wall_seconds: float | None
    money: float | None
    basis: str  # where it comes from, in words
    money_range: tuple[float, float] | None = None  # nine times in ten between these


def durations(records: Sequence[CellRecord]) -> dict[str, float]:
    """Median duration per job, from the attempts that were completed."""
    return {job: statistics.median(values) for job, values in all_durations(records).items()}


def all_durations(records: Sequence[CellRecord]) -> dict[str, list[float]]:
    known: dict[str, list[float]] = {}
    for record in records:
        attempt = record.completed
        if attempt and attempt.outcome and attempt.outcome.duration_s:
            known.setdefault(record.cell.job, []).append(attempt.outcome.duration_s)
    return known


def chain_lengths(campaign: Campaign, known: Mapping[str, float]) -> dict[str, float]:
    """Seconds from the start of a job's cell to the end of the longest chain that waits for it."""
    followers = {job.name: [other.name for other in campaign.jobs if job.name in other.needs] for job in campaign.jobs}
    lengths: dict[str, float] = {}

    def length(name: str) -> float:
        if name not in lengths:
            behind = max((length(follower) for follower in followers[name]), default=0.0)
            lengths[name] = known.get(name, UNKNOWN_DURATION_S) + behind
        return lengths[name]

    for job in campaign.jobs:
        length(job.name)
    return lengths


def in_order(records: Sequence[CellRecord], campaign: Campaign, known: Mapping[str, float]) -> list[CellRecord]:
    lengths = chain_lengths(campaign, known)
    return sorted(records, key=lambda record: (-lengths[record.cell.job], record.position))


def estimate(state: CampaignState, slots: int) -> Estimate:
    """Hours and money for what is not done, from the durations of siblings."""
    todo = [record for record in state.declared if not record.done and record.given_up is None]
    each = all_durations(state.declared)
    known = {job: statistics.median(values) for job, values in each.items()}
    missing = sorted({record.cell.job for record in todo} - set(known))
    if not todo:
        return Estimate(0, 0.0, 0.0, 0.0, "nothing is left to run")
    if missing:
        return Estimate(len(todo), None, None, None, f"no cell of {', '.join(missing)} has finished yet")
    seconds = sum(known[record.cell.job] for record in todo)
    wall = seconds / max(1, slots)
    count = sum(1 for record in state.declared if record.done)
    basis = f"the median of {count} finished cell{'s' if count != 1 else ''}"
    money = _money(state.campaign, Counter(record.cell.job for record in todo), each, slots)
    span = (money.low, money.high) if money else None
    return Estimate(len(todo), seconds, wall, money.mid if money else None, basis, span)


def _money(
    campaign: Campaign, left: Mapping[str, int], known: Mapping[str, Sequence[float]], slots: int
) -> Interval | None:
    if campaign.money is None or not campaign.money.price:
        return None
    machine = campaign.money.per == "machine"
    jobs = {name: campaign.job(name) for name in left}
    units = {
        name: 1.0 / max(1, slots) if machine else asked(job, campaign) * share(job, campaign)
        for name, job in jobs.items()
    }
    return ahead(left, known, (), units).billed * (campaign.money.price / 3600)
