"""What would change the verdict: how far each of its conditions is from tipping over, and how much it hangs on a
single seed (the same rule again with each seed left out in turn).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from muster.app.facts.report_analysis import ReportAnalysis
from muster.app.facts.report_facts import DecisionPlan
from muster.app.report.comparison_tables import describe_difference, reading_of_comparison
from muster.app.report.estimates import (
    deciding_columns,
    format_bound,
    format_limit_rule,
    format_of_column,
    limit_standing_of_config,
)
from muster.app.report.evidence_chain import ReportStatement, statement_about_columns
from muster.app.report.verdict_sentences import (
    describe_gain,
    describe_p_value,
    feasible_comparisons,
    fewest_seeds_behind,
    format_threshold,
    name_a_candidate,
    name_the_baseline,
)
from muster.stats.decision_procedure import LEAST_SEEDS, BaselineComparison, bounds_of_mean
from muster.stats.quantiles import student_t_p_value, student_t_quantile
from muster.stats.samples import Sample, welch_error_and_df
from muster.text.catalogue import Catalogue
from muster.text.number_format import format_declared_number, format_p_value, format_percent_number


@dataclass(frozen=True, slots=True)
class LeftOutSeed:
    config: str
    seed: str
    value: float | None  # the p or the bound without it; None where there is none
    room: float  # how far it is from tipping over: below 0 the condition no longer holds


def p_without_each_seed(analysis: ReportAnalysis, each: BaselineComparison) -> list[LeftOutSeed]:
    """Welch's p; 1 where the rest has no spread or turns the other way."""

    def judge(candidate: Sample, baseline: Sample) -> tuple[float, float]:
        estimate, (se, df) = candidate.mean - baseline.mean, welch_error_and_df(candidate, baseline)
        turned = (estimate > 0) != (each.difference.estimate > 0)
        p = 1.0 if not se or df is None or turned else student_t_p_value(estimate / se, df)
        return p, each.threshold - p

    return _judge_without_each_seed(analysis, each, judge)


def loss_without_each_seed(analysis: ReportAnalysis, plan: DecisionPlan, each: BaselineComparison) -> list[LeftOutSeed]:
    """The largest loss that is not excluded."""
    delta, alpha = plan.procedure.delta or 0.0, plan.procedure.alpha_each(len(analysis.decision.comparisons))

    def judge(candidate: Sample, baseline: Sample) -> tuple[float | None, float]:
        ends = _improvement_interval(plan, candidate, baseline, alpha / 2)
        return (None, -math.inf) if ends is None else (max(0.0, -ends[0]), ends[0] + delta)

    return _judge_without_each_seed(analysis, each, judge)


def reach_without_each_seed(
    analysis: ReportAnalysis, plan: DecisionPlan, each: BaselineComparison
) -> list[LeftOutSeed]:
    """The largest difference that is not excluded, in either direction."""
    delta = plan.procedure.delta or 0.0

    def judge(candidate: Sample, baseline: Sample) -> tuple[float | None, float]:
        ends = _improvement_interval(plan, candidate, baseline, plan.procedure.alpha_a_look)
        reach = None if ends is None else max(map(abs, ends))
        return reach, -math.inf if reach is None else delta - reach

    return _judge_without_each_seed(analysis, each, judge)


def cost_bound_without_each_seed(analysis: ReportAnalysis, plan: DecisionPlan, config: str) -> list[LeftOutSeed]:
    """The bound that the standing of this config rests on."""
    assert plan.limit is not None
    found, sample = analysis.decision.safety[config], analysis.sample(config, plan.limit)
    above = plan.procedure.at_most == (found.standing == "FEASIBLE")
    left_out = []
    for seed in sample.by_seed:
        bounds = bounds_of_mean(
            _sample_without_seed(sample, seed), found.alpha, at_most=plan.procedure.at_most, cap=plan.procedure.cap
        )
        bound = bounds.upper if above else bounds.lower
        room = -math.inf if bound is None else found.limit - bound if above else bound - found.limit
        left_out.append(LeftOutSeed(config, seed, bound, room))
    return _surest_first(left_out)


