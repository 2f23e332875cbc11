"""Bounds of a mean cost: Student's and the log-normal one where both can be, the cap where neither can."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from muster.stats.decision_procedure import bounds_of_mean, judge_feasibility
from muster.stats.quantiles import lognormal_shift
from muster.stats.samples import Sample


def sample(*values: float) -> Sample:
    return Sample("a", "ood", "cost", {str(seed): value for seed, value in enumerate(values)})


def pivot_below(shift: float, n: int, sd: float) -> float:
    """By quadrature over the logarithm of the variance that is met."""
    df = n - 1

    def density(at: float) -> float:
        v = math.exp(at)
        z = (shift - sd * sd / (2 * v)) * math.sqrt(n * v) / sd
        return float(stats.chi2.pdf(df * v, df) * df * v * special.ndtr(z))

    return float(integrate.quad(density, -30, 4, limit=2000, epsabs=1e-12, points=[-6, -4, -2, -1, 0, 1])[0])


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("sd", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("share", [0.05, 0.95, 0.975, 1 - 0.05 / 38])
def test_the_lognormal_pivot_is_that_of_a_quadrature(n: int, sd: float, share: float) -> None:
    assert pivot_below(lognormal_shift(share, n, sd), n, sd) == pytest.approx(share, abs=1e-7)


def test_the_lognormal_pivot_is_that_of_draws() -> None:
    rng = np.random.default_rng(3)
    v = rng.chisquare(4, 400_000) / 4
    drawn = rng.standard_normal(400_000) / np.sqrt(v) * 0.5 / math.sqrt(5) + 0.25 / (2 * v)
    assert lognormal_shift(0.95, 5, 0.5) == pytest.approx(float(np.quantile(drawn, 0.95)), rel=0.02)


def test_positive_costs_have_the_wider_of_two_bounds() -> None:
    skewed = sample(0.4, 0.7, 1.0, 1.6, 3.9)
    found = bounds_of_mean(skewed, 0.05)
    student = skewed.bound(0.9)
    assert student is not None
    assert found.basis == "lognormal"
    assert found.upper is not None
    assert found.upper > student[1]
    assert found.lower is not None
    assert found.lower <= student[0]
    assert bounds_of_mean(sample(-1.0, 2.0, 1.0), 0.05).basis == "t"


def test_a_bound_beyond_all_numbers_is_no_crash() -> None:
    assert bounds_of_mean(sample(1e-100, 1e100), 0.001).upper == math.inf
    assert judge_feasibility(sample(1e-100, 1e100), 1.0).standing == "UNDETERMINED"


@pytest.mark.parametrize("values", [(0.0, 1.0, 0.5, 0.2, 0.1), (0.0,) * 5, (1.0,) * 5])
def test_zeros_and_seeds_without_spread_prove_nothing_without_a_cap(values: tuple[float, ...]) -> None:
    found = judge_feasibility(sample(*values), 20.0)
    assert (found.standing, found.upper, found.basis) == ("UNDETERMINED", None, "no_cap")
    capped = judge_feasibility(sample(*values), 60.0, cap=100.0)
    beyond = 1 - 0.05 ** (1 / 5)
    assert capped.upper == pytest.approx(beyond * 100 + (1 - beyond) * max(values))
    assert (capped.standing, capped.basis) == ("FEASIBLE", "cap")
    assert judge_feasibility(sample(*values), 20.0, cap=100.0).standing == "UNDETERMINED"
    assert judge_feasibility(sample(*values), 20.0, cap=0.5).basis == ("cap" if max(values) <= 0.5 else "over_cap")


def test_zeros_do_not_hide_a_limit_that_is_broken() -> None:
    assert judge_feasibility(sample(0.0, 40.0, 35.0, 38.0, 42.0), 1.0).standing == "INFEASIBLE"


def test_a_minimum_is_mirrored() -> None:
    perfect = sample(*[1.0] * 5)
    assert judge_feasibility(perfect, 0.5, at_most=False).standing == "UNDETERMINED"
    found = judge_feasibility(perfect, 0.5, at_most=False, cap=0.0)
    assert (found.standing, found.lower) == ("FEASIBLE", pytest.approx(0.05 ** (1 / 5)))
    assert (
        judge_feasibility(sample(0.9, 0.8, 0.0, 0.7, 0.9), 0.1, at_most=False).basis == "t"
    )  # a 0 is bad, and was seen


def test_five_of_five_leave_room_for_failures() -> None:
    found = judge_feasibility(sample(1.0, 1.1, 0.9, 1.2, 0.8), 2.0)
    assert (found.standing, found.keep) == ("FEASIBLE", 5)
    assert found.fail_at_most == pytest.approx(0.451, abs=0.0005)


@pytest.mark.parametrize("n", [5, 10])
def test_the_cap_holds_for_the_worst_that_can_be(n: int) -> None:
    """A share of seeds at the cap, all others at 0, just infeasible: called feasible in alpha of the campaigns."""
    share = 1 - 0.05 ** (1 / n)
    limit = bounds_of_mean(sample(*[0.0] * n), 0.05, cap=1.0).upper
    assert limit == pytest.approx(share)
    assert (1 - share) ** n == pytest.approx(0.05)  # that none of them is seen
