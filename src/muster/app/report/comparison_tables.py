"""The candidates against the baseline: tables and sentences for the primary metric, the other columns, the cost limit
and dominance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from muster.app.facts.report_analysis import ReportAnalysis, format_seed_coverage
from muster.app.facts.report_facts import DecisionPlan, ResultColumn
from muster.app.report.estimates import (
    difference_table_cell,
    format_bound,
    format_limit_rule,
    format_of_column,
    mark_caption,
)
from muster.app.report.evidence_chain import EvidenceChain, ReportStatement, statement_about_columns
from muster.app.report.result_tables import config_name_cell, fewest_seeds_cell
from muster.app.report.verdict_sentences import (
    confidence_level_of_plan,
    describe_limit_standing,
    describe_p_value,
    format_threshold,
)
from muster.stats.decision_procedure import LEAST_SEEDS, BaselineComparison, Feasibility, compare_with_baseline
from muster.text.catalogue import Catalogue
from muster.text.number_format import (
    ColumnFormat,
    format_declared_number,
    format_p_value,
    format_percent_number,
    format_share,
)
from muster.text.table_grid import TableCell, TableGrid, align_columns


def comparison_table_grid(
    analysis: ReportAnalysis, plan: DecisionPlan, chain: EvidenceChain, w: Catalogue
) -> TableGrid:
    column = plan.primary.name
    names = ("p", "threshold", "exact", "g", "improvement", "reading", "evidence")
    own = (w("table.config"), w("table.seeds"), w("compare.difference", column=column))
    head = (*own, *(w(f"compare.{name}") for name in names))
    rows = tuple(_comparison_table_row(analysis, plan, each, chain, w) for each in analysis.decision.comparisons)
    baseline = plan.procedure.baseline
    seeds = format_seed_coverage(analysis.facts, analysis.sample(baseline, plan.primary))
    caption = mark_caption(analysis, w("compare.caption", baseline=baseline, seeds=seeds, column=column), w)
    return TableGrid(
        caption, head, rows, align_columns(2, head, right=-2), tuple(_comparison_table_notes(analysis, plan, w))
    )


def statement_of_comparison(analysis: ReportAnalysis, each: BaselineComparison, w: Catalogue) -> ReportStatement:
    plan = analysis.facts.plan
    assert plan is not None
    text = w(
        "compare.sentence",
        config=each.config,
        baseline=plan.procedure.baseline,
        column=plan.primary.name,
        difference=describe_difference(analysis, each, w),
        p=describe_p_value(each, w),
        threshold=format_threshold(each),
        reading=describe_reading(analysis, each, w),
    )
    return statement_about_columns(analysis, text, (each.config, plan.procedure.baseline), [plan.primary])


def describe_difference(analysis: ReportAnalysis, each: BaselineComparison, w: Catalogue, key: str = "gain") -> str:
    """Candidate minus baseline in the metric's own direction."""
    plan = analysis.facts.plan
    assert plan is not None
    form, interval = format_of_column(analysis, plan.primary), each.difference.interval(1 - plan.procedure.alpha)
    shown = form.signed(each.difference.estimate)
    if interval is None:
        return w("gain.no_interval", gain=shown)
    return w(key, gain=shown, level=confidence_level_of_plan(plan), interval=form.interval(interval))


def reading_of_comparison(analysis: ReportAnalysis, each: BaselineComparison) -> str:
    """unjudged | few | supported | worse | vetoed | open: no more than the verdict's own rules allow."""
    plan = analysis.facts.plan
    assert plan is not None
    if analysis.decision.verdict in ("INVALID", "INCOMPLETE"):
        return "unjudged"
    if min(analysis.sample(config, plan.primary).n for config in (each.config, plan.procedure.baseline)) < LEAST_SEEDS:
        return "few"
    if each.supported:
        return "supported"
    if not each.rejected:
        return "open"
    if each.vetoed:
        return "vetoed"
    return "worse" if each.worse else "open"


