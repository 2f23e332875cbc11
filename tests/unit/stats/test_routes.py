"""Each way to a verdict: the exact test vetoes, every route shares alpha, and few seeds decide nothing."""

import pytest

from muster.stats.decision_procedure import (
    LEAST_SEEDS,
    DecisionProcedure,
    ProcedureDecision,
    compare_with_baseline,
    decide_by_procedure,
)
from muster.stats.samples import Sample
from muster.stats.seed_planning import cautious_pooled_sd, cheapest_next_step

CHEAP, DEAR = [1.0, 1.2, 1.5, 1.2, 0.9], [90.0, 80.0, 85.0, 70.0, 95.0]
BASE = [1.0, 1.2, 0.9, 1.1, 1.0]


def sample(config: str, values: list[float]) -> Sample:
    return Sample(config, "ood", "score", {str(seed): value for seed, value in enumerate(values)})


def moved(config: str, by: float) -> Sample:
    return sample(config, [value + by for value in BASE])


def judged(
    procedure: DecisionProcedure, scores: dict[str, list[float]], costs: dict[str, list[float]]
) -> ProcedureDecision:
    told = ([sample(config, values) for config, values in each.items()] for each in (scores, costs))
    return decide_by_procedure(procedure, *told)


# -- the exact test


def test_tied_rates_that_welch_believes_are_vetoed() -> None:
    """Success rates of ten episodes: Welch p .0203 <= .025, exact p .0794."""
    rates = [sample("base", [0.8, 0.9, 0.8, 0.9, 0.8]), sample("new", [0.9, 1.0, 0.9, 1.0, 0.9])]
    found = decide_by_procedure(DecisionProcedure("base"), rates)
    (each,) = found.comparisons
    assert each.rejected
    assert each.difference.exact_p == pytest.approx(20 / 252)
    assert each.vetoed
    assert not each.supported
    assert (found.verdict, found.config) == ("NOT_ENOUGH_EVIDENCE", None)


def test_a_veto_holds_for_worse_too() -> None:
    rates = [sample("base", [0.9, 1.0, 0.9, 1.0, 0.9]), sample("new", [0.8, 0.9, 0.8, 0.9, 0.8])]
    found = decide_by_procedure(DecisionProcedure("base"), rates)
    assert not found.comparisons[0].worse
    assert found.verdict == "NOT_ENOUGH_EVIDENCE"


# -- alpha is shared


@pytest.mark.parametrize(("looks", "others"), [((5,), 0), ((5, 10), 0), ((5, 10), 2), ((5, 10), 18)])
def test_bounds_and_intervals_share_alpha_among_looks_and_candidates(looks: tuple[int, ...], others: int) -> None:
    names = ["base", "new", *(f"c{number}" for number in range(others))]
    procedure = DecisionProcedure("base", limit=25.0, delta=0.5, looks=looks)
    found = decide_by_procedure(
        procedure, [moved(name, 0.0) for name in names], [sample(name, CHEAP) for name in names]
    )
    each = 0.05 / len(looks) / (others + 1)
    assert found.safety["new"].alpha == pytest.approx(each)
    assert found.safety["base"].alpha == pytest.approx(0.05 / len(looks))  # no choice among several
    comparison = found.comparisons[0]
    assert comparison.sure == pytest.approx(comparison.difference.interval(1 - each))
    assert comparison.close == pytest.approx(comparison.difference.interval(1 - 0.1 / len(looks)))
    assert comparison.gain == pytest.approx(comparison.difference.interval(0.95))


def test_an_unsafe_baseline_is_not_replaced_by_chance_among_many() -> None:
    """Alone, the config excludes a loss of delta. As one of nineteen it does not."""
    scores = {"base": BASE, "new": [value - 0.25 for value in BASE]}
    costs = {"base": DEAR, "new": CHEAP}
    rules = DecisionProcedure("base", limit=25.0, delta=0.5, looks=(5,))
    assert judged(rules, scores, costs).because == "baseline_infeasible"
    many = {f"c{number}": [value - 3.0 for value in BASE] for number in range(18)}
    found = judged(rules, {**scores, **many}, {**costs, **dict.fromkeys(many, CHEAP)})
    assert found.verdict == "NOT_ENOUGH_EVIDENCE"
    new = found.against("new")
    assert new is not None
    assert new.gain is not None
    assert new.gain[0] > -0.5
    assert not new.no_loss


