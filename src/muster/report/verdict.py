"""The verdict in one sentence, by the declared procedure and in its words."""

from __future__ import annotations

from muster.report.analysis import Analysis
from muster.report.estimates import format_of, judged_columns, rule
from muster.report.facts import Column, Plan
from muster.report.flag_words import by_level, flag_text
from muster.report.numbers import p_value, percent, plain
from muster.report.ranking import standing
from muster.report.seeds_words import seeds_range
from muster.report.statement import Statement, about, about_all
from muster.report.words import Words
from muster.stats.decision import LEAST_SEEDS, Comparison
from muster.stats.flags import Flag

_NAMED_FLAGS = 2


def verdict_sentence(analysis: Analysis) -> str:
    """For a terminal and for `reason` of `muster report --json`: plain text."""
    return verdict_statement(analysis, Words(analysis.facts.language)).text


def verdict_statement(analysis: Analysis, w: Words) -> Statement:
    decision, plan = analysis.decision, analysis.facts.plan
    if decision.because == "flags":
        return about_all(analysis, _invalid(analysis, w))
    if decision.because == "missing":
        return Statement(_incomplete(analysis, w), tuple(each.cell for each in analysis.facts.missing))
    if plan is None:
        return about_all(analysis, w("verdict.undeclared"))
    text = _RECOMMENDED.get(decision.because, _not_enough)(analysis, plan, w)
    return about(analysis, text, analysis.facts.configs, judged_columns(analysis))


def choice_statement(analysis: Analysis, w: Words) -> Statement:
    """Why this one, where several qualify."""
    decision, plan = analysis.decision, analysis.facts.plan
    assert plan is not None
    rivals, config = list(decision.rivals), decision.config or ""
    text = w("choice.best_mean", config=config, rivals=w.some(rivals), column=plan.primary.name)
    return about(analysis, text, (config, *rivals), (plan.primary,))


def gain_words(analysis: Analysis, each: Comparison, w: Words, key: str = "gain", *, signed: bool = True) -> str:
    """By how much the candidate is better, with its interval; both count upwards for better, whatever the direction."""
    plan = analysis.facts.plan
    assert plan is not None
    form = format_of(analysis, plan.primary)
    gain = each.difference.estimate if plan.procedure.higher else -each.difference.estimate
    shown = form.signed(gain) if signed else form(gain)
    if each.gain is None:
        return w("gain.no_interval", gain=shown)
    return w(key, gain=shown, level=level(plan), interval=form.interval(each.gain))


def p_words(each: Comparison, w: Words) -> str:
    """`Welch p = 0.412`, with the digits that tell it from its threshold."""
    if each.difference.p is None:
        return w("p.none")
    shown = p_value(each.difference.p, each.threshold)
    return w("p.below", p=shown[1:]) if shown.startswith("<") else w("p.equals", p=shown)


def threshold_words(each: Comparison) -> str:
    """As precise as the p beside it."""
    return p_value(each.threshold, each.difference.p)


def level(plan: Plan) -> str:
    """Of the intervals of differences."""
    return percent(1 - plan.procedure.alpha)


def _supported(analysis: Analysis, plan: Plan, w: Words) -> str:
    each = _chosen(analysis)
    return w(
        "verdict.supported",
        config=each.config,
        column=plan.primary.name,
        baseline=plan.procedure.baseline,
        gain=gain_words(analysis, each, w, signed=False),
        p=p_words(each, w),
        threshold=threshold_words(each),
        limit=w("verdict.keeps", rule=rule(analysis)) if rule(analysis) else w("verdict.no_limit"),
    )


def _baseline_infeasible(analysis: Analysis, plan: Plan, w: Words) -> str:
    each, baseline = _chosen(analysis), plan.procedure.baseline
    return w(
        "verdict.baseline_infeasible",
        config=each.config,
        baseline=baseline,
        rule=rule(analysis),
        bound=breach(analysis, baseline, w),
        column=plan.primary.name,
        gain=gain_words(analysis, each, w),
        delta=plain(plan.procedure.delta or 0.0),
    )


def breach(analysis: Analysis, config: str, w: Words) -> str:
    """The bound of a mean that breaks the limit: `71.2 or more`."""
    plan, found = analysis.facts.plan, analysis.decision.safety[config]
    assert plan is not None
    assert plan.limit is not None
    bound = found.lower if plan.procedure.at_most else found.upper
    shown = "—" if bound is None else format_of(analysis, plan.limit)(bound)
    return w("at_least" if plan.procedure.at_most else "at_most", bound=shown)


def _equivalent(analysis: Analysis, plan: Plan, w: Words) -> str:
    return w(
        "verdict.inside_delta",
        column=plan.primary.name,
        level=percent(1 - 2 * plan.procedure.alpha),
        baseline=plan.procedure.baseline,
        delta=plain(plan.procedure.delta or 0.0),
        configs=w.several([each.config for each in feasible(analysis)]),
        candidate=candidate_words(plan, w),
    )


def _not_enough(analysis: Analysis, plan: Plan, w: Words) -> str:
    decision, baseline = analysis.decision, plan.procedure.baseline
    if not decision.comparisons:
        return w("verdict.nothing_to_compare", column=plan.primary.name, baseline=baseline)
    sound = feasible(analysis)
    if not sound:
        standings = [f"{each.config} {standing_words(analysis, each.config, w)}" for each in decision.comparisons]
        return w("verdict.none_feasible", rule=rule(analysis), standings=w.several(standings))
    if decision.because == "too_few_seeds":
        return _too_few_seeds(analysis, plan, sound, w)
    return _no_gain(analysis, plan, sound, w)


