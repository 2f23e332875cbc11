"""How many more seeds: for a difference that matters, from the spread that was seen and never from the difference
seen; and the cheapest next step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from muster.stats.decision_procedure import DecisionProcedure, ProcedureDecision
from muster.stats.quantiles import chi2_quantile, student_t_power
from muster.stats.samples import Sample

MOST_SEEDS = 1000
CAUTION = 0.8  # the true spread is below the one used in this share of cases


def pooled_sd_of_samples(samples: Sequence[Sample]) -> float | None:
    df = _degrees_of_freedom(samples)
    if not df:
        return None
    return math.sqrt(sum((sample.n - 1) * sample.sd**2 for sample in samples if sample.sd is not None) / df)


def cautious_pooled_sd(samples: Sequence[Sample]) -> float | None:
    """The pooled sd times its 80 % upper factor: few seeds show a spread that is as likely too small as too large."""
    pooled, df = pooled_sd_of_samples(samples), _degrees_of_freedom(samples)
    return None if pooled is None else pooled * math.sqrt(df / chi2_quantile(1 - CAUTION, df))


def _degrees_of_freedom(samples: Sequence[Sample]) -> int:
    return sum(sample.n - 1 for sample in samples if sample.sd is not None)


def power_of_two_groups(n: int, effect: float, sd: float, alpha: float) -> float:
    """Of a two-sided t test of two groups of n."""
    if sd == 0:
        return 1.0 if effect else 0.0
    return student_t_power(abs(effect) / (sd * math.sqrt(2 / n)), 2 * n - 2, alpha)


def seeds_for_difference(effect: float, sd: float, alpha: float, power: float) -> int | None:
    """The least n in each group; None: not even a thousand will do."""
    low, high = 1, 2
    while power_of_two_groups(high, effect, sd, alpha) < power:
        low, high = high, 2 * high
        if low >= MOST_SEEDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of_two_groups(middle, effect, sd, alpha) >= power else (middle, high)
    return high if high <= MOST_SEEDS else None


def detectable_difference(n: int, sd: float, alpha: float, power: float) -> float | None:
    """The smallest difference that n seeds in each group would show; None for fewer than two, or an endless spread."""
    if n < 2 or not math.isfinite(sd * sd):
        return None
    low, high = 0.0, sd or 1.0
    while power_of_two_groups(n, high, sd, alpha) < power:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if power_of_two_groups(n, middle, sd, alpha) >= power else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class SeedPrice:
    """Of one more seed of one config: its training and its evaluations."""

    hours: float
    money: float | None = None


@dataclass(frozen=True, slots=True)
class NextSeedStep:
    sd: float | None  # pooled over all configs, with caution
    alpha: float
    configs: tuple[str, ...]  # that need more seeds; none where the baseline would be the only one
    n: int | None  # in each, to see `delta`; None: no delta is declared, or not even a thousand will do
    more: int | None  # seeds in all
    hours: float | None
    money: float | None
    detectable: float | None  # with the seeds there are
    affordable: float | None = None  # the difference that the budget left would show, where `n` is over it
    within_budget: bool | None = None  # None: no budget or no price
    seen_sd: float | None = None  # without caution
    fewest: int = 0  # seeds of a config

    @property
    def over_budget(self) -> bool:
        return self.within_budget is not None and not self.within_budget


def cheapest_next_step(
    procedure: DecisionProcedure,
    decision: ProcedureDecision,
    primary: Sequence[Sample],
    price: SeedPrice | None = None,
    budget_left: float | None = None,
) -> NextSeedStep:
    known = [sample for sample in primary if sample.n]
    contenders = [
        s for s in known if s.config != procedure.baseline and _needs_more_seeds(procedure, decision, s.config)
    ]
    involved = [s for s in known if s in contenders or s.config == procedure.baseline] if contenders else []
    configs, fewest = tuple(sample.config for sample in involved), min((sample.n for sample in primary), default=0)
    alpha = procedure.alpha_each(len(decision.comparisons))
    sd = cautious_pooled_sd(known)
    seen = detectable_difference(fewest, sd, alpha, procedure.power) if sd is not None else None
    step = NextSeedStep(
        sd, alpha, configs, None, None, None, None, seen, seen_sd=pooled_sd_of_samples(known), fewest=fewest
    )
    if sd is None or procedure.delta is None:
        return step
    n = seeds_for_difference(procedure.delta, sd, alpha, procedure.power)
    if n is None:
        return step
    more = sum(max(0, n - sample.n) for sample in involved)
    hours = more * price.hours if price else None
    money = more * price.money if price and price.money is not None else None
    within = None if money is None or budget_left is None else money <= budget_left
    step = replace(step, n=n, more=more, hours=hours, money=money, within_budget=within)
    if step.over_budget and price and price.money:
        each = int(max(0.0, budget_left or 0.0) / price.money) // max(1, len(configs))  # it may be overspent
        step = replace(step, affordable=detectable_difference(fewest + each, sd, alpha, procedure.power))
    return step


def _needs_more_seeds(procedure: DecisionProcedure, decision: ProcedureDecision, config: str) -> bool:
    """A contender, or whoever is undetermined on cost. A baseline that breaks the limit need not be beaten."""
    standing = decision.safety[config].standing if config in decision.safety else None
    if standing == "UNDETERMINED":
        return True
    against = decision.against(config)
    baseline = decision.safety.get(procedure.baseline)
    wanted = -(procedure.delta or 0.0) if baseline is not None and baseline.standing == "INFEASIBLE" else 0.0
    may_gain = against is None or against.gain is None or against.gain[1] > wanted
    return standing != "INFEASIBLE" and may_gain
