"""The cheapest next step: how many seeds more, for whom, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.stats.decision import Decision, Procedure
from muster.stats.power import cautious_sd, detectable, seeds_for
from muster.stats.sample import Sample


@dataclass(frozen=True, slots=True)
class Price:
    """Of one more seed of one config: its training and its evaluations."""

    hours: float
    money: float | None = None


@dataclass(frozen=True, slots=True)
class NextStep:
    sd: float | None  # with caution
    alpha: float
    configs: tuple[str, ...]  # that need more seeds
    n: int | None  # in each, to see `delta`; None: no delta is declared, or not even a thousand will do
    more: int | None  # seeds in all
    hours: float | None
    money: float | None
    detectable: float | None  # with the seeds there are
    affordable: float | None = None  # the difference that the budget left would show, where `n` is over it
    within_budget: bool | None = None  # None: no budget or no price


def next_step(
    procedure: Procedure,
    decision: Decision,
    primary: Sequence[Sample],
    price: Price | None = None,
    budget_left: float | None = None,
) -> NextStep:
    by_config = {sample.config: sample for sample in primary}
    configs = tuple(config for config in by_config if _needs_more(procedure, decision, config))
    involved = [by_config[config] for config in configs]
    sd = cautious_sd(involved)
    alpha = procedure.alpha_a_look / max(1, len(decision.comparisons))
    fewest = min((sample.n for sample in involved), default=0)
    seen = detectable(fewest, sd, alpha, procedure.power) if sd is not None else None
    if sd is None or procedure.delta is None:
        return NextStep(sd, alpha, configs, None, None, None, None, seen)
    n = seeds_for(procedure.delta, sd, alpha, procedure.power)
    if n is None:
        return NextStep(sd, alpha, configs, None, None, None, None, seen)
    more = sum(max(0, n - sample.n) for sample in involved)
    hours = more * price.hours if price else None
    money = more * price.money if price and price.money is not None else None
    within = None if money is None or budget_left is None else money <= budget_left
    affordable = None
    if within is False and price and price.money:
        each = int(max(0.0, budget_left or 0.0) / price.money) // max(1, len(configs))  # it may be overspent
        affordable = detectable(fewest + each, sd, alpha, procedure.power)
    return NextStep(sd, alpha, configs, n, more, hours, money, seen, affordable, within)


def _needs_more(procedure: Procedure, decision: Decision, config: str) -> bool:
    """The baseline, the contenders, and whoever is undetermined on cost."""
    if config == procedure.baseline:
        return True
    standing = decision.safety[config].standing if config in decision.safety else None
    if standing == "UNDETERMINED":
        return True
    against = decision.against(config)
    may_gain = against is None or against.gain is None or against.gain[1] > 0
    return standing != "INFEASIBLE" and may_gain
