"""The cheapest next step in words, with its price."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.analysis import Analysis
from muster.report.coverage import open_seeds
from muster.report.estimates import format_of, judged_columns
from muster.report.facts import Plan
from muster.report.numbers import money, percent, plain
from muster.report.statement import Statement, about, cells_behind
from muster.report.verdict import feasible, fewest_behind
from muster.report.words import Words
from muster.stats.decision import LEAST_SEEDS
from muster.stats.more_seeds import NextStep

HOUR = 3600.0


def next_statements(analysis: Analysis, w: Words) -> Iterator[Statement]:
    decision, plan = analysis.decision, analysis.facts.plan
    if decision.because == "flags":
        yield Statement(w("next.flags"), cells_behind(analysis, analysis.errors))
    elif decision.because == "missing":
        yield from _to_run(analysis, w)
        yield from loss_statements(analysis, w)
    elif plan is None:
        yield Statement(w("next.undeclared"))
    elif decision.verdict != "NOT_ENOUGH_EVIDENCE":
        yield Statement(w("next.none"))
    elif decision.because == "too_few_seeds":
        yield _to_least(analysis, plan, w)
    elif analysis.next is not None:
        yield from further_seeds(analysis, plan, analysis.next, w)


def _to_run(analysis: Analysis, w: Words) -> Iterator[Statement]:
    """What `muster up` brings by itself."""
    facts = analysis.facts
    lost = (*facts.lost, *facts.settled)
    cells = tuple(each.cell for each in facts.missing if each.cell not in {loss.cell for loss in lost})
    if cells:
        pairs = len(set(open_seeds(facts)) - {(loss.config, loss.seed) for loss in lost})
        text = w("next.missing", pairs=w.count("pair", pairs), price=price_words(analysis, pairs, w, "most"))
        yield Statement(text, cells)


def loss_statements(analysis: Analysis, w: Words) -> Iterator[Statement]:
    """What holds up the verdict and no `muster up` brings."""
    facts = analysis.facts
    lost = [each for each in (*facts.lost, *facts.settled) if each.cell not in facts.cleared]
    for kind, code in (("failed", ""), ("unread", ""), ("unrelated", "lost_seeds"), ("completed", "withdrawn")):
        cells = [each.cell for each in lost if each.kind == kind]
        if cells:
            key = "next.lost" if code else f"next.{kind}"
            yield Statement(w(key, cells=w.some(cells, most=6), code=code), tuple(cells))


def further_seeds(analysis: Analysis, plan: Plan, step: NextStep, w: Words) -> Iterator[Statement]:
    """How many more show `delta`, whatever the verdict is now."""
    text = w(_key(plan, step), **_parts(analysis, plan, step, w))
    yield about(analysis, text, step.configs or analysis.facts.configs, [plan.primary])
    if _key(plan, step) != "next.more":
        return
    if step.n not in plan.procedure.looks:
        looks = w.several([str(look) for look in plan.procedure.looks])
        yield Statement(w("next.look", n=step.n, looks=looks))
    if step.within_budget:
        left = money(analysis.facts.budget_left or 0.0, analysis.facts.currency)
        yield Statement(w("next.left", left=left))


def _key(plan: Plan, step: NextStep) -> str:
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
        return "next.over" if _buys_something(step) else "next.over_now"
    return "next.more"


def _buys_something(step: NextStep) -> bool:
    return step.affordable is not None and (step.detectable is None or step.affordable < step.detectable)


def _parts(analysis: Analysis, plan: Plan, step: NextStep, w: Words) -> dict[str, object]:
    form = format_of(analysis, plan.primary)
    known = {"detectable": step.detectable, "affordable": step.affordable}
    return {
        **{name: "—" if value is None else form.spread(value) for name, value in known.items()},
        "column": plan.primary.name,
        "configs": w.several(step.configs),
        "n": step.n,
        "more": step.more if step.over_budget else w.count("more", step.more or 0),
        "delta": "" if plan.procedure.delta is None else plain(plan.procedure.delta),
        "power": percent(plan.procedure.power),
        "price": price_words(analysis, step.more or 0, w),
        "left": _left(analysis, w),
    }


def _left(analysis: Analysis, w: Words) -> str:
    """More may be spent than there was."""
    left = analysis.facts.budget_left or 0.0
    return w("left.some", left=money(left, analysis.facts.currency)) if left > 0 else w("left.none")


def _to_least(analysis: Analysis, plan: Plan, w: Words) -> Statement:
    """The first step is to have as many as a recommendation takes."""
    configs = (plan.procedure.baseline, *(each.config for each in feasible(analysis)))
    lacking = {config: LEAST_SEEDS - fewest_behind(analysis, plan, config) for config in configs}
    lacking = {config: more for config, more in lacking.items() if more > 0}
    more = sum(lacking.values())
    text = w(
        "next.to_least",
        more=w.count("more", more),
        configs=w.several(list(lacking)),
        least=LEAST_SEEDS,
        price=price_words(analysis, more, w),
    )
    return about(analysis, text, configs, judged_columns(analysis))


def price_words(analysis: Analysis, seeds: int, w: Words, kind: str = "price") -> str:
    """Of so many seeds of one config; empty where no price is known. `most`: some of it is done already."""
    price = analysis.facts.price
    if price is None or not seeds:
        return ""
    if price.money is None:
        return w(f"{kind}.hours", time=w.span(seeds * price.hours * HOUR))
    paid = money(seeds * price.money, analysis.facts.currency)
    return w(f"{kind}.money", time=w.span(seeds * price.hours * HOUR), money=paid)
