"""The declared procedure: INVALID, INCOMPLETE, RECOMMEND, EQUIVALENT, KEEP_BASELINE, NOT_ENOUGH_EVIDENCE.

Safety first: whether the mean cost keeps its limit, by one-sided bounds that hold for skewed costs, too. Every route
shares alpha among the looks and, where it picks among candidates, among these. A config is recommended wrongly if it
breaks the limit or is worse by delta. Each of these takes one wrong test of this one config, at alpha / (looks x
candidates); so all candidates at all looks together are wrong in a share of alpha at most.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from muster.stats.quantiles import beta_quantile, lognormal_shift, student_t_quantile
from muster.stats.samples import DifferenceOfMeans, Sample, difference_of_means, holm_thresholds, least_permutation_p

LimitStanding = Literal["FEASIBLE", "INFEASIBLE", "UNDETERMINED"]
BoundBasis = Literal["few", "t", "lognormal", "cap", "no_cap", "over_cap"]
ONE_SIDED = 0.95


@dataclass(frozen=True, slots=True)
class Feasibility:
    standing: LimitStanding
    limit: float
    lower: float | None  # one-sided bounds of the mean, each at 1 - alpha; None where none can be given
    upper: float | None
    keep: int  # seeds that keep the limit
    n: int
    keep_at_least: float  # share of seeds that do, by Clopper and Pearson's one-sided 95 % bound
    worst: tuple[str, float] | None  # the seed
    alpha: float = 1 - ONE_SIDED  # of each bound
    basis: BoundBasis = "t"  # what the bounds rest on

    @property
    def fail_at_most(self) -> float:
        """The share of seeds that may break the limit all the same: .451 after five of five."""
        return 1 - self.keep_at_least


@dataclass(frozen=True, slots=True)
class MeanBounds:
    lower: float | None
    upper: float | None
    basis: BoundBasis


def judge_feasibility(
    cost: Sample, limit: float, *, at_most: bool = True, alpha: float = 1 - ONE_SIDED, cap: float | None = None
) -> Feasibility:
    """`at_most`: the limit is a maximum; otherwise a minimum. `cap`: the worst value that can occur."""
    bounds = bounds_of_mean(cost, alpha, at_most=at_most, cap=cap)
    good, bad = (bounds.upper, bounds.lower) if at_most else (bounds.lower, bounds.upper)
    standing: LimitStanding = "UNDETERMINED"
    if good is not None and (good <= limit if at_most else good >= limit):
        standing = "FEASIBLE"
    elif bad is not None and (bad > limit if at_most else bad < limit):
        standing = "INFEASIBLE"
    values = dict(zip(cost.by_seed, cost.values, strict=True))
    keep = sum(value <= limit if at_most else value >= limit for value in values.values())
    worst = max(values.items(), key=lambda item: item[1] if at_most else -item[1], default=None)
    share = least_proven_share(keep, cost.n)
    return Feasibility(
        standing, limit, bounds.lower, bounds.upper, keep, cost.n, share, worst, alpha=alpha, basis=bounds.basis
    )


def bounds_of_mean(cost: Sample, alpha: float, *, at_most: bool = True, cap: float | None = None) -> MeanBounds:
    """Both ends, each wrong in a share of `alpha` at most.

    Positive values: the wider of Student's and the log-normal bound, so that either shape may be the true one. Costs
    of 0 have no logarithm, and seeds that are all alike show no spread: nothing is then known of rare bad seeds but
    that they are no worse than the cap. Values of either sign: Student's.
    """
    if cost.se is None:
        return MeanBounds(None, None, "few")
    half = student_t_quantile(1 - alpha, cost.n - 1) * cost.se
    lower, upper = cost.mean - half, cost.mean + half
    if not cost.sd or (at_most and min(cost.values) == 0):
        end, basis = _bound_by_cap(cost, alpha, at_most, cap)
        known = bool(cost.sd)
        if at_most:
            return MeanBounds(lower if known else None, end, basis)
        return MeanBounds(end, upper if known else None, basis)
    if min(cost.values) > 0:
        return MeanBounds(
            min(lower, _lognormal_bound(cost, alpha)), max(upper, _lognormal_bound(cost, 1 - alpha)), "lognormal"
        )
    return MeanBounds(lower, upper, "t")


def least_proven_share(hits: int, n: int, level: float = ONE_SIDED) -> float:
    """What `hits` of `n` prove of the share behind them: 5 of 5 prove .549."""
    return beta_quantile(1 - level, hits, n - hits + 1) if hits else 0.0


def _lognormal_bound(cost: Sample, share: float) -> float:
    logs = [math.log(value) for value in cost.values]
    middle = math.fsum(logs) / cost.n
    sd = math.sqrt(math.fsum((each - middle) ** 2 for each in logs) / (cost.n - 1))
    try:
        return math.exp(middle + lognormal_shift(share, cost.n, sd))
    except OverflowError:
        return math.inf


def _bound_by_cap(cost: Sample, alpha: float, at_most: bool, cap: float | None) -> tuple[float | None, BoundBasis]:
    """The bound on the bad side, for any distribution that ends at the cap.

    With confidence 1 - alpha at most a share of 1 - alpha^(1/n) of all seeds lies beyond the worst one seen. Those
    are no worse than the cap, and the others no worse than the worst one seen.
    """
    if cap is None:
        return None, "no_cap"
    worst = max(cost.values) if at_most else min(cost.values)
    if worst > cap if at_most else worst < cap:
        return None, "over_cap"
    beyond = 1 - alpha ** (1 / cost.n)
    return beyond * cap + (1 - beyond) * worst, "cap"


ProcedureVerdict = Literal["RECOMMEND", "EQUIVALENT", "KEEP_BASELINE", "NOT_ENOUGH_EVIDENCE", "INCOMPLETE", "INVALID"]
LEAST_SEEDS = 5


@dataclass(frozen=True, slots=True)
class DecisionProcedure:
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
class BaselineComparison:
    """A candidate against the baseline. Its difference counts as an improvement where it is positive."""

    difference: DifferenceOfMeans  # candidate minus baseline, in the metric's units
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
class ProcedureDecision:
    verdict: ProcedureVerdict
    config: str | None = None
    because: str = ""  # a key of the report's wording
    comparisons: tuple[BaselineComparison, ...] = ()
    safety: Mapping[str, Feasibility] = field(default_factory=dict)
    best: str | None = None  # by its mean, among those that are not infeasible
    rivals: tuple[str, ...] = ()  # that qualify as the recommended one does, with a lesser mean

    def against(self, config: str) -> BaselineComparison | None:
        return next((each for each in self.comparisons if each.config == config), None)


def decide_by_procedure(
    procedure: DecisionProcedure,
    primary: Sequence[Sample],
    cost: Sequence[Sample] = (),
    *,
    invalid: bool = False,
    incomplete: bool = False,
) -> ProcedureDecision:
    """`invalid`: an ERROR flag was raised. `incomplete`: a declared cell is missing."""
    safety = _feasibility_of_configs(procedure, primary, cost)
    comparisons = compare_with_baseline(procedure, primary)
    best = _best_config_by_mean(
        procedure, [sample for sample in primary if _may_keep_the_limit(procedure, safety, sample.config)]
    )

    def told(
        verdict: ProcedureVerdict, because: str, config: str | None = None, qualify: Sequence[str] = ()
    ) -> ProcedureDecision:
        rivals = tuple(each for each in qualify if each != config)
        return ProcedureDecision(verdict, config, because, comparisons, safety, best, rivals)

    if invalid:
        return told("INVALID", "flags")
    if incomplete:
        return told("INCOMPLETE", "missing")
    enough = {sample.config for sample in primary if sample.n >= LEAST_SEEDS}
    bounded = {config for config, found in safety.items() if found.n >= LEAST_SEEDS}  # a cost may have fewer seeds
    feasible = [each for each in comparisons if _keeps_the_limit(procedure, safety, each.config)]
    sound = [each for each in feasible if {each.config, procedure.baseline} <= enough]
    sound = [each for each in sound if procedure.limit is None or each.config in bounded]
    supported = [each.config for each in sound if each.supported]
    if config := _best_config_among(procedure, primary, supported):
        return told("RECOMMEND", "supported", config, supported)
    unsafe = _breaks_the_limit(safety, procedure.baseline)
    replacing = [each for each in feasible if unsafe and each.no_loss]
    proven = [each.config for each in replacing if each in sound and procedure.baseline in bounded]
    if config := _best_config_among(procedure, primary, proven):
        return told("RECOMMEND", "baseline_infeasible", config, proven)
    close = bool(feasible) and all(_is_inside_delta(procedure, each) for each in feasible)
    if close and len(sound) == len(feasible):
        return told("EQUIVALENT", "inside_delta")
    lost = [each for each in comparisons if each.worse and {each.config, procedure.baseline} <= enough]
    lost += [each for each in comparisons if each not in lost and _breaks_the_limit(safety, each.config, bounded)]
    if comparisons and len(lost) == len(comparisons) and not unsafe:
        return told("KEEP_BASELINE", "none_left")
    wanting = bool(replacing) or close or any(each.supported for each in feasible)  # nothing but seeds
    return told("NOT_ENOUGH_EVIDENCE", "too_few_seeds" if wanting or (feasible and not sound) else "not_enough")


def _feasibility_of_configs(
    procedure: DecisionProcedure, primary: Sequence[Sample], cost: Sequence[Sample]
) -> dict[str, Feasibility]:
    """The baseline is one config and no choice among several: it has a look's alpha for itself."""
    if procedure.limit is None:
        return {}
    each = procedure.alpha_each(len({sample.config for sample in primary if sample.n} - {procedure.baseline}))
    return {
        sample.config: judge_feasibility(
            sample,
            procedure.limit,
            at_most=procedure.at_most,
            alpha=procedure.alpha_a_look if sample.config == procedure.baseline else each,
            cap=procedure.cap,
        )
        for sample in cost
    }


