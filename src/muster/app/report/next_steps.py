"""The cheapest next step in words, with its price."""

from __future__ import annotations

from collections.abc import Iterator

from muster.app.facts.report_analysis import ReportAnalysis, incomplete_seeds
from muster.app.facts.report_facts import DecisionPlan
from muster.app.report.estimates import deciding_columns, format_of_column
from muster.app.report.evidence_chain import ReportStatement, cells_behind_flags, statement_about_columns
from muster.app.report.verdict_sentences import feasible_comparisons, fewest_seeds_behind
from muster.stats.decision_procedure import LEAST_SEEDS
from muster.stats.seed_planning import NextSeedStep
from muster.text.catalogue import Catalogue
from muster.text.number_format import format_declared_number, format_money_amount, format_percent_number

SECONDS_PER_HOUR = 3600.0


def statements_of_next_step(analysis: ReportAnalysis, w: Catalogue) -> Iterator[ReportStatement]:
    decision, plan = analysis.decision, analysis.facts.plan
    if decision.because == "flags":
        yield ReportStatement(w("next.flags"), cells_behind_flags(analysis, analysis.errors))
    elif decision.because == "missing":
        yield from _statement_of_cells_to_run(analysis, w)
        yield from statements_of_losses(analysis, w)
    elif plan is None:
        yield ReportStatement(w("next.undeclared"))
    elif decision.verdict != "NOT_ENOUGH_EVIDENCE":
        yield ReportStatement(w("next.none"))
    elif decision.because == "too_few_seeds":
        yield _statement_of_least_seeds(analysis, plan, w)
    elif analysis.next is not None:
        yield from statements_of_further_seeds(analysis, plan, analysis.next, w)


def _statement_of_cells_to_run(analysis: ReportAnalysis, w: Catalogue) -> Iterator[ReportStatement]:
    """What `muster up` brings by itself."""
    facts = analysis.facts
    lost = (*facts.lost, *facts.settled)
    cells = tuple(each.cell for each in facts.missing if each.cell not in {loss.cell for loss in lost})
    if cells:
        pairs = len(set(incomplete_seeds(facts)) - {(loss.config, loss.seed) for loss in lost})
        text = w("next.missing", pairs=w.count("pair", pairs), price=describe_seed_price(analysis, pairs, w, "most"))
        yield ReportStatement(text, cells)


def statements_of_losses(analysis: ReportAnalysis, w: Catalogue) -> Iterator[ReportStatement]:
    """What holds up the verdict and no `muster up` brings."""
    facts = analysis.facts
    lost = [each for each in (*facts.lost, *facts.settled) if each.cell not in facts.cleared]
    for kind, code in (("failed", ""), ("unread", ""), ("unrelated", "lost_seeds"), ("completed", "withdrawn")):
        cells = [each.cell for each in lost if each.kind == kind]
        if cells:
            key = "next.lost" if code else f"next.{kind}"
            yield ReportStatement(w(key, cells=w.some(cells, most=6), code=code), tuple(cells))


def statements_of_further_seeds(
    analysis: ReportAnalysis, plan: DecisionPlan, step: NextSeedStep, w: Catalogue
) -> Iterator[ReportStatement]:
    """How many more show `delta`, whatever the verdict is now."""
    text = w(_next_step_key(plan, step), **_next_step_parts(analysis, plan, step, w))
    yield statement_about_columns(analysis, text, step.configs or analysis.facts.configs, [plan.primary])
    if _next_step_key(plan, step) != "next.more":
        return
    if step.n not in plan.procedure.looks:
        looks = w.several([str(look) for look in plan.procedure.looks])
        yield ReportStatement(w("next.look", n=step.n, looks=looks))
    if step.within_budget:
        left = format_money_amount(analysis.facts.budget_left or 0.0, analysis.facts.currency)
        yield ReportStatement(w("next.left", left=left))


def _next_step_key(plan: DecisionPlan, step: NextSeedStep) -> str:
    if plan.procedure.delta is None:
        return "next.no_delta" if step.detectable is not None else "next.no_delta_yet"
    if not step.sd:
        return "next.no_spread"
    if not set(step.configs) - {plan.procedure.baseline}:
        return "next.no_contender"
    if step.n is None:
        return "next.never"
    if not step.more:
        return "next.enough"
    if step.over_budget:
        return "next.over" if _budget_buys_something(step) else "next.over_now"
    return "next.more"


def _budget_buys_something(step: NextSeedStep) -> bool:
    return step.affordable is not None and (step.detectable is None or step.affordable < step.detectable)


def _next_step_parts(
    analysis: ReportAnalysis, plan: DecisionPlan, step: NextSeedStep, w: Catalogue
) -> dict[str, object]:
    form = format_of_column(analysis, plan.primary)
    known = {"detectable": step.detectable, "affordable": step.affordable}
    return {
        **{name: "—" if value is None else form.spread(value) for name, value in known.items()},
        "column": plan.primary.name,
        "configs": w.several(step.configs),
        "n": step.n,
        "more": step.more if step.over_budget else w.count("more", step.more or 0),
        "delta": "" if plan.procedure.delta is None else format_declared_number(plan.procedure.delta),
        "power": format_percent_number(plan.procedure.power),
        "price": describe_seed_price(analysis, step.more or 0, w),
        "left": _describe_money_left(analysis, w),
    }


def _describe_money_left(analysis: ReportAnalysis, w: Catalogue) -> str:
    """More may be spent than there was."""
    left = analysis.facts.budget_left or 0.0
    return w("left.some", left=format_money_amount(left, analysis.facts.currency)) if left > 0 else w("left.none")


def _statement_of_least_seeds(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> ReportStatement:
    """The first step is to have as many as a recommendation takes."""
    configs = (plan.procedure.baseline, *(each.config for each in feasible_comparisons(analysis)))
    lacking = {config: LEAST_SEEDS - fewest_seeds_behind(analysis, plan, config) for config in configs}
    lacking = {config: more for config, more in lacking.items() if more > 0}
    more = sum(lacking.values())
    text = w(
        "next.to_least",
        more=w.count("more", more),
        configs=w.several(list(lacking)),
        least=LEAST_SEEDS,
        price=describe_seed_price(analysis, more, w),
    )
    return statement_about_columns(analysis, text, configs, deciding_columns(analysis))


def describe_seed_price(analysis: ReportAnalysis, seeds: int, w: Catalogue, kind: str = "price") -> str:
    """Of so many seeds of one config; empty where no price is known. `most`: some of it is done already."""
    price = analysis.facts.price
    if price is None or not seeds:
        return ""
    if price.money is None:
        return w(f"{kind}.hours", time=w.span(seeds * price.hours * SECONDS_PER_HOUR))
    paid = format_money_amount(seeds * price.money, analysis.facts.currency)
    return w(f"{kind}.money", time=w.span(seeds * price.hours * SECONDS_PER_HOUR), money=paid)
