"""The cheapest next step: how many seeds more, for whom, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from muster.stats.decision import Decision, Procedure
from muster.stats.power import cautious_sd, detectable, pooled_sd, seeds_for
from muster.stats.sample import Sample


@dataclass(frozen=True, slots=True)
class Price:
    """Of one more seed of one config: its training and its evaluations."""

    hours: float
    money: float | None = None


@dataclass(frozen=True, slots=True)
class NextStep:
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


def next_step(
    procedure: Procedure,
    decision: Decision,
    primary: Sequence[Sample],
    price: Price | None = None,
    budget_left: float | None = None,
) -> NextStep:
    known = [sample for sample in primary if sample.n]
    contenders = [s for s in known if s.config != procedure.baseline and _needs_more(procedure, decision, s.config)]
    involved = [s for s in known if s in contenders or s.config == procedure.baseline] if contenders else []
    configs, fewest = tuple(sample.config for sample in involved), min((sample.n for sample in primary), default=0)
    alpha = procedure.alpha_each(len(decision.comparisons))
    sd = cautious_sd(known)
    seen = detectable(fewest, sd, alpha, procedure.power) if sd is not None else None
    step = NextStep(sd, alpha, configs, None, None, None, None, seen, seen_sd=pooled_sd(known), fewest=fewest)
    if sd is None or procedure.delta is None:
        return step
    n = seeds_for(procedure.delta, sd, alpha, procedure.power)
    if n is None:
        return step
    more = sum(max(0, n - sample.n) for sample in involved)
    hours = more * price.hours if price else None
    money = more * price.money if price and price.money is not None else None
    within = None if money is None or budget_left is None else money <= budget_left
    step = replace(step, n=n, more=more, hours=hours, money=money, within_budget=within)
    if step.over_budget and price and price.money:
        each = int(max(0.0, budget_left or 0.0) / price.money) // max(1, len(configs))  # it may be overspent
        step = replace(step, affordable=detectable(fewest + each, sd, alpha, procedure.power))
    return step


def _needs_more(procedure: Procedure, decision: Decision, config: str) -> bool:
    """A contender, or whoever is undetermined on cost. A baseline that breaks the limit need not be beaten."""
    standing = decision.safety[config].standing if config in decision.safety else None
    if standing == "UNDETERMINED":
        return True
    against = decision.against(config)
    baseline = decision.safety.get(procedure.baseline)
    wanted = -(procedure.delta or 0.0) if baseline is not None and baseline.standing == "INFEASIBLE" else 0.0
    may_gain = against is None or against.gain is None or against.gain[1] > wanted
    return standing != "INFEASIBLE" and may_gain
