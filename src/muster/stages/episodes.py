"""Evaluation on many episodes: seeds, statistics, and how many episodes a low quantile needs.

Standard library only, as the rest of this room; a bootstrap draws from a seed, so that it can be repeated.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

DRAWS = 1000
_SIZES = 24  # doublings at most when the needed number is looked for


class Interval(NamedTuple):
    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


class Statistics(NamedTuple):
    episodes: int
    mean: float
    min: float
    p10: float
    p10_interval: Interval  # 95 %, percentile bootstrap
    early_death_rate: float
    first_step_ratio: float

    def row(self) -> dict[str, float]:
        return {
            "episodes": self.episodes, "mean": self.mean, "min": self.min, "p10": self.p10,
            "p10_low": self.p10_interval.low, "p10_high": self.p10_interval.high,
            "early_death_rate": self.early_death_rate, "first_step_ratio": self.first_step_ratio,
        }  # fmt: skip


class Plan(NamedTuple):
    """A quick look at `probe` episodes, a whole one at `full`; every evaluation has seeds of its own."""

    probe: int
    full: int
    seed_base: int

    def seeds(self, iteration: int, *, full: bool = True) -> list[int]:
        """Those of the quick look are the first of the whole one: it is a part of it."""
        if not 1 <= self.probe <= self.full:
            raise ValueError(f"a probe of {self.probe} episodes is no part of {self.full}")
        first = self.seed_base + iteration * self.full
        return list(range(first, first + (self.full if full else self.probe)))


def quantile(values: Sequence[float], share: float) -> float:
    """Between two values in proportion, as numpy has it."""
    order = sorted(values)
    place = share * (len(order) - 1)
    below = math.floor(place)
    above = min(below + 1, len(order) - 1)
    return order[below] + (place - below) * (order[above] - order[below])


def statistics_of(
    first_deaths: Sequence[float], *, early: float = 100, seed: int = 0, first_steps: int | None = None,
    starts: int | None = None,
) -> Statistics:  # fmt: skip
    """`first_deaths`: the step of the first death in each episode. `first_steps` of `starts` died in the first step;
    without them it is counted over the episodes."""
    values = [float(each) for each in first_deaths]
    if not values:
        raise ValueError("no episode was run: there is nothing to tell")
    if any(math.isnan(each) for each in values):
        raise ValueError("an episode's first death is NaN")
    ratio = sum(each <= 1 for each in values) / len(values) if starts is None else (first_steps or 0) / max(starts, 1)
    return Statistics(
        len(values), sum(values) / len(values), min(values), quantile(values, 0.1),
        quantile_interval(values, 0.1, seed=seed), sum(each < early for each in values) / len(values), ratio,
    )  # fmt: skip


def quantile_interval(
    values: Sequence[float], share: float = 0.1, *, size: int | None = None, seed: int = 0, draws: int = DRAWS
) -> Interval:
    """95 % by the percentile bootstrap. `size`: as if there were so many episodes."""
    rng = random.Random(seed)
    many = len(values) if size is None else size
    found = sorted(quantile(rng.choices(values, k=many), share) for _ in range(draws))
    return Interval(quantile(found, 0.025), quantile(found, 0.975))


def episodes_needed(values: Sequence[float], width: float, *, share: float = 0.1, seed: int = 0) -> int:
    """How many episodes make the 95 % interval of the quantile as narrow as `width`, going by these ones.

    A bootstrap sees no rarer episode than it was given: from few of them it is a lower bound.
    """
    if width <= 0:
        raise ValueError(f"the width must be above 0, found {width:g}")
    enough = len(values)
    for _ in range(_SIZES):
        if quantile_interval(values, share, size=enough, seed=seed, draws=200).width <= width:
            break
        enough *= 2
    else:
        raise ValueError(f"even {enough} episodes would not make the interval as narrow as {width:g}")
    low = 1
    while low < enough:
        middle = (low + enough) // 2
        if quantile_interval(values, share, size=middle, seed=seed, draws=200).width <= width:
            enough = middle
        else:
            low = middle + 1
    return enough
