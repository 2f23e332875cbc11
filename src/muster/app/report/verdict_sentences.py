"""The verdict in one sentence, by the declared procedure and in its words."""

from __future__ import annotations

from collections.abc import Iterator

from muster.app.facts.report_analysis import ReportAnalysis
from muster.app.facts.report_facts import DecisionPlan, ResultColumn
from muster.app.report.estimates import (
    deciding_columns,
    format_bound,
    format_limit_rule,
    format_of_column,
    limit_standing_of_config,
)
from muster.app.report.evidence_chain import ReportStatement, statement_about_all_cells, statement_about_columns
from muster.app.report.red_flag_text import describe_flag, sort_flags_by_level
from muster.app.report.seed_statements import describe_seed_range, is_at_declared_look
from muster.stats.decision_procedure import LEAST_SEEDS, BaselineComparison
from muster.stats.red_flags import RedFlag
from muster.text.catalogue import Catalogue, load_catalogue
from muster.text.number_format import format_declared_number, format_p_value, format_percent_number

_NAMED_FLAGS = 2


def plain_verdict_sentence(analysis: ReportAnalysis) -> str:
    """For a terminal and for `reason` of `muster report --json`: plain text."""
    return statement_of_verdict(analysis, load_catalogue("report", analysis.facts.language)).text


def statement_of_verdict(analysis: ReportAnalysis, w: Catalogue) -> ReportStatement:
    decision, plan = analysis.decision, analysis.facts.plan
    if decision.because == "flags":
        return statement_about_all_cells(analysis, _sentence_if_invalid(analysis, w))
    if decision.because == "missing":
        return ReportStatement(
            _sentence_if_incomplete(analysis, w), tuple(each.cell for each in analysis.facts.missing)
        )
    if plan is None:
        return statement_about_all_cells(analysis, w("verdict.undeclared"))
    text = _SENTENCE_BY_REASON.get(decision.because, _sentence_if_not_enough)(analysis, plan, w)
    if decision.because in _SENTENCE_BY_REASON and not is_at_declared_look(analysis):
        text = w.sentences(text, w("verdict.no_look"))
    return statement_about_columns(analysis, text, analysis.facts.configs, deciding_columns(analysis))


def statements_about_proxies(analysis: ReportAnalysis, w: Catalogue) -> Iterator[ReportStatement]:
    """What the splits stand for that the verdict is drawn from."""
    for head in dict.fromkeys(column.head for column in deciding_columns(analysis)):
        if note := analysis.facts.proxies.get(head):
            columns = [column for column in deciding_columns(analysis) if column.head == head]
            text = w("verdict.proxy", split=head, note=note.rstrip(" .。"))
            yield statement_about_columns(analysis, text, analysis.facts.configs, columns)


def statement_of_choice(analysis: ReportAnalysis, w: Catalogue) -> ReportStatement:
    """Why this one, where several qualify."""
    decision, plan = analysis.decision, analysis.facts.plan
    assert plan is not None
    rivals, config = list(decision.rivals), decision.config or ""
    text = w("choice.best_mean", config=config, rivals=w.some(rivals), column=plan.primary.name)
    return statement_about_columns(analysis, text, (config, *rivals), (plan.primary,))


def describe_gain(
    analysis: ReportAnalysis, each: BaselineComparison, w: Catalogue, key: str = "gain", *, signed: bool = True
) -> str:
    """By how much the candidate is better, with its interval; both count upwards for better, whatever the direction."""
    plan = analysis.facts.plan
    assert plan is not None
    form = format_of_column(analysis, plan.primary)
    gain = each.difference.estimate if plan.procedure.higher else -each.difference.estimate
    shown = form.signed(gain) if signed else form(gain)
    if each.gain is None:
        return w("gain.no_interval", gain=shown)
    return w(key, gain=shown, level=confidence_level_of_plan(plan), interval=form.interval(each.gain))


