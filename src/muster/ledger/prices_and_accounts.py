"""Prices over time, and accounts: every second that is paid for is in exactly one of them, and their sum is what was
spent.

A price that is changed in the campaign file holds from then on. `per: gpu` bills what is leased; idle slots are
counted and not billed. What a rented machine costs while nothing runs is an account of its own (`per: machine`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from muster.ledger.billed_spans import (
    OVERHEAD,
    REFUSED,
    AccountLabel,
    LedgerTime,
    SlotSpan,
    claim_calendar_time,
)
from muster.model.calendar import seconds_of_iso_time
from muster.model.campaign import Campaign, Money
from muster.model.campaign_state import CampaignState

PricedBy = Literal["gpu", "machine"]
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class PricePeriod:
    start: float  # wall time
    price: float  # of one hour
    per: PricedBy


@dataclass(frozen=True, slots=True)
class Prices:
    """The first period reaches back to the beginning: what was used before a price was declared costs all the same."""

    periods: tuple[PricePeriod, ...]

    def cost(self, per: PricedBy, start: float, seconds: float) -> float:
        """Of one unit, or of the machine, from a wall time on."""
        if len(self.periods) == 1:
            only = self.periods[0]
            return only.price * seconds / HOUR_S if only.per == per else 0.0
        end = start + seconds
        return sum(
            period.price * max(0.0, min(end, until) - max(start, period.start)) / HOUR_S
            for period, until in self._bounded()
            if period.per == per
        )

    def now(self, per: PricedBy) -> float:
        """Of one second, by the newest period."""
        last = self.periods[-1]
        return last.price / HOUR_S if last.per == per else 0.0

    def ever(self, per: PricedBy) -> bool:
        return any(period.per == per for period in self.periods)

    def _bounded(self) -> Iterator[tuple[PricePeriod, float]]:
        for at, period in enumerate(self.periods):
            yield period, self.periods[at + 1].start if at + 1 < len(self.periods) else math.inf


def declared_prices(state: CampaignState) -> Prices | None:
    """None: no price is declared."""
    money = state.campaign.money
    if money is None or not money.price:
        return None
    return prices_from_declarations([(seconds_of_iso_time(at), each) for at, each in state.prices], money)


def prices_from_declarations(known: Sequence[tuple[float | None, Money]], newest: Money) -> Prices:
    """From what was declared when; None for a time that can't be read."""
    periods: list[PricePeriod] = []
    for start, money in known:
        if start is None or not money.price:
            continue
        period = PricePeriod(start if periods else -math.inf, money.price, money.per)
        if not periods or (periods[-1].price, periods[-1].per) != (money.price, money.per):
            periods.append(period)
    return Prices(tuple(periods) or (PricePeriod(-math.inf, newest.price, newest.per),))


def first_claim_time(state: CampaignState) -> float | None:
    """When the first start was, on the calendar."""
    own = (each for record in state.cells.values() for each in record.attempts if not each.adopted)
    return min((claim_calendar_time(state, each) for each in own), default=None)


def rented_stretches(state: CampaignState, now: LedgerTime, first: float | None) -> list[tuple[float, float]]:
    """When the machine was paid for, on the calendar: from `since` or the first start on, not while it was off."""
    money = state.campaign.money
    since = (seconds_of_iso_time(money.since) if money else None) or first
    if since is None or since >= now.wall:
        return []
    off = _powered_off_since(state, now)
    if off is None:
        return [(since, now.wall)]
    return [(start, end) for start, end in ((since, off), (max(since, now.booted), now.wall)) if end > start]


def _powered_off_since(state: CampaignState, now: LedgerTime) -> float | None:
    """When it was powered off last; None: it was not, or it is the same boot still."""
    stage = state.finish.stage
    at = seconds_of_iso_time(stage.at) if stage and stage.what == "began" else None
    if stage is None or at is None:
        return None
    off = state.clock.place(stage.boot_id, stage.boot, at)
    same = stage.boot_id == now.boot_id if stage.boot_id else now.booted <= off
    return None if same else off


IDLE: AccountLabel = ("idle", "")
TimeStretch = tuple[float, float]  # from, to


@dataclass(frozen=True, slots=True)
class Accounts:
    """In money or in hours."""

    productive: float = 0.0  # ended in a DONE that is used
    wasted: float = 0.0  # died, superseded or stopped
    idle: float = 0.0  # paid for, and nothing ran
    overhead: float = 0.0  # a slot was held, and the command did not run: before its start, after its end
    running: float = 0.0  # not decided yet
    by_cause: Mapping[str, float] = field(default_factory=dict)  # of what was wasted

    @property
    def total(self) -> float:
        return self.productive + self.wasted + self.idle + self.overhead + self.running


