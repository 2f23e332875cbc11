"""What a table cell shows of a sample: no more than so many seeds allow."""

from __future__ import annotations

import math

from muster.report.analysis import Analysis
from muster.report.coverage import in_order
from muster.report.facts import Column
from muster.report.grid import Cell
from muster.report.numbers import Format, column_format, plain
from muster.report.words import Words
from muster.stats.compare import welch
from muster.stats.quantiles import t_quantile
from muster.stats.sample import LEAST_FOR_INTERVAL, LEVEL, Sample


def format_of(analysis: Analysis, column: Column) -> Format:
    return column_format(analysis.samples(column))


def estimate(analysis: Analysis, sample: Sample, form: Format, w: Words, *, bold: bool = False) -> Cell:
    if not sample.n:
        return Cell(w("table.missing"))
    rests = analysis.cells(sample.config, Column(sample.split, sample.metric))
    if sample.n < LEAST_FOR_INTERVAL or sample.sd is None or not math.isfinite(sample.sd):
        return Cell(" / ".join(form(value) for value in in_order(analysis.facts, sample)), bold, rests=rests)
    shown = f"{form(sample.mean)} ± {form.spread(sample.sd)}"
    return Cell(shown, bold, below=form.interval(sample.interval) if sample.interval and sample.sd else "", rests=rests)


def difference_cell(analysis: Analysis, column: Column, candidate: str, baseline: str) -> Cell:
    """Candidate minus baseline with Welch's 95 % interval: an estimate, and no test."""
    a, b = analysis.sample(candidate, column), analysis.sample(baseline, column)
    if not a.n or not b.n:
        return Cell("—")
    rests = (*analysis.cells(candidate, column), *analysis.cells(baseline, column))
    form, estimate, (se, df) = format_of(analysis, column), a.mean - b.mean, welch(a, b)
    if se is None or df is None:
        return Cell(form.signed(estimate), rests=rests)
    half = t_quantile((1 + LEVEL) / 2, df) * se
    return Cell(form.signed(estimate), below=form.interval((estimate - half, estimate + half)), rests=rests)


def bound_words(bound: float | None, form: Format) -> str:
    return "—" if bound is None else form(bound)


def judged_columns(analysis: Analysis) -> tuple[Column, ...]:
    """The primary metric and the limit's."""
    plan = analysis.facts.plan
    if plan is None:
        return ()
    return (plan.primary, *([plan.limit] if plan.limit and plan.limit != plan.primary else []))


def rule(analysis: Analysis) -> str:
    """`ood/cost ≤ 25`"""
    plan = analysis.facts.plan
    if plan is None or plan.limit is None or plan.procedure.limit is None:
        return ""
    return f"{plan.limit.name} {'≤' if plan.procedure.at_most else '≥'} {plain(plan.procedure.limit)}"


def heading(analysis: Analysis, column: Column, w: Words) -> str:
    """The column's name, with its part in the decision."""
    plan = analysis.facts.plan
    if plan is None:
        return column.name
    shown = column.name
    if column == plan.primary:
        shown = w("table.primary", column=shown, arrow="↑" if plan.procedure.higher else "↓")
    if column == plan.limit and (bound := rule(analysis)):
        shown = w("table.limit", column=shown, rule=bound.removeprefix(f"{column.name} "))
    return shown


def captioned(analysis: Analysis, caption: str, w: Words) -> str:
    mark = analysis.mark
    return w("caption.marked", mark=mark, caption=caption) if mark else caption
