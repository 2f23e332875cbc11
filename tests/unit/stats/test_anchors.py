"""What n seeds support, simulated: the anchors that the wording rests on."""

import numpy as np
import pytest

from muster.stats.quantiles import student_t_p_value
from muster.stats.samples import Sample, welch_error_and_df
from muster.stats.seed_planning import detectable_difference

DRAWS = 6000


def drawn(rng: np.random.Generator, n: int) -> Sample:
    return Sample("a", "", "m", dict(zip(map(str, range(n)), rng.normal(size=n), strict=True)))


@pytest.mark.parametrize(("n", "low", "high"), [(2, 0.015, 0.05), (3, 0.02, 0.045), (5, 0.035, 0.06), (10, 0.04, 0.06)])
def test_welch_keeps_its_error_rate(n: int, low: float, high: float) -> None:
    rng = np.random.default_rng(n)
    wrong = 0
    for _ in range(DRAWS):
        a, b = drawn(rng, n), drawn(rng, n)
        se, df = welch_error_and_df(a, b)
        assert se
        assert df
        wrong += student_t_p_value((a.mean - b.mean) / se, df) <= 0.05
    assert low <= wrong / DRAWS <= high


@pytest.mark.parametrize(("n", "half_width"), [(2, 9.0), (3, 2.5), (5, 1.24), (10, 0.72)])
def test_intervals_cover_what_they_promise(n: int, half_width: float) -> None:
    rng = np.random.default_rng(n)
    covered = 0
    for _ in range(DRAWS):
        sample = drawn(rng, n)
        low, high = sample.bound(0.95) or (0.0, 0.0)
        covered += low <= 0 <= high
        assert (high - low) / 2 / (sample.sd or 1.0) == pytest.approx(half_width, rel=0.01)
    assert covered / DRAWS == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize(("n", "effect"), [(3, 3.1), (5, 2.0), (10, 1.3)])
def test_the_effect_that_is_seen_with_a_power_of_80_percent(n: int, effect: float) -> None:
    assert detectable_difference(n, 1.0, 0.05, 0.8) == pytest.approx(effect, abs=0.06)
