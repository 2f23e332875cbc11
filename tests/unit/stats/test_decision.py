"""The declared procedure: the order of verdicts, and what each of them needs."""

import pytest

from muster.stats.decision_procedure import (
    DecisionProcedure,
    compare_with_baseline,
    decide_by_procedure,
    exact_test_can_veto,
    judge_feasibility,
)
from muster.stats.samples import Sample, difference_of_means, holm_thresholds, least_permutation_p, seed_count_class
from muster.stats.seed_planning import SeedPrice, cheapest_next_step

BASE = [1.0, 1.2, 0.9, 1.1, 1.0]


def sample(config: str, values: list[float], metric: str = "score") -> Sample:
    return Sample(config, "ood", metric, {str(seed): value for seed, value in enumerate(values)})


def shifted(config: str, by: float, spread: float = 1.0, n: int = 5) -> Sample:
    values = [1.04 + (value - 1.04) * spread + by for value in BASE]
    return sample(config, (values * 2)[:n])


PRIMARY = [sample("base", BASE), shifted("good", 3.0), shifted("same", 0.001)]
CHEAP = [sample(config, [1.0, 2.0, 1.5, 1.2, 0.8], "cost") for config in ("base", "good", "same")]
RULES = DecisionProcedure("base", limit=25.0, delta=0.5)


def test_flags_come_before_holes_and_holes_before_results() -> None:
    assert decide_by_procedure(RULES, PRIMARY, CHEAP, invalid=True, incomplete=True).verdict == "INVALID"
    assert decide_by_procedure(RULES, PRIMARY, CHEAP, incomplete=True).verdict == "INCOMPLETE"
    found = decide_by_procedure(RULES, PRIMARY, CHEAP)
    assert (found.verdict, found.config, found.because) == ("RECOMMEND", "good", "supported")


def test_nothing_is_recommended_below_five_seeds() -> None:
    few = [sample("base", BASE[:4]), sample("good", [v + 3 for v in BASE[:4]])]
    found = decide_by_procedure(DecisionProcedure("base", delta=0.5, looks=(4,)), few)
    assert found.comparisons[0].supported
    assert (found.verdict, found.because) == ("NOT_ENOUGH_EVIDENCE", "too_few_seeds")


def test_a_better_config_over_the_limit_is_not_recommended() -> None:
    cost = [sample("base", [1.0, 2.0, 1.5, 1.2, 0.8], "cost"), sample("good", [90.0, 80.0, 85.0, 70.0, 95.0], "cost")]
    found = decide_by_procedure(RULES, PRIMARY[:2], cost)
    assert found.safety["good"].standing == "INFEASIBLE"
    assert found.verdict == "KEEP_BASELINE"
    assert found.best == "base"


def test_an_unsafe_baseline_is_replaced_by_what_is_not_worse() -> None:
    cost = [sample("base", [90.0, 80.0, 85.0, 70.0, 95.0], "cost"), sample("same", [1.0, 2.0, 1.5, 1.2, 0.8], "cost")]
    found = decide_by_procedure(RULES, [PRIMARY[0], PRIMARY[2]], cost)
    assert (found.verdict, found.config, found.because) == ("RECOMMEND", "same", "baseline_infeasible")
    assert (
        decide_by_procedure(DecisionProcedure("base", limit=25.0), [PRIMARY[0], PRIMARY[2]], cost).verdict
        == "NOT_ENOUGH_EVIDENCE"
    )


def test_a_cost_of_few_seeds_recommends_nothing() -> None:
    dear, cheap = [90.0, 80.0, 85.0, 70.0, 95.0], [1.0, 2.0, 1.5, 1.2, 0.8]

    def told(primary: list[Sample], base: list[float], candidate: list[float]) -> tuple[str, str]:
        costs = [sample("base", base, "cost"), sample(primary[1].config, candidate, "cost")]
        found = decide_by_procedure(RULES, primary, costs)
        return found.verdict, found.because

    good, same = PRIMARY[:2], [PRIMARY[0], shifted("same", 0.3, spread=3.0)]
    assert told(good, cheap, [1.0, 1.01]) == ("NOT_ENOUGH_EVIDENCE", "too_few_seeds")  # its bounds are within the limit
    assert told(good, cheap[:2], cheap) == ("RECOMMEND", "supported")  # what the baseline costs is not asked
    assert told(same, dear, cheap) == ("RECOMMEND", "baseline_infeasible")
    assert told(same, dear, cheap[:4]) == ("NOT_ENOUGH_EVIDENCE", "too_few_seeds")
    assert told(same, [90.0, 91.0], cheap) == ("NOT_ENOUGH_EVIDENCE", "too_few_seeds")


