"""Accounts: every second that is paid for is in exactly one of them, and their sum is what was spent."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from muster.ledger.prices import HOUR, Prices
from muster.ledger.spans import OVERHEAD, REFUSED, Label, Span

IDLE: Label = ("idle", "")
Stretch = tuple[float, float]  # from, to


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


class Tally:
    def __init__(self) -> None:
        self.seconds: dict[Label, float] = {}
        self.money: dict[Label, float] = {}

    def add(self, label: Label, seconds: float, money: float) -> None:
        self.seconds[label] = self.seconds.get(label, 0.0) + seconds
        self.money[label] = self.money.get(label, 0.0) + money


def ledger(spans: Sequence[Span], prices: Prices | None, rented: Sequence[Stretch] = ()) -> Ledger:
    """`rented`: when the machine was paid for, where the price is for the machine."""
    by_unit, by_machine = Tally(), Tally()
    _units(by_unit, spans, prices)
    machine = prices is not None and prices.ever("machine")
    if prices is not None and machine:
        _machine(by_machine, spans, prices, rented)
    charged = {label: by_unit.money.get(label, 0.0) + by_machine.money.get(label, 0.0)
               for label in {*by_unit.money, *by_machine.money}}  # fmt: skip
    adopted = [span for span in spans if span.adopted and span.label != REFUSED]
    return Ledger(
        hours=_accounts((by_machine if machine else by_unit).seconds, HOUR),
        money=_accounts(charged, 1.0) if prices is not None else None,
        gpu_hours=_gpu_hours(spans),
        slot_hours=sum(span.held_s * max(len(span.slots), 1) for span in spans) / HOUR,
        adopted=len(adopted),
        adopted_hours=sum(span.ran_s * len(span.units) for span in adopted) / HOUR,
        adopted_money=sum(prices.cost("gpu", span.wall, span.ran_s) * len(span.units) for span in adopted)
        if prices is not None and not machine
        else None,
    )


def _accounts(amounts: Mapping[Label, float], per: float) -> Accounts:
    sums = dict.fromkeys(("productive", "wasted", "idle", "overhead", "running"), 0.0)
    causes: dict[str, float] = {}
    for (account, cause), amount in sorted(amounts.items()):
        sums[account] += amount / per
        if account == "wasted":
            causes[cause] = causes.get(cause, 0.0) + amount / per
    return Accounts(**sums, by_cause=causes)


# -- one unit after the other: a GPU that two runs share is paid once


def _units(tally: Tally, spans: Iterable[Span], prices: Prices | None) -> None:
    shared: dict[tuple[str, str], list[Span]] = {}
    for span in spans:
        if span.gpus and not span.adopted:
            for unit in span.units:
                shared.setdefault((span.boot_id, unit), []).append(span)
        elif span.units:
            _alone(tally, span, len(span.units), prices)
    for group in shared.values():
        group.sort(key=lambda span: span.boot)
        if not _overlaps(group):
            for span in group:
                _alone(tally, span, 1, prices)
            continue
        offset = group[0].wall - group[0].boot
        for start, end, active in _swept(_edges(group, boot=True)):
            _divide(tally, active, end - start, prices.cost("gpu", start + offset, end - start) if prices else 0.0)


def _alone(tally: Tally, span: Span, units: int, prices: Prices | None) -> None:
    at = span.wall
    for label, seconds in _parts(span):
        if seconds:
            tally.add(label, seconds * units, prices.cost("gpu", at, seconds) * units if prices else 0.0)
            at += seconds


def _overlaps(group: Sequence[Span]) -> bool:
    """Whether two of them, in the order of their claims, held the GPU at the same time."""
    return any(one.boot + one.held_s > two.boot for one, two in itertools.pairwise(group))


def _divide(tally: Tally, active: Mapping[Label, int], seconds: float, money: float) -> None:
    count = sum(active.values())
    for label, number in active.items():
        tally.add(label, seconds * number / count, money * number / count)


Piece = tuple[float, float, Mapping[Label, int]]  # from, to, what was at work
Edge = tuple[float, int, Label]


def _parts(span: Span) -> tuple[tuple[Label, float], ...]:
    return ((OVERHEAD, span.lead_s), (span.label, span.ran_s), (OVERHEAD, span.tail_s))


def _edges(spans: Iterable[Span], *, boot: bool) -> list[Edge]:
    edges: list[Edge] = []
    for span in spans:
        at = span.boot if boot else span.wall
        for label, seconds in _parts(span):
            if seconds > 0:
                edges += [(at, 1, label), (at + seconds, -1, label)]
            at += seconds
    edges.sort(key=lambda edge: edge[0])
    return edges


def _swept(edges: Sequence[Edge]) -> Iterator[Piece]:
    """What was at work between one edge and the next; stretches in which nothing was are left out."""
    active: dict[Label, int] = {}
    last = 0.0
    for at, change, label in edges:
        if at > last and active:
            yield last, at, active
        last = at
        active[label] = active.get(label, 0) + change
        if not active[label]:
            del active[label]


# -- the machine as a whole: paid for whatever runs


def _machine(tally: Tally, spans: Iterable[Span], prices: Prices, rented: Sequence[Stretch]) -> None:
    edges = _edges(spans, boot=False)
    for start, end in rented:
        at = start
        for begin, until, active in _swept(edges):
            begin, until = max(begin, start), min(until, end)  # noqa: PLW2901
            if until <= begin:
                continue
            tally.add(IDLE, begin - at, prices.cost("machine", at, begin - at))
            _divide(tally, active, until - begin, prices.cost("machine", begin, until - begin))
            at = until
        tally.add(IDLE, end - at, prices.cost("machine", at, end - at))


def _gpu_hours(spans: Iterable[Span]) -> float:
    tally = Tally()
    _units(tally, (span for span in spans if span.gpus), None)
    return sum(tally.seconds.values()) / HOUR
