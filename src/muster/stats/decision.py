"""The declared procedure: INVALID, INCOMPLETE, RECOMMEND, EQUIVALENT, KEEP_BASELINE, NOT_ENOUGH_EVIDENCE.

Every route shares alpha among the looks and, where it picks among candidates, among these. A config is recommended
wrongly if it breaks the limit or is worse by delta. Each of these takes one wrong test of this one config, at
alpha / (looks x candidates); so all candidates at all looks together are wrong in a share of alpha at most.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from muster.stats.compare import Difference, difference, holm, least_p
from muster.stats.safety import Feasibility, feasibility
from muster.stats.sample import Sample

Verdict = Literal["RECOMMEND", "EQUIVALENT", "KEEP_BASELINE", "NOT_ENOUGH_EVIDENCE", "INCOMPLETE", "INVALID"]
LEAST_SEEDS = 5


@dataclass(frozen=True, slots=True)
class Procedure:
    """What was declared before anything ran."""

    baseline: str
    higher: bool = True  # is better
    limit: float | None = None  # of the cost metric
    at_most: bool = True  # the limit is a maximum
    cap: float | None = None  # the worst cost that can occur
    delta: float | None = None  # the smallest difference that matters
    alpha: float = 0.05
    looks: tuple[int, ...] = (5, 10)
    power: float = 0.8

    @property
    def alpha_a_look(self) -> float:
        return self.alpha / max(1, len(self.looks))

    def alpha_each(self, candidates: int) -> float:
        """Of one candidate at one look."""
        return self.alpha_a_look / max(1, candidates)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate against the baseline. Its difference counts as an improvement where it is positive."""

    difference: Difference  # candidate minus baseline, in the metric's units
    gain: tuple[float, float] | None  # the 95 % interval of the improvement, for itself
    sure: tuple[float, float] | None  # the interval that holds for all candidates and looks together
    close: tuple[float, float] | None  # what equivalence of all is judged by: 90 % at alpha .05 and one look
    threshold: float  # the p that Holm holds it to
    rejected: bool  # by Welch at that threshold
    exact_agrees: bool | None  # None: it can't reach such a p with so few seeds, and informs only
    supported: bool  # better than the baseline, by all that was declared
    worse: bool = False  # likewise
    delta: float | None = None

    @property
    def config(self) -> str:
        return self.difference.candidate

    @property
    def vetoed(self) -> bool:
        """By the exact test."""
        return self.exact_agrees is not None and not self.exact_agrees

    @property
    def no_loss(self) -> bool:
        """A loss of delta or more is excluded."""
        return self.delta is not None and self.sure is not None and self.sure[0] > -self.delta

    @property
    def equal_enough(self) -> bool:
        """A difference of delta or more is excluded, in either direction."""
        return self.no_loss and self.sure is not None and self.delta is not None and self.sure[1] < self.delta


@dataclass(frozen=True, slots=True)
class Decision:
    verdict: Verdict
    config: str | None = None
    because: str = ""  # a key of the report's wording
    comparisons: tuple[Comparison, ...] = ()
    safety: Mapping[str, Feasibility] = field(default_factory=dict)
    best: str | None = None  # by its mean, among those that are not infeasible
    rivals: tuple[str, ...] = ()  # that qualify as the recommended one does, with a lesser mean

    def against(self, config: str) -> Comparison | None:
        return next((each for each in self.comparisons if each.config == config), None)


def decide(
    procedure: Procedure,
    primary: Sequence[Sample],
    cost: Sequence[Sample] = (),
    *,
    invalid: bool = False,
    incomplete: bool = False,
) -> Decision:
    """`invalid`: an ERROR flag was raised. `incomplete`: a declared cell is missing."""
    safety = _safety(procedure, primary, cost)
    comparisons = compare_all(procedure, primary)
    best = _best(procedure, [sample for sample in primary if _may_be_feasible(procedure, safety, sample.config)])

    def told(verdict: Verdict, because: str, config: str | None = None, qualify: Sequence[str] = ()) -> Decision:
        rivals = tuple(each for each in qualify if each != config)
        return Decision(verdict, config, because, comparisons, safety, best, rivals)

    if invalid:
        return told("INVALID", "flags")
    if incomplete:
        return told("INCOMPLETE", "missing")
    enough = {sample.config for sample in primary if sample.n >= LEAST_SEEDS}
    bounded = {config for config, found in safety.items() if found.n >= LEAST_SEEDS}  # a cost may have fewer seeds
    feasible = [each for each in comparisons if _is_feasible(procedure, safety, each.config)]
    sound = [each for each in feasible if {each.config, procedure.baseline} <= enough]
    sound = [each for each in sound if procedure.limit is None or each.config in bounded]
    supported = [each.config for each in sound if each.supported]
    if config := _best_of(procedure, primary, supported):
        return told("RECOMMEND", "supported", config, supported)
    unsafe = _is_infeasible(safety, procedure.baseline)
    replacing = [each for each in feasible if unsafe and each.no_loss]
    proven = [each.config for each in replacing if each in sound and procedure.baseline in bounded]
    if config := _best_of(procedure, primary, proven):
        return told("RECOMMEND", "baseline_infeasible", config, proven)
    close = bool(feasible) and all(_close(procedure, each) for each in feasible)
    if close and len(sound) == len(feasible):
        return told("EQUIVALENT", "inside_delta")
    lost = [each for each in comparisons if each.worse and {each.config, procedure.baseline} <= enough]
    lost += [each for each in comparisons if each not in lost and _is_infeasible(safety, each.config, bounded)]
    if comparisons and len(lost) == len(comparisons) and not unsafe:
        return told("KEEP_BASELINE", "none_left")
    wanting = bool(replacing) or close or any(each.supported for each in feasible)  # nothing but seeds
    return told("NOT_ENOUGH_EVIDENCE", "too_few_seeds" if wanting or (feasible and not sound) else "not_enough")