def describe_dependence_on_seed(left_out: Sequence[LeftOutSeed], shown: Callable[[float], str], w: Catalogue) -> str:
    """Whether it holds without any one seed; empty with too few seeds to leave one out."""
    if not left_out:
        return ""
    worst, failing = left_out[-1], [each for each in left_out if each.room < 0]
    key = "holds" if not failing else "never" if len(failing) == len(left_out) else "several" if failing[1:] else "one"
    told = "—" if worst.value is None else shown(worst.value)
    return w(f"left_out.{key}", worst=told, seed=worst.seed, whose=worst.config, k=len(failing))


def _judge_without_each_seed(
    analysis: ReportAnalysis, each: BaselineComparison, judge: Callable[[Sample, Sample], tuple[float | None, float]]
) -> list[LeftOutSeed]:
    """From the surest to the least sure; empty with too few seeds to leave one out."""
    plan = analysis.facts.plan
    if plan is None:
        return []
    candidate, baseline = (analysis.sample(name, plan.primary) for name in (each.config, plan.procedure.baseline))
    if min(candidate.n, baseline.n) <= 2:
        return []

    def all_of_them() -> Iterator[LeftOutSeed]:
        for seed in candidate.by_seed:
            yield LeftOutSeed(candidate.config, seed, *judge(_sample_without_seed(candidate, seed), baseline))
        for seed in baseline.by_seed:
            yield LeftOutSeed(baseline.config, seed, *judge(candidate, _sample_without_seed(baseline, seed)))

    return _surest_first(all_of_them())


def _surest_first(left_out: Iterator[LeftOutSeed] | list[LeftOutSeed]) -> list[LeftOutSeed]:
    return sorted(left_out, key=lambda one: -one.room)


def _improvement_interval(
    plan: DecisionPlan, candidate: Sample, baseline: Sample, one_sided: float
) -> tuple[float, float] | None:
    """The interval of the improvement."""
    se, df = welch_error_and_df(candidate, baseline)
    if se is None or df is None:
        return None
    estimate = candidate.mean - baseline.mean if plan.procedure.higher else baseline.mean - candidate.mean
    half = student_t_quantile(1 - one_sided, df) * se
    return estimate - half, estimate + half


def _sample_without_seed(sample: Sample, seed: str) -> Sample:
    return replace(sample, by_seed={name: value for name, value in sample.by_seed.items() if name != seed})


def statements_of_verdict_changes(analysis: ReportAnalysis, w: Catalogue) -> Iterator[ReportStatement]:
    decision, plan = analysis.decision, analysis.facts.plan
    if decision.because == "flags":
        yield ReportStatement(w("change.flags"))
    elif decision.because == "missing":
        yield ReportStatement(w("change.missing"), tuple(each.cell for each in analysis.facts.missing))
    elif plan is None:
        yield ReportStatement(w("change.undeclared"))
    elif decision.because in _CONDITIONS_BY_REASON:
        yield from statements_of_conditions(analysis, w)
    else:
        yield from _changes_if_not_enough(analysis, plan, w)


def statements_of_conditions(analysis: ReportAnalysis, w: Catalogue) -> Iterator[ReportStatement]:
    """What a verdict that decides rests on, each with how much of it hangs on one seed; none where nothing is."""
    plan, told = analysis.facts.plan, _CONDITIONS_BY_REASON.get(analysis.decision.because)
    if plan is not None and told is not None:
        yield from told(analysis, plan, w)


def statement_of_seed_dependence(
    analysis: ReportAnalysis, each: BaselineComparison, w: Catalogue
) -> ReportStatement | None:
    """Whether the comparison hangs on a single seed; None with too few of them."""
    plan, left_out = analysis.facts.plan, p_without_each_seed(analysis, each)
    if plan is None or not left_out:
        return None
    ends = [one.value for one in (left_out[0], left_out[-1])]
    threshold = format_p_value(each.threshold, each.difference.p, *ends)
    if each.rejected:
        tail = describe_dependence_on_seed(left_out, lambda p: _format_p_relation(format_p_value(p, each.threshold)), w)
        text = w.sentences(w("change.p", config=each.config, p=describe_p_value(each, w), threshold=threshold), tail)
    else:
        low, high = (format_p_value(end, each.threshold) for end in ends)
        text = w("seed.open", config=each.config, low=low, high=high, threshold=threshold)
    return statement_about_columns(analysis, text, (each.config, plan.procedure.baseline), [plan.primary])


