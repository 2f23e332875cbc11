"""Whether each config keeps the limit, by bounds and by counting; and whether one dominates the baseline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from muster.report.analysis import Analysis
from muster.report.comparison_table import difference_words, reading
from muster.report.coverage import seeds_there
from muster.report.estimates import bound_words, captioned, difference_cell, format_of, rule
from muster.report.facts import Column, Plan
from muster.report.grid import Cell, Grid, aligned
from muster.report.main_table import name_cell
from muster.report.numbers import Format, confidence, plain, share
from muster.report.statement import Chain, Statement, about
from muster.report.verdict import level, standing_words
from muster.report.words import Words
from muster.stats.decision import LEAST_SEEDS, Comparison, compare_all
from muster.stats.safety import Feasibility


def safety_grid(analysis: Analysis, plan: Plan, chain: Chain, w: Words) -> Grid:
    names = ("standing", "mean", "lower", "upper", "keep", "share", "worst")
    own = (w("table.config"), w("table.seeds"))
    head = (*own, *(w(f"safety.{name}") for name in names), w("compare.evidence"))
    configs = [config for config in analysis.facts.configs if config in analysis.decision.safety]
    rows = tuple(_row(analysis, plan, config, chain, w) for config in configs)
    skewed = w("safety.note_skewed" if plan.procedure.at_most else "safety.note_skewed_min")
    caption = captioned(analysis, w("safety.caption", rule=rule(analysis)), w)
    notes = (*_bounds_notes(analysis, plan, w), w("safety.note_share"), skewed)
    return Grid(caption, head, rows, aligned(3, head, right=-1), notes)


def _bounds_notes(analysis: Analysis, plan: Plan, w: Words) -> Iterator[str]:
    """How sure the bounds are, and what they rest on, once for each kind."""
    safety, procedure = analysis.decision.safety, plan.procedure
    yield w(
        "safety.note_bounds",
        level=level(plan),
        each=confidence(procedure.alpha_each(len(analysis.decision.comparisons))),
        candidates=w.count("candidate", len(analysis.decision.comparisons)),
        looks=w.count("look", len(procedure.looks)),
    )
    for basis in dict.fromkeys(found.basis for found in safety.values()):
        if basis != "few":
            cap = "" if procedure.cap is None else plain(procedure.cap)
            configs = w.several([config for config, found in safety.items() if found.basis == basis])
            yield w(f"safety.note_{basis}", configs=configs, cap=cap)


def safety_statement(analysis: Analysis, config: str, w: Words) -> Statement:
    plan, found = analysis.facts.plan, analysis.decision.safety[config]
    assert plan is not None
    assert plan.limit is not None
    form, common = format_of(analysis, plan.limit), {"config": config, "rule": rule(analysis)}
    counted = {"standing": standing_words(analysis, config, w), "keep": found.keep, "n": found.n}
    if found.basis == "few":
        text = w("safety.sentence_few", **common, **counted)
    else:
        text = w(
            "safety.sentence",
            **common,
            **counted,
            mean=form(analysis.sample(config, plan.limit).mean),
            lower=bound_words(found.lower, form),
            upper=bound_words(found.upper, form),
            share=proof_words(found, w) if found.keep else "",
            worst=_worst(found, form, w),
        )
    return about(analysis, text, [config], [plan.limit])


def proof_words(found: Feasibility, w: Words) -> str:
    """What so many seeds leave open: five of five say nothing about up to 45 % of all."""
    return w("safety.proves", share=f"{100 * found.keep_at_least:.0f}", fail=f"{100 * found.fail_at_most:.0f}")


def dominance_statements(analysis: Analysis, w: Words) -> Iterator[Statement]:
    """ "Dominates" only where both differences are supported."""
    plan = analysis.facts.plan
    if plan is None or plan.limit is None or plan.limit == plan.primary or not analysis.decision.comparisons:
        return
    if analysis.decision.verdict in ("INVALID", "INCOMPLETE"):
        yield Statement(w("dominates.not_judged"))
        return
    columns = (plan.primary, plan.limit)
    others: dict[str, list[str]] = {"neither": [], "few": []}
    costs = {each.config: each for each in cost_comparisons(analysis, plan, plan.limit)}
    for each in analysis.decision.comparisons:
        cost = costs.get(each.config)
        key = "few" if reading(analysis, each) == "few" else _kind(each, cost)
        if key in others:
            others[key].append(each.config)
            continue
        text = w(
            f"dominates.{key}",
            config=each.config,
            baseline=plan.procedure.baseline,
            column=plan.primary.name,
            limit=plan.limit.name,
            difference=_missed(analysis, plan.limit, each, key, w),
        )
        yield about(analysis, text, (each.config, plan.procedure.baseline), columns)
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
            yield about(analysis, text, (*configs, plan.procedure.baseline), columns)


def cost_comparisons(analysis: Analysis, plan: Plan, limit: Column) -> tuple[Comparison, ...]:
    """By the same test as the primary metric: less of a cost is better, more of what has a minimum."""
    procedure = replace(plan.procedure, higher=not plan.procedure.at_most, limit=None, delta=None)
    return compare_all(procedure, analysis.samples(limit))


def _kind(score: Comparison, cost: Comparison | None) -> str:
    cheaper = cost is not None and cost.supported
    if score.supported:
        return "yes" if cheaper else "score"
    return "cost" if cheaper else "neither"


def _missed(analysis: Analysis, limit: Column, each: Comparison, key: str, w: Words) -> str:
    """The difference that is not supported."""
    if key == "cost":
        return difference_words(analysis, each, w, "gain.inline")
    cell = difference_cell(analysis, limit, each.config, each.difference.baseline)
    return f"{cell.text} {cell.below}".rstrip()


def _row(analysis: Analysis, plan: Plan, config: str, chain: Chain, w: Words) -> tuple[Cell, ...]:
    assert plan.limit is not None
    found, form = analysis.decision.safety[config], format_of(analysis, plan.limit)
    sample = analysis.sample(config, plan.limit)
    return (
        name_cell(analysis, config),
        Cell(seeds_there(analysis.facts, sample)),
        Cell(standing_words(analysis, config, w)),
        Cell(form(sample.mean) if sample.n else w("table.missing")),
        *(Cell(bound_words(bound, form)) for bound in (found.lower, found.upper)),
        Cell(f"{found.keep}/{found.n}"),
        Cell(f"≥ {share(found.keep_at_least)}" if found.keep else "—"),
        Cell(_worst(found, form, w)),
        Cell(chain.mark(safety_statement(analysis, config, w))),
    )


def _worst(found: Feasibility, form: Format, w: Words) -> str:
    if found.worst is None:
        return "—"
    return w("safety.worst_seed", value=form(found.worst[1]), seed=found.worst[0])