def _too_few_seeds(analysis: Analysis, plan: Plan, sound: list[Comparison], w: Words) -> str:
    """Of the primary metric, or of the cost where that has enough."""
    configs = (plan.procedure.baseline, *(each.config for each in sound))
    scores = [analysis.sample(config, plan.primary).n for config in configs]
    if min(scores) < LEAST_SEEDS or plan.limit is None:
        return w("verdict.too_few_seeds", seeds=seeds_range(scores, w), least=LEAST_SEEDS)
    costs = [analysis.sample(c, plan.limit).n for c in configs if plan.limit in rested_columns(analysis, plan, c)]
    return w("verdict.too_few_costs", seeds=seeds_range(costs, w), column=plan.limit.name, least=LEAST_SEEDS)


def fewest_behind(analysis: Analysis, plan: Plan, *configs: str) -> int:
    """Seeds that a recommendation rests on, those of a cost among them."""
    return min(analysis.sample(c, column).n for c in configs for column in rested_columns(analysis, plan, c))


def rested_columns(analysis: Analysis, plan: Plan, config: str) -> tuple[Column, ...]:
    """The cost of the baseline is asked for only where it breaks the limit."""
    if config == plan.procedure.baseline and standing(analysis, config) != "INFEASIBLE":
        return (plan.primary,)
    return judged_columns(analysis)


def _no_gain(analysis: Analysis, plan: Plan, sound: list[Comparison], w: Words) -> str:
    """No candidate that may be recommended is better by the declared test."""
    baseline = plan.procedure.baseline
    unsafe = w("verdict.unsafe", rule=rule(analysis)) if standing(analysis, baseline) == "INFEASIBLE" else ""
    common = {"column": plan.primary.name, "unsafe": unsafe}
    if all(_is_worse(plan, each) for each in sound):
        common |= {"baseline": baseline, "candidate": candidate_words(plan, w)}
        return w("verdict.all_worse", configs=w.several([each.config for each in sound]), **common)
    nearest = min(
        sound, key=lambda each: (not _gains(plan, each), 1.0 if each.difference.p is None else each.difference.p)
    )
    common |= {"config": nearest.config, "gain": gain_words(analysis, nearest, w, "gain.inline")}
    if nearest.difference.p is None:
        return w("verdict.no_spread", **common)
    return w(
        "verdict.not_supported",
        baseline=baseline,
        candidate=candidate_words(plan, w),
        p=p_words(nearest, w),
        threshold=threshold_words(nearest),
        **common,
    )


def candidate_words(plan: Plan, w: Words) -> str:
    """Where no limit is declared, nothing is called feasible."""
    return w("candidate.any" if plan.procedure.limit is None else "candidate.feasible")


_RECOMMENDED = {
    "supported": _supported,
    "baseline_infeasible": _baseline_infeasible,
    "inside_delta": _equivalent,
}


def _incomplete(analysis: Analysis, w: Words) -> str:
    facts, missing = analysis.facts, w.count("missing", len(analysis.facts.missing))
    return w("verdict.missing", missing=missing, k=facts.k, n=facts.n, cells=missing_words(analysis, w))


def missing_words(analysis: Analysis, w: Words, most: int = 3) -> str:
    """Those that hold others up come first: what is BLOCKED comes of itself."""
    ordered = sorted(analysis.facts.missing, key=lambda each: each.state == "BLOCKED")
    told = [
        w("verdict.missing_cell", cell=each.cell, state=each.state, reason=each.reason) if each.reason else each.cell
        for each in ordered
    ]
    return w.some(told, most)


def _invalid(analysis: Analysis, w: Words) -> str:
    """The first flags of each kind: seventeen early checkpoints are one kind."""
    errors = by_level(analysis.errors)
    kinds: dict[str, Flag] = {}
    for flag in errors:
        kinds.setdefault(flag.code, flag)
    named = list(kinds.values())[:_NAMED_FLAGS]
    told = w("semicolon").join(flag_text(flag, w.language) for flag in named)
    left = len(errors) - len(named)
    shown = w("verdict.more_flags", first=told, n=left) if left else told
    return w("verdict.flags", errors=w.count("error", len(errors)), flags=shown)


def feasible(analysis: Analysis) -> list[Comparison]:
    """Candidates that are shown to keep the limit; all of them where there is none."""
    decision, plan = analysis.decision, analysis.facts.plan
    if plan is None or plan.procedure.limit is None:
        return list(decision.comparisons)
    keep = {config for config, found in decision.safety.items() if found.standing == "FEASIBLE"}
    return [each for each in decision.comparisons if each.config in keep]


def standing_words(analysis: Analysis, config: str, w: Words) -> str:
    return w(f"standing.{standing(analysis, config) or 'UNDETERMINED'}")


def _is_worse(plan: Plan, each: Comparison) -> bool:
    return each.rejected and each.exact_agrees is not False and not _gains(plan, each)


def _gains(plan: Plan, each: Comparison) -> bool:
    return (each.difference.estimate > 0) == plan.procedure.higher


def _chosen(analysis: Analysis) -> Comparison:
    found = analysis.decision.against(analysis.decision.config or "")
    assert found is not None, "a recommended config was compared"
    return found