def test_equal_enough_is_said_of_one_candidate_by_what_holds_for_all() -> None:
    each, far = compare_with_baseline(
        DecisionProcedure("base", delta=0.5, looks=(5,)), [moved("base", 0), moved("a", 0.1), moved("b", 9)]
    )
    assert each.equal_enough
    assert not far.equal_enough
    assert far.no_loss
    assert not compare_with_baseline(DecisionProcedure("base"), [moved("base", 0), moved("a", 0.1)])[
        0
    ].equal_enough  # no delta


# -- few seeds


@pytest.mark.parametrize("n", range(2, LEAST_SEEDS))
def test_few_seeds_are_never_equivalent_and_keep_no_baseline(n: int) -> None:
    rules = DecisionProcedure("base", delta=500.0, looks=(2, 3, 4))
    near, far = [sample("base", BASE[:n]), moved("a", 0.001)], [sample("base", BASE[:n]), sample("a", [-900.0] * 5)]
    found = decide_by_procedure(rules, near)
    assert (found.verdict, found.because) == ("NOT_ENOUGH_EVIDENCE", "too_few_seeds")
    assert decide_by_procedure(rules, far).verdict == "NOT_ENOUGH_EVIDENCE"


# -- the baseline is kept


def test_the_baseline_is_kept_where_every_candidate_is_worse_or_infeasible() -> None:
    worse = [value - 5.0 for value in BASE]
    rules = DecisionProcedure("base", limit=25.0, delta=0.5)
    scores = {"base": BASE, "worse": worse, "unsafe": [value + 9.0 for value in BASE]}
    found = judged(rules, scores, {"base": CHEAP, "worse": CHEAP, "unsafe": DEAR})
    assert (found.verdict, found.because, found.config) == ("KEEP_BASELINE", "none_left", None)
    unsafe_too = judged(rules, scores, {"base": DEAR, "worse": CHEAP, "unsafe": DEAR})
    assert unsafe_too.verdict == "NOT_ENOUGH_EVIDENCE"
    open_ = judged(
        rules, {**scores, "open": [1.3, 0.9, 1.6, 0.2, 2.0]}, {**dict.fromkeys(scores, CHEAP), "open": CHEAP}
    )
    assert open_.verdict == "RECOMMEND"  # of what was unsafe a line above
    wide = judged(rules, {"base": BASE, "worse": worse, "open": [1.9, 0.1, 1.6, 0.2, 2.0]}, dict.fromkeys(("base", "worse", "open"), CHEAP))  # fmt: skip
    assert wide.verdict == "NOT_ENOUGH_EVIDENCE"
    assert (
        decide_by_procedure(DecisionProcedure("base"), [sample("base", BASE), sample("worse", worse)]).verdict
        == "KEEP_BASELINE"
    )
    assert (
        decide_by_procedure(DecisionProcedure("base"), [sample("base", BASE)]).verdict == "NOT_ENOUGH_EVIDENCE"
    )  # nothing was compared


# -- the spread


def test_the_spread_is_that_of_all_configs_and_a_difference_needs_two_groups() -> None:
    primary = [sample("base", BASE), moved("worse", -4.0), sample("wide", [5.0, 9.0, 1.0, 7.0, 3.0])]
    rules = DecisionProcedure("base", delta=0.2)
    step = cheapest_next_step(rules, decide_by_procedure(rules, primary), primary)
    assert step.sd == cautious_pooled_sd(primary)
    assert step.configs == ("base", "wide")
    lost = [sample("base", BASE), moved("worse", -4.0)]
    assert cheapest_next_step(rules, decide_by_procedure(rules, lost), lost).configs == ()
    assert cheapest_next_step(rules, decide_by_procedure(rules, lost), lost).sd == cautious_pooled_sd(lost)
