"""The declared procedure as a whole, simulated: how often it is wrong where nothing is to be found, and where safety is."""

from __future__ import annotations

import numpy as np
import pytest

from muster.stats.decision_procedure import DecisionProcedure, decide_by_procedure, judge_feasibility
from muster.stats.samples import Sample

pytestmark = pytest.mark.slow
DRAWS = 4000
CONFIGS = ("base", "a", "b", "c")


def drawn(rng: np.random.Generator, config: str, n: int, mean: float = 0.0, sd: float = 1.0) -> Sample:
    values = rng.normal(mean, sd, size=n)
    return Sample(config, "ood", "score", dict(zip(map(str, range(n)), map(float, values), strict=True)))


@pytest.mark.parametrize(("n", "draws"), [(5, DRAWS), (10, 500)])  # 184,756 permutations each with ten
def test_nothing_is_recommended_where_nothing_differs(n: int, draws: int) -> None:
    """Alpha .05 two-sided over two looks and three candidates: of one look at most .025, half of it as a gain."""
    rng = np.random.default_rng(n)
    procedure = DecisionProcedure("base", delta=0.5)
    wrong = sum(
        decide_by_procedure(procedure, [drawn(rng, config, n) for config in CONFIGS]).verdict == "RECOMMEND"
        for _ in range(draws)
    )
    print(f"n = {n}: recommended without a difference in {wrong / draws:.4f} of {draws}")
    assert wrong / draws <= 0.0125 + 3 * (0.0125 / draws) ** 0.5


def test_a_difference_of_three_sd_is_found_with_ten_seeds() -> None:
    rng = np.random.default_rng(1)
    procedure = DecisionProcedure("base", delta=0.5)
    found = 0
    for _ in range(200):
        samples = [drawn(rng, config, 10, mean=3.0 if config == "b" else 0.0) for config in CONFIGS]
        decision = decide_by_procedure(procedure, samples)
        found += (decision.verdict, decision.config) == ("RECOMMEND", "b")
    print(f"3 sd, 10 seeds: found in {found / 200:.3f}")
    assert found / 200 >= 0.95


def test_equivalent_is_hardly_ever_said_of_what_differs_by_delta() -> None:
    """Two one-sided tests at .025 a look; one candidate differs by exactly delta."""
    rng = np.random.default_rng(2)
    procedure = DecisionProcedure("base", delta=1.0)
    wrong = 0
    for _ in range(400):
        samples = [drawn(rng, "base", 10, sd=0.5), drawn(rng, "a", 10, mean=1.0, sd=0.5)]
        wrong += decide_by_procedure(procedure, samples).verdict == "EQUIVALENT"
    print(f"a difference of delta called equivalent in {wrong / 400:.4f}")
    assert wrong / 400 <= 0.025 + 3 * (0.025 / 400) ** 0.5


@pytest.mark.parametrize("n", [3, 5, 10])
def test_a_mean_cost_at_the_limit_is_called_feasible_in_five_percent_at_most(n: int) -> None:
    """Normal costs: by Student's bound it would be five percent; the log-normal one is the wider of the two here."""
    rng = np.random.default_rng(n)
    wrong = sum(
        judge_feasibility(drawn(rng, "a", n, mean=25.0, sd=4.0), 25.0).standing == "FEASIBLE" for _ in range(DRAWS)
    )
    print(f"n = {n}: a mean at the limit called feasible in {wrong / DRAWS:.4f}")
    assert 0.002 <= wrong / DRAWS <= 0.05 + 3 * (0.05 / DRAWS) ** 0.5
