"""Samples and their comparison: one metric of one config on one split with a value for each training seed; the
difference of two means with its interval, p values and size; Fisher's exact test of two rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from muster.stats.quantiles import log_gamma_function, student_t_p_value, student_t_quantile

_ROUNDING_OF_CHANCES = 1 + 1e-7  # chances that only rounding tells apart


def fisher_exact_p(failed: int, of: int, others_failed: int, others: int) -> float:
    """The two-sided p of `failed` in `of` against `others_failed` in `others`: all tables as unlikely as this one."""
    total = failed + others_failed
    ways = {k: comb(of, k) * comb(others, total - k) for k in range(max(0, total - others), min(of, total) + 1)}
    return sum(count for count in ways.values() if count <= ways[failed] * _ROUNDING_OF_CHANCES) / sum(ways.values())


KeyType = TypeVar("KeyType", bound=Hashable)
ItemType = TypeVar("ItemType")


def group_by_key(
    items: Iterable[ItemType], key: Callable[[ItemType], KeyType]
) -> Iterable[tuple[KeyType, list[ItemType]]]:
    groups: dict[KeyType, list[ItemType]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups.items()


CONFIDENCE_LEVEL = 0.95
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
        half = student_t_quantile((1 + level) / 2, self.n - 1) * self.se
        return self.mean - half, self.mean + half

    @property
    def interval(self) -> tuple[float, float] | None:
        """As it may be shown: two seeds have an interval of 9 sd to either side, which tells nobody anything."""
        return self.bound(CONFIDENCE_LEVEL) if self.n >= LEAST_FOR_INTERVAL else None

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


def seed_count_class(n: int) -> str:
    """What so many seeds are good for: a key of the report's wording."""
    if n <= 1:
        return "single"
    if n == 2:
        return "smoke"
    if n < 5:
        return "preliminary"
    return "five" if n < 10 else "ten"


MOST_PERMUTATIONS = 200_000  # 10 seeds against 10 are 184,756
_ROUNDING_OF_MEANS = 1e-9  # differences of means that only rounding tells apart


@dataclass(frozen=True, slots=True)
class DifferenceOfMeans:
    """Candidate minus baseline, in the metric's own units."""

    candidate: str
    baseline: str
    estimate: float
    se: float | None
    df: float | None  # Welch's
    p: float | None  # two-sided; None where there is no spread to judge by
    exact_p: float | None  # of the permutation test; None where there are too many permutations or too few seeds
    least_p: float | None  # the smallest that the permutation test can reach
    g: float | None  # Hedges
    better: float  # probability that a seed of the candidate has the higher value

    def interval(self, level: float = CONFIDENCE_LEVEL) -> tuple[float, float] | None:
        if self.se is None or self.df is None:
            return None
        half = student_t_quantile((1 + level) / 2, self.df) * self.se
        return self.estimate - half, self.estimate + half


def difference_of_means(candidate: Sample, baseline: Sample) -> DifferenceOfMeans:
    estimate = candidate.mean - baseline.mean
    se, df = welch_error_and_df(candidate, baseline)
    p = student_t_p_value(estimate / se, df) if se and df else None
    exact, least = exact_permutation_p(candidate.values, baseline.values)
    g = hedges_effect_size(candidate, baseline)
    better = probability_of_improvement(candidate.values, baseline.values)
    return DifferenceOfMeans(candidate.config, baseline.config, estimate, se, df, p, exact, least, g, better)


def welch_error_and_df(a: Sample, b: Sample) -> tuple[float | None, float | None]:
    """Standard error and degrees of freedom; (None, None) where a group has one seed or neither has any spread."""
    if a.se is None or b.se is None or a.se + b.se == 0:
        return None, None
    va, vb = a.se**2, b.se**2
    return math.sqrt(va + vb), (va + vb) ** 2 / (va**2 / (a.n - 1) + vb**2 / (b.n - 1))


def exact_permutation_p(a: Sequence[float], b: Sequence[float]) -> tuple[float | None, float | None]:
    """The exact two-sided p of the difference of means, and the smallest one that so many seeds allow."""
    total = math.comb(len(a) + len(b), len(a))
    if min(len(a), len(b)) < 2 or total > MOST_PERMUTATIONS:
        return None, None
    pooled = np.asarray([*a, *b], dtype=float)
    sums = pooled[_all_permutation_groups(len(pooled), len(a))].sum(axis=1)
    means = sums / len(a) - (pooled.sum() - sums) / len(b)
    slack = _ROUNDING_OF_MEANS * max(1.0, float(np.abs(pooled).max()))
    as_far = int(np.count_nonzero(np.abs(means) >= abs(means[0]) - slack))  # the first one is the observed
    return as_far / total, least_permutation_p(len(a), len(b))


@lru_cache(maxsize=2)
def _all_permutation_groups(total: int, size: int) -> npt.NDArray[np.intp]:
    """Every way to choose; the candidates of a campaign share it."""
    indexes = (index for group in combinations(range(total), size) for index in group)
    return np.fromiter(indexes, dtype=np.intp).reshape(-1, size)


def least_permutation_p(a: int, b: int) -> float | None:
    """Of the permutation test with so many seeds; None where it is not run. Both tails count if the groups match."""
    total = math.comb(a + b, a)
    if min(a, b) < 2 or total > MOST_PERMUTATIONS:
        return None
    return (2 if a == b else 1) / total


def hedges_effect_size(a: Sample, b: Sample) -> float | None:
    """The difference in pooled standard deviations, without the bias of few seeds."""
    if a.sd is None or b.sd is None:
        return None
    df = a.n + b.n - 2
    pooled = math.sqrt(((a.n - 1) * a.sd**2 + (b.n - 1) * b.sd**2) / df)
    if not pooled:
        return None
    correction = (
        math.exp(log_gamma_function(df / 2) - log_gamma_function((df - 1) / 2)) / math.sqrt(df / 2) if df > 1 else 0.0
    )
    return correction * (a.mean - b.mean) / pooled


def probability_of_improvement(a: Sequence[float], b: Sequence[float]) -> float:
    """P(a > b), ties counting half."""
    difference = np.subtract.outer(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    return float(np.mean((difference > 0) + 0.5 * (difference == 0)))


def holm_thresholds(p_values: Mapping[str, float | None], alpha: float) -> dict[str, tuple[float, bool]]:
    """For each name: the threshold that Holm's procedure holds it to, and whether it is rejected there.

    A p value that does not exist counts as 1: it is never rejected, and still counts as one of the comparisons.
    """
    ordered = sorted(p_values, key=lambda name: _p_or_one(p_values[name]))
    found: dict[str, tuple[float, bool]] = {}
    going = True
    for rank, name in enumerate(ordered):
        threshold = alpha / (len(ordered) - rank)
        going = going and _p_or_one(p_values[name]) <= threshold
        found[name] = (threshold, going)
    return found


def _p_or_one(p: float | None) -> float:
    return 1.0 if p is None else p