def test_who_lacks_nothing_but_seeds_is_not_hidden_by_others() -> None:
    costs = [CHEAP[0], sample("good", [1.0, 1.01], "cost"), sample("wide", [1.0, 2.0, 1.5, 1.2, 0.8], "cost")]
    found = decide_by_procedure(RULES, [*PRIMARY[:2], shifted("wide", 0.0, spread=8.0)], costs)
    assert (found.verdict, found.because) == ("NOT_ENOUGH_EVIDENCE", "too_few_seeds")


def test_equivalent_needs_every_feasible_candidate_inside_delta() -> None:
    assert decide_by_procedure(RULES, [PRIMARY[0], PRIMARY[2]], CHEAP[::2]).verdict == "EQUIVALENT"
    wide = shifted("wide", 0.0, spread=8.0)
    primary, cost = [PRIMARY[0], PRIMARY[2], wide], [*CHEAP[::2], sample("wide", [1.0, 2.0, 1.5, 1.2, 0.8], "cost")]
    assert decide_by_procedure(RULES, primary, cost).verdict == "NOT_ENOUGH_EVIDENCE"
    assert (
        decide_by_procedure(DecisionProcedure("base", limit=25.0), [PRIMARY[0], PRIMARY[2]], CHEAP[::2]).verdict
        == "NOT_ENOUGH_EVIDENCE"
    )


def test_lower_may_be_better() -> None:
    found = decide_by_procedure(DecisionProcedure("base", higher=False, delta=0.5), [PRIMARY[0], shifted("low", -3.0)])
    assert (found.verdict, found.config) == ("RECOMMEND", "low")
    gain = found.comparisons[0].gain
    assert gain is not None
    assert gain[0] > 2
    assert (
        decide_by_procedure(DecisionProcedure("base", higher=False, delta=0.5), PRIMARY[:2]).verdict == "KEEP_BASELINE"
    )


def test_the_exact_test_vetoes_only_where_it_can_reach_the_threshold() -> None:
    assert least_permutation_p(5, 5) == pytest.approx(2 / 252)
    two_looks, one_look = DecisionProcedure("base"), DecisionProcedure("base", looks=(5,))
    assert not exact_test_can_veto(two_looks, 5, candidates=4)  # .00625
    assert exact_test_can_veto(one_look, 5, candidates=4)
    assert exact_test_can_veto(two_looks, 10, candidates=4)
    assert exact_test_can_veto(two_looks, 5, candidates=1)
    outlier = sample("outlier", [1.15, 1.3, 1.2, 1.25, 1.0])  # far enough for Welch, not for every permutation
    (found,) = compare_with_baseline(DecisionProcedure("base", looks=(5,)), [PRIMARY[0], outlier])
    assert found.rejected == ((found.difference.p or 1) <= 0.05)
    assert found.exact_agrees == ((found.difference.exact_p or 1) <= 0.05)
    many = [PRIMARY[0], *(shifted(f"c{number}", 3.0) for number in range(4))]
    assert [each.exact_agrees for each in compare_with_baseline(two_looks, many)] == [None] * 4
    assert all(each.supported for each in compare_with_baseline(two_looks, many))


def test_alpha_is_divided_by_looks_and_held_by_holm() -> None:
    comparisons = compare_with_baseline(DecisionProcedure("base", looks=(5, 10)), PRIMARY)
    assert [each.threshold for each in comparisons] == [0.0125, 0.025]
    assert holm_thresholds({"a": 0.04, "b": None}, 0.05) == {"a": (0.025, False), "b": (0.05, False)}


