"""The running sum of what a campaign has spent, cheap enough to be asked at every turn of a controller. What is
covered by two spans is paid once.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.ledger.billed_spans import RUNNING, LedgerTime, SlotSpan, gpu_share_of_cell, slot_span_of, units_per_cell
from muster.ledger.budget_forecast import BudgetedRun, BudgetState, ProgressRate, full_run_lengths, remaining_seconds
from muster.ledger.prices_and_accounts import Prices, rented_stretches
from muster.model.attempt import AttemptKey, CellRecord
from muster.model.campaign import Money
from muster.model.campaign_state import CampaignState


class CoveredTime:
    """Stretches that do not touch, in order."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._ends: list[float] = []

    def gaps(self, start: float, end: float) -> list[tuple[float, float]]:
        """The parts from start to end that are not covered."""
        found: list[tuple[float, float]] = []
        at = bisect_left(self._ends, start)
        while start < end:
            if at == len(self._starts) or self._starts[at] >= end:
                found.append((start, end))
                break
            if self._starts[at] > start:
                found.append((start, self._starts[at]))
            start = max(start, self._ends[at])
            at += 1
        return found

    def add(self, start: float, end: float) -> list[tuple[float, float]]:
        """Covers it; returns what was not covered before."""
        new = self.gaps(start, end)
        if not new:
            return new
        first = bisect_left(self._ends, start)
        last = first
        while last < len(self._starts) and self._starts[last] <= end:
            last += 1
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last], self._ends[first:last] = [start], [end]
        return new


@dataclass(frozen=True, slots=True)
class RunForecast:
    """What a look at a running attempt told, in boot time."""

    ends: float | None
    saves: float | None  # its next checkpoint