def describe_p_value(each: BaselineComparison, w: Catalogue) -> str:
    """`Welch p = 0.412`, with the digits that tell it from its threshold."""
    if each.difference.p is None:
        return w("p.none")
    shown = format_p_value(each.difference.p, each.threshold)
    return w("p.below", p=shown[1:]) if shown.startswith("<") else w("p.equals", p=shown)


def format_threshold(each: BaselineComparison) -> str:
    """As precise as the p beside it."""
    return format_p_value(each.threshold, each.difference.p)


def confidence_level_of_plan(plan: DecisionPlan) -> str:
    """Of the intervals of differences."""
    return format_percent_number(1 - plan.procedure.alpha)


def name_the_baseline(plan: DecisionPlan, w: Catalogue) -> str:
    """`the baseline (v2_base)`; the name is left out where it says no more."""
    name = plan.procedure.baseline
    return w("baseline.itself") if name == "baseline" else w("baseline.named", name=name)


def _sentence_if_supported(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> str:
    each = _comparison_of_chosen(analysis)
    return w(
        "verdict.supported",
        config=each.config,
        column=plan.primary.name,
        baseline=name_the_baseline(plan, w),
        gain=describe_gain(analysis, each, w, signed=False),
        p=describe_p_value(each, w),
        threshold=format_threshold(each),
        limit=w(
            "verdict.keeps", rule=format_limit_rule(analysis), cost=describe_cost_bound(analysis, plan, each.config, w)
        )
        if format_limit_rule(analysis)
        else "",
    )


def _sentence_if_baseline_infeasible(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> str:
    each = _comparison_of_chosen(analysis)
    return w(
        "verdict.baseline_infeasible",
        config=each.config,
        baseline=name_the_baseline(plan, w),
        rule=format_limit_rule(analysis),
        level=confidence_level_of_plan(plan),
        broken=describe_cost_bound(analysis, plan, plan.procedure.baseline, w),
        kept=describe_cost_bound(analysis, plan, each.config, w),
        price=_describe_price_on_primary(analysis, plan, each, w),
    )


def _describe_price_on_primary(
    analysis: ReportAnalysis, plan: DecisionPlan, each: BaselineComparison, w: Catalogue
) -> str:
    """What the candidate costs on the primary metric, and what it costs at most."""
    form, interval = format_of_column(analysis, plan.primary), each.difference.interval(1 - plan.procedure.alpha)
    assert interval is not None
    assert each.sure is not None
    lower = each.difference.estimate < 0
    return w(
        "price.loss" if lower == plan.procedure.higher else "price.gain",
        column=plan.primary.name,
        by=form(abs(each.difference.estimate)),
        way=w("way.lower" if lower else "way.higher"),
        level=confidence_level_of_plan(plan),
        interval=form.interval(interval),
        loss=form(max(0.0, -each.sure[0])),
        delta=format_declared_number(plan.procedure.delta or 0.0),
    )


def describe_cost_bound(analysis: ReportAnalysis, plan: DecisionPlan, config: str, w: Catalogue) -> str:
    """`mean 0.93, at most 1.39`: the bound that its standing rests on."""
    found = analysis.decision.safety[config]
    assert plan.limit is not None
    form = format_of_column(analysis, plan.limit)
    above = plan.procedure.at_most == (found.standing == "FEASIBLE")
    bound = found.upper if above else found.lower
    mean = form(analysis.sample(config, plan.limit).mean)
    return w("cost.at_most" if above else "cost.at_least", mean=mean, bound=format_bound(bound, form))


def _sentence_if_equivalent(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> str:
    return w(
        "verdict.inside_delta",
        column=plan.primary.name,
        level=format_percent_number(1 - 2 * plan.procedure.alpha_a_look),
        baseline=name_the_baseline(plan, w),
        delta=format_declared_number(plan.procedure.delta or 0.0),
        configs=w.several([each.config for each in feasible_comparisons(analysis)]),
        candidate=name_a_candidate(plan, w),
        unsafe=_describe_unsafe_baseline(analysis, plan, w),
    )


def _sentence_if_none_left(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> str:
    """Why each candidate is out: the limit comes before the score."""
    comparisons, form = analysis.decision.comparisons, format_of_column(analysis, plan.primary)
    broken = [each for each in comparisons if limit_standing_of_config(analysis, each.config) == "INFEASIBLE"]
    worse = [f"{each.config} {form.signed(each.difference.estimate)}" for each in comparisons if each not in broken]
    reasons = []
    if worse:
        reasons.append(w("out.worse", column=plan.primary.name, configs=w.several(worse)))
    if broken:
        told = [f"{each.config} {describe_cost_bound(analysis, plan, each.config, w)}" for each in broken]
        reasons.append(w("out.infeasible", rule=format_limit_rule(analysis), configs=w("semicolon").join(told)))
    shown = limit_standing_of_config(analysis, plan.procedure.baseline) in (None, "FEASIBLE")
    return w(
        "verdict.none_left",
        baseline=name_the_baseline(plan, w),
        reasons=w("semicolon").join(reasons),
        limit="" if shown else w("verdict.limit_open", rule=format_limit_rule(analysis)),
    )


def _sentence_if_not_enough(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> str:
    decision, baseline = analysis.decision, plan.procedure.baseline
    if not decision.comparisons:
        return w("verdict.nothing_to_compare", column=plan.primary.name, baseline=baseline)
    sound = feasible_comparisons(analysis)
    if not sound:
        standings = [
            f"{each.config} {describe_limit_standing(analysis, each.config, w)}" for each in decision.comparisons
        ]
        return w("verdict.none_feasible", rule=format_limit_rule(analysis), standings=w.several(standings))
    if decision.because == "too_few_seeds":
        return _sentence_if_too_few_seeds(analysis, plan, sound, w)
    return _sentence_if_no_gain(analysis, plan, sound, w)


def _sentence_if_too_few_seeds(
    analysis: ReportAnalysis, plan: DecisionPlan, sound: list[BaselineComparison], w: Catalogue
) -> str:
    """Of the primary metric, or of the cost where that has enough."""
    configs = (plan.procedure.baseline, *(each.config for each in sound))
    scores = [analysis.sample(config, plan.primary).n for config in configs]
    if min(scores) < LEAST_SEEDS or plan.limit is None:
        return w("verdict.too_few_seeds", seeds=describe_seed_range(scores, w), least=LEAST_SEEDS)
    costs = [
        analysis.sample(c, plan.limit).n for c in configs if plan.limit in columns_behind_config(analysis, plan, c)
    ]
    return w("verdict.too_few_costs", seeds=describe_seed_range(costs, w), column=plan.limit.name, least=LEAST_SEEDS)


def fewest_seeds_behind(analysis: ReportAnalysis, plan: DecisionPlan, *configs: str) -> int:
    """Seeds that a recommendation rests on, those of a cost among them."""
    return min(analysis.sample(c, column).n for c in configs for column in columns_behind_config(analysis, plan, c))


def columns_behind_config(analysis: ReportAnalysis, plan: DecisionPlan, config: str) -> tuple[ResultColumn, ...]:
    """The cost of the baseline is asked for only where it breaks the limit."""
    if config == plan.procedure.baseline and limit_standing_of_config(analysis, config) != "INFEASIBLE":
        return (plan.primary,)
    return deciding_columns(analysis)


def _sentence_if_no_gain(
    analysis: ReportAnalysis, plan: DecisionPlan, sound: list[BaselineComparison], w: Catalogue
) -> str:
    """No candidate that may be recommended is better by the declared test."""
    baseline = plan.procedure.baseline
    common = {"column": plan.primary.name, "unsafe": _describe_unsafe_baseline(analysis, plan, w)}
    if all(each.worse for each in sound):
        common |= {"baseline": baseline, "candidate": name_a_candidate(plan, w)}
        return w("verdict.all_worse", configs=w.several([each.config for each in sound]), **common)
    nearest = min(
        sound, key=lambda each: (not _is_gain(plan, each), 1.0 if each.difference.p is None else each.difference.p)
    )
    common |= {"config": nearest.config, "gain": describe_gain(analysis, nearest, w, "gain.inline")}
    if nearest.difference.p is None:
        return w("verdict.no_spread", **common)
    return w(
        "verdict.not_supported",
        baseline=baseline,
        candidate=name_a_candidate(plan, w),
        p=describe_p_value(nearest, w),
        threshold=format_threshold(nearest),
        **common,
    )


def name_a_candidate(plan: DecisionPlan, w: Catalogue) -> str:
    """Where no limit is declared, nothing is called feasible."""
    return w("candidate.any" if plan.procedure.limit is None else "candidate.feasible")


def _describe_unsafe_baseline(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> str:
    broken = limit_standing_of_config(analysis, plan.procedure.baseline) == "INFEASIBLE"
    return w("verdict.unsafe", rule=format_limit_rule(analysis)) if broken else ""


_SENTENCE_BY_REASON = {
    "supported": _sentence_if_supported,
    "baseline_infeasible": _sentence_if_baseline_infeasible,
    "inside_delta": _sentence_if_equivalent,
    "none_left": _sentence_if_none_left,
}


def _sentence_if_incomplete(analysis: ReportAnalysis, w: Catalogue) -> str:
    facts, missing = analysis.facts, w.count("missing", len(analysis.facts.missing))
    return w("verdict.missing", missing=missing, k=facts.k, n=facts.n, cells=list_missing_cells(analysis, w))


def list_missing_cells(analysis: ReportAnalysis, w: Catalogue, most: int = 3) -> str:
    """Those that hold others up come first: what is BLOCKED comes of itself."""
    ordered = sorted(analysis.facts.missing, key=lambda each: each.state == "BLOCKED")
    told = [
        w("verdict.missing_cell", cell=each.cell, state=each.state, reason=each.reason) if each.reason else each.cell
        for each in ordered
    ]
    return w.some(told, most)


def _sentence_if_invalid(analysis: ReportAnalysis, w: Catalogue) -> str:
    """The first flags of each kind: seventeen early checkpoints are one kind."""
    errors = sort_flags_by_level(analysis.errors)
    kinds: dict[str, RedFlag] = {}
    for flag in errors:
        kinds.setdefault(flag.code, flag)
    named = list(kinds.values())[:_NAMED_FLAGS]
    told = w("semicolon").join(describe_flag(flag, w.language) for flag in named)
    left = len(errors) - len(named)
    shown = w("verdict.more_flags", first=told, n=left) if left else told
    return w("verdict.flags", errors=w.count("error", len(errors)), flags=shown)


def feasible_comparisons(analysis: ReportAnalysis) -> list[BaselineComparison]:
    """Candidates that are shown to keep the limit; all of them where there is none."""
    decision, plan = analysis.decision, analysis.facts.plan
    if plan is None or plan.procedure.limit is None:
        return list(decision.comparisons)
    keep = {config for config, found in decision.safety.items() if found.standing == "FEASIBLE"}
    return [each for each in decision.comparisons if each.config in keep]


def describe_limit_standing(analysis: ReportAnalysis, config: str, w: Catalogue) -> str:
    return w(f"standing.{limit_standing_of_config(analysis, config) or 'UNDETERMINED'}")


def _is_gain(plan: DecisionPlan, each: BaselineComparison) -> bool:
    return (each.difference.estimate > 0) == plan.procedure.higher


def _comparison_of_chosen(analysis: ReportAnalysis) -> BaselineComparison:
    found = analysis.decision.against(analysis.decision.config or "")
    assert found is not None, "a recommended config was compared"
    return found
