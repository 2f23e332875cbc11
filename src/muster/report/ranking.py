"""Which configs are set in bold: the best feasible one, and all that the declared test can't tell from it."""

from __future__ import annotations

from dataclasses import dataclass

from muster.report.analysis import Analysis
from muster.stats.compare import welch
from muster.stats.decision import LEAST_SEEDS
from muster.stats.quantiles import t_two_sided
from muster.stats.safety import Standing
from muster.stats.sample import Sample


@dataclass(frozen=True, slots=True)
class Ranking:
    bold: frozenset[str]
    because: str = ""  # why there are none: a key of the wording


def standing(analysis: Analysis, config: str) -> Standing | None:
    """On the limit; None where there is none."""
    found = analysis.decision.safety.get(config)
    return found.standing if found else None


def rank(analysis: Analysis) -> Ranking:
    plan = analysis.facts.plan
    if plan is None:
        return Ranking(frozenset(), "no_plan")
    if analysis.decision.verdict in ("INVALID", "INCOMPLETE"):
        return Ranking(frozenset(), analysis.decision.verdict.lower())
    allowed = ("FEASIBLE",) if plan.procedure.limit is not None else (None,)
    feasible = [each for each in analysis.samples(plan.primary) if standing(analysis, each.config) in allowed]
    if not feasible:
        return Ranking(frozenset(), "infeasible")
    enough = [each for each in feasible if each.n >= LEAST_SEEDS]
    if len(enough) < len(feasible):  # one that nobody may judge may be the best
        return Ranking(frozenset(), "few")
    best = max(enough, key=lambda each: each.mean if plan.procedure.higher else -each.mean)
    return Ranking(frozenset(each.config for each in enough if each is best or not _told_apart(analysis, best, each)))


def _told_apart(analysis: Analysis, best: Sample, other: Sample) -> bool:
    """With the baseline by the verdict's own test; among candidates by Welch's, held to the strictest threshold."""
    plan = analysis.facts.plan
    assert plan is not None
    if plan.procedure.baseline in (best.config, other.config):
        candidate = other.config if best.config == plan.procedure.baseline else best.config
        against = analysis.decision.against(candidate)
        return against is not None and against.rejected and not against.vetoed
    strictest = plan.procedure.alpha_each(len(analysis.decision.comparisons))
    se, df = welch(best, other)
    return se is not None and df is not None and t_two_sided((best.mean - other.mean) / se, df) <= strictest
