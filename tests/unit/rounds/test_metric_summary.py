"""Summaries against numpy: streaming must give what the whole would."""

from __future__ import annotations

import itertools
import json
import math
import sys
from array import array
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.rules.metric_summary import (
    KEPT_VALUES,
    Summarizer,
    Summary,
    better_direction_of_key,
    metric_summary_as_json,
)

VALUES = st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf, -math.inf, 0.0])
STEPS = st.integers(0, 10**7).map(float) | st.sampled_from([math.nan])


def summed(steps: Any, values: Any) -> Summary:
    found = Summarizer("x")
    for step, value in zip(steps, values, strict=True):
        found.add(step, value)
    return found.summary()


def expected(steps: Any, values: Any) -> dict[str, float | None]:
    x, y = np.asarray(steps, float), np.asarray(values, float)
    finite = np.isfinite(y)
    both = finite & np.isfinite(x)
    some = y[finite]
    off = x[both] - x[both].mean() if both.any() else x[:0]
    spread = float(off @ off)
    return {
        "min": float(some.min()) if len(some) else None,
        "max": float(some.max()) if len(some) else None,
        "mean": float(some.mean()) if len(some) else None,
        "slope": float(off @ (y[both] - y[both].mean()) / spread) if spread > 0 else None,
    }


@given(st.lists(st.tuples(STEPS, VALUES), max_size=200), st.lists(st.integers(0, 200), max_size=4))
@settings(max_examples=300, deadline=None)
def test_one_by_one_by_columns_and_numpy_agree(rows: list[tuple[float, float]], cuts: list[int]) -> None:
    steps, values = [row[0] for row in rows], [row[1] for row in rows]
    one = summed(steps, values)
    many = Summarizer("x")
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for start, end in itertools.pairwise(edges):
        many.add_many(array("d", steps[start:end]), array("d", values[start:end]))
    other = many.summary()
    assert (one.count, one.nan) == (other.count, other.nan) == (len(rows), sum(not math.isfinite(v) for v in values))
    for name in ("first", "last", "first_step", "last_step", "min", "max", "tail", "tail_steps"):
        assert repr(getattr(one, name)) == repr(getattr(other, name)), name
    assert repr(list(one.tail)) == repr(values[-KEPT_VALUES:])
    truth = expected(steps, values)
    assert (one.min, one.max) == (truth["min"], truth["max"])
    for found in (one, other):
        assert (found.mean is None) == (truth["mean"] is None)
        assert (found.mean or 0.0) == pytest.approx(truth["mean"] or 0.0, rel=1e-6, abs=1e-3)
        if found.slope is not None and truth["slope"] is not None:
            assert found.slope == pytest.approx(truth["slope"], rel=1e-6, abs=1e-3)
        else:
            assert len({step for step, value in rows if math.isfinite(step) and math.isfinite(value)}) < 2


def test_a_million_steps_far_from_zero_lose_no_digits() -> None:
    random = np.random.default_rng(5)
    steps = np.arange(1e9, 1e9 + 20_000)
    values = 1e6 + 0.25 * (steps - 1e9) + random.normal(size=len(steps))
    slope, start = np.polyfit(steps - 1e9, values, 1)
    by_columns = Summarizer("x")
    for at in range(0, len(steps), 777):
        by_columns.add_many(steps[at : at + 777], values[at : at + 777])
    for found in (summed(steps.tolist(), values.tolist()), by_columns.summary()):
        assert found.slope == pytest.approx(slope, rel=1e-9)
        assert found.mean == pytest.approx(values.mean(), rel=1e-12)
        assert list(found.tail) == list(values[-KEPT_VALUES:])
        assert found.window(100).mean == pytest.approx(values[-100:].mean(), rel=1e-12)
        assert found.window(100).slope == pytest.approx(np.polyfit(np.arange(100), values[-100:], 1)[0], rel=1e-6)
    assert start == pytest.approx(1e6, rel=1e-6)


