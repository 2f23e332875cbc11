"""What scipy and statsmodels have too must agree with them."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestIndPower
from statsmodels.stats.proportion import proportion_confint

from muster.stats.decision_procedure import judge_feasibility, least_proven_share
from muster.stats.samples import (
    Sample,
    difference_of_means,
    exact_permutation_p,
    hedges_effect_size,
    holm_thresholds,
    interquartile_mean,
    probability_of_improvement,
)
from muster.stats.seed_planning import (
    cautious_pooled_sd,
    detectable_difference,
    power_of_two_groups,
    seeds_for_difference,
)

CLOSE = {"rel": 1e-9, "abs": 1e-12}


def sample(values: object, config: str = "a") -> Sample:
    return Sample(config, "id", "score", {str(seed): float(value) for seed, value in enumerate(np.asarray(values))})


def pairs(count: int = 40) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [
        (rng.normal(rng.normal(), rng.uniform(0.1, 3), rng.integers(2, 12)), rng.lognormal(0, 1, rng.integers(2, 12)))
        for _ in range(count)
    ]


def test_welch_and_its_interval() -> None:
    for a, b in pairs():
        found, theirs = difference_of_means(sample(a), sample(b, "b")), scipy_stats.ttest_ind(a, b, equal_var=False)
        assert found.p == pytest.approx(theirs.pvalue, **CLOSE)
        assert found.df == pytest.approx(theirs.df, **CLOSE)
        for level in (0.9, 0.95):
            assert found.interval(level) == pytest.approx(tuple(theirs.confidence_interval(level)), **CLOSE)


def test_the_interval_of_a_mean() -> None:
    for a, _ in pairs():
        theirs = scipy_stats.t.interval(0.95, len(a) - 1, np.mean(a), scipy_stats.sem(a))
        assert sample(a).bound(0.95) == pytest.approx(theirs, **CLOSE)


def test_the_permutation_test_is_exact() -> None:
    for a, b in pairs(12):
        if len(a) + len(b) > 14:
            continue
        theirs = scipy_stats.permutation_test(
            (a, b), lambda x, y, axis: np.abs(np.mean(x, axis=axis) - np.mean(y, axis=axis)), n_resamples=np.inf,
            vectorized=True, alternative="greater",
        )  # fmt: skip
        assert exact_permutation_p(a, b)[0] == pytest.approx(theirs.pvalue, **CLOSE)


def test_holm() -> None:
    rng = np.random.default_rng(1)
    for _ in range(25):
        values = rng.uniform(0, 0.1, rng.integers(1, 8))
        theirs = multipletests(values, 0.05, "holm")[0]
        found = holm_thresholds({str(index): value for index, value in enumerate(values)}, 0.05)
        assert [found[str(index)][1] for index in range(len(values))] == list(theirs)


def test_power_and_sample_size() -> None:
    for n in (2, 3, 5, 10, 40):
        for effect in (0.3, 1.0, 2.5):
            theirs = TTestIndPower().power(effect, n, 0.0125)
            wanted = 1.0 if math.isnan(theirs) else theirs  # so it is told near 1
            assert power_of_two_groups(n, 2 * effect, 2.0, 0.0125) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    for effect in (0.5, 1.0, 2.0, 3.0):
        theirs = math.ceil(TTestIndPower().solve_power(effect, power=0.8, alpha=0.05))
        assert seeds_for_difference(effect, 1.0, 0.05, 0.8) == theirs
        assert (
            detectable_difference(theirs, 1.0, 0.05, 0.8) <= effect < detectable_difference(theirs - 1, 1.0, 0.05, 0.8)
        )


def test_clopper_pearson() -> None:
    for n in (1, 5, 10, 37):
        for hits in range(n + 1):
            theirs = proportion_confint(hits, n, alpha=0.1, method="beta")[0]
            assert least_proven_share(hits, n) == pytest.approx(0.0 if hits == 0 else theirs, **CLOSE)
    assert least_proven_share(5, 5) == pytest.approx(0.549, abs=5e-4)


def test_one_sided_bounds_of_a_cost() -> None:
    """Student's of values of either sign; of positive ones the upper bound is never below it."""
    for _, costs in pairs():
        shifted = [cost - max(costs) for cost in costs]
        shifted[0] += 0.001  # of either sign
        found = judge_feasibility(sample(shifted), -1.0)
        over = scipy_stats.ttest_1samp(shifted, -1.0, alternative="less")
        assert (found.standing == "FEASIBLE") == (over.pvalue <= 0.05)
        assert found.upper == pytest.approx(over.confidence_interval(0.95).high, **CLOSE)
        above = judge_feasibility(sample([cost + 1 - min(costs) for cost in costs]), 1.0)
        assert above.upper is not None
        assert above.upper >= found.upper + max(costs) + 1 - min(costs) - 0.01


def test_improvement_is_the_mann_whitney_statistic() -> None:
    for a, b in pairs():
        theirs = scipy_stats.mannwhitneyu(a, b).statistic / (len(a) * len(b))
        assert probability_of_improvement(a, b) == pytest.approx(theirs, **CLOSE)


def test_hedges_g() -> None:
    a, b = [2.0, 3.0, 4.0, 5.0], [1.0, 1.5, 2.0]
    pooled = math.sqrt((3 * np.var(a, ddof=1) + 2 * np.var(b, ddof=1)) / 5)
    exact = math.gamma(2.5) / (math.sqrt(2.5) * math.gamma(2.0))
    assert hedges_effect_size(sample(a), sample(b)) == pytest.approx(exact * (3.5 - 1.5) / pooled, **CLOSE)


def test_the_interquartile_mean() -> None:
    rng = np.random.default_rng(3)
    for n in (4, 8, 12, 40):
        values = rng.normal(size=n)
        assert interquartile_mean(tuple(values)) == pytest.approx(scipy_stats.trim_mean(values, 0.25), **CLOSE)
    assert interquartile_mean((0.0, 1.0, 2.0, 3.0, 100.0)) == pytest.approx((0.75 * 1 + 2 + 0.75 * 3) / 2.5)


def test_the_spread_is_taken_with_caution() -> None:
    samples = [sample([1.0, 2.0, 4.0]), sample([2.0, 2.5, 1.0, 0.0], "b")]
    pooled = math.sqrt((2 * np.var([1, 2, 4], ddof=1) + 3 * np.var([2, 2.5, 1, 0], ddof=1)) / 5)
    factor = math.sqrt(5 / scipy_stats.chi2.ppf(0.2, 5))
    assert cautious_pooled_sd(samples) == pytest.approx(pooled * factor, **CLOSE)
    assert cautious_pooled_sd([sample([1.0])]) is None
