"""Which runs are pruned: never the best, never before their time, never against too few."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.rules.rank_variants import (
    MOST_TRAIL_POINTS,
    BestValueTrail,
    PruneRule,
    explain_hopeless_run,
    single_key_of_expression,
)

LOWER = PruneRule("eval/loss", "lower", after=20, least=3)


def trail(*values: float, better: str = "lower", every: int = 10) -> BestValueTrail:
    found = BestValueTrail(better)
    found.add_many([every * (at + 1) for at in range(len(values))], values)
    return found


OTHERS = [trail(5, 4, 3, 2), trail(6, 5, 4, 3), trail(7, 6, 5, 4)]  # at step 20: 4, 5, 6


def test_worse_than_the_median_at_its_step_is_hopeless() -> None:
    why = explain_hopeless_run(LOWER, trail(9, 8), OTHERS)
    assert why == ("its best eval/loss at step 20 is 8, the median of the 3 others there is 5, and lower is better")
    assert not explain_hopeless_run(LOWER, trail(9, 5), OTHERS), "as good as the median"
    assert not explain_hopeless_run(LOWER, trail(1, 8), OTHERS), "its best counts, not its last"


def test_nobody_is_pruned_too_early_or_against_too_few() -> None:
    assert not explain_hopeless_run(LOWER, trail(99), OTHERS), "before `after`"
    assert not explain_hopeless_run(LOWER, trail(9, 8), OTHERS[:2])
    assert not explain_hopeless_run(LOWER, trail(9, 8, 7, 6, 6), OTHERS), "no other has come that far"
    assert not explain_hopeless_run(LOWER, BestValueTrail("lower"), OTHERS), "it has logged nothing"
    assert not explain_hopeless_run(LOWER, trail(math.nan, math.nan), OTHERS), "what is no number tells nothing"


def test_a_run_that_is_nearly_done_is_left_alone() -> None:
    assert explain_hopeless_run(LOWER, trail(9, 8), OTHERS, steps=23)
    assert not explain_hopeless_run(LOWER, trail(9, 8), OTHERS, steps=22), "20 of 22 steps"
    assert not explain_hopeless_run(LOWER, trail(9, 8), OTHERS, steps=20), "its last one"


def test_higher_may_be_better() -> None:
    rule = PruneRule("acc", "higher", least=1)
    assert explain_hopeless_run(rule, trail(0.1, better="higher"), [trail(0.5, better="higher")])
    assert not explain_hopeless_run(rule, trail(0.6, better="higher"), [trail(0.5, better="higher")])


def test_a_run_that_was_resumed_says_again_what_it_said() -> None:
    found = trail(5, 4, 3)
    found.add_many([10, 20, 40], [1, 1, 2])
    assert (found.at(30), found.at(40), found.last) == (3, 2, 40)


def test_memory_is_bounded_and_the_newest_stays() -> None:
    found = BestValueTrail("lower")
    found.add_many(range(50_000), [float(-at) for at in range(50_000)])
    assert len(found.steps) <= MOST_TRAIL_POINTS + 1
    assert found.at(49_999) == -49_999


@given(
    st.lists(st.lists(st.floats(-10, 10), min_size=1, max_size=8), min_size=1, max_size=6),
    st.sampled_from(["higher", "lower"]),
)
def test_the_best_of_all_is_never_pruned(runs: list[list[float]], better: str) -> None:
    rule = PruneRule("x", better, least=1)
    trails = [trail(*values, better=better) for values in runs]
    best = (max if better == "higher" else min)(each.bests[-1] for each in trails)
    for each in trails:
        if each.bests[-1] == best:
            assert not explain_hopeless_run(rule, each, [other for other in trails if other is not each])


@pytest.mark.parametrize(
    ("by", "key"),
    [
        ('last("a")', "a"),
        ('window("a", 5).mean - last("a")', "a"),
        ('last("a") + last("b")', None),
        ("1 + 1", None),
        ("(", None),
    ],
)
def test_the_key_that_an_expression_is_about(by: str, key: str | None) -> None:
    assert single_key_of_expression(by) == key
