"""The numbers that a text may hold: what results say, by config, split and metric."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Quantity:
    key: str  # unique: ood/score/v2_full/mean
    config: str
    split: str  # "" where the job has none
    metric: str
    stat: str  # mean | sd | n | value (of one seed)
    seed: str  # "" unless stat is value
    value: float
    k: int  # seeds that there are
    n: int  # seeds that are declared
    earlier: tuple[float, ...] = ()  # what it was with fewer seeds, in order; the last one with k - 1

    def seeds_then(self, at: int) -> int:
        """How many seeds `earlier[at]` rests on."""
        return self.k - len(self.earlier) + at


@dataclass(frozen=True, slots=True)
class Group:
    """One metric of one config on one split, with all that is known of it."""

    config: str
    split: str
    metric: str
    stats: dict[str, Quantity] = field(default_factory=dict)  # mean, sd, n; value/2 for seed 2

    @property
    def name(self) -> str:
        return "/".join(part for part in (self.split, self.metric, self.config) if part)

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.config, self.split, self.metric

    def magnitude(self) -> float:
        """The largest that any of its values is or was."""
        measured = (quantity for stat, quantity in self.stats.items() if stat != "n")
        known = (abs(each) for quantity in measured for each in (quantity.value, *quantity.earlier))
        return max((each for each in known if math.isfinite(each)), default=0.0)


class Book:
    """All quantities, to be asked by name and by value."""

    def __init__(self, quantities: Iterable[Quantity]) -> None:
        self.by_key: dict[str, Quantity] = {}
        self.groups: dict[tuple[str, str, str], Group] = {}
        for each in quantities:
            self.by_key[each.key] = each
            named = (each.config, each.split, each.metric)
            group = self.groups.setdefault(named, Group(*named))
            group.stats[f"value/{each.seed}" if each.stat == "value" else each.stat] = each
        self._values: dict[str, list[tuple[float, tuple[str, str, str]]]] = {}
        for named, group in self.groups.items():
            for stat, quantity in group.stats.items():
                pairs = ((value, named) for value in (quantity.value, *quantity.earlier) if math.isfinite(value))
                self._values.setdefault(stat, []).extend(pairs)
        for found in self._values.values():
            found.sort()
        self._rates: dict[str, bool | None] = {}

    def select(
        self, configs: Collection[str] = (), splits: Collection[str] = (), metrics: Collection[str] = ()
    ) -> Iterator[Group]:
        """The groups that these names allow; no names of a kind allow all."""
        for group in self.groups.values():
            if configs and group.config not in configs:
                continue
            if splits and group.split not in splits:
                continue
            if metrics and group.metric not in metrics:
                continue
            yield group

    def near(self, stat: str, low: float, high: float) -> list[Group]:
        """Groups whose value, now or earlier, lies between these."""
        values = self._values.get(stat, [])
        at, end = bisect_left(values, (low, ("", "", ""))), bisect_right(values, high, key=lambda pair: pair[0])
        return list({named: self.groups[named] for _, named in values[at:end]}.values())

    def is_rate(self, metric: str) -> bool | None:
        """Whether the metric lies between 0 and 1 throughout, so that a text may show percent. None: who knows."""
        if metric not in self._rates:
            largest = max((group.magnitude() for group in self.select(metrics=[metric])), default=0.0)
            self._rates[metric] = True if 0 < largest <= 1 else False if largest > 1.5 else None
        return self._rates[metric]
