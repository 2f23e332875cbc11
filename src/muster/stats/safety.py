"""Safety first: whether the mean cost keeps its limit, by one-sided bounds that hold for skewed costs, too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from muster.stats.quantiles import beta_quantile, lognormal_shift, t_quantile
from muster.stats.sample import Sample

Standing = Literal["FEASIBLE", "INFEASIBLE", "UNDETERMINED"]
Basis = Literal["few", "t", "lognormal", "cap", "no_cap", "over_cap"]
ONE_SIDED = 0.95


@dataclass(frozen=True, slots=True)
class Feasibility:
    standing: Standing
    limit: float
    lower: float | None  # one-sided bounds of the mean, each at 1 - alpha; None where none can be given
    upper: float | None
    keep: int  # seeds that keep the limit
    n: int
    keep_at_least: float  # share of seeds that do, by Clopper and Pearson's one-sided 95 % bound
    worst: tuple[str, float] | None  # the seed
    alpha: float = 1 - ONE_SIDED  # of each bound
    basis: Basis = "t"  # what the bounds rest on

    @property
    def fail_at_most(self) -> float:
        """The share of seeds that may break the limit all the same: .451 after five of five."""
        return 1 - self.keep_at_least


@dataclass(frozen=True, slots=True)
class Bounds:
    lower: float | None
    upper: float | None
    basis: Basis


def feasibility(
    cost: Sample, limit: float, *, at_most: bool = True, alpha: float = 1 - ONE_SIDED, cap: float | None = None
) -> Feasibility:
    """`at_most`: the limit is a maximum; otherwise a minimum. `cap`: the worst value that can occur."""
    bounds = mean_bounds(cost, alpha, at_most=at_most, cap=cap)
    good, bad = (bounds.upper, bounds.lower) if at_most else (bounds.lower, bounds.upper)
    standing: Standing = "UNDETERMINED"
    if good is not None and (good <= limit if at_most else good >= limit):
        standing = "FEASIBLE"
    elif bad is not None and (bad > limit if at_most else bad < limit):
        standing = "INFEASIBLE"
    values = dict(zip(cost.by_seed, cost.values, strict=True))
    keep = sum(value <= limit if at_most else value >= limit for value in values.values())
    worst = max(values.items(), key=lambda item: item[1] if at_most else -item[1], default=None)
    share = share_at_least(keep, cost.n)
    return Feasibility(
        standing, limit, bounds.lower, bounds.upper, keep, cost.n, share, worst, alpha=alpha, basis=bounds.basis
    )


def mean_bounds(cost: Sample, alpha: float, *, at_most: bool = True, cap: float | None = None) -> Bounds:
    """Both ends, each wrong in a share of `alpha` at most.

    Positive values: the wider of Student's and the log-normal bound, so that either shape may be the true one. Costs
    of 0 have no logarithm, and seeds that are all alike show no spread: nothing is then known of rare bad seeds but
    that they are no worse than the cap. Values of either sign: Student's.
    """
    if cost.se is None:
        return Bounds(None, None, "few")
    half = t_quantile(1 - alpha, cost.n - 1) * cost.se
    lower, upper = cost.mean - half, cost.mean + half
    if not cost.sd or (at_most and min(cost.values) == 0):
        end, basis = _capped(cost, alpha, at_most, cap)
        known = bool(cost.sd)
        if at_most:
            return Bounds(lower if known else None, end, basis)
        return Bounds(end, upper if known else None, basis)
    if min(cost.values) > 0:
        return Bounds(min(lower, _lognormal(cost, alpha)), max(upper, _lognormal(cost, 1 - alpha)), "lognormal")
    return Bounds(lower, upper, "t")


def share_at_least(hits: int, n: int, level: float = ONE_SIDED) -> float:
    """What `hits` of `n` prove of the share behind them: 5 of 5 prove .549."""
    return beta_quantile(1 - level, hits, n - hits + 1) if hits else 0.0


def _lognormal(cost: Sample, share: float) -> float:
    logs = [math.log(value) for value in cost.values]
    middle = math.fsum(logs) / cost.n
    sd = math.sqrt(math.fsum((each - middle) ** 2 for each in logs) / (cost.n - 1))
    try:
        return math.exp(middle + lognormal_shift(share, cost.n, sd))
    except OverflowError:
        return math.inf


def _capped(cost: Sample, alpha: float, at_most: bool, cap: float | None) -> tuple[float | None, Basis]:
    """The bound on the bad side, for any distribution that ends at the cap.

    With confidence 1 - alpha at most a share of 1 - alpha^(1/n) of all seeds lies beyond the worst one seen. Those
    are no worse than the cap, and the others no worse than the worst one seen.
    """
    if cap is None:
        return None, "no_cap"
    worst = max(cost.values) if at_most else min(cost.values)
    if worst > cap if at_most else worst < cap:
        return None, "over_cap"
    beyond = 1 - alpha ** (1 / cost.n)
    return beyond * cap + (1 - beyond) * worst, "cap"