def test_no_spread_is_no_test() -> None:
    flat = difference_of_means(sample("a", [1.0] * 5), sample("b", [0.0] * 5))
    assert (flat.p, flat.g, flat.interval()) == (None, None, None)
    assert flat.exact_p == pytest.approx(2 / 252)
    assert flat.better == 1.0
    assert decide_by_procedure(
        DecisionProcedure("b", delta=0.5), [sample("b", [0.0] * 5), sample("a", [1.0] * 5)]
    ).verdict == ("NOT_ENOUGH_EVIDENCE")


@pytest.mark.parametrize("n", [0, 1])
def test_one_seed_or_none(n: int) -> None:
    primary = [sample("base", BASE[:n]), sample("good", [9.0][:n])]
    found = decide_by_procedure(RULES, primary, [sample("good", [1.0][:n], "cost")])
    assert found.verdict == "NOT_ENOUGH_EVIDENCE"
    assert judge_feasibility(sample("good", [1.0][:n], "cost"), 25.0).standing == "UNDETERMINED"


def test_a_minimum_is_a_limit_too() -> None:
    high = sample("a", [0.99, 0.98, 0.97, 0.99, 0.98], "success")
    found = judge_feasibility(high, 0.9, at_most=False)
    assert (found.standing, found.keep, found.worst) == ("FEASIBLE", 5, ("2", 0.97))
    assert judge_feasibility(high, 0.995, at_most=False).standing == "INFEASIBLE"
    assert judge_feasibility(high, 0.98, at_most=False).standing == "UNDETERMINED"


def test_a_baseline_that_is_not_there() -> None:
    found = decide_by_procedure(DecisionProcedure("nobody"), PRIMARY)
    assert (found.verdict, found.comparisons) == ("NOT_ENOUGH_EVIDENCE", ())


def test_what_n_supports() -> None:
    assert sample("a", [1.0, 2.0]).interval is None
    assert sample("a", [1.684 - 0.524, 1.684 + 0.524]).bound(0.95) == pytest.approx((-4.97, 8.34), abs=0.01)
    assert sample("a", [1.0]).sd is None
    assert [seed_count_class(n) for n in (1, 2, 3, 5, 10)] == ["single", "smoke", "preliminary", "five", "ten"]


def test_how_many_more_seeds_and_what_they_cost() -> None:
    primary = [sample("base", BASE), shifted("maybe", 0.1), shifted("worse", -4.0)]
    rules = DecisionProcedure("base", delta=0.2)
    step = cheapest_next_step(
        rules, decide_by_procedure(rules, primary), primary, SeedPrice(hours=2.0, money=4.0), budget_left=10.0
    )
    assert step.configs == ("base", "maybe")
    assert step.n is not None
    assert step.more == 2 * (step.n - 5)
    assert (step.hours, step.money) == (2.0 * step.more, 4.0 * step.more)
    assert step.within_budget is False
    assert step.affordable is not None
    assert step.detectable is not None
    assert step.affordable < step.detectable  # one seed more in each
    without = DecisionProcedure("base")
    assert cheapest_next_step(without, decide_by_procedure(without, primary), primary).n is None
    alone = [sample("base", [1.0])]
    assert cheapest_next_step(rules, decide_by_procedure(rules, alone), alone).sd is None


@pytest.mark.parametrize("left", [-17.53, -1e6, 0.0, 7.9])
def test_an_overspent_budget_takes_no_seeds_away(left: float) -> None:
    primary = [sample("base", BASE), shifted("maybe", 0.1)]
    rules = DecisionProcedure("base", delta=0.2)
    step = cheapest_next_step(
        rules, decide_by_procedure(rules, primary), primary, SeedPrice(hours=2.0, money=4.0), budget_left=left
    )
    assert (step.within_budget, step.affordable) == (False, step.detectable)


def test_who_is_undetermined_on_cost_needs_more_seeds() -> None:
    rules = DecisionProcedure("base", limit=25.0, delta=0.2)
    primary = [sample("base", BASE), shifted("worse", -4.0)]
    cost = [CHEAP[0], sample("worse", [1.0, 60.0, 5.0, 40.0, 20.0], "cost")]
    assert cheapest_next_step(rules, decide_by_procedure(rules, primary, cost), primary).configs == ("base", "worse")