def _format_p_relation(p: str) -> str:
    return f"p < {p[1:]}" if p.startswith("<") else f"p = {p}"


def _conditions_if_recommended(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> Iterator[ReportStatement]:
    each = analysis.decision.against(analysis.decision.config or "")
    assert each is not None
    if hanging := statement_of_seed_dependence(analysis, each, w):
        yield hanging
    yield from _statement_of_room_to_limit(analysis, plan, each.config, w, "change.room")


def _conditions_if_baseline_replaced(
    analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue
) -> Iterator[ReportStatement]:
    each = analysis.decision.against(analysis.decision.config or "")
    assert each is not None
    yield from _statement_of_room_to_limit(analysis, plan, plan.procedure.baseline, w, "change.baseline")
    yield _statement_of_loss(analysis, plan, each, w)
    yield from _statement_of_room_to_limit(analysis, plan, each.config, w, "change.room")


def _conditions_if_baseline_kept(
    analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue
) -> Iterator[ReportStatement]:
    for each in analysis.decision.comparisons:
        if limit_standing_of_config(analysis, each.config) == "INFEASIBLE":
            yield from _statement_of_room_to_limit(analysis, plan, each.config, w, "change.out")
        elif hanging := statement_of_seed_dependence(analysis, each, w):
            yield hanging


def _statement_of_loss(
    analysis: ReportAnalysis, plan: DecisionPlan, each: BaselineComparison, w: Catalogue
) -> ReportStatement:
    form, sure = format_of_column(analysis, plan.primary), each.sure
    assert sure is not None
    text = w(
        "change.loss",
        config=each.config,
        column=plan.primary.name,
        loss=form(max(0.0, -sure[0])),
        delta=format_declared_number(plan.procedure.delta or 0.0),
    )
    text = w.sentences(text, describe_dependence_on_seed(loss_without_each_seed(analysis, plan, each), form, w))
    return statement_about_columns(analysis, text, (each.config, plan.procedure.baseline), [plan.primary])


def _statement_of_room_to_limit(
    analysis: ReportAnalysis, plan: DecisionPlan, config: str, w: Catalogue, key: str
) -> Iterator[ReportStatement]:
    """How far the bound that its standing rests on is from the limit."""
    found = analysis.decision.safety.get(config)
    if found is None or plan.limit is None:
        return
    above = plan.procedure.at_most == (found.standing == "FEASIBLE")
    bound = found.upper if above else found.lower
    if bound is not None:
        form = format_of_column(analysis, plan.limit)
        common = {
            "column": plan.limit.name,
            "limit": format_declared_number(found.limit),
            "chosen": analysis.decision.config,
        }
        text = w(key, config=config, bound=form(bound), **common)
        text = w.sentences(
            text, describe_dependence_on_seed(cost_bound_without_each_seed(analysis, plan, config), form, w)
        )
        yield statement_about_columns(analysis, text, [config], [plan.limit])


def _conditions_if_equivalent(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> Iterator[ReportStatement]:
    each = _widest_comparison(feasible_comparisons(analysis))
    assert each.close is not None
    form = format_of_column(analysis, plan.primary)
    text = w(
        "change.widest",
        config=each.config,
        interval=form.interval(each.close),
        delta=format_declared_number(plan.procedure.delta or 0.0),
        need=form.spread(_reach_of_interval(each)),
    )
    text = w.sentences(text, describe_dependence_on_seed(reach_without_each_seed(analysis, plan, each), form, w))
    yield statement_about_columns(analysis, text, (each.config, plan.procedure.baseline), [plan.primary])


_CONDITIONS_BY_REASON = {
    "supported": _conditions_if_recommended,
    "baseline_infeasible": _conditions_if_baseline_replaced,
    "inside_delta": _conditions_if_equivalent,
    "none_left": _conditions_if_baseline_kept,
}


def _changes_if_not_enough(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> Iterator[ReportStatement]:
    for each in analysis.decision.comparisons:
        yield from _changes_for_candidate(analysis, plan, each, w)
    sound = [each for each in feasible_comparisons(analysis) if each.close is not None]
    if plan.procedure.delta is None:
        unsafe = limit_standing_of_config(analysis, plan.procedure.baseline) == "INFEASIBLE"
        yield ReportStatement(w("change.no_delta_unsafe" if unsafe else "change.no_delta"))
    elif sound:
        each = _widest_comparison(sound)
        assert each.close is not None
        text = w(
            "change.equivalent",
            candidate=name_a_candidate(plan, w),
            level=format_percent_number(1 - 2 * plan.procedure.alpha_a_look),
            delta=format_declared_number(plan.procedure.delta),
            interval=format_of_column(analysis, plan.primary).interval(each.close),
            config=each.config,
        )
        yield statement_about_columns(analysis, text, (each.config, plan.procedure.baseline), [plan.primary])


def _changes_for_candidate(
    analysis: ReportAnalysis, plan: DecisionPlan, each: BaselineComparison, w: Catalogue
) -> Iterator[ReportStatement]:
    """What stands between this one and RECOMMEND."""
    config, baseline = each.config, plan.procedure.baseline
    found = limit_standing_of_config(analysis, config)
    if found == "INFEASIBLE" and plan.limit is not None:
        text = w("change.unsafe", config=config, rule=format_limit_rule(analysis), column=plan.primary.name)
        yield statement_about_columns(analysis, text, [config], [plan.limit])
        return
    if reading_of_comparison(analysis, each) == "worse":
        shown = describe_difference(analysis, each, w, "gain.inline")
        text = w("change.worse", config=config, baseline=baseline, column=plan.primary.name, difference=shown)
        yield statement_about_columns(analysis, text, (config, baseline), [plan.primary])
        return
    if found == "UNDETERMINED":
        yield _statement_of_open_cost(analysis, plan, config, w)
    n = fewest_seeds_behind(analysis, plan, config, baseline)
    if n < LEAST_SEEDS:
        text = w("change.seeds", config=config, least=LEAST_SEEDS, n=n)
        yield statement_about_columns(analysis, text, (config, baseline), deciding_columns(analysis))
    elif not each.supported:
        text = w(
            "change.recommend",
            config=config,
            threshold=format_threshold(each),
            p=describe_p_value(each, w),
            gain=describe_gain(analysis, each, w),
        )
        yield statement_about_columns(analysis, text, (config, baseline), [plan.primary])
    delta = plan.procedure.delta
    if limit_standing_of_config(analysis, baseline) == "INFEASIBLE" and delta is not None and each.sure is not None:
        loss = format_of_column(analysis, plan.primary)(max(0.0, -each.sure[0]))
        text = w(
            "change.replace",
            config=config,
            baseline=name_the_baseline(plan, w),
            delta=format_declared_number(delta),
            loss=loss,
        )
        yield statement_about_columns(analysis, text, (config, baseline), [plan.primary])


def _statement_of_open_cost(analysis: ReportAnalysis, plan: DecisionPlan, config: str, w: Catalogue) -> ReportStatement:
    assert plan.limit is not None
    found, form = analysis.decision.safety[config], format_of_column(analysis, plan.limit)
    common = {"config": config, "rule": format_limit_rule(analysis)}
    if found.basis in ("few", "no_cap", "over_cap"):
        text = w(f"change.{found.basis}", **common)
    else:
        lower, upper = format_bound(found.lower, form), format_bound(found.upper, form)
        text = w("change.open_cost", lower=lower, upper=upper, **common)
    return statement_about_columns(analysis, text, [config], [plan.limit])


def _widest_comparison(comparisons: list[BaselineComparison]) -> BaselineComparison:
    return max(comparisons, key=_reach_of_interval)


def _reach_of_interval(each: BaselineComparison) -> float:
    """How far from 0 its interval reaches."""
    return max(abs(end) for end in each.close) if each.close else 0.0