@dataclass(frozen=True, slots=True)
class Ledger:
    hours: Accounts  # of GPUs (of slots where there is none); of the machine where that is paid for
    money: Accounts | None  # None: no price is declared
    gpu_hours: float
    slot_hours: float
    adopted: int = 0  # runs that something else produced, counted from their files
    adopted_hours: float = 0.0
    adopted_money: float | None = None


class AccountTally:
    def __init__(self) -> None:
        self.seconds: dict[AccountLabel, float] = {}
        self.money: dict[AccountLabel, float] = {}

    def add(self, label: AccountLabel, seconds: float, money: float) -> None:
        self.seconds[label] = self.seconds.get(label, 0.0) + seconds
        self.money[label] = self.money.get(label, 0.0) + money


def build_ledger(spans: Sequence[SlotSpan], prices: Prices | None, rented: Sequence[TimeStretch] = ()) -> Ledger:
    """`rented`: when the machine was paid for, where the price is for the machine."""
    by_unit, by_machine = AccountTally(), AccountTally()
    _charge_units(by_unit, spans, prices)
    machine = prices is not None and prices.ever("machine")
    if prices is not None and machine:
        _charge_machine(by_machine, spans, prices, rented)
    charged = {
        label: by_unit.money.get(label, 0.0) + by_machine.money.get(label, 0.0)
        for label in {*by_unit.money, *by_machine.money}
    }
    adopted = [span for span in spans if span.adopted and span.label != REFUSED]
    return Ledger(
        hours=_sum_accounts((by_machine if machine else by_unit).seconds, HOUR_S),
        money=_sum_accounts(charged, 1.0) if prices is not None else None,
        gpu_hours=_total_gpu_hours(spans),
        slot_hours=sum(span.held_s * max(len(span.slots), 1) for span in spans) / HOUR_S,
        adopted=len(adopted),
        adopted_hours=sum(span.ran_s * len(span.units) for span in adopted) / HOUR_S,
        adopted_money=sum(prices.cost("gpu", span.wall, span.ran_s) * len(span.units) for span in adopted)
        if prices is not None and not machine
        else None,
    )


def _sum_accounts(amounts: Mapping[AccountLabel, float], per: float) -> Accounts:
    sums = dict.fromkeys(("productive", "wasted", "idle", "overhead", "running"), 0.0)
    causes: dict[str, float] = {}
    for (account, cause), amount in sorted(amounts.items()):
        sums[account] += amount / per
        if account == "wasted":
            causes[cause] = causes.get(cause, 0.0) + amount / per
    return Accounts(**sums, by_cause=causes)


# -- one unit after the other: a GPU that two runs share is paid once


def _charge_units(tally: AccountTally, spans: Iterable[SlotSpan], prices: Prices | None) -> None:
    shared: dict[tuple[str, str], list[SlotSpan]] = {}
    for span in spans:
        if span.gpus and not span.adopted:
            for unit in span.units:
                shared.setdefault((span.boot_id, unit), []).append(span)
        elif span.units:
            _charge_span_alone(tally, span, len(span.units), prices)
    for group in shared.values():
        group.sort(key=lambda span: span.boot)
        if not _spans_overlap(group):
            for span in group:
                _charge_span_alone(tally, span, 1, prices)
            continue
        offset = group[0].wall - group[0].boot
        for start, end, active in _sweep_edges(_span_edges(group, boot=True)):
            _divide_among_labels(
                tally, active, end - start, prices.cost("gpu", start + offset, end - start) if prices else 0.0
            )


def _charge_span_alone(tally: AccountTally, span: SlotSpan, units: int, prices: Prices | None) -> None:
    at = span.wall
    for label, seconds in _labelled_parts(span):
        if seconds:
            tally.add(label, seconds * units, prices.cost("gpu", at, seconds) * units if prices else 0.0)
            at += seconds


def _spans_overlap(group: Sequence[SlotSpan]) -> bool:
    """Whether two of them, in the order of their claims, held the GPU at the same time."""
    return any(one.boot + one.held_s > two.boot for one, two in itertools.pairwise(group))


def _divide_among_labels(tally: AccountTally, active: Mapping[AccountLabel, int], seconds: float, money: float) -> None:
    count = sum(active.values())
    for label, number in active.items():
        tally.add(label, seconds * number / count, money * number / count)


