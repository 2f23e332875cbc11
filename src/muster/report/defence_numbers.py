"""Answers about the numbers: the claim, the difference, its size, the seeds behind it, safety, parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from muster.report.ablation import Contrast, contrasts
from muster.report.analysis import Analysis
from muster.report.changes import conditions, hanging_statement
from muster.report.comparison_table import comparison_statement, improvement, reading
from muster.report.decision_report import fit_words, verdict_line
from muster.report.escape import markdown
from muster.report.estimates import difference_cell, judged_columns
from muster.report.facts import Column, Plan
from muster.report.flag_list import flag_statement
from muster.report.numbers import confidence, p_value, percent, plain
from muster.report.safety_table import dominance_statements, safety_statement
from muster.report.seeds_words import all_seeds, fewest_seeds, no_look_statement, seeds_statements
from muster.report.statement import Chain, Statement, about
from muster.report.verdict import level
from muster.report.words import Words
from muster.stats.decision import LEAST_SEEDS, Comparison


def what_is_claimed(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    yield verdict_line(analysis, chain, w)
    yield w.sentences(w("fit.question"), fit_words(analysis, w))


def is_it_real(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    plan, decision = analysis.facts.plan, analysis.decision
    if plan is None:
        yield w("compare.no_plan")
        return
    if not decision.comparisons:
        yield markdown(w("compare.none", column=plan.primary.name))
        return
    if decision.verdict in ("INVALID", "INCOMPLETE"):
        yield w(f"real.{decision.verdict.lower()}")
    else:
        yield chain.tell(_counted(analysis, plan, w))
    for each in decision.comparisons:
        made = comparison_statement(analysis, each, w)
        size = "" if decision.verdict == "INVALID" else _size(analysis, plan, each, w)
        yield chain.tell(replace(made, text=w.sentences(made.text, size)))


def _counted(analysis: Analysis, plan: Plan, w: Words) -> Statement:
    readings = {
        each.config: "equal" if reading(analysis, each) == "open" and each.equal_enough else reading(analysis, each)
        for each in analysis.decision.comparisons
    }

    def those(*wanted: str) -> str:
        return w.several([config for config, found in readings.items() if found in wanted]) or w("none")

    text = w(
        "real.counted",
        baseline=plan.procedure.baseline,
        better=those("supported"),
        worse=those("worse"),
        equal=those("equal"),
        open=those("open", "vetoed", "few"),
    )
    return about(analysis, text, analysis.facts.configs, [plan.primary])


def _size(analysis: Analysis, plan: Plan, each: Comparison, w: Words) -> str:
    g = each.difference.g
    return w(
        "real.size",
        config=each.config,
        g="—" if g is None else f"{g:+.2f}",
        baseline=plan.procedure.baseline,
        percent=f"{100 * improvement(plan, each):.0f}",
        delta=_against_delta(analysis, plan, each, w),
    )


def _against_delta(analysis: Analysis, plan: Plan, each: Comparison, w: Words) -> str:
    delta, fewest = plan.procedure.delta, fewest_seeds(analysis)
    if delta is None:
        return w("real.no_delta")
    if each.gain is None:
        return w("real.no_interval")
    if fewest < LEAST_SEEDS:
        return w("real.too_few", seeds=w.count("seed", fewest), n=fewest)
    low, high = each.gain
    key = "above" if low > delta else "below" if high < delta else "inside"
    if each.worse:  # of a gain nobody speaks
        key = "lost" if high < -delta else "spared" if low > -delta else "lost_open"
    return w(f"real.delta_{key}", delta=plain(delta), level=level(plan))


def why_so_many(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    plan, n = analysis.facts.plan, fewest_seeds(analysis)
    if plan is not None and no_look_statement(analysis, w) is None:  # which says more
        looks = w.several([str(look) for look in plan.procedure.looks])
        key = "seeds.looks" if n in plan.procedure.looks else "seeds.at_no_look"
        yield w(key, n=n, looks=looks, last=plan.procedure.looks[-1])
    for each in seeds_statements(analysis, w):
        yield chain.tell(each)
    yield w("seeds.replicate")


def one_seed(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    """Of what the verdict rests on; where nothing is decided, of every comparison."""
    comparisons = analysis.decision.comparisons
    compared = (hanging_statement(analysis, each, w) for each in comparisons)
    found = list(conditions(analysis, w)) or [each for each in compared if each is not None]
    told = [chain.tell(each) for each in found]
    if told:
        yield from told
    elif comparisons:
        yield w("seed.too_few", seeds=all_seeds(analysis, w))
    else:
        yield w("seed.nothing")


def is_it_safe(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    plan = analysis.facts.plan
    if plan is None or plan.limit is None:
        yield w("safety.not_declared")
        return
    for each in dominance_statements(analysis, w):
        yield chain.tell(each)
    for config in analysis.decision.safety:
        yield chain.tell(safety_statement(analysis, config, w))
    yield w("safety.note_skewed" if plan.procedure.at_most else "safety.note_skewed_min")


def how_many_compared(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    plan = analysis.facts.plan
    if plan is None:
        yield w("many.undeclared")
        return
    candidates = len(analysis.decision.comparisons)
    yield markdown(
        w(
            "many.test",
            column=plan.primary.name,
            candidates=w.count("candidate", candidates),
            alpha=plain(plan.procedure.alpha),
            looks=w.count("look", len(plan.procedure.looks)),
            strictest=p_value(plan.procedure.alpha_each(candidates)),
        )
    )
    each = plan.procedure.alpha_each(candidates)
    yield w("many.routes", level=percent(1 - plan.procedure.alpha), each=confidence(each))
    yield w("many.others")
    changed = [flag for flag in analysis.flags if flag.code == "decision_changed"]
    yield from (chain.tell(flag_statement(analysis, flag, w)) for flag in changed)
    if not changed:
        yield w("many.declared")


def what_parts_do(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    pairs = contrasts(analysis)
    if not pairs:
        yield w("parts.none")
    else:
        yield w("parts.estimates")
    for each in pairs:
        told = [_part(analysis, each, column, w) for column in judged_columns(analysis)]
        text = w(
            "parts.pair",
            factor=each.factor,
            without=each.levels[1],
            with_=each.levels[0],
            pair=f"{each.with_} − {each.without}",
            differences=w("semicolon").join(told),
        )
        yield chain.tell(about(analysis, text, (each.with_, each.without), judged_columns(analysis)))


def _part(analysis: Analysis, each: Contrast, column: Column, w: Words) -> str:
    cell = difference_cell(analysis, column, each.with_, each.without)
    return w("parts.difference", difference=f"{cell.text} {cell.below}".rstrip(), column=column.name)
