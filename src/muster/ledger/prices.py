"""Prices over time: a price that is changed in the campaign file holds from then on, not for what was spent before."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from muster.domain.campaign import Money
from muster.domain.state import CampaignState
from muster.ledger.spans import Now, claimed_on_calendar, moment

Per = Literal["gpu", "machine"]
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Period:
    start: float  # wall time
    price: float  # of one hour
    per: Per


@dataclass(frozen=True, slots=True)
class Prices:
    """The first period reaches back to the beginning: what was used before a price was declared costs all the same."""

    periods: tuple[Period, ...]

    def cost(self, per: Per, start: float, seconds: float) -> float:
        """Of one unit, or of the machine, from a wall time on."""
        if len(self.periods) == 1:
            only = self.periods[0]
            return only.price * seconds / HOUR if only.per == per else 0.0
        end = start + seconds
        return sum(
            period.price * max(0.0, min(end, until) - max(start, period.start)) / HOUR
            for period, until in self._bounded()
            if period.per == per
        )

    def now(self, per: Per) -> float:
        """Of one second, by the newest period."""
        last = self.periods[-1]
        return last.price / HOUR if last.per == per else 0.0

    def ever(self, per: Per) -> bool:
        return any(period.per == per for period in self.periods)

    def _bounded(self) -> Iterator[tuple[Period, float]]:
        for at, period in enumerate(self.periods):
            yield period, self.periods[at + 1].start if at + 1 < len(self.periods) else math.inf


def prices(state: CampaignState) -> Prices | None:
    """None: no price is declared."""
    money = state.campaign.money
    if money is None or not money.price:
        return None
    return of_moneys([(moment(at), each) for at, each in state.prices], money)


def of_moneys(known: Sequence[tuple[float | None, Money]], newest: Money) -> Prices:
    """From what was declared when; None for a time that can't be read."""
    periods: list[Period] = []
    for start, money in known:
        if start is None or not money.price:
            continue
        period = Period(start if periods else -math.inf, money.price, money.per)
        if not periods or (periods[-1].price, periods[-1].per) != (money.price, money.per):
            periods.append(period)
    return Prices(tuple(periods) or (Period(-math.inf, newest.price, newest.per),))


def first_claim(state: CampaignState) -> float | None:
    """When the first start was, on the calendar."""
    own = (each for record in state.cells.values() for each in record.attempts if not each.adopted)
    return min((claimed_on_calendar(state, each) for each in own), default=None)


def rented(state: CampaignState, now: Now, first: float | None) -> list[tuple[float, float]]:
    """When the machine was paid for, on the calendar: from `since` or the first start on, not while it was off."""
    money = state.campaign.money
    since = (moment(money.since) if money else None) or first
    if since is None or since >= now.wall:
        return []
    off = _off_since(state, now)
    if off is None:
        return [(since, now.wall)]
    return [(start, end) for start, end in ((since, off), (max(since, now.booted), now.wall)) if end > start]


def _off_since(state: CampaignState, now: Now) -> float | None:
    """When it was powered off last; None: it was not, or it is the same boot still."""
    stage = state.finish.stage
    at = moment(stage.at) if stage and stage.what == "began" else None
    if stage is None or at is None:
        return None
    off = state.clock.place(stage.boot_id, stage.boot, at)
    same = stage.boot_id == now.boot_id if stage.boot_id else now.booted <= off
    return None if same else off
