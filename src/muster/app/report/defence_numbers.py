"""Answers of the defence notes about the numbers: the claim, the difference and its size, the seeds behind it,
safety, parts, what more money would buy, what can't be claimed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from muster.app.facts.report_analysis import ReportAnalysis
from muster.app.facts.report_facts import DecisionPlan, ResultColumn
from muster.app.report.comparison_tables import (
    describe_proven_share,
    reading_of_comparison,
    share_of_better_seeds,
    statement_of_comparison,
    statement_of_safety,
    statements_of_dominance,
)
from muster.app.report.decision_report import bold_verdict_line, describe_fitness
from muster.app.report.estimates import (
    deciding_columns,
    difference_table_cell,
    format_limit_rule,
    format_of_column,
    limit_standing_of_config,
)
from muster.app.report.evidence_chain import (
    EvidenceChain,
    ReportStatement,
    statement_about_all_cells,
    statement_about_columns,
)
from muster.app.report.next_steps import describe_seed_price, statements_of_further_seeds, statements_of_next_step
from muster.app.report.red_flag_text import statement_about_flag
from muster.app.report.result_tables import FactorContrast, factor_contrasts
from muster.app.report.seed_statements import (
    describe_all_seeds,
    fewest_seeds_of_configs,
    statement_of_undeclared_look,
    statements_about_seeds,
)
from muster.app.report.verdict_changes import statement_of_seed_dependence, statements_of_conditions
from muster.app.report.verdict_sentences import confidence_level_of_plan
from muster.stats.decision_procedure import LEAST_SEEDS, BaselineComparison
from muster.stats.seed_planning import detectable_difference
from muster.text.catalogue import Catalogue
from muster.text.escape_markup import escape_markdown
from muster.text.number_format import format_declared_number, format_p_value, format_percent_number


def answer_what_money_buys(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    for each in statements_of_next_step(analysis, w):
        yield chain.tell(each)
    plan, step = analysis.facts.plan, analysis.next
    if plan is None or step is None or analysis.decision.verdict == "INVALID":
        return
    if analysis.decision.verdict == "INCOMPLETE":
        for each in statements_of_further_seeds(analysis, plan, step, w):
            yield chain.tell(each)
    elif twice := _statement_of_twice_the_seeds(analysis, plan, w):
        yield chain.tell(twice)


def _statement_of_twice_the_seeds(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> ReportStatement | None:
    """What the detectable difference comes down to; it is one of two groups, so all configs grow."""
    step, n, configs = analysis.next, fewest_seeds_of_configs(analysis), analysis.facts.configs
    if step is None or step.sd is None or step.detectable is None or n < 2:
        return None
    then = detectable_difference(2 * n, step.sd, step.alpha, plan.procedure.power)
    form = format_of_column(analysis, plan.primary)
    text = w(
        "money.twice",
        n=2 * n,
        configs=w.several(configs),
        column=plan.primary.name,
        now=form.spread(step.detectable),
        then="—" if then is None else form.spread(then),
        price=describe_seed_price(analysis, n * len(configs), w),
    )
    return statement_about_columns(analysis, text, configs, [plan.primary])


def answer_what_cannot_be_claimed(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    plan = analysis.facts.plan
    if analysis.decision.verdict == "INVALID":
        yield chain.tell(
            statement_about_all_cells(
                analysis, w("not.result", errors=w.count("error", len(analysis.errors)), n=len(analysis.errors))
            )
        )
    if analysis.facts.missing:
        missing = w.count("missing", len(analysis.facts.missing))
        yield chain.tell(
            ReportStatement(w("not.matrix", missing=missing), tuple(e.cell for e in analysis.facts.missing))
        )
    if plan is None:
        yield w("not.verdict")
    else:
        for each in (*_unclaimed_about_score(analysis, plan, w), *_unclaimed_about_cost(analysis, plan, w)):
            yield chain.tell(each)
        yield from _unclaimed_about_columns(analysis, plan, w)
    for split, note in analysis.facts.proxies.items():
        if note:
            yield escape_markdown(w("not.proxy", split=split, note=note))
    yield w("not.scope")


def _unclaimed_about_score(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> Iterator[ReportStatement]:
    comparisons, baseline = analysis.decision.comparisons, plan.procedure.baseline
    common = {"baseline": baseline, "column": plan.primary.name}
    if unproven := [each.config for each in comparisons if reading_of_comparison(analysis, each) != "supported"]:
        text = w("not.better", configs=w.several(unproven), **common)
        yield statement_about_columns(analysis, text, (*unproven, baseline), [plan.primary])
    undecided = ("open", "vetoed", "few", "unjudged")
    alike = [
        each.config
        for each in comparisons
        if reading_of_comparison(analysis, each) in undecided and not each.equal_enough
    ]
    if alike and analysis.decision.verdict != "EQUIVALENT":
        text = w("not.equal", configs=w.several(alike), **common)
        yield statement_about_columns(analysis, text, (*alike, baseline), [plan.primary])


def _unclaimed_about_cost(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> Iterator[ReportStatement]:
    safety = analysis.decision.safety
    if plan.limit is None or not safety:
        return
    if unproven := [config for config in safety if limit_standing_of_config(analysis, config) != "FEASIBLE"]:
        text = w("not.feasible", configs=w.several(unproven), rule=format_limit_rule(analysis))
        yield statement_about_columns(analysis, text, unproven, [plan.limit])
    feasible = [config for config in safety if limit_standing_of_config(analysis, config) == "FEASIBLE"]
    config = analysis.decision.config if analysis.decision.config in feasible else next(iter(feasible), None)
    if config is not None:
        found = safety[config]
        shown = {"keep": found.keep, "n": found.n, "proof": describe_proven_share(found, w), "config": config}
        yield statement_about_columns(
            analysis, w("not.each_seed", rule=format_limit_rule(analysis), **shown), [config], [plan.limit]
        )


def _unclaimed_about_columns(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> Iterator[str]:
    others = [column.name for column in analysis.facts.columns if column not in (plan.primary, plan.limit)]
    if others:
        yield escape_markdown(w("not.other_columns", columns=w.several(others)))
    if plan.factors:
        yield w("not.parts")


def answer_what_is_claimed(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    yield bold_verdict_line(analysis, chain, w)
    yield w.sentences(w("fit.question"), describe_fitness(analysis, w))


def answer_is_it_real(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    plan, decision = analysis.facts.plan, analysis.decision
    if plan is None:
        yield w("compare.no_plan")
        return
    if not decision.comparisons:
        yield escape_markdown(w("compare.none", column=plan.primary.name))
        return
    if decision.verdict in ("INVALID", "INCOMPLETE"):
        yield w(f"real.{decision.verdict.lower()}")
    else:
        yield chain.tell(_statement_of_readings(analysis, plan, w))
    for each in decision.comparisons:
        made = statement_of_comparison(analysis, each, w)
        size = "" if decision.verdict == "INVALID" else _describe_effect_size(analysis, plan, each, w)
        yield chain.tell(replace(made, text=w.sentences(made.text, size)))


def _statement_of_readings(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> ReportStatement:
    readings = {
        each.config: "equal"
        if reading_of_comparison(analysis, each) == "open" and each.equal_enough
        else reading_of_comparison(analysis, each)
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
    return statement_about_columns(analysis, text, analysis.facts.configs, [plan.primary])


def _describe_effect_size(analysis: ReportAnalysis, plan: DecisionPlan, each: BaselineComparison, w: Catalogue) -> str:
    g = each.difference.g
    return w(
        "real.size",
        config=each.config,
        g="—" if g is None else f"{g:+.2f}",
        baseline=plan.procedure.baseline,
        percent=f"{100 * share_of_better_seeds(plan, each):.0f}",
        delta=_describe_gain_against_delta(analysis, plan, each, w),
    )


def _describe_gain_against_delta(
    analysis: ReportAnalysis, plan: DecisionPlan, each: BaselineComparison, w: Catalogue
) -> str:
    delta, fewest = plan.procedure.delta, fewest_seeds_of_configs(analysis)
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
    return w(f"real.delta_{key}", delta=format_declared_number(delta), level=confidence_level_of_plan(plan))


def answer_why_so_many_seeds(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    plan, n = analysis.facts.plan, fewest_seeds_of_configs(analysis)
    if plan is not None and statement_of_undeclared_look(analysis, w) is None:  # which says more
        looks = w.several([str(look) for look in plan.procedure.looks])
        key = "seeds.looks" if n in plan.procedure.looks else "seeds.at_no_look"
        yield w(key, n=n, looks=looks, last=plan.procedure.looks[-1])
    for each in statements_about_seeds(analysis, w):
        yield chain.tell(each)
    yield w("seeds.replicate")


def answer_depends_on_one_seed(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    """Of what the verdict rests on; where nothing is decided, of every comparison."""
    comparisons = analysis.decision.comparisons
    compared = (statement_of_seed_dependence(analysis, each, w) for each in comparisons)
    found = list(statements_of_conditions(analysis, w)) or [each for each in compared if each is not None]
    told = [chain.tell(each) for each in found]
    if told:
        yield from told
    elif comparisons:
        yield w("seed.too_few", seeds=describe_all_seeds(analysis, w))
    else:
        yield w("seed.nothing")


def answer_is_it_safe(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    plan = analysis.facts.plan
    if plan is None or plan.limit is None:
        yield w("safety.not_declared")
        return
    for each in statements_of_dominance(analysis, w):
        yield chain.tell(each)
    for config in analysis.decision.safety:
        yield chain.tell(statement_of_safety(analysis, config, w))
    yield w("safety.note_skewed" if plan.procedure.at_most else "safety.note_skewed_min")


def answer_how_many_compared(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    plan = analysis.facts.plan
    if plan is None:
        yield w("many.undeclared")
        return
    candidates = len(analysis.decision.comparisons)
    yield escape_markdown(
        w(
            "many.test",
            column=plan.primary.name,
            candidates=w.count("candidate", candidates),
            alpha=format_declared_number(plan.procedure.alpha),
            looks=w.count("look", len(plan.procedure.looks)),
            strictest=format_p_value(plan.procedure.alpha_each(candidates)),
        )
    )
    each = plan.procedure.alpha_each(candidates)
    yield w("many.routes", level=format_percent_number(1 - plan.procedure.alpha), each=format_percent_number(1 - each))
    yield w("many.others")
    changed = [flag for flag in analysis.flags if flag.code == "decision_changed"]
    yield from (chain.tell(statement_about_flag(analysis, flag, w)) for flag in changed)
    if not changed:
        yield w("many.declared")


def answer_what_parts_contribute(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    pairs = factor_contrasts(analysis)
    if not pairs:
        yield w("parts.none")
    else:
        yield w("parts.estimates")
    for each in pairs:
        told = [_describe_part_difference(analysis, each, column, w) for column in deciding_columns(analysis)]
        text = w(
            "parts.pair",
            factor=each.factor,
            without=each.levels[1],
            with_=each.levels[0],
            pair=f"{each.with_} − {each.without}",
            differences=w("semicolon").join(told),
        )
        yield chain.tell(
            statement_about_columns(analysis, text, (each.with_, each.without), deciding_columns(analysis))
        )


def _describe_part_difference(
    analysis: ReportAnalysis, each: FactorContrast, column: ResultColumn, w: Catalogue
) -> str:
    cell = difference_table_cell(analysis, column, each.with_, each.without)
    return w("parts.difference", difference=f"{cell.text} {cell.below}".rstrip(), column=column.name)
