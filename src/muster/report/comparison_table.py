"""The candidates against the baseline: a table on the primary metric, estimates for all other columns."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.analysis import Analysis
from muster.report.coverage import seeds_there
from muster.report.estimates import captioned, difference_cell, format_of
from muster.report.facts import Plan
from muster.report.grid import Cell, Grid, aligned
from muster.report.main_table import name_cell, weakest_seeds
from muster.report.numbers import p_value, percent, plain, share
from muster.report.statement import Chain, Statement, about
from muster.report.verdict import level, p_words, threshold_words
from muster.report.words import Words
from muster.stats.decision import LEAST_SEEDS, Comparison


def comparison_grid(analysis: Analysis, plan: Plan, chain: Chain, w: Words) -> Grid:
    column = plan.primary.name
    names = ("p", "threshold", "exact", "g", "improvement", "reading", "evidence")
    own = (w("table.config"), w("table.seeds"), w("compare.difference", column=column))
    head = (*own, *(w(f"compare.{name}") for name in names))
    rows = tuple(_row(analysis, plan, each, chain, w) for each in analysis.decision.comparisons)
    baseline = plan.procedure.baseline
    seeds = seeds_there(analysis.facts, analysis.sample(baseline, plan.primary))
    caption = captioned(analysis, w("compare.caption", baseline=baseline, seeds=seeds, column=column), w)
    return Grid(caption, head, rows, aligned(2, head, right=-2), tuple(_notes(analysis, plan, w)))


def comparison_statement(analysis: Analysis, each: Comparison, w: Words) -> Statement:
    plan = analysis.facts.plan
    assert plan is not None
    text = w(
        "compare.sentence",
        config=each.config,
        baseline=plan.procedure.baseline,
        column=plan.primary.name,
        difference=difference_words(analysis, each, w),
        p=p_words(each, w),
        threshold=threshold_words(each),
        reading=reading_words(analysis, each, w),
    )
    return about(analysis, text, (each.config, plan.procedure.baseline), [plan.primary])


def difference_words(analysis: Analysis, each: Comparison, w: Words, key: str = "gain") -> str:
    """Candidate minus baseline in the metric's own direction."""
    plan = analysis.facts.plan
    assert plan is not None
    form, interval = format_of(analysis, plan.primary), each.difference.interval(1 - plan.procedure.alpha)
    shown = form.signed(each.difference.estimate)
    if interval is None:
        return w("gain.no_interval", gain=shown)
    return w(key, gain=shown, level=level(plan), interval=form.interval(interval))


def reading(analysis: Analysis, each: Comparison) -> str:
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


def reading_words(analysis: Analysis, each: Comparison, w: Words) -> str:
    found = reading(analysis, each)
    return _open_words(analysis, each, w) if found == "open" else w(f"reading.{found}", least=LEAST_SEEDS)


def _open_words(analysis: Analysis, each: Comparison, w: Words) -> str:
    """By how much, and what of it is excluded all the same."""
    plan = analysis.facts.plan
    assert plan is not None
    by, shown = each.difference.estimate, format_of(analysis, plan.primary)(abs(each.difference.estimate))
    key = "open" if not by else "open_better" if (by > 0) == plan.procedure.higher else "open_worse"
    excluded = "equal" if each.equal_enough else "no_loss" if each.no_loss else ""
    parts = [w(f"reading.{key}", by=shown)]
    if excluded:
        parts.append(w(f"reading.{excluded}", delta=plain(plan.procedure.delta or 0.0)))
    return w("semicolon").join(parts)


def improvement(plan: Plan, each: Comparison) -> float:
    return each.difference.better if plan.procedure.higher else 1 - each.difference.better


def others_grid(analysis: Analysis, plan: Plan, w: Words) -> Grid | None:
    """None where the primary metric is the only column."""
    columns = [column for column in analysis.facts.columns if column != plan.primary]
    candidates = [config for config in analysis.facts.configs if config != plan.procedure.baseline]
    if not columns or not candidates:
        return None
    rows = tuple(
        (
            name_cell(analysis, config),
            weakest_seeds(analysis, config, columns),
            *(difference_cell(analysis, column, config, plan.procedure.baseline) for column in columns),
        )
        for config in candidates
    )
    head = (w("table.config"), w("table.seeds"), *(column.name for column in columns))
    caption = captioned(analysis, w("compare.others", baseline=plan.procedure.baseline), w)
    return Grid(caption, head, rows, aligned(2, head))


def _row(analysis: Analysis, plan: Plan, each: Comparison, chain: Chain, w: Words) -> tuple[Cell, ...]:
    form, found = format_of(analysis, plan.primary), each.difference
    interval = found.interval(1 - plan.procedure.alpha)
    return (
        name_cell(analysis, each.config),
        Cell(seeds_there(analysis.facts, analysis.sample(each.config, plan.primary))),
        Cell(form.signed(found.estimate), below=form.interval(interval) if interval else ""),
        Cell(p_value(found.p, each.threshold)),
        Cell(p_value(each.threshold, found.p, found.exact_p)),
        Cell(_exact(each, w)),
        Cell("—" if found.g is None else f"{found.g:+.2f}"),
        Cell(share(improvement(plan, each))),
        Cell(reading_words(analysis, each, w)),
        Cell(chain.mark(comparison_statement(analysis, each, w))),
    )


def _exact(each: Comparison, w: Words) -> str:
    if each.difference.exact_p is None:
        return "—"
    shown = p_value(each.difference.exact_p, each.threshold)
    if each.exact_agrees is None:
        return w("exact.informs", p=shown)
    if not each.rejected:  # there is nothing to agree with
        return shown
    return w("exact.agrees" if each.exact_agrees else "exact.vetoes", p=shown)


def _notes(analysis: Analysis, plan: Plan, w: Words) -> Iterator[str]:
    procedure, comparisons = plan.procedure, analysis.decision.comparisons
    yield w(
        "compare.note_test",
        candidates=w.count("candidate", len(comparisons)),
        alpha=plain(procedure.alpha),
        looks=w.count("look", len(procedure.looks)),
        level=percent(1 - procedure.alpha),
    )
    if any(each.gain and not each.gain[0] <= 0 <= each.gain[1] and not each.rejected for each in comparisons):
        yield w("compare.note_intervals")
    strictest = procedure.alpha_each(len(comparisons))
    for n, m, least, vetoes in _exact_kinds(analysis, plan):
        yield w(
            "compare.note_exact_vetoes" if vetoes else "compare.note_exact_informs",
            n=n,
            m=m,
            least=p_value(least, strictest),
            strictest=p_value(strictest, least),
        )
    yield w("compare.note_size")


def _exact_kinds(analysis: Analysis, plan: Plan) -> list[tuple[int, int, float, bool]]:
    """What the exact test can do, once for each pair of sizes."""
    baseline = analysis.sample(plan.procedure.baseline, plan.primary).n
    found = [
        (analysis.sample(each.config, plan.primary).n, baseline, each.difference.least_p, each.exact_agrees is not None)
        for each in analysis.decision.comparisons
    ]
    return list(dict.fromkeys((n, m, least, vetoes) for n, m, least, vetoes in found if least is not None))
