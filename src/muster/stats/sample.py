"""One metric of one config on one split: a value for each training seed, and what so many seeds allow to be said."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muster.stats.quantiles import t_quantile

LEVEL = 0.95
LEAST_FOR_INTERVAL = 3
LEAST_FOR_IQM = 10  # with fewer it throws away half of next to nothing


@dataclass(frozen=True)
class Sample:
    """Finite values by seed. Episodes have been averaged inside each of them before."""

    config: str
    split: str
    metric: str
    by_seed: Mapping[str, float]
    episodes: int = 1  # that each value is the mean of; 1: not known

    @property
    def values(self) -> tuple[float, ...]:
        """Plain ones, whatever kind of number came in."""
        return tuple(map(float, self.by_seed.values()))

    @property
    def n(self) -> int:
        return len(self.by_seed)

    @cached_property
    def mean(self) -> float:
        return float(np.mean(self.values)) if self.by_seed else math.nan

    @cached_property
    def sd(self) -> float | None:
        """ddof 1; None where one value shows no spread."""
        with np.errstate(over="ignore", invalid="ignore"):  # too large a number is told by a flag
            return float(np.std(self.values, ddof=1)) if self.n > 1 else None

    @property
    def se(self) -> float | None:
        return None if self.sd is None else self.sd / math.sqrt(self.n)

    def bound(self, level: float) -> tuple[float, float] | None:
        """The Student-t interval that holds the mean with this two-sided level; None below two seeds."""
        if self.se is None:
            return None
        half = t_quantile((1 + level) / 2, self.n - 1) * self.se
        return self.mean - half, self.mean + half

    @property
    def interval(self) -> tuple[float, float] | None:
        """As it may be shown: two seeds have an interval of 9 sd to either side, which tells nobody anything."""
        return self.bound(LEVEL) if self.n >= LEAST_FOR_INTERVAL else None

    @property
    def iqm(self) -> float | None:
        """The mean of the middle half, weighted at its edges; None where it is not meaningful."""
        return interquartile_mean(self.values) if self.n >= LEAST_FOR_IQM else None


def interquartile_mean(values: tuple[float, ...]) -> float:
    ordered = np.sort(np.asarray(values, dtype=float))
    cut = len(ordered) / 4
    edges = np.arange(len(ordered))
    weights = np.clip(np.minimum(edges + 1 - cut, len(ordered) - cut - edges), 0.0, 1.0)
    return float(np.sum(weights * ordered) / np.sum(weights))


def standing_of(n: int) -> str:
    """What so many seeds are good for: a key of the report's wording."""
    if n <= 1:
        return "single"
    if n == 2:
        return "smoke"
    if n < 5:
        return "preliminary"
    return "five" if n < 10 else "ten"