class RunningCost:
    """What has ended is added once; what is open is added up when somebody asks."""

    def __init__(self, state: CampaignState, prices: Prices, found: Iterable[SlotSpan]) -> None:
        self.state, self.prices = state, prices
        self._closed = 0.0  # money for what has ended, where GPUs are paid for
        self._covers: dict[tuple[str, str], CoveredTime] = {}  # what has ended on each GPU in each boot
        self._open: dict[AttemptKey, SlotSpan] = {}
        self._counted: set[AttemptKey] = set()
        self._lengths: dict[str, list[float]] = {}  # job -> how long its completed attempts held their slots
        self._young: dict[str, list[float]] = {}  # job -> how long its running ones will have taken
        self._outlooks: dict[AttemptKey, RunForecast] = {}
        self._over: dict[AttemptKey, float] = {}  # ended and not recorded yet: for how long they held their slots
        self._late: dict[AttemptKey, float] = {}  # for how long they were claimed without a lease
        self._completed: set[AttemptKey] = set()
        self._first: float | None = None
        for each in found:
            self._take(each)

    # -- what happened

    def add(self, records: Iterable[CellRecord], now: LedgerTime) -> None:
        for record in records:
            for attempt in record.attempts:
                if attempt.key not in self._counted or (attempt.was_done and attempt.key not in self._completed):
                    self._take(slot_span_of(record, attempt, self.state, now))

    def _take(self, found: SlotSpan) -> None:
        key = (found.cell, found.attempt)
        if not found.adopted:
            self._first = min(self._first or found.wall, found.wall)
        if found.label == RUNNING:
            self._open[key] = found
            return
        for known in (self._open, self._outlooks, self._over, self._late):
            known.pop(key, None)
        if key not in self._counted:
            self._counted.add(key)
            self._closed += self._cost_of(found)
        if found.completed:
            self._completed.add(key)
            insort(self._lengths.setdefault(found.job, []), found.held_s)

    def _cost_of(self, found: SlotSpan) -> float:
        if found.adopted or not found.gpus:
            return self.prices.cost("gpu", found.wall, found.held_s) * len(found.units)
        offset, end = found.wall - found.boot, found.boot + found.held_s
        return sum(
            self.prices.cost("gpu", start + offset, until - start)
            for unit in found.units
            for start, until in self._covers.setdefault((found.boot_id, unit), CoveredTime()).add(found.boot, end)
        )

    def foresee(self, paces: Mapping[AttemptKey, tuple[ProgressRate, float | None]], now: LedgerTime) -> None:
        """How the running ones get on, and when each saves next (in seconds), after a look at all of them."""
        young: dict[str, list[ProgressRate]] = {}
        self._outlooks = {}
        for key, (pace, saves_s) in paces.items():
            found = self._open.get(key)
            if found is None:
                continue
            young.setdefault(found.job, []).append(pace)
            rest = remaining_seconds(pace, *self._kin(found.job))
            ends = now.boot + rest if rest is not None else None
            self._outlooks[key] = RunForecast(ends, now.boot + saves_s if saves_s is not None else None)
        self._young = {job: lengths for job, each in young.items() if (lengths := full_run_lengths(each))}

    def ended(self, held: Mapping[AttemptKey, float]) -> None:
        """Attempts that were seen to have ended; to record that may take a while."""
        self._over.update({key: seconds for key, seconds in held.items() if key in self._open})

    def begun(self, late: Mapping[AttemptKey, float]) -> None:
        """Of open attempts: how much of the time since the claim no lease can explain."""
        self._late.update({key: seconds for key, seconds in late.items() if key in self._open})

    @property
    def open(self) -> list[AttemptKey]:
        return list(self._open)

    # -- what it comes to

    def purse(self, now: LedgerTime) -> BudgetState:
        money = self.state.campaign.money
        assert money is not None
        going = {key: found for key, found in self._open.items() if self._pays(found, key, now)}
        machine = money.per == "machine"
        on = rented_stretches(self.state, now, self._first)
        spent = self._closed + self._open_cost(now)
        spent += sum(self.prices.cost("machine", start, end - start) for start, end in on)
        return BudgetState(
            money=money,
            price_s=self.prices.now(money.per),
            spent=spent,
            burning=float(bool(on))
            if machine
            else float(len({unit for each in going.values() for unit in each.units})),
            runs={key: self._prospect(key, found, now) for key, found in going.items()},
            cell_s=self._cells(money),
        )

    def _pays(self, found: SlotSpan, key: AttemptKey, now: LedgerTime) -> bool:
        return key not in self._over and found.boot_id == now.boot_id

    def _open_cost(self, now: LedgerTime) -> float:
        """Each GPU once, for the time that something open held it and nothing that has ended did."""
        total = 0.0
        taken: dict[tuple[str, str], list[tuple[float, float, float]]] = {}  # GPU -> (from, to, wall time of from)
        for key, found in self._open.items():
            start, end = self._stretch(key, found, now)
            wall = found.wall + start - found.boot
            if not found.gpus:
                total += self.prices.cost("gpu", wall, end - start) * len(found.units)
            for unit in found.units if found.gpus else ():
                taken.setdefault((found.boot_id, unit), []).append((start, end, wall))
        for place, stretches in taken.items():
            total += self._uncovered(self._covers.get(place), stretches)
        return total

    def _stretch(self, key: AttemptKey, found: SlotSpan, now: LedgerTime) -> tuple[float, float]:
        """Of another boot, until somebody looks, nobody knows when it ended."""
        if key in self._over:
            return found.boot, found.boot + self._over[key]
        if found.boot_id != now.boot_id:
            return found.boot, found.boot
        start = found.boot + self._late.get(key, 0.0)
        return start, max(start, now.boot)

    def _uncovered(self, known: CoveredTime | None, stretches: list[tuple[float, float, float]]) -> float:
        total, own = 0.0, CoveredTime()
        for start, end, wall in stretches:
            for since, until in own.add(start, end):
                for a, b in known.gaps(since, until) if known else [(since, until)]:
                    total += self.prices.cost("gpu", wall + a - start, b - a)
        return total

    def _prospect(self, key: AttemptKey, found: SlotSpan, now: LedgerTime) -> BudgetedRun:
        job = self.state.job(found.job)
        units = len(found.units) * (gpu_share_of_cell(job, self.state.campaign) if found.gpus else 1.0)
        known = self._outlooks.get(key)
        rest = None if known is None or known.ends is None else max(0.0, known.ends - now.boot)
        if known is None:
            rest = remaining_seconds(ProgressRate(max(0.0, now.boot - found.boot)), *self._kin(found.job))
        saves = None if known is None or known.saves is None else max(0.0, known.saves - now.boot)
        return BudgetedRun(units, rest, saves)

    def _kin(self, job: str) -> tuple[float | None, float | None]:
        """How long its completed siblings took, usually and at most."""
        lengths = self._lengths.get(job)
        return (_median_of_sorted(lengths), lengths[-1]) if lengths else (None, None)

    def _cells(self, money: Money) -> dict[str, float]:
        """Billed seconds of one more cell, by job; of a rented machine the seconds that it runs."""
        found = {}
        for job in self.state.campaign.jobs:
            lengths = self._lengths.get(job.name) or sorted(self._young.get(job.name, ()))
            if lengths:
                units = (
                    1.0
                    if money.per == "machine"
                    else units_per_cell(job, self.state.campaign) * gpu_share_of_cell(job, self.state.campaign)
                )
                found[job.name] = _median_of_sorted(lengths) * units
        return found


def _median_of_sorted(ordered: Sequence[float]) -> float:
    """The median of what is in order already."""
    half, odd = divmod(len(ordered), 2)
    return ordered[half] if odd else (ordered[half - 1] + ordered[half]) / 2
