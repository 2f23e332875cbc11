"""What would change the verdict: how far each of its conditions is from tipping over."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.analysis import Analysis
from muster.report.comparison_table import difference_words, reading
from muster.report.estimates import format_of, judged_columns, rule
from muster.report.facts import Plan
from muster.report.leave_out import leave_each_out
from muster.report.numbers import p_value, percent, plain
from muster.report.ranking import standing
from muster.report.statement import Statement, about
from muster.report.verdict import candidate_words, feasible, fewest_behind, gain_words, p_words, threshold_words
from muster.report.words import Words
from muster.stats.decision import LEAST_SEEDS, Comparison


def change_statements(analysis: Analysis, w: Words) -> Iterator[Statement]:
    decision, plan = analysis.decision, analysis.facts.plan
    if decision.because == "flags":
        yield Statement(w("change.flags"))
    elif decision.because == "missing":
        yield Statement(w("change.missing"), tuple(each.cell for each in analysis.facts.missing))
    elif plan is None:
        yield Statement(w("change.undeclared"))
    elif decision.because == "supported":
        yield from _recommended(analysis, plan, w)
    elif decision.because == "baseline_infeasible":
        yield from _replaced(analysis, plan, w)
    elif decision.because == "inside_delta":
        yield _equivalent(analysis, plan, w)
    else:
        yield from _not_enough(analysis, plan, w)


def hanging_statement(analysis: Analysis, each: Comparison, w: Words) -> Statement | None:
    """Whether the comparison hangs on a single seed; None with too few of them."""
    plan, left_out = analysis.facts.plan, leave_each_out(analysis, each)
    if plan is None or not left_out:
        return None
    least = left_out[-1]
    if not each.rejected:
        ends = (left_out[0].p, least.p)
        shown = {"low": p_value(ends[0], each.threshold), "high": p_value(ends[1], each.threshold)}
        shown["threshold"] = p_value(each.threshold, *ends)
        text = w("seed.open", config=each.config, **shown)
        return about(analysis, text, (each.config, plan.procedure.baseline), [plan.primary])
    text = w(
        "change.p",
        config=each.config,
        p=p_words(each, w),
        threshold=p_value(each.threshold, each.difference.p, least.p),
        worst=p_value(least.p, each.threshold),
        seed=least.seed,
        whose=least.config,
        still=w("change.still" if least.p <= each.threshold else "change.no_longer"),
    )
    return about(analysis, text, (each.config, plan.procedure.baseline), [plan.primary])


def _recommended(analysis: Analysis, plan: Plan, w: Words) -> Iterator[Statement]:
    each = analysis.decision.against(analysis.decision.config or "")
    assert each is not None
    if hanging := hanging_statement(analysis, each, w):
        yield hanging
    yield from _room(analysis, plan, each.config, w)


def _replaced(analysis: Analysis, plan: Plan, w: Words) -> Iterator[Statement]:
    each = analysis.decision.against(analysis.decision.config or "")
    assert each is not None
    assert plan.limit is not None
    baseline = plan.procedure.baseline
    found = analysis.decision.safety[baseline]
    bound = found.lower if plan.procedure.at_most else found.upper
    common = {"column": plan.limit.name, "limit": plain(found.limit)}
    if bound is not None:
        shown = format_of(analysis, plan.limit)(bound)
        text = w("change.baseline", baseline=baseline, bound=shown, config=each.config, **common)
        yield about(analysis, text, [baseline], [plan.limit])
    text = w(
        "change.loss",
        config=each.config,
        column=plan.primary.name,
        gain=gain_words(analysis, each, w),
        delta=plain(-(plan.procedure.delta or 0.0)),
    )
    yield about(analysis, text, (each.config, baseline), [plan.primary])
    yield from _room(analysis, plan, each.config, w)


def _room(analysis: Analysis, plan: Plan, config: str, w: Words) -> Iterator[Statement]:
    found = analysis.decision.safety.get(config)
    if found is None or plan.limit is None:
        return
    bound = found.upper if plan.procedure.at_most else found.lower
    if bound is not None:
        shown = format_of(analysis, plan.limit)(bound)
        text = w("change.room", config=config, column=plan.limit.name, bound=shown, limit=plain(found.limit))
        yield about(analysis, text, [config], [plan.limit])


def _equivalent(analysis: Analysis, plan: Plan, w: Words) -> Statement:
    each = _widest(feasible(analysis))
    assert each.close is not None
    form = format_of(analysis, plan.primary)
    text = w(
        "change.widest",
        config=each.config,
        interval=form.interval(each.close),
        delta=plain(plan.procedure.delta or 0.0),
        need=form.spread(_reach(each)),
    )
    return about(analysis, text, (each.config, plan.procedure.baseline), [plan.primary])


def _not_enough(analysis: Analysis, plan: Plan, w: Words) -> Iterator[Statement]:
    for each in analysis.decision.comparisons:
        yield from _candidate(analysis, plan, each, w)
    sound = [each for each in feasible(analysis) if each.close is not None]
    if plan.procedure.delta is None:
        unsafe = standing(analysis, plan.procedure.baseline) == "INFEASIBLE"
        yield Statement(w("change.no_delta_unsafe" if unsafe else "change.no_delta"))
    elif sound:
        each = _widest(sound)
        assert each.close is not None
        text = w(
            "change.equivalent",
            candidate=candidate_words(plan, w),
            level=percent(1 - 2 * plan.procedure.alpha),
            delta=plain(plan.procedure.delta),
            interval=format_of(analysis, plan.primary).interval(each.close),
            config=each.config,
        )
        yield about(analysis, text, (each.config, plan.procedure.baseline), [plan.primary])


def _candidate(analysis: Analysis, plan: Plan, each: Comparison, w: Words) -> Iterator[Statement]:
    """What stands between this one and RECOMMEND."""
    config, baseline = each.config, plan.procedure.baseline
    found = standing(analysis, config)
    if found == "INFEASIBLE" and plan.limit is not None:
        text = w("change.unsafe", config=config, rule=rule(analysis), column=plan.primary.name)
        yield about(analysis, text, [config], [plan.limit])
        return
    if reading(analysis, each) == "worse":
        shown = difference_words(analysis, each, w, "gain.inline")
        text = w("change.worse", config=config, baseline=baseline, column=plan.primary.name, difference=shown)
        yield about(analysis, text, (config, baseline), [plan.primary])
        return
    if found == "UNDETERMINED":
        yield _open_cost(analysis, plan, config, w)
    n = fewest_behind(analysis, plan, config, baseline)
    if n < LEAST_SEEDS:
        text = w("change.seeds", config=config, least=LEAST_SEEDS, n=n)
        yield about(analysis, text, (config, baseline), judged_columns(analysis))
    elif not each.supported:
        text = w(
            "change.recommend",
            config=config,
            threshold=threshold_words(each),
            p=p_words(each, w),
            gain=gain_words(analysis, each, w),
        )
        yield about(analysis, text, (config, baseline), [plan.primary])
    delta = plan.procedure.delta
    if standing(analysis, baseline) == "INFEASIBLE" and delta is not None:
        gain = gain_words(analysis, each, w)
        text = w("change.replace", config=config, baseline=baseline, delta=plain(delta), gain=gain)
        yield about(analysis, text, (config, baseline), [plan.primary])


def _open_cost(analysis: Analysis, plan: Plan, config: str, w: Words) -> Statement:
    assert plan.limit is not None
    found, form = analysis.decision.safety[config], format_of(analysis, plan.limit)
    common = {"config": config, "rule": rule(analysis)}
    if found.lower is None or found.upper is None:
        text = w("change.unknown_cost", **common)
    else:
        text = w("change.open_cost", lower=form(found.lower), upper=form(found.upper), **common)
    return about(analysis, text, [config], [plan.limit])


def _widest(comparisons: list[Comparison]) -> Comparison:
    return max(comparisons, key=_reach)


def _reach(each: Comparison) -> float:
    """How far from 0 its interval reaches."""
    return max(abs(end) for end in each.close) if each.close else 0.0