def compare_with_baseline(procedure: DecisionProcedure, primary: Sequence[Sample]) -> tuple[BaselineComparison, ...]:
    baseline = next((sample for sample in primary if sample.config == procedure.baseline), None)
    if baseline is None or not baseline.n:
        return ()
    found = {s.config: difference_of_means(s, baseline) for s in primary if s.config != procedure.baseline and s.n}
    held = holm_thresholds({config: each.p for config, each in found.items()}, procedure.alpha_a_look)
    strictest = procedure.alpha_each(len(found))
    return tuple(_build_comparison(procedure, each, *held[config], strictest) for config, each in found.items())


def _build_comparison(
    procedure: DecisionProcedure, found: DifferenceOfMeans, threshold: float, rejected: bool, strictest: float
) -> BaselineComparison:
    reaches = found.least_p is not None and found.least_p <= strictest
    agrees = found.exact_p <= threshold if reaches and found.exact_p is not None else None
    shown = rejected and (agrees is None or agrees)
    gains = (found.estimate > 0) == procedure.higher
    return BaselineComparison(
        found,
        _orient_interval(procedure, found.interval(1 - procedure.alpha)),
        _orient_interval(procedure, found.interval(1 - strictest)),
        _orient_interval(procedure, found.interval(1 - 2 * procedure.alpha_a_look)),
        threshold,
        rejected,
        agrees,
        supported=shown and gains and found.estimate != 0,
        worse=shown and not gains and found.estimate != 0,
        delta=procedure.delta,
    )


