"""Evaluations on many episodes: statistics against numpy, the interval's coverage, how many episodes are needed."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.stages.episodes import Plan, episodes_needed, quantile, quantile_interval, statistics_of

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50)


@given(VALUES, st.floats(0, 1))
def test_quantiles_are_those_of_numpy(values: list[float], share: float) -> None:
    assert quantile(values, share) == pytest.approx(float(np.quantile(values, share)), rel=1e-9, abs=1e-6)


@settings(max_examples=40)
@given(st.lists(st.integers(1, 500), min_size=1, max_size=60))
def test_statistics_are_those_of_numpy(deaths: list[int]) -> None:
    found, values = statistics_of(deaths, early=100), np.array(deaths, float)
    assert found.episodes == len(deaths)
    assert found.mean == pytest.approx(values.mean())
    assert found.min == values.min()
    assert found.p10 == pytest.approx(np.percentile(values, 10))
    assert found.early_death_rate == pytest.approx((values < 100).mean())
    assert found.first_step_ratio == pytest.approx((values <= 1).mean())
    assert values.min() <= found.p10_interval.low <= found.p10_interval.high <= values.max()
    assert found.row()["p10_low"] == found.p10_interval.low


def test_first_steps_of_starts_when_they_are_given() -> None:
    assert statistics_of([5, 6], first_steps=3, starts=1920).first_step_ratio == 3 / 1920
    assert statistics_of([1, 6]).first_step_ratio == 0.5
    assert statistics_of([5], first_steps=0, starts=10).first_step_ratio == 0


def test_an_early_death_comes_before_the_step_that_is_given() -> None:
    assert statistics_of([99, 100, 101, 500], early=100).early_death_rate == 0.25


@pytest.mark.parametrize(
    "given_",
    [{"first_deaths": []}, {"first_deaths": [1, math.nan]}, {"first_deaths": [1], "starts": 5},
     {"first_deaths": [1], "first_steps": 5}, {"first_deaths": [1], "first_steps": 0, "starts": 0}],
)  # fmt: skip
def test_what_can_not_be_told_is_refused(given_: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        statistics_of(**given_)  # type: ignore[arg-type]


def test_episodes_without_a_death_are_infinitely_long() -> None:
    found = statistics_of([50.0] + [math.inf] * 39)
    assert (found.mean, found.min, found.p10) == (math.inf, 50.0, math.inf)
    assert found.early_death_rate == 1 / 40
    assert found.p10_interval.high == math.inf
    assert quantile_interval([math.inf] * 9).width == 0


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_there_is_no_quantile_of_nothing(share: float) -> None:
    with pytest.raises(ValueError, match="nothing"):
        quantile([], share)
    with pytest.raises(ValueError, match="nothing"):
        quantile_interval([], share)


def test_an_interval_can_be_repeated() -> None:
    values = [random.Random(1).gauss(100, 20) for _ in range(40)]
    assert quantile_interval(values, seed=3) == quantile_interval(values, seed=3)
    assert quantile_interval([7.0] * 5) == (7.0, 7.0)
    assert quantile_interval([7.0]) == (7.0, 7.0)


@pytest.mark.parametrize(
    ("size", "share"), [(3, 0.1), (40, 0.1), (41, 0.1), (40, 0.5), (40, 0.9), (200, 0.1), (40, 0), (40, 1)]
)
def test_it_is_the_bootstrap_that_draws_every_value(size: int, share: float) -> None:
    rng = np.random.default_rng(7)
    values = rng.gamma(4, 30, size=40)
    drawn = np.quantile(rng.choice(np.resize(values, size), (20_000, size)), share, axis=1)
    found = quantile_interval(np.resize(values, size).tolist(), share, draws=20_000)
    spread = values.max() - values.min()
    assert found.low == pytest.approx(np.quantile(drawn, 0.025), abs=0.02 * spread)
    assert found.high == pytest.approx(np.quantile(drawn, 0.975), abs=0.02 * spread)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """A percentile bootstrap of a low quantile of 80 values is a little too narrow: 90 to 97 of 100 times."""
    rng = random.Random(11)
    truth = 100 + 20 * -1.2815515655446004
    runs, held = 400, 0
    for run in range(runs):
        low, high = quantile_interval([rng.gauss(100, 20) for _ in range(80)], seed=run, draws=200)
        held += low <= truth <= high
    assert 0.89 <= held / runs <= 0.98


@pytest.mark.parametrize("seed", range(3))
def test_more_episodes_are_needed_for_a_narrower_interval(seed: int) -> None:
    rng = random.Random(seed)
    values = [rng.gammavariate(4, 30) for _ in range(40)]
    widths = [40, 20, 10, 5]
    needed = [episodes_needed(values, width, seed=seed) for width in widths]
    assert needed == sorted(needed)
    assert needed[-1] > needed[0]
    for width, many in zip(widths, needed, strict=True):
        assert quantile_interval(values, size=many, seed=seed, draws=400).width <= width
        assert many == 1 or quantile_interval(values, size=math.floor(many / 1.3), seed=seed).width > 0.7 * width


def test_a_rare_death_is_not_hidden_by_a_single_episode() -> None:
    values = [0.0] * 2 + [200.0] * 98
    assert quantile_interval(values, size=1).width < 5 < quantile_interval(values, size=10).width
    assert episodes_needed(values, 5) > 10


def test_a_width_that_can_not_be_had_is_told_soon() -> None:
    with pytest.raises(ValueError, match="even a million episodes would not make the interval as narrow as 1"):
        episodes_needed([0.0] * 4 + [100.0] * 36, 1)  # the tenth part lies just between the two
    for width in (0, -1, math.nan):
        with pytest.raises(ValueError, match="the width must be above 0"):
            episodes_needed([1.0, 2.0], width)
    assert episodes_needed([5.0] * 40, 0.001) == 1


@given(st.integers(1, 40), st.integers(0, 40), st.integers(0, 2**31), st.sets(st.integers(0, 500), max_size=5))
def test_every_evaluation_has_seeds_of_its_own(probe: int, more: int, base: int, iterations: set[int]) -> None:
    plan = Plan(probe, probe + more, base)
    all_of_them = [seed for at in iterations for seed in plan.seeds(at)]
    assert len(all_of_them) == len(set(all_of_them)) == len(iterations) * plan.full
    for at in iterations:
        assert plan.seeds(at, full=False) == plan.seeds(at)[:probe]
        assert min(plan.seeds(at)) >= base


@pytest.mark.parametrize(("probe", "full"), [(0, 40), (41, 40), (-1, 3)])
def test_a_probe_is_a_part_of_the_whole(probe: int, full: int) -> None:
    with pytest.raises(ValueError, match="is no part of"):
        Plan(probe, full, 0).seeds(1)


def test_an_episode_without_a_death_is_refused_where_it_would_hide_the_only_death() -> None:
    with pytest.raises(ValueError, match="has no step"):
        episodes_needed([50.0, *[math.inf] * 9], 5)
