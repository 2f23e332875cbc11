"""Answers about what is left: what more money would buy, and what can't be claimed."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.analysis import Analysis
from muster.report.comparison_table import reading
from muster.report.escape import markdown
from muster.report.estimates import format_of, rule
from muster.report.facts import Plan
from muster.report.next_words import further_seeds, next_statements, price_words
from muster.report.ranking import standing
from muster.report.safety_table import proof_words
from muster.report.seeds_words import fewest_seeds
from muster.report.statement import Chain, Statement, about, about_all
from muster.report.words import Words
from muster.stats.power import detectable


def twice_the_money(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    for each in next_statements(analysis, w):
        yield chain.tell(each)
    plan, step = analysis.facts.plan, analysis.next
    if plan is None or step is None or analysis.decision.verdict == "INVALID":
        return
    if analysis.decision.verdict == "INCOMPLETE":
        for each in further_seeds(analysis, plan, step, w):
            yield chain.tell(each)
    elif twice := _twice(analysis, plan, w):
        yield chain.tell(twice)


def _twice(analysis: Analysis, plan: Plan, w: Words) -> Statement | None:
    """What the detectable difference comes down to; it is one of two groups, so all configs grow."""
    step, n, configs = analysis.next, fewest_seeds(analysis), analysis.facts.configs
    if step is None or step.sd is None or step.detectable is None or n < 2:
        return None
    then = detectable(2 * n, step.sd, step.alpha, plan.procedure.power)
    form = format_of(analysis, plan.primary)
    text = w(
        "money.twice",
        n=2 * n,
        configs=w.several(configs),
        column=plan.primary.name,
        now=form.spread(step.detectable),
        then="—" if then is None else form.spread(then),
        price=price_words(analysis, n * len(configs), w),
    )
    return about(analysis, text, configs, [plan.primary])


def can_not_claim(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    plan = analysis.facts.plan
    if analysis.decision.verdict == "INVALID":
        yield chain.tell(
            about_all(analysis, w("not.result", errors=w.count("error", len(analysis.errors)), n=len(analysis.errors)))
        )
    if analysis.facts.missing:
        missing = w.count("missing", len(analysis.facts.missing))
        yield chain.tell(Statement(w("not.matrix", missing=missing), tuple(e.cell for e in analysis.facts.missing)))
    if plan is None:
        yield w("not.verdict")
    else:
        for each in (*_about_score(analysis, plan, w), *_about_cost(analysis, plan, w)):
            yield chain.tell(each)
        yield from _about_columns(analysis, plan, w)
    for split, note in analysis.facts.proxies.items():
        if note:
            yield markdown(w("not.proxy", split=split, note=note))
    yield w("not.scope")


def _about_score(analysis: Analysis, plan: Plan, w: Words) -> Iterator[Statement]:
    comparisons, baseline = analysis.decision.comparisons, plan.procedure.baseline
    common = {"baseline": baseline, "column": plan.primary.name}
    if unproven := [each.config for each in comparisons if reading(analysis, each) != "supported"]:
        text = w("not.better", configs=w.several(unproven), **common)
        yield about(analysis, text, (*unproven, baseline), [plan.primary])
    undecided = ("open", "vetoed", "few", "unjudged")
    alike = [each.config for each in comparisons if reading(analysis, each) in undecided and not each.equal_enough]
    if alike and analysis.decision.verdict != "EQUIVALENT":
        text = w("not.equal", configs=w.several(alike), **common)
        yield about(analysis, text, (*alike, baseline), [plan.primary])


def _about_cost(analysis: Analysis, plan: Plan, w: Words) -> Iterator[Statement]:
    safety = analysis.decision.safety
    if plan.limit is None or not safety:
        return
    if unproven := [config for config in safety if standing(analysis, config) != "FEASIBLE"]:
        text = w("not.feasible", configs=w.several(unproven), rule=rule(analysis))
        yield about(analysis, text, unproven, [plan.limit])
    feasible = [config for config in safety if standing(analysis, config) == "FEASIBLE"]
    config = analysis.decision.config if analysis.decision.config in feasible else next(iter(feasible), None)
    if config is not None:
        found = safety[config]
        shown = {"keep": found.keep, "n": found.n, "proof": proof_words(found, w), "config": config}
        yield about(analysis, w("not.each_seed", rule=rule(analysis), **shown), [config], [plan.limit])


def _about_columns(analysis: Analysis, plan: Plan, w: Words) -> Iterator[str]:
    others = [column.name for column in analysis.facts.columns if column not in (plan.primary, plan.limit)]
    if others:
        yield markdown(w("not.other_columns", columns=w.several(others)))
    if plan.factors:
        yield w("not.parts")
