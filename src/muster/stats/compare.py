"""Two samples: the difference of their means, with its interval, its p values and its size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from muster.stats.quantiles import log_gamma, t_quantile, t_two_sided
from muster.stats.sample import LEVEL, Sample

MOST_PERMUTATIONS = 200_000  # 10 seeds against 10 are 184,756
_SAME = 1e-9  # differences of means that only rounding tells apart


@dataclass(frozen=True, slots=True)
class Difference:
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

    def interval(self, level: float = LEVEL) -> tuple[float, float] | None:
        if self.se is None or self.df is None:
            return None
        half = t_quantile((1 + level) / 2, self.df) * self.se
        return self.estimate - half, self.estimate + half


def difference(candidate: Sample, baseline: Sample) -> Difference:
    estimate = candidate.mean - baseline.mean
    se, df = welch(candidate, baseline)
    p = t_two_sided(estimate / se, df) if se and df else None
    exact, least = permutation(candidate.values, baseline.values)
    g = hedges_g(candidate, baseline)
    better = improvement(candidate.values, baseline.values)
    return Difference(candidate.config, baseline.config, estimate, se, df, p, exact, least, g, better)


def welch(a: Sample, b: Sample) -> tuple[float | None, float | None]:
    """Standard error and degrees of freedom; (None, None) where a group has one seed or neither has any spread."""
    if a.se is None or b.se is None or a.se + b.se == 0:
        return None, None
    va, vb = a.se**2, b.se**2
    return math.sqrt(va + vb), (va + vb) ** 2 / (va**2 / (a.n - 1) + vb**2 / (b.n - 1))


def permutation(a: Sequence[float], b: Sequence[float]) -> tuple[float | None, float | None]:
    """The exact two-sided p of the difference of means, and the smallest one that so many seeds allow."""
    total = math.comb(len(a) + len(b), len(a))
    if min(len(a), len(b)) < 2 or total > MOST_PERMUTATIONS:
        return None, None
    pooled = np.asarray([*a, *b], dtype=float)
    sums = pooled[_groups(len(pooled), len(a))].sum(axis=1)
    means = sums / len(a) - (pooled.sum() - sums) / len(b)
    slack = _SAME * max(1.0, float(np.abs(pooled).max()))
    as_far = int(np.count_nonzero(np.abs(means) >= abs(means[0]) - slack))  # the first one is the observed
    return as_far / total, least_p(len(a), len(b))


@lru_cache(maxsize=2)
def _groups(total: int, size: int) -> npt.NDArray[np.intp]:
    """Every way to choose; the candidates of a campaign share it."""
    indexes = (index for group in combinations(range(total), size) for index in group)
    return np.fromiter(indexes, dtype=np.intp).reshape(-1, size)


def least_p(a: int, b: int) -> float | None:
    """Of the permutation test with so many seeds; None where it is not run. Both tails count if the groups match."""
    total = math.comb(a + b, a)
    if min(a, b) < 2 or total > MOST_PERMUTATIONS:
        return None
    return (2 if a == b else 1) / total


def hedges_g(a: Sample, b: Sample) -> float | None:
    """The difference in pooled standard deviations, without the bias of few seeds."""
    if a.sd is None or b.sd is None:
        return None
    df = a.n + b.n - 2
    pooled = math.sqrt(((a.n - 1) * a.sd**2 + (b.n - 1) * b.sd**2) / df)
    if not pooled:
        return None
    correction = math.exp(log_gamma(df / 2) - log_gamma((df - 1) / 2)) / math.sqrt(df / 2) if df > 1 else 0.0
    return correction * (a.mean - b.mean) / pooled


def improvement(a: Sequence[float], b: Sequence[float]) -> float:
    """P(a > b), ties counting half."""
    difference = np.subtract.outer(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    return float(np.mean((difference > 0) + 0.5 * (difference == 0)))


def holm(p_values: Mapping[str, float | None], alpha: float) -> dict[str, tuple[float, bool]]:
    """For each name: the threshold that Holm's procedure holds it to, and whether it is rejected there.

    A p value that does not exist counts as 1: it is never rejected, and still counts as one of the comparisons.
    """
    ordered = sorted(p_values, key=lambda name: _or_one(p_values[name]))
    found: dict[str, tuple[float, bool]] = {}
    going = True
    for rank, name in enumerate(ordered):
        threshold = alpha / (len(ordered) - rank)
        going = going and _or_one(p_values[name]) <= threshold
        found[name] = (threshold, going)
    return found


def _or_one(p: float | None) -> float:
    return 1.0 if p is None else p
