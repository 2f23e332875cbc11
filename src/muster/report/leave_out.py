"""How much a condition of the verdict hangs on a single seed: the same rule again, with each seed left out in turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from muster.report.analysis import Analysis
from muster.report.facts import Plan
from muster.report.words import Words
from muster.stats.compare import welch
from muster.stats.decision import Comparison
from muster.stats.quantiles import t_quantile, t_two_sided
from muster.stats.safety import mean_bounds
from muster.stats.sample import Sample


@dataclass(frozen=True, slots=True)
class LeftOut:
    config: str
    seed: str
    value: float | None  # the p or the bound without it; None where there is none
    room: float  # how far it is from tipping over: below 0 the condition no longer holds


def leave_each_out(analysis: Analysis, each: Comparison) -> list[LeftOut]:
    """Welch's p; 1 where the rest has no spread or turns the other way."""

    def judge(candidate: Sample, baseline: Sample) -> tuple[float, float]:
        estimate, (se, df) = candidate.mean - baseline.mean, welch(candidate, baseline)
        turned = (estimate > 0) != (each.difference.estimate > 0)
        p = 1.0 if not se or df is None or turned else t_two_sided(estimate / se, df)
        return p, each.threshold - p

    return _of_two(analysis, each, judge)


def loss_without(analysis: Analysis, plan: Plan, each: Comparison) -> list[LeftOut]:
    """The largest loss that is not excluded."""
    delta, alpha = plan.procedure.delta or 0.0, plan.procedure.alpha_each(len(analysis.decision.comparisons))

    def judge(candidate: Sample, baseline: Sample) -> tuple[float | None, float]:
        ends = _gain(plan, candidate, baseline, alpha / 2)
        return (None, -math.inf) if ends is None else (max(0.0, -ends[0]), ends[0] + delta)

    return _of_two(analysis, each, judge)


def reach_without(analysis: Analysis, plan: Plan, each: Comparison) -> list[LeftOut]:
    """The largest difference that is not excluded, in either direction."""
    delta = plan.procedure.delta or 0.0

    def judge(candidate: Sample, baseline: Sample) -> tuple[float | None, float]:
        ends = _gain(plan, candidate, baseline, plan.procedure.alpha_a_look)
        reach = None if ends is None else max(map(abs, ends))
        return reach, -math.inf if reach is None else delta - reach

    return _of_two(analysis, each, judge)


def cost_without(analysis: Analysis, plan: Plan, config: str) -> list[LeftOut]:
    """The bound that the standing of this config rests on."""
    assert plan.limit is not None
    found, sample = analysis.decision.safety[config], analysis.sample(config, plan.limit)
    above = plan.procedure.at_most == (found.standing == "FEASIBLE")
    left_out = []
    for seed in sample.by_seed:
        bounds = mean_bounds(
            _without(sample, seed), found.alpha, at_most=plan.procedure.at_most, cap=plan.procedure.cap
        )
        bound = bounds.upper if above else bounds.lower
        room = -math.inf if bound is None else found.limit - bound if above else bound - found.limit
        left_out.append(LeftOut(config, seed, bound, room))
    return _ordered(left_out)


def left_out_words(left_out: Sequence[LeftOut], shown: Callable[[float], str], w: Words) -> str:
    """Whether it holds without any one seed; empty with too few seeds to leave one out."""
    if not left_out:
        return ""
    worst, failing = left_out[-1], [each for each in left_out if each.room < 0]
    key = "holds" if not failing else "never" if len(failing) == len(left_out) else "several" if failing[1:] else "one"
    told = "—" if worst.value is None else shown(worst.value)
    return w(f"left_out.{key}", worst=told, seed=worst.seed, whose=worst.config, k=len(failing))


def _of_two(
    analysis: Analysis, each: Comparison, judge: Callable[[Sample, Sample], tuple[float | None, float]]
) -> list[LeftOut]:
    """From the surest to the least sure; empty with too few seeds to leave one out."""
    plan = analysis.facts.plan
    if plan is None:
        return []
    candidate, baseline = (analysis.sample(name, plan.primary) for name in (each.config, plan.procedure.baseline))
    if min(candidate.n, baseline.n) <= 2:
        return []

    def all_of_them() -> Iterator[LeftOut]:
        for seed in candidate.by_seed:
            yield LeftOut(candidate.config, seed, *judge(_without(candidate, seed), baseline))
        for seed in baseline.by_seed:
            yield LeftOut(baseline.config, seed, *judge(candidate, _without(baseline, seed)))

    return _ordered(all_of_them())


def _ordered(left_out: Iterator[LeftOut] | list[LeftOut]) -> list[LeftOut]:
    return sorted(left_out, key=lambda one: -one.room)


def _gain(plan: Plan, candidate: Sample, baseline: Sample, one_sided: float) -> tuple[float, float] | None:
    """The interval of the improvement."""
    se, df = welch(candidate, baseline)
    if se is None or df is None:
        return None
    estimate = candidate.mean - baseline.mean if plan.procedure.higher else baseline.mean - candidate.mean
    half = t_quantile(1 - one_sided, df) * se
    return estimate - half, estimate + half


def _without(sample: Sample, seed: str) -> Sample:
    return replace(sample, by_seed={name: value for name, value in sample.by_seed.items() if name != seed})