def _safety(procedure: Procedure, primary: Sequence[Sample], cost: Sequence[Sample]) -> dict[str, Feasibility]:
    """The baseline is one config and no choice among several: it has a look's alpha for itself."""
    if procedure.limit is None:
        return {}
    each = procedure.alpha_each(len({sample.config for sample in primary if sample.n} - {procedure.baseline}))
    return {
        sample.config: feasibility(
            sample,
            procedure.limit,
            at_most=procedure.at_most,
            alpha=procedure.alpha_a_look if sample.config == procedure.baseline else each,
            cap=procedure.cap,
        )
        for sample in cost
    }


def compare_all(procedure: Procedure, primary: Sequence[Sample]) -> tuple[Comparison, ...]:
    baseline = next((sample for sample in primary if sample.config == procedure.baseline), None)
    if baseline is None or not baseline.n:
        return ()
    found = {s.config: difference(s, baseline) for s in primary if s.config != procedure.baseline and s.n}
    held = holm({config: each.p for config, each in found.items()}, procedure.alpha_a_look)
    strictest = procedure.alpha_each(len(found))
    return tuple(_comparison(procedure, each, *held[config], strictest) for config, each in found.items())


def _comparison(
    procedure: Procedure, found: Difference, threshold: float, rejected: bool, strictest: float
) -> Comparison:
    reaches = found.least_p is not None and found.least_p <= strictest
    agrees = found.exact_p <= threshold if reaches and found.exact_p is not None else None
    shown = rejected and (agrees is None or agrees)
    gains = (found.estimate > 0) == procedure.higher
    return Comparison(
        found,
        _oriented(procedure, found.interval(1 - procedure.alpha)),
        _oriented(procedure, found.interval(1 - strictest)),
        _oriented(procedure, found.interval(1 - 2 * procedure.alpha_a_look)),
        threshold,
        rejected,
        agrees,
        supported=shown and gains and found.estimate != 0,
        worse=shown and not gains and found.estimate != 0,
        delta=procedure.delta,
    )


def exact_can_veto(procedure: Procedure, n: int, candidates: int) -> bool:
    """Whether the permutation test can reach the p that is asked for; `check` says beforehand where it can't."""
    least = least_p(n, n)
    return least is not None and least <= procedure.alpha_each(candidates)


def _oriented(procedure: Procedure, interval: tuple[float, float] | None) -> tuple[float, float] | None:
    """So that more is better."""
    return interval if interval is None or procedure.higher else (-interval[1], -interval[0])


def _is_feasible(procedure: Procedure, safety: Mapping[str, Feasibility], config: str) -> bool:
    return procedure.limit is None or (config in safety and safety[config].standing == "FEASIBLE")


def _may_be_feasible(procedure: Procedure, safety: Mapping[str, Feasibility], config: str) -> bool:
    return procedure.limit is None or (config in safety and safety[config].standing != "INFEASIBLE")


def _is_infeasible(safety: Mapping[str, Feasibility], config: str, among: Container[str] | None = None) -> bool:
    """`among`: those with enough seeds to say so."""
    return config in safety and safety[config].standing == "INFEASIBLE" and (among is None or config in among)


def _best(procedure: Procedure, samples: Sequence[Sample]) -> str | None:
    known = [sample for sample in samples if sample.n]
    if not known:
        return None
    return max(known, key=lambda sample: sample.mean if procedure.higher else -sample.mean).config


def _best_of(procedure: Procedure, primary: Sequence[Sample], configs: Sequence[str]) -> str | None:
    return _best(procedure, [sample for sample in primary if sample.config in configs])


def _close(procedure: Procedure, each: Comparison) -> bool:
    """All of them have to be: so each is tested at a whole look's alpha, and not at its share of it."""
    if procedure.delta is None or each.close is None:
        return False
    return -procedure.delta < each.close[0] and each.close[1] < procedure.delta