def exact_test_can_veto(procedure: DecisionProcedure, n: int, candidates: int) -> bool:
    """Whether the permutation test can reach the p that is asked for; `check` says beforehand where it can't."""
    least = least_permutation_p(n, n)
    return least is not None and least <= procedure.alpha_each(candidates)


def _orient_interval(procedure: DecisionProcedure, interval: tuple[float, float] | None) -> tuple[float, float] | None:
    """So that more is better."""
    return interval if interval is None or procedure.higher else (-interval[1], -interval[0])


def _keeps_the_limit(procedure: DecisionProcedure, safety: Mapping[str, Feasibility], config: str) -> bool:
    return procedure.limit is None or (config in safety and safety[config].standing == "FEASIBLE")


def _may_keep_the_limit(procedure: DecisionProcedure, safety: Mapping[str, Feasibility], config: str) -> bool:
    return procedure.limit is None or (config in safety and safety[config].standing != "INFEASIBLE")


def _breaks_the_limit(safety: Mapping[str, Feasibility], config: str, among: Container[str] | None = None) -> bool:
    """`among`: those with enough seeds to say so."""
    return config in safety and safety[config].standing == "INFEASIBLE" and (among is None or config in among)


def _best_config_by_mean(procedure: DecisionProcedure, samples: Sequence[Sample]) -> str | None:
    known = [sample for sample in samples if sample.n]
    if not known:
        return None
    return max(known, key=lambda sample: sample.mean if procedure.higher else -sample.mean).config


def _best_config_among(procedure: DecisionProcedure, primary: Sequence[Sample], configs: Sequence[str]) -> str | None:
    return _best_config_by_mean(procedure, [sample for sample in primary if sample.config in configs])


def _is_inside_delta(procedure: DecisionProcedure, each: BaselineComparison) -> bool:
    """All of them have to be: so each is tested at a whole look's alpha, and not at its share of it."""
    if procedure.delta is None or each.close is None:
        return False
    return -procedure.delta < each.close[0] and each.close[1] < procedure.delta
