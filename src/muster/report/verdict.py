"""The verdict in one sentence, by the declared procedure and in its words."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.analysis import Analysis
from muster.report.estimates import bound_words, format_of, judged_columns, rule
from muster.report.facts import Column, Plan
from muster.report.flag_words import by_level, flag_text
from muster.report.numbers import p_value, percent, plain
from muster.report.ranking import standing
from muster.report.seeds_words import at_a_look, seeds_range
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
    text = _DECIDED.get(decision.because, _not_enough)(analysis, plan, w)
    if decision.because in _DECIDED and not at_a_look(analysis):
        text = w.sentences(text, w("verdict.no_look"))
    return about(analysis, text, analysis.facts.configs, judged_columns(analysis))


def proxy_statements(analysis: Analysis, w: Words) -> Iterator[Statement]:
    """What the splits stand for that the verdict is drawn from."""
    for head in dict.fromkeys(column.head for column in judged_columns(analysis)):
        if note := analysis.facts.proxies.get(head):
            columns = [column for column in judged_columns(analysis) if column.head == head]
            text = w("verdict.proxy", split=head, note=note.rstrip(" .。"))
            yield about(analysis, text, analysis.facts.configs, columns)


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


def baseline_words(plan: Plan, w: Words) -> str:
    """`the baseline (v2_base)`; the name is left out where it says no more."""
    name = plan.procedure.baseline
    return w("baseline.itself") if name == "baseline" else w("baseline.named", name=name)


def _supported(analysis: Analysis, plan: Plan, w: Words) -> str:
    each = _chosen(analysis)
    return w(
        "verdict.supported",
        config=each.config,
        column=plan.primary.name,
        baseline=baseline_words(plan, w),
        gain=gain_words(analysis, each, w, signed=False),
        p=p_words(each, w),
        threshold=threshold_words(each),
        limit=w("verdict.keeps", rule=rule(analysis), cost=cost_words(analysis, plan, each.config, w))
        if rule(analysis)
        else "",
    )


def _baseline_infeasible(analysis: Analysis, plan: Plan, w: Words) -> str:
    each = _chosen(analysis)
    return w(
        "verdict.baseline_infeasible",
        config=each.config,
        baseline=baseline_words(plan, w),
        rule=rule(analysis),
        level=level(plan),
        broken=cost_words(analysis, plan, plan.procedure.baseline, w),
        kept=cost_words(analysis, plan, each.config, w),
        price=_price(analysis, plan, each, w),
    )


def _price(analysis: Analysis, plan: Plan, each: Comparison, w: Words) -> str:
    """What the candidate costs on the primary metric, and what it costs at most."""
    form, interval = format_of(analysis, plan.primary), each.difference.interval(1 - plan.procedure.alpha)
    assert interval is not None
    assert each.sure is not None
    lower = each.difference.estimate < 0
    return w(
        "price.loss" if lower == plan.procedure.higher else "price.gain",
        column=plan.primary.name,
        by=form(abs(each.difference.estimate)),
        way=w("way.lower" if lower else "way.higher"),
        level=level(plan),
        interval=form.interval(interval),
        loss=form(max(0.0, -each.sure[0])),
        delta=plain(plan.procedure.delta or 0.0),
    )


def cost_words(analysis: Analysis, plan: Plan, config: str, w: Words) -> str:
    """`mean 0.93, at most 1.39`: the bound that its standing rests on."""
    found = analysis.decision.safety[config]
    assert plan.limit is not None
    form = format_of(analysis, plan.limit)
    above = plan.procedure.at_most == (found.standing == "FEASIBLE")
    bound = found.upper if above else found.lower
    mean = form(analysis.sample(config, plan.limit).mean)
    return w("cost.at_most" if above else "cost.at_least", mean=mean, bound=bound_words(bound, form))


def _equivalent(analysis: Analysis, plan: Plan, w: Words) -> str:
    return w(
        "verdict.inside_delta",
        column=plan.primary.name,
        level=percent(1 - 2 * plan.procedure.alpha_a_look),
        baseline=baseline_words(plan, w),
        delta=plain(plan.procedure.delta or 0.0),
        configs=w.several([each.config for each in feasible(analysis)]),
        candidate=candidate_words(plan, w),
        unsafe=_unsafe(analysis, plan, w),
    )


def _none_left(analysis: Analysis, plan: Plan, w: Words) -> str:
    """Why each candidate is out: the limit comes before the score."""
    comparisons, form = analysis.decision.comparisons, format_of(analysis, plan.primary)
    broken = [each for each in comparisons if standing(analysis, each.config) == "INFEASIBLE"]
    worse = [f"{each.config} {form.signed(each.difference.estimate)}" for each in comparisons if each not in broken]
    reasons = []
    if worse:
        reasons.append(w("out.worse", column=plan.primary.name, configs=w.several(worse)))
    if broken:
        told = [f"{each.config} {cost_words(analysis, plan, each.config, w)}" for each in broken]
        reasons.append(w("out.infeasible", rule=rule(analysis), configs=w("semicolon").join(told)))
    shown = standing(analysis, plan.procedure.baseline) in (None, "FEASIBLE")
    return w(
        "verdict.none_left",
        baseline=baseline_words(plan, w),
        reasons=w("semicolon").join(reasons),
        limit="" if shown else w("verdict.limit_open", rule=rule(analysis)),
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
    common = {"column": plan.primary.name, "unsafe": _unsafe(analysis, plan, w)}
    if all(each.worse for each in sound):
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


def _unsafe(analysis: Analysis, plan: Plan, w: Words) -> str:
    broken = standing(analysis, plan.procedure.baseline) == "INFEASIBLE"
    return w("verdict.unsafe", rule=rule(analysis)) if broken else ""


_DECIDED = {
    "supported": _supported,
    "baseline_infeasible": _baseline_infeasible,
    "inside_delta": _equivalent,
    "none_left": _none_left,
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


def _gains(plan: Plan, each: Comparison) -> bool:
    return (each.difference.estimate > 0) == plan.procedure.higher


def _chosen(analysis: Analysis) -> Comparison:
    found = analysis.decision.against(analysis.decision.config or "")
    assert found is not None, "a recommended config was compared"
    return found
