"""Estimates in table cells (no more than so many seeds allow), and which configs are set in bold: the best feasible
one, and all that the declared test can't tell from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from muster.app.facts.report_analysis import ReportAnalysis, choose_column_format, values_in_seed_order
from muster.app.facts.report_facts import ResultColumn
from muster.stats.decision_procedure import LEAST_SEEDS, LimitStanding
from muster.stats.quantiles import student_t_p_value, student_t_quantile
from muster.stats.samples import CONFIDENCE_LEVEL, LEAST_FOR_INTERVAL, Sample, welch_error_and_df
from muster.text.catalogue import Catalogue
from muster.text.number_format import ColumnFormat, format_declared_number
from muster.text.table_grid import TableCell


def format_of_column(analysis: ReportAnalysis, column: ResultColumn) -> ColumnFormat:
    return choose_column_format(analysis.samples(column))


def estimate_cell(
    analysis: ReportAnalysis, sample: Sample, form: ColumnFormat, w: Catalogue, *, bold: bool = False
) -> TableCell:
    if not sample.n:
        return TableCell(w("table.missing"))
    rests = analysis.cells(sample.config, ResultColumn(sample.split, sample.metric))
    if sample.n < LEAST_FOR_INTERVAL or sample.sd is None or not math.isfinite(sample.sd):
        return TableCell(
            " / ".join(form(value) for value in values_in_seed_order(analysis.facts, sample)), bold, rests=rests
        )
    shown = f"{form(sample.mean)} ± {form.spread(sample.sd)}"
    return TableCell(
        shown, bold, below=form.interval(sample.interval) if sample.interval and sample.sd else "", rests=rests
    )


def difference_table_cell(analysis: ReportAnalysis, column: ResultColumn, candidate: str, baseline: str) -> TableCell:
    """Candidate minus baseline with Welch's 95 % interval: an estimate, and no test."""
    a, b = analysis.sample(candidate, column), analysis.sample(baseline, column)
    if not a.n or not b.n:
        return TableCell("—")
    rests = (*analysis.cells(candidate, column), *analysis.cells(baseline, column))
    form, estimate, (se, df) = format_of_column(analysis, column), a.mean - b.mean, welch_error_and_df(a, b)
    if se is None or df is None:
        return TableCell(form.signed(estimate), rests=rests)
    half = student_t_quantile((1 + CONFIDENCE_LEVEL) / 2, df) * se
    return TableCell(form.signed(estimate), below=form.interval((estimate - half, estimate + half)), rests=rests)


def format_bound(bound: float | None, form: ColumnFormat) -> str:
    return "—" if bound is None else form(bound)


def deciding_columns(analysis: ReportAnalysis) -> tuple[ResultColumn, ...]:
    """The primary metric and the limit's."""
    plan = analysis.facts.plan
    if plan is None:
        return ()
    return (plan.primary, *([plan.limit] if plan.limit and plan.limit != plan.primary else []))


def format_limit_rule(analysis: ReportAnalysis) -> str:
    """`ood/cost ≤ 25`"""
    plan = analysis.facts.plan
    if plan is None or plan.limit is None or plan.procedure.limit is None:
        return ""
    return f"{plan.limit.name} {'≤' if plan.procedure.at_most else '≥'} {format_declared_number(plan.procedure.limit)}"


def column_heading(analysis: ReportAnalysis, column: ResultColumn, w: Catalogue) -> str:
    """The column's name, with its part in the decision."""
    plan = analysis.facts.plan
    if plan is None:
        return column.name
    shown = column.name
    if column == plan.primary:
        shown = w("table.primary", column=shown, arrow="↑" if plan.procedure.higher else "↓")
    if column == plan.limit and (bound := format_limit_rule(analysis)):
        shown = w("table.limit", column=shown, rule=bound.removeprefix(f"{column.name} "))
    return shown


def mark_caption(analysis: ReportAnalysis, caption: str, w: Catalogue) -> str:
    mark = analysis.mark
    return w("caption.marked", mark=mark, caption=caption) if mark else caption


@dataclass(frozen=True, slots=True)
class ConfigRanking:
    bold: frozenset[str]
    because: str = ""  # why there are none: a key of the wording


def limit_standing_of_config(analysis: ReportAnalysis, config: str) -> LimitStanding | None:
    """On the limit; None where there is none."""
    found = analysis.decision.safety.get(config)
    return found.standing if found else None


def rank_configs(analysis: ReportAnalysis) -> ConfigRanking:
    plan = analysis.facts.plan
    if plan is None:
        return ConfigRanking(frozenset(), "no_plan")
    if analysis.decision.verdict in ("INVALID", "INCOMPLETE"):
        return ConfigRanking(frozenset(), analysis.decision.verdict.lower())
    allowed = ("FEASIBLE",) if plan.procedure.limit is not None else (None,)
    feasible = [
        each for each in analysis.samples(plan.primary) if limit_standing_of_config(analysis, each.config) in allowed
    ]
    if not feasible:
        return ConfigRanking(frozenset(), "infeasible")
    enough = [each for each in feasible if each.n >= LEAST_SEEDS]
    if len(enough) < len(feasible):  # one that nobody may judge may be the best
        return ConfigRanking(frozenset(), "few")
    best = max(enough, key=lambda each: each.mean if plan.procedure.higher else -each.mean)
    return ConfigRanking(
        frozenset(each.config for each in enough if each is best or not _are_distinguishable(analysis, best, each))
    )


def _are_distinguishable(analysis: ReportAnalysis, best: Sample, other: Sample) -> bool:
    """With the baseline by the verdict's own test; among candidates by Welch's, held to the strictest threshold."""
    plan = analysis.facts.plan
    assert plan is not None
    if plan.procedure.baseline in (best.config, other.config):
        candidate = other.config if best.config == plan.procedure.baseline else best.config
        against = analysis.decision.against(candidate)
        return against is not None and against.rejected and not against.vetoed
    strictest = plan.procedure.alpha_each(len(analysis.decision.comparisons))
    se, df = welch_error_and_df(best, other)
    return se is not None and df is not None and student_t_p_value((best.mean - other.mean) / se, df) <= strictest