def test_windows() -> None:
    found = summed(range(10), [float(number) for number in range(10)])
    window = found.window(4)
    assert (window.count, window.first, window.last, window.min, window.max, window.mean) == (
        4,
        6.0,
        9.0,
        6.0,
        9.0,
        7.5,
    )
    assert window.slope == 1.0
    assert window.delta == 3.0
    assert window.pct == 50.0
    assert found.window(99).count == 10
    assert summed([], []).window(5).mean is None


def test_memory_is_constant() -> None:
    found = Summarizer("x")
    steps = array("d", range(5000))
    found.add_many(steps, steps)
    before = sys.getsizeof(found._steps) + sys.getsizeof(found._values)
    for _ in range(50):
        found.add_many(steps, steps)
    assert sys.getsizeof(found._steps) + sys.getsizeof(found._values) == before < 10_000
    assert found.summary().count == 5000 * 51


def test_nothing_and_next_to_nothing() -> None:
    empty = Summarizer("x").summary()
    assert (empty.count, empty.first, empty.last, empty.min, empty.mean, empty.slope) == (
        0,
        None,
        None,
        None,
        None,
        None,
    )
    assert (empty.delta, empty.pct, empty.best("higher")) == (None, None, None)
    one = summed([5], [2.0])
    assert (one.first, one.last, one.delta, one.pct, one.slope, one.first_step) == (2.0, 2.0, 0.0, 0.0, None, 5.0)
    assert summed([1, 2], [0.0, 3.0]).pct is None
    assert summed([1, 2], [-2.0, -1.0]).pct == 50.0
    assert summed([3, 3], [1.0, 2.0]).slope is None


def test_what_is_no_number_is_kept_and_counted() -> None:
    found = summed([1, 2, 3], [1.0, math.inf, math.nan])
    assert (found.count, found.nan, found.first, found.max, found.mean) == (3, 2, 1.0, 1.0, 1.0)
    assert math.isnan(found.last or 0.0)
    assert found.delta is None
    told = metric_summary_as_json(found)
    assert (told["last"], told["delta"], told["count"], told["nan"]) == (None, None, 3, 2)
    assert summed([math.nan], [1.0]).last_step is None


def test_columns_of_different_length_are_refused() -> None:
    for many in (3, 40):
        with pytest.raises(ValueError):
            Summarizer("x").add_many([1.0], [1.0] * many)


@pytest.mark.parametrize(
    ("key", "better"),
    [("train/loss", "lower"), ("eval/success", "higher"), ("train.l1", "lower"), ("evalReturn", "higher"),
     ("ot.pi_sum", None), ("lossless", None), ("score_error", None), ("eval/cost", "lower"), ("", None)],
)  # fmt: skip
def test_the_direction_is_told_by_words(key: str, better: str | None) -> None:
    assert better_direction_of_key(key) == better
    summary = summed([1, 2], [1.0, 3.0])
    assert Summary(key, min=1.0, max=3.0).best() == {"lower": 1.0, "higher": 3.0, None: None}[better]
    assert summary.best("lower") == 1.0


def test_a_summary_takes_eight_bytes_for_a_value() -> None:
    """A loop holds hundreds of runs with hundreds of keys in memory."""
    found = Summarizer("x")
    found.add_many(range(3 * KEPT_VALUES), range(3 * KEPT_VALUES))
    summary = found.summary()
    assert sum(map(sys.getsizeof, (summary.tail, summary.tail_steps))) < 2 * KEPT_VALUES * 8 + 400
    assert list(summary.tail) == list(map(float, range(2 * KEPT_VALUES, 3 * KEPT_VALUES)))


def test_a_summary_is_a_value() -> None:
    one, two = Summary("x", tail_steps=(1.0, 2.0), tail=[3.0, 4.0]), Summary("x", tail_steps=[1, 2], tail=(3, 4))
    assert one == two
    assert hash(one) == hash(two)
    assert one != Summary("x", tail_steps=(1.0, 2.0), tail=(3.0, 5.0))
    assert json.dumps(list(one.window(1).tail)) == "[4.0]"
    found = Summarizer("x")
    found.add(1, 2)
    before = found.summary()
    found.add(2, 3)
    assert list(before.tail) == [2], "what is added later changes none that was handed out"