def describe_reading(analysis: ReportAnalysis, each: BaselineComparison, w: Catalogue) -> str:
    found = reading_of_comparison(analysis, each)
    return _describe_open_reading(analysis, each, w) if found == "open" else w(f"reading.{found}", least=LEAST_SEEDS)


def _describe_open_reading(analysis: ReportAnalysis, each: BaselineComparison, w: Catalogue) -> str:
    """By how much, and what of it is excluded all the same."""
    plan = analysis.facts.plan
    assert plan is not None
    by, shown = each.difference.estimate, format_of_column(analysis, plan.primary)(abs(each.difference.estimate))
    key = "open" if not by else "open_better" if (by > 0) == plan.procedure.higher else "open_worse"
    excluded = "equal" if each.equal_enough else "no_loss" if each.no_loss else ""
    parts = [w(f"reading.{key}", by=shown)]
    if excluded:
        parts.append(w(f"reading.{excluded}", delta=format_declared_number(plan.procedure.delta or 0.0)))
    return w("semicolon").join(parts)


def share_of_better_seeds(plan: DecisionPlan, each: BaselineComparison) -> float:
    return each.difference.better if plan.procedure.higher else 1 - each.difference.better


def other_columns_grid(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> TableGrid | None:
    """None where the primary metric is the only column."""
    columns = [column for column in analysis.facts.columns if column != plan.primary]
    candidates = [config for config in analysis.facts.configs if config != plan.procedure.baseline]
    if not columns or not candidates:
        return None
    rows = tuple(
        (
            config_name_cell(analysis, config),
            fewest_seeds_cell(analysis, config, columns),
            *(difference_table_cell(analysis, column, config, plan.procedure.baseline) for column in columns),
        )
        for config in candidates
    )
    head = (w("table.config"), w("table.seeds"), *(column.name for column in columns))
    caption = mark_caption(analysis, w("compare.others", baseline=plan.procedure.baseline), w)
    return TableGrid(caption, head, rows, align_columns(2, head))


def _comparison_table_row(
    analysis: ReportAnalysis, plan: DecisionPlan, each: BaselineComparison, chain: EvidenceChain, w: Catalogue
) -> tuple[TableCell, ...]:
    form, found = format_of_column(analysis, plan.primary), each.difference
    interval = found.interval(1 - plan.procedure.alpha)
    return (
        config_name_cell(analysis, each.config),
        TableCell(format_seed_coverage(analysis.facts, analysis.sample(each.config, plan.primary))),
        TableCell(form.signed(found.estimate), below=form.interval(interval) if interval else ""),
        TableCell(format_p_value(found.p, each.threshold)),
        TableCell(format_p_value(each.threshold, found.p, found.exact_p)),
        TableCell(_describe_exact_test(each, w)),
        TableCell("—" if found.g is None else f"{found.g:+.2f}"),
        TableCell(format_share(share_of_better_seeds(plan, each))),
        TableCell(describe_reading(analysis, each, w)),
        TableCell(chain.mark(statement_of_comparison(analysis, each, w))),
    )


def _describe_exact_test(each: BaselineComparison, w: Catalogue) -> str:
    if each.difference.exact_p is None:
        return "—"
    shown = format_p_value(each.difference.exact_p, each.threshold)
    if each.exact_agrees is None:
        return w("exact.informs", p=shown)
    if not each.rejected:  # there is nothing to agree with
        return shown
    return w("exact.agrees" if each.exact_agrees else "exact.vetoes", p=shown)


def _comparison_table_notes(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> Iterator[str]:
    procedure, comparisons = plan.procedure, analysis.decision.comparisons
    yield w(
        "compare.note_test",
        candidates=w.count("candidate", len(comparisons)),
        alpha=format_declared_number(procedure.alpha),
        looks=w.count("look", len(procedure.looks)),
        level=format_percent_number(1 - procedure.alpha),
    )
    if any(each.gain and not each.gain[0] <= 0 <= each.gain[1] and not each.rejected for each in comparisons):
        yield w("compare.note_intervals")
    strictest = procedure.alpha_each(len(comparisons))
    for n, m, least, vetoes in _exact_test_sizes(analysis, plan):
        yield w(
            "compare.note_exact_vetoes" if vetoes else "compare.note_exact_informs",
            n=n,
            m=m,
            least=format_p_value(least, strictest),
            strictest=format_p_value(strictest, least),
        )
    yield w("compare.note_size")


def _exact_test_sizes(analysis: ReportAnalysis, plan: DecisionPlan) -> list[tuple[int, int, float, bool]]:
    """What the exact test can do, once for each pair of sizes."""
    baseline = analysis.sample(plan.procedure.baseline, plan.primary).n
    found = [
        (analysis.sample(each.config, plan.primary).n, baseline, each.difference.least_p, each.exact_agrees is not None)
        for each in analysis.decision.comparisons
    ]
    return list(dict.fromkeys((n, m, least, vetoes) for n, m, least, vetoes in found if least is not None))


def safety_table_grid(analysis: ReportAnalysis, plan: DecisionPlan, chain: EvidenceChain, w: Catalogue) -> TableGrid:
    names = ("standing", "mean", "lower", "upper", "keep", "share", "worst")
    own = (w("table.config"), w("table.seeds"))
    head = (*own, *(w(f"safety.{name}") for name in names), w("compare.evidence"))
    configs = [config for config in analysis.facts.configs if config in analysis.decision.safety]
    rows = tuple(_safety_table_row(analysis, plan, config, chain, w) for config in configs)
    skewed = w("safety.note_skewed" if plan.procedure.at_most else "safety.note_skewed_min")
    caption = mark_caption(analysis, w("safety.caption", rule=format_limit_rule(analysis)), w)
    notes = (*_notes_about_bounds(analysis, plan, w), w("safety.note_share"), skewed)
    return TableGrid(caption, head, rows, align_columns(3, head, right=-1), notes)


def _notes_about_bounds(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> Iterator[str]:
    """How sure the bounds are, and what they rest on, once for each kind."""
    safety, procedure = analysis.decision.safety, plan.procedure
    yield w(
        "safety.note_bounds",
        level=confidence_level_of_plan(plan),
        each=format_percent_number(1 - procedure.alpha_each(len(analysis.decision.comparisons))),
        candidates=w.count("candidate", len(analysis.decision.comparisons)),
        looks=w.count("look", len(procedure.looks)),
    )
    for basis in dict.fromkeys(found.basis for found in safety.values()):
        if basis != "few":
            cap = "" if procedure.cap is None else format_declared_number(procedure.cap)
            configs = w.several([config for config, found in safety.items() if found.basis == basis])
            yield w(f"safety.note_{basis}", configs=configs, cap=cap)


def statement_of_safety(analysis: ReportAnalysis, config: str, w: Catalogue) -> ReportStatement:
    plan, found = analysis.facts.plan, analysis.decision.safety[config]
    assert plan is not None
    assert plan.limit is not None
    form, common = format_of_column(analysis, plan.limit), {"config": config, "rule": format_limit_rule(analysis)}
    counted = {"standing": describe_limit_standing(analysis, config, w), "keep": found.keep, "n": found.n}
    if found.basis == "few":
        text = w("safety.sentence_few", **common, **counted)
    else:
        text = w(
            "safety.sentence",
            **common,
            **counted,
            mean=form(analysis.sample(config, plan.limit).mean),
            lower=format_bound(found.lower, form),
            upper=format_bound(found.upper, form),
            share=describe_proven_share(found, w) if found.keep else "",
            worst=_describe_worst_seed(found, form, w),
        )
    return statement_about_columns(analysis, text, [config], [plan.limit])


def describe_proven_share(found: Feasibility, w: Catalogue) -> str:
    """What so many seeds leave open: five of five say nothing about up to 45 % of all."""
    return w("safety.proves", share=f"{100 * found.keep_at_least:.0f}", fail=f"{100 * found.fail_at_most:.0f}")


def statements_of_dominance(analysis: ReportAnalysis, w: Catalogue) -> Iterator[ReportStatement]:
    """ "Dominates" only where both differences are supported."""
    plan = analysis.facts.plan
    if plan is None or plan.limit is None or plan.limit == plan.primary or not analysis.decision.comparisons:
        return
    if analysis.decision.verdict in ("INVALID", "INCOMPLETE"):
        yield ReportStatement(w("dominates.not_judged"))
        return
    columns = (plan.primary, plan.limit)
    others: dict[str, list[str]] = {"neither": [], "few": []}
    costs = {each.config: each for each in compare_costs(analysis, plan, plan.limit)}
    for each in analysis.decision.comparisons:
        cost = costs.get(each.config)
        key = "few" if reading_of_comparison(analysis, each) == "few" else _kind_of_dominance(each, cost)
        if key in others:
            others[key].append(each.config)
            continue
        text = w(
            f"dominates.{key}",
            config=each.config,
            baseline=plan.procedure.baseline,
            column=plan.primary.name,
            limit=plan.limit.name,
            difference=_describe_unsupported_difference(analysis, plan.limit, each, key, w),
        )
        yield statement_about_columns(analysis, text, (each.config, plan.procedure.baseline), columns)
    for key, configs in others.items():
        if configs:
            text = w(
                f"dominates.{key}",
                configs=w.several(configs),
                baseline=plan.procedure.baseline,
                column=plan.primary.name,
                limit=plan.limit.name,
                least=LEAST_SEEDS,
            )
            yield statement_about_columns(analysis, text, (*configs, plan.procedure.baseline), columns)


def compare_costs(analysis: ReportAnalysis, plan: DecisionPlan, limit: ResultColumn) -> tuple[BaselineComparison, ...]:
    """By the same test as the primary metric: less of a cost is better, more of what has a minimum."""
    procedure = replace(plan.procedure, higher=not plan.procedure.at_most, limit=None, delta=None)
    return compare_with_baseline(procedure, analysis.samples(limit))


def _kind_of_dominance(score: BaselineComparison, cost: BaselineComparison | None) -> str:
    cheaper = cost is not None and cost.supported
    if score.supported:
        return "yes" if cheaper else "score"
    return "cost" if cheaper else "neither"


def _describe_unsupported_difference(
    analysis: ReportAnalysis, limit: ResultColumn, each: BaselineComparison, key: str, w: Catalogue
) -> str:
    """The difference that is not supported."""
    if key == "cost":
        return describe_difference(analysis, each, w, "gain.inline")
    cell = difference_table_cell(analysis, limit, each.config, each.difference.baseline)
    return f"{cell.text} {cell.below}".rstrip()


def _safety_table_row(
    analysis: ReportAnalysis, plan: DecisionPlan, config: str, chain: EvidenceChain, w: Catalogue
) -> tuple[TableCell, ...]:
    assert plan.limit is not None
    found, form = analysis.decision.safety[config], format_of_column(analysis, plan.limit)
    sample = analysis.sample(config, plan.limit)
    return (
        config_name_cell(analysis, config),
        TableCell(format_seed_coverage(analysis.facts, sample)),
        TableCell(describe_limit_standing(analysis, config, w)),
        TableCell(form(sample.mean) if sample.n else w("table.missing")),
        *(TableCell(format_bound(bound, form)) for bound in (found.lower, found.upper)),
        TableCell(f"{found.keep}/{found.n}"),
        TableCell(f"≥ {format_share(found.keep_at_least)}" if found.keep else "—"),
        TableCell(_describe_worst_seed(found, form, w)),
        TableCell(chain.mark(statement_of_safety(analysis, config, w))),
    )


def _describe_worst_seed(found: Feasibility, form: ColumnFormat, w: Catalogue) -> str:
    if found.worst is None:
        return "—"
    return w("safety.worst_seed", value=form(found.worst[1]), seed=found.worst[0])
