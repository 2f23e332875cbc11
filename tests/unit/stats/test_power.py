"""Power, seeds and the difference that is seen: the same by other ways, at few seeds and at many."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special
from statsmodels.stats.power import TTestIndPower

from muster.stats.seed_planning import MOST_SEEDS, detectable_difference, power_of_two_groups, seeds_for_difference

SEEDS = [*range(2, 11), 20, 400, 1000]
ALPHAS = [0.05, 0.025, 0.0125, 0.05 / 6, 0.00625, 0.0025, 0.001]
EFFECTS = [0.0, 0.05, 0.15, 0.5, 1.0, 2.0, 3.0, 5.0, 9.0, 16.0, 40.0, 1e3, 1e9]
ROUNDING = 1e-12


def by_quadrature(n: int, effect: float, alpha: float) -> float:
    """Over where the mean falls: given it, the test rejects where the spread is small enough."""
    half, shift = n - 1.0, effect * math.sqrt(n / 2)
    critical = -special.stdtrit(2 * half, alpha / 2)

    def rejected(z: float) -> float:
        return (
            math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * special.gammainc(half, half * ((z + shift) / critical) ** 2)
        )

    edges = sorted({-9.0, max(-9.0, min(9.0, -shift)), max(-9.0, min(9.0, critical - shift)), 9.0})
    return math.fsum(integrate.quad(rejected, *each, epsabs=1e-11, limit=200)[0] for each in pairwise(edges))


@pytest.mark.parametrize(
    ("n", "alpha", "effect"),
    [
        (2, 0.0125, 11.34), (2, 0.05 / 6, 13.89), (2, 0.00625, 16.04), (3, 0.05 / 6, 5.04), (3, 0.00625, 5.43),
        (4, 0.0025, 4.40), (6, 0.001, 3.27), (400, 0.00625, 0.25), (1000, 0.00625, 0.16),
    ],
)  # fmt: skip
def test_what_is_seen_where_the_noncentral_t_of_scipy_is_lost(n: int, alpha: float, effect: float) -> None:
    assert detectable_difference(n, 1.0, alpha, 0.8) == pytest.approx(effect, abs=0.005)
    assert detectable_difference(n, 2.5, alpha, 0.8) == pytest.approx(2.5 * effect, abs=0.0125)


@pytest.mark.parametrize("n", SEEDS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_power_is_that_of_a_quadrature(n: int, alpha: float) -> None:
    for effect in (0.05, 0.3, 1.0, 3.0, 9.0, 16.0):
        assert power_of_two_groups(n, effect, 1.0, alpha) == pytest.approx(by_quadrature(n, effect, alpha), abs=1e-8)
    assert power_of_two_groups(n, 0.0, 1.0, alpha) == pytest.approx(alpha, rel=1e-9)


@pytest.mark.parametrize("n", SEEDS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_power_is_that_of_statsmodels_where_it_has_one(n: int, alpha: float) -> None:
    for effect in EFFECTS[1:7]:
        theirs = TTestIndPower().power(effect, n, alpha)
        assert math.isnan(theirs) or power_of_two_groups(n, effect, 1.0, alpha) == pytest.approx(theirs, abs=1e-9)


def test_power_grows_with_seeds_effect_and_alpha() -> None:
    table = {(n, e, a): power_of_two_groups(n, e, 1.0, a) for n in SEEDS for e in EFFECTS for a in ALPHAS}
    assert all(0.0 <= power <= 1.0 for power in table.values())
    for a in ALPHAS:
        for few, many in pairwise(SEEDS):
            assert all(table[few, e, a] <= table[many, e, a] + ROUNDING for e in EFFECTS)
        for small, large in pairwise(EFFECTS):
            assert all(table[n, small, a] <= table[n, large, a] + ROUNDING for n in SEEDS)
    for lax, strict in pairwise(ALPHAS):
        assert all(table[n, e, strict] <= table[n, e, lax] + ROUNDING for n in SEEDS for e in EFFECTS)


def test_what_is_seen_shrinks_with_seeds_and_grows_as_alpha_does_not() -> None:
    table = {(n, a): detectable_difference(n, 1.0, a, 0.8) or math.nan for n in SEEDS for a in ALPHAS}
    for a in ALPHAS:
        assert all(table[few, a] > table[many, a] for few, many in pairwise(SEEDS))
    for lax, strict in pairwise(ALPHAS):
        assert all(table[n, lax] < table[n, strict] for n in SEEDS)


def test_so_many_seeds_and_not_one_fewer() -> None:
    assert seeds_for_difference(6.0, 1.0, 0.00625, 0.8) == 3  # 5.43 sd is seen with three
    assert seeds_for_difference(5.4, 1.0, 0.00625, 0.8) == 4
    assert seeds_for_difference(16.1, 1.0, 0.00625, 0.8) == 2
    assert seeds_for_difference(0.15, 1.0, 0.00625, 0.8) is None
    for alpha in ALPHAS:
        for effect in (0.2, 0.3, 1.0, 2.0, 3.3, 4.4, 6.0, 12.0, 20.0):
            n = seeds_for_difference(effect, 1.0, alpha, 0.8)
            assert n is not None
            assert power_of_two_groups(n, effect, 1.0, alpha) >= 0.8
            assert n == 2 or power_of_two_groups(n - 1, effect, 1.0, alpha) < 0.8


@given(
    n=st.integers(2, MOST_SEEDS),
    effect=st.floats(0, 1e6),
    sd=st.floats(1e-6, 1e6),
    alpha=st.floats(1e-5, 0.5),
    power=st.floats(0.51, 0.99),
)
def test_nothing_is_ever_lost(n: int, effect: float, sd: float, alpha: float, power: float) -> None:
    assert 0.0 <= power_of_two_groups(n, effect, sd, alpha) <= 1.0
    seen = detectable_difference(n, sd, alpha, power)
    assert seen is not None
    assert power_of_two_groups(n, seen, sd, alpha) == pytest.approx(power, abs=1e-6)


@pytest.mark.parametrize("sd", [math.inf, math.nan, 1e300])
def test_an_endless_spread_shows_no_difference(sd: float) -> None:
    assert detectable_difference(5, sd, 0.05, 0.8) is None
