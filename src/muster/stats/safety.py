"""Safety first: whether the mean cost keeps its limit, by one-sided bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from muster.stats.quantiles import beta_quantile
from muster.stats.sample import Sample

Standing = Literal["FEASIBLE", "INFEASIBLE", "UNDETERMINED"]
ONE_SIDED = 0.95


@dataclass(frozen=True, slots=True)
class Feasibility:
    standing: Standing
    limit: float
    lower: float | None  # one-sided 95 % bounds of the mean; None below two seeds
    upper: float | None
    keep: int  # seeds that keep the limit
    n: int
    keep_at_least: float  # share of seeds that do, by Clopper and Pearson's one-sided 95 % bound
    worst: tuple[str, float] | None  # the seed


def feasibility(cost: Sample, limit: float, *, at_most: bool = True) -> Feasibility:
    """`at_most`: the limit is a maximum; otherwise a minimum."""
    bounds = cost.bound(2 * ONE_SIDED - 1)  # each end of the two-sided 90 % interval is a one-sided 95 % bound
    lower, upper = bounds or (None, None)
    standing: Standing = "UNDETERMINED"
    if lower is not None and upper is not None:
        if upper <= limit if at_most else lower >= limit:
            standing = "FEASIBLE"
        elif lower > limit if at_most else upper < limit:
            standing = "INFEASIBLE"
    keep = sum(value <= limit if at_most else value >= limit for value in cost.values)
    worst = max(cost.by_seed.items(), key=lambda item: item[1] if at_most else -item[1], default=None)
    return Feasibility(standing, limit, lower, upper, keep, cost.n, share_at_least(keep, cost.n), worst)


def share_at_least(hits: int, n: int, level: float = ONE_SIDED) -> float:
    """What `hits` of `n` prove of the share behind them: 5 of 5 prove .549."""
    return beta_quantile(1 - level, hits, n - hits + 1) if hits else 0.0
