"""What would change the verdict: how far each of its conditions is from tipping over."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.analysis import Analysis
from muster.report.comparison_table import difference_words, reading
from muster.report.estimates import bound_words, format_of, judged_columns, rule
from muster.report.facts import Plan
from muster.report.leave_out import cost_without, leave_each_out, left_out_words, loss_without, reach_without
from muster.report.numbers import p_value, percent, plain
from muster.report.ranking import standing
from muster.report.statement import Statement, about
from muster.report.verdict import (
    baseline_words,
    candidate_words,
    feasible,
    fewest_behind,
    gain_words,
    p_words,
    threshold_words,
)
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
    elif decision.because in _CONDITIONS:
        yield from conditions(analysis, w)
    else:
        yield from _not_enough(analysis, plan, w)


def conditions(analysis: Analysis, w: Words) -> Iterator[Statement]:
    """What a verdict that decides rests on, each with how much of it hangs on one seed; none where nothing is."""
    plan, told = analysis.facts.plan, _CONDITIONS.get(analysis.decision.because)
    if plan is not None and told is not None:
        yield from told(analysis, plan, w)


def hanging_statement(analysis: Analysis, each: Comparison, w: Words) -> Statement | None:
    """Whether the comparison hangs on a single seed; None with too few of them."""
    plan, left_out = analysis.facts.plan, leave_each_out(analysis, each)
    if plan is None or not left_out:
        return None
    ends = [one.value for one in (left_out[0], left_out[-1])]
    threshold = p_value(each.threshold, each.difference.p, *ends)
    if each.rejected:
        tail = left_out_words(left_out, lambda p: _p_shown(p_value(p, each.threshold)), w)
        text = w.sentences(w("change.p", config=each.config, p=p_words(each, w), threshold=threshold), tail)
    else:
        low, high = (p_value(end, each.threshold) for end in ends)
        text = w("seed.open", config=each.config, low=low, high=high, threshold=threshold)
    return about(analysis, text, (each.config, plan.procedure.baseline), [plan.primary])


def _p_shown(p: str) -> str:
    return f"p < {p[1:]}" if p.startswith("<") else f"p = {p}"


def _recommended(analysis: Analysis, plan: Plan, w: Words) -> Iterator[Statement]:
    each = analysis.decision.against(analysis.decision.config or "")
    assert each is not None
    if hanging := hanging_statement(analysis, each, w):
        yield hanging
    yield from _room(analysis, plan, each.config, w, "change.room")


def _replaced(analysis: Analysis, plan: Plan, w: Words) -> Iterator[Statement]:
    each = analysis.decision.against(analysis.decision.config or "")
    assert each is not None
    yield from _room(analysis, plan, plan.procedure.baseline, w, "change.baseline")
    yield _loss(analysis, plan, each, w)
    yield from _room(analysis, plan, each.config, w, "change.room")


def _kept(analysis: Analysis, plan: Plan, w: Words) -> Iterator[Statement]:
    for each in analysis.decision.comparisons:
        if standing(analysis, each.config) == "INFEASIBLE":
            yield from _room(analysis, plan, each.config, w, "change.out")
        elif hanging := hanging_statement(analysis, each, w):
            yield hanging


def _loss(analysis: Analysis, plan: Plan, each: Comparison, w: Words) -> Statement:
    form, sure = format_of(analysis, plan.primary), each.sure
    assert sure is not None
    text = w(
        "change.loss",
        config=each.config,
        column=plan.primary.name,
        loss=form(max(0.0, -sure[0])),
        delta=plain(plan.procedure.delta or 0.0),
    )
    text = w.sentences(text, left_out_words(loss_without(analysis, plan, each), form, w))
    return about(analysis, text, (each.config, plan.procedure.baseline), [plan.primary])


def _room(analysis: Analysis, plan: Plan, config: str, w: Words, key: str) -> Iterator[Statement]:
    """How far the bound that its standing rests on is from the limit."""
    found = analysis.decision.safety.get(config)
    if found is None or plan.limit is None:
        return
    above = plan.procedure.at_most == (found.standing == "FEASIBLE")
    bound = found.upper if above else found.lower
    if bound is not None:
        form = format_of(analysis, plan.limit)
        common = {"column": plan.limit.name, "limit": plain(found.limit), "chosen": analysis.decision.config}
        text = w(key, config=config, bound=form(bound), **common)
        text = w.sentences(text, left_out_words(cost_without(analysis, plan, config), form, w))
        yield about(analysis, text, [config], [plan.limit])


def _equivalent(analysis: Analysis, plan: Plan, w: Words) -> Iterator[Statement]:
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
    text = w.sentences(text, left_out_words(reach_without(analysis, plan, each), form, w))
    yield about(analysis, text, (each.config, plan.procedure.baseline), [plan.primary])


_CONDITIONS = {
    "supported": _recommended,
    "baseline_infeasible": _replaced,
    "inside_delta": _equivalent,
    "none_left": _kept,
}


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
            level=percent(1 - 2 * plan.procedure.alpha_a_look),
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
    if standing(analysis, baseline) == "INFEASIBLE" and delta is not None and each.sure is not None:
        loss = format_of(analysis, plan.primary)(max(0.0, -each.sure[0]))
        text = w("change.replace", config=config, baseline=baseline_words(plan, w), delta=plain(delta), loss=loss)
        yield about(analysis, text, (config, baseline), [plan.primary])


def _open_cost(analysis: Analysis, plan: Plan, config: str, w: Words) -> Statement:
    assert plan.limit is not None
    found, form = analysis.decision.safety[config], format_of(analysis, plan.limit)
    common = {"config": config, "rule": rule(analysis)}
    if found.basis in ("few", "no_cap", "over_cap"):
        text = w(f"change.{found.basis}", **common)
    else:
        lower, upper = bound_words(found.lower, form), bound_words(found.upper, form)
        text = w("change.open_cost", lower=lower, upper=upper, **common)
    return about(analysis, text, [config], [plan.limit])


def _widest(comparisons: list[Comparison]) -> Comparison:
    return max(comparisons, key=_reach)


def _reach(each: Comparison) -> float:
    """How far from 0 its interval reaches."""
    return max(abs(end) for end in each.close) if each.close else 0.0
