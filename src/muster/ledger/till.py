"""The till: a running sum of what a campaign has spent, cheap enough to be asked at every turn of a controller."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.domain.attempt import CellRecord
from muster.domain.campaign import Money
from muster.domain.state import CampaignState
from muster.ledger.budget import Prospect, Purse
from muster.ledger.cover import Cover
from muster.ledger.forecast import Pace, full_length, rest_s
from muster.ledger.prices import Prices, rented
from muster.ledger.spans import RUNNING, Now, Span, span
from muster.ledger.units import asked, share

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a look at a running attempt told, in boot time."""

    ends: float | None
    saves: float | None  # its next checkpoint


class Till:
    """What has ended is added once; what is open is added up when somebody asks."""

    def __init__(self, state: CampaignState, prices: Prices, found: Iterable[Span]) -> None:
        self.state, self.prices = state, prices
        self._closed = 0.0  # money for what has ended, where GPUs are paid for
        self._covers: dict[tuple[str, str], Cover] = {}  # what has ended on each GPU in each boot
        self._open: dict[Key, Span] = {}
        self._counted: set[Key] = set()
        self._lengths: dict[str, list[float]] = {}  # job -> how long its completed attempts held their slots
        self._young: dict[str, list[float]] = {}  # job -> how long its running ones will have taken
        self._outlooks: dict[Key, Outlook] = {}
        self._over: dict[Key, float] = {}  # ended and not recorded yet: for how long they held their slots
        self._late: dict[Key, float] = {}  # for how long they were claimed without a lease
        self._completed: set[Key] = set()
        self._first: float | None = None
        for each in found:
            self._take(each)

    # -- what happened

    def add(self, records: Iterable[CellRecord], now: Now) -> None:
        for record in records:
            for attempt in record.attempts:
                if attempt.key not in self._counted or (attempt.was_done and attempt.key not in self._completed):
                    self._take(span(record, attempt, self.state, now))

    def _take(self, found: Span) -> None:
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

    def _cost_of(self, found: Span) -> float:
        if found.adopted or not found.gpus:
            return self.prices.cost("gpu", found.wall, found.held_s) * len(found.units)
        offset, end = found.wall - found.boot, found.boot + found.held_s
        return sum(
            self.prices.cost("gpu", start + offset, until - start)
            for unit in found.units
            for start, until in self._covers.setdefault((found.boot_id, unit), Cover()).add(found.boot, end)
        )

    def foresee(self, paces: Mapping[Key, tuple[Pace, float | None]], now: Now) -> None:
        """How the running ones get on, and when each saves next (in seconds), after a look at all of them."""
        young: dict[str, list[Pace]] = {}
        self._outlooks = {}
        for key, (pace, saves_s) in paces.items():
            found = self._open.get(key)
            if found is None:
                continue
            young.setdefault(found.job, []).append(pace)
            rest = rest_s(pace, *self._kin(found.job))
            ends = now.boot + rest if rest is not None else None
            self._outlooks[key] = Outlook(ends, now.boot + saves_s if saves_s is not None else None)
        self._young = {job: lengths for job, each in young.items() if (lengths := full_length(each))}

    def ended(self, held: Mapping[Key, float]) -> None:
        """Attempts that were seen to have ended; to record that may take a while."""
        self._over.update({key: seconds for key, seconds in held.items() if key in self._open})

    def begun(self, late: Mapping[Key, float]) -> None:
        """Of open attempts: how much of the time since the claim no lease can explain."""
        self._late.update({key: seconds for key, seconds in late.items() if key in self._open})

    @property
    def open(self) -> list[Key]:
        return list(self._open)

    # -- what it comes to

    def purse(self, now: Now) -> Purse:
        money = self.state.campaign.money
        assert money is not None
        going = {key: found for key, found in self._open.items() if self._pays(found, key, now)}
        machine = money.per == "machine"
        on = rented(self.state, now, self._first)
        spent = self._closed + self._open_cost(now)
        spent += sum(self.prices.cost("machine", start, end - start) for start, end in on)
        return Purse(
            money=money,
            price_s=self.prices.now(money.per),
            spent=spent,
            burning=float(bool(on))
            if machine
            else float(len({unit for each in going.values() for unit in each.units})),
            runs={key: self._prospect(key, found, now) for key, found in going.items()},
            cell_s=self._cells(money),
        )

    def _pays(self, found: Span, key: Key, now: Now) -> bool:
        return key not in self._over and found.boot_id == now.boot_id

    def _open_cost(self, now: Now) -> float:
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

    def _stretch(self, key: Key, found: Span, now: Now) -> tuple[float, float]:
        """Of another boot, until somebody looks, nobody knows when it ended."""
        if key in self._over:
            return found.boot, found.boot + self._over[key]
        if found.boot_id != now.boot_id:
            return found.boot, found.boot
        start = found.boot + self._late.get(key, 0.0)
        return start, max(start, now.boot)

    def _uncovered(self, known: Cover | None, stretches: list[tuple[float, float, float]]) -> float:
        total, own = 0.0, Cover()
        for start, end, wall in stretches:
            for since, until in own.add(start, end):
                for a, b in known.gaps(since, until) if known else [(since, until)]:
                    total += self.prices.cost("gpu", wall + a - start, b - a)
        return total

    def _prospect(self, key: Key, found: Span, now: Now) -> Prospect:
        job = self.state.job(found.job)
        units = len(found.units) * (share(job, self.state.campaign) if found.gpus else 1.0)
        known = self._outlooks.get(key)
        rest = None if known is None or known.ends is None else max(0.0, known.ends - now.boot)
        if known is None:
            rest = rest_s(Pace(max(0.0, now.boot - found.boot)), *self._kin(found.job))
        saves = None if known is None or known.saves is None else max(0.0, known.saves - now.boot)
        return Prospect(units, rest, saves)

    def _kin(self, job: str) -> tuple[float | None, float | None]:
        """How long its completed siblings took, usually and at most."""
        lengths = self._lengths.get(job)
        return (_middle(lengths), lengths[-1]) if lengths else (None, None)

    def _cells(self, money: Money) -> dict[str, float]:
        """Billed seconds of one more cell, by job; of a rented machine the seconds that it runs."""
        found = {}
        for job in self.state.campaign.jobs:
            lengths = self._lengths.get(job.name) or sorted(self._young.get(job.name, ()))
            if lengths:
                units = (
                    1.0 if money.per == "machine" else asked(job, self.state.campaign) * share(job, self.state.campaign)
                )
                found[job.name] = _middle(lengths) * units
        return found


def _middle(ordered: Sequence[float]) -> float:
    """The median of what is in order already."""
    half, odd = divmod(len(ordered), 2)
    return ordered[half] if odd else (ordered[half - 1] + ordered[half]) / 2
