"""Evaluation on many episodes: seeds, statistics, and how many episodes a low quantile needs.

Standard library only, as the rest of this room; a bootstrap draws from a seed, so that it can be repeated.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

DRAWS = 1000
_DRAWS_PER_SIZE = 400  # for each size, when the needed one is looked for
_SIZES = sorted({round(1.1**power) for power in range(146)})  # 1 to a million; the bootstrap is no finer


class Interval(NamedTuple):
    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low if self.high != self.low else 0.0  # infinity less infinity is no number


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
            "episodes": self.episodes,
            "mean": self.mean,
            "min": self.min,
            "p10": self.p10,
            "p10_low": self.p10_interval.low,
            "p10_high": self.p10_interval.high,
            "early_death_rate": self.early_death_rate,
            "first_step_ratio": self.first_step_ratio,
        }


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
    """Between two values in proportion, as numpy has it; infinity is a value: an episode without a death."""
    if not values:
        raise ValueError("there is no quantile of nothing")
    return _interpolated_quantile(sorted(values), share)


def statistics_of(
    first_deaths: Sequence[float],
    *,
    early: float = 100,
    seed: int = 0,
    first_steps: int | None = None,
    starts: int | None = None,
) -> Statistics:
    """`first_deaths`: the step of the first death in each episode. `first_steps` of `starts` died in the first step;
    without them it is counted over the episodes."""
    values = [float(each) for each in first_deaths]
    if not values:
        raise ValueError("no episode was run: there is nothing to tell")
    if any(math.isnan(each) for each in values):
        raise ValueError("an episode's first death is NaN")
    if (first_steps is None) != (starts is None) or starts == 0:
        raise ValueError(f"first-step deaths need both, how many and of how many: found {first_steps} of {starts}")
    ratio = first_steps / starts if first_steps is not None and starts else sum(v <= 1 for v in values) / len(values)
    return Statistics(
        len(values),
        sum(values) / len(values),
        min(values),
        quantile(values, 0.1),
        quantile_interval(values, 0.1, seed=seed),
        sum(each < early for each in values) / len(values),
        ratio,
    )


def quantile_interval(
    values: Sequence[float], share: float = 0.1, *, size: int | None = None, seed: int = 0, draws: int = DRAWS
) -> Interval:
    """95 % by the percentile bootstrap.

    `size`: as if there were so many episodes. They fall between the given ones as well: the tenth part of 40 would else
    never settle between the 4th and the 5th of them.
    """
    if not values:
        raise ValueError("there is no quantile of nothing")
    rng, order = random.Random(seed), sorted(values)
    pick = _pick_nearest_value if size is None else _interpolated_quantile
    found = sorted(_redraw_quantile(order, size or len(order), share, rng, pick) for _ in range(draws))
    return Interval(_interpolated_quantile(found, 0.025), _interpolated_quantile(found, 0.975))


def _redraw_quantile(
    order: Sequence[float], many: int, share: float, rng: random.Random, pick: Callable[[Sequence[float], float], float]
) -> float:
    """The quantile of so many values drawn anew, without drawing them all: two numbers decide it.

    The k-th smallest of n uniform numbers is distributed as Beta(k, n - k + 1), and the next one as the least of those
    that are left above it.
    """
    below, part = _quantile_position(many, share)
    low = rng.betavariate(below + 1, many - below)
    if not part:
        return pick(order, low)
    high = 1 - (1 - low) * rng.random() ** (1 / (many - below - 1))
    return _interpolate_between(pick(order, low), pick(order, high), part)


def _pick_nearest_value(order: Sequence[float], share: float) -> float:
    """One of the values, each as likely as the other."""
    return order[min(int(share * len(order)), len(order) - 1)]


def _interpolated_quantile(order: Sequence[float], share: float) -> float:
    below, part = _quantile_position(len(order), share)
    return _interpolate_between(order[below], order[min(below + 1, len(order) - 1)], part)


def _quantile_position(many: int, share: float) -> tuple[int, float]:
    """Of a quantile among so many values in order: the one below it, and how far to the next."""
    below = math.floor(share * (many - 1))
    return below, share * (many - 1) - below


def _interpolate_between(low: float, high: float, part: float) -> float:
    return low if low == high or not part else low + part * (high - low)


def episodes_needed(values: Sequence[float], width: float, *, share: float = 0.1, seed: int = 0) -> int:
    """How many episodes make the 95 % interval of the quantile as narrow as `width`, going by these ones.

    From so many on it stays as narrow: a single episode may hide a rare death. A bootstrap sees no rarer one than it
    was given: from few of them it is a lower bound.
    """
    if not all(map(math.isfinite, values)):
        raise ValueError("an episode without a death has no step: give the length of the episode instead of infinity")
    if not width > 0:
        raise ValueError(f"the width must be above 0, found {width:g}")
    needed = 0
    for size in reversed(_SIZES):
        if not quantile_interval(values, share, size=size, seed=seed, draws=_DRAWS_PER_SIZE).width <= width:
            break
        needed = size
    if not needed:
        raise ValueError(f"even a million episodes would not make the interval as narrow as {width:g}")
    return needed