SweptPiece = tuple[float, float, Mapping[AccountLabel, int]]  # from, to, what was at work
SpanEdge = tuple[float, int, AccountLabel]


def _labelled_parts(span: SlotSpan) -> tuple[tuple[AccountLabel, float], ...]:
    return ((OVERHEAD, span.lead_s), (span.label, span.ran_s), (OVERHEAD, span.tail_s))


def _span_edges(spans: Iterable[SlotSpan], *, boot: bool) -> list[SpanEdge]:
    edges: list[SpanEdge] = []
    for span in spans:
        at = span.boot if boot else span.wall
        for label, seconds in _labelled_parts(span):
            if seconds > 0:
                edges += [(at, 1, label), (at + seconds, -1, label)]
            at += seconds
    edges.sort(key=lambda edge: edge[0])
    return edges


def _sweep_edges(edges: Sequence[SpanEdge]) -> Iterator[SweptPiece]:
    """What was at work between one edge and the next; stretches in which nothing was are left out."""
    active: dict[AccountLabel, int] = {}
    last = 0.0
    for at, change, label in edges:
        if at > last and active:
            yield last, at, active
        last = at
        active[label] = active.get(label, 0) + change
        if not active[label]:
            del active[label]


# -- the machine as a whole: paid for whatever runs


def _charge_machine(
    tally: AccountTally, spans: Iterable[SlotSpan], prices: Prices, rented: Sequence[TimeStretch]
) -> None:
    edges = _span_edges(spans, boot=False)
    for start, end in rented:
        at = start
        for begin, until, active in _sweep_edges(edges):
            begin, until = max(begin, start), min(until, end)  # noqa: PLW2901
            if until <= begin:
                continue
            tally.add(IDLE, begin - at, prices.cost("machine", at, begin - at))
            _divide_among_labels(tally, active, until - begin, prices.cost("machine", begin, until - begin))
            at = until
        tally.add(IDLE, end - at, prices.cost("machine", at, end - at))


def _total_gpu_hours(spans: Iterable[SlotSpan]) -> float:
    tally = AccountTally()
    _charge_units(tally, (span for span in spans if span.gpus), None)
    return sum(tally.seconds.values()) / HOUR_S


TURNS_ON = frozenset({"running", "release"})
TURNS_OFF = frozenset({"down", "hold", "end"})


def campaign_running_stretches(turns: Iterable[tuple[float, str]], now: LedgerTime) -> list[TimeStretch]:
    """When the campaign was meant to run. Turns are (wall time, running | release | down | hold | end), in order."""
    found: list[TimeStretch] = []
    since: float | None = None
    for at, what in turns:
        if what in TURNS_ON and since is None:
            since = at
        elif what in TURNS_OFF and since is not None:
            found.append((since, at))
            since = None
    return found if since is None else [*found, (since, now.wall)]


def idle_slot_hours(spans: Sequence[SlotSpan], campaign: Campaign, stretches: Sequence[TimeStretch]) -> float:
    """Of all billed units between the first start and the last end, while the campaign was running."""
    own = [span for span in spans if span.units and not span.adopted]
    if not own:
        return 0.0
    window = (min(span.wall for span in own), max(span.wall + span.held_s for span in own))
    open_ = sum(max(0.0, min(end, window[1]) - max(start, window[0])) for start, end in stretches)
    busy: dict[str, list[TimeStretch]] = {unit: [] for unit in _declared_units(campaign)}
    for span in own:
        for unit in span.units:
            busy.setdefault(unit, []).append((span.wall, span.wall + span.held_s))
    return (
        sum(max(0.0, open_ - _shared_seconds(_merge_stretches(taken), stretches)) for taken in busy.values()) / HOUR_S
    )


def _declared_units(campaign: Campaign) -> list[str]:
    """Those that are declared by name; with `gpus: auto` only those that were used are known."""
    slots = campaign.slots
    if slots.gpus is None:
        return []
    return [f"gpu{index}" for index in slots.gpus] or [f"cpu{number}" for number in range(slots.cpus)]


def _merge_stretches(stretches: Iterable[TimeStretch]) -> list[TimeStretch]:
    merged: list[TimeStretch] = []
    for start, end in sorted(stretches):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _shared_seconds(merged: Sequence[TimeStretch], stretches: Sequence[TimeStretch]) -> float:
    return sum(max(0.0, min(end, until) - max(start, since)) for start, end in merged for since, until in stretches)
