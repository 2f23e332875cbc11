"""The language of `when`: values, unknowns, traces, and that no text can do harm."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_world import of

from muster.rules.evaluate_expressions import (
    MetricSummaries,
    evaluate_expression,
    evaluation_as_json,
    explain_evaluation,
)
from muster.rules.expressions import ExpressionError, keys_in_expression, parse_expression
from muster.rules.metric_summary import Summary

RUN = of(
    {
        "ot.pi_sum": [0.1, 0.031],
        "train/l1": [1.0, 0.99, 0.98],
        "flat": [2.0] * 60 + [4.0] * 40,
        "torn": [5.0, math.nan],
        "never": [math.nan, math.inf],
        "zero": [0.0, 1.0],
        "a.b": [1.0],
        "a/b": [2.0],
        "p.q/r": [3.0],
        "p/q.r": [4.0],
        "empty": [],
    },
    known=["eval/success"],
)


def value(text: str, metrics: MetricSummaries = RUN, kind: Any = "number") -> Any:
    return evaluate_expression(parse_expression(text, kind), metrics).value


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('last("ot.pi_sum")', 0.031),
        ('first("ot.pi_sum")', 0.1),
        ("last('ot.pi_sum')", 0.031),
        ('min("flat")', 2.0),
        ('max("flat")', 4.0),
        ('mean("flat")', 2.8),
        ('count("flat")', 100.0),
        ('nan("torn")', 1.0),
        ('count("torn")', 2.0),
        ('delta("ot.pi_sum")', -0.069),
        ('delta_pct("train.l1")', -2.0),
        ('best("train.l1")', 0.98),
        ('slope("train.l1")', -0.01),
        ('window("flat", 50).mean', 3.6),
        ('window("flat", 40).mean', 4.0),
        ('window("flat", 41).min', 2.0),
        ('window("flat", 500).count', 100.0),
        ('window("train.l1", 2).slope', -0.01),
        ('window("train.l1", 2).last', 0.98),
        ('window("train.l1", 2).delta', -0.01),
        ('last("train/l1")', 0.98),
        ('last("a.b")', 1.0),
        ('last("a/b")', 2.0),
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("8 / 4 / 2", 1.0),
        ("8 - 4 - 2", 2.0),
        ("-2 - -3", 1.0),
        ("--2", 2.0),
        ("2 * -3", -6.0),
        (".5 + 1. + 1e-1", 1.6),
    ],
)
def test_numbers(text: str, right: float) -> None:
    assert value(text) == pytest.approx(right)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('last("ot.pi_sum") < 0.05', True),
        ("1 <= 1 and 2 >= 2 and 1 != 2 and 1 == 1.0", True),
        ("0 < 1 < 2", True),
        ("0 < 3 < 2", False),
        ("1 < 2 or 1 > 2 and 1 > 2", True),  # and binds closer
        ("not 1 > 2 and 1 > 2", False),  # not binds closest
        ("not (1 > 2 and 1 > 2)", True),
        ("not not true", True),
        ("false or true", True),
        ("1 + 1 > 1 * 1", True),
        ('missing("nowhere")', True),
        ('missing("empty")', True),
        ('missing("train.l1")', False),
        ('last("torn") > 0', None),
        ('last("torn") > 0 and 1 > 2', False),
        ('last("torn") > 0 or 1 < 2', True),
        ('last("torn") > 0 or 1 > 2', None),
        ('last("torn") > 0 and 1 < 2', None),
        ('not last("torn") > 0', None),
        ('1 < 0 < last("torn")', False),
        ('0 < last("torn") < 1', None),
        ('missing("p.q.r")', None),
        ('last("nowhere") > 0 or missing("nowhere")', True),
        ('missing("train.l1") and last("nowhere") > 0', False),
    ],
)
def test_truths(text: str, right: bool | None) -> None:
    assert value(text, kind="truth") is right


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('last("torn")', 'the last of 2 values of "torn" is nan'),
        ('mean("never")', 'none of the 2 values of "never" is a finite number'),
        ('delta("torn")', 'the first or the last value of "torn" is no finite number'),
        ('delta_pct("zero")', 'the first value of "zero" is 0, and nothing is a percentage of that'),
        ('slope("a.b")', '"a.b" has no two values at different steps'),
        ('best("flat")', 'whether higher or lower "flat" is better is not known: write min("flat") or max("flat")'),
        ('last("p.q.r")', '"p.q.r" may mean p.q/r or p/q.r: write which'),
        ('last("ot.pi_sun")', 'nothing logged "ot.pi_sun"; did you mean "ot.pi_sum"?'),
        ('last("train.loss.l1")', 'nothing logged "train.loss.l1"; did you mean "train/l1"?'),
        ('last("pi_sum")', 'nothing logged "pi_sum"; did you mean "ot.pi_sum"?'),
        ('last("eval.sucess")', 'nothing logged "eval.sucess"; did you mean "eval/success"?'),
        ('last("eval.success")', 'this run logged no "eval.success"; others did'),
        ('count("xyz")', 'nothing logged "xyz"'),
        ('count("empty")', 'nothing logged "empty"'),
        ('1 / (last("a.b") - 1)', '1 / (last("a.b") - 1) divides by zero'),
        ("1e308 * 10", "1e308 * 10 is too large for a number"),
        ('1 + last("torn") * 2', 'the last of 2 values of "torn" is nan'),
    ],
)
def test_unknown_has_a_reason(text: str, why: str) -> None:
    found = evaluate_expression(parse_expression(text, "number"), RUN)
    assert (found.value, found.why) == (None, why)


def test_a_run_that_logged_nothing() -> None:
    assert (
        evaluate_expression(parse_expression('last("x") > 1'), MetricSummaries({})).why
        == 'nothing logged "x"; it logged nothing at all'
    )


def test_missing_is_unknown_only_where_several_keys_may_be_meant() -> None:
    assert evaluate_expression(parse_expression('missing("p.q.r")'), RUN).value is None
    assert evaluate_expression(parse_expression('missing("what it may mean")'), RUN).value is True
    assert evaluate_expression(parse_expression('missing("a.b")'), RUN).value is False


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('last("ot.pi_sum") < 0.05', 'last("ot.pi_sum") = 0.031 < 0.05: true'),
        ('0.5 < last("train.l1") < 0.9', '0.5 < last("train.l1") = 0.98 < 0.9: false'),
        ('delta_pct("train.l1") > -2.5', 'delta_pct("train.l1") = -2 > -2.5: true'),
        ('last("a.b") < 2 and last("a/b") < 2', 'last("a.b") = 1 < 2: true and last("a/b") = 2 < 2: false'),
        ('missing("x") and (1 > 2 or 1 < 2)', 'missing("x"): true and (1 > 2: false or 1 < 2: true)'),
        ('not missing("flat")', 'not (missing("flat"): false): true'),
        (
            'last("a/b") / first("a.b") > 1.5',
            'last("a/b") / first("a.b") = 2 > 1.5: true (last("a/b") = 2, first("a.b") = 1)',
        ),
        ('last("torn") > 0', 'last("torn") = unknown > 0: unknown (the last of 2 values of "torn" is nan)'),
    ],
)
def test_a_trace_shows_the_numbers(text: str, told: str) -> None:
    assert explain_evaluation(evaluate_expression(parse_expression(text), RUN)) == told


def test_a_trace_as_json() -> None:
    found = evaluation_as_json(
        evaluate_expression(parse_expression('last("ot.pi_sum") < 0.05 and last("torn") > 1'), RUN)
    )
    assert found["value"] is None
    assert found["parts"][0]["parts"][0] == {"text": 'last("ot.pi_sum")', "value": 0.031}
    assert found["parts"][1]["parts"][0]["why"] == 'the last of 2 values of "torn" is nan'


def test_the_keys_of_an_expression() -> None:
    node = parse_expression('last("a") < 1 and not missing("b/c") or -window("d", 5).mean > 2')
    assert list(keys_in_expression(node)) == ["a", "b/c", "d"]


# -- against Python itself, for what both know

NUMBERS = st.sampled_from(["0", "1", "2.5", "10", ".5"])


def expressions(inner: Any) -> Any:
    sums = st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(" ".join)
    return sums | inner.map("({})".format) | inner.map("- {}".format)


SUMS = st.recursive(NUMBERS, expressions, max_leaves=8)
SIGNS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
COMPARED = st.tuples(SUMS, SIGNS, SUMS) | st.tuples(SUMS, SIGNS, SUMS, SIGNS, SUMS)
TRUTHS = st.recursive(
    COMPARED.map(" ".join),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join)
        | inner.map("({})".format)
        | inner.map("not {}".format)
    ),
    max_leaves=6,
)


@given(TRUTHS)
@settings(max_examples=300)
def test_it_reckons_as_python_does(text: str) -> None:
    assert value(text, kind="truth") is eval(text)


@given(st.sampled_from(["and", "or"]), st.lists(st.sampled_from(["T", "F", "U"]), min_size=2, max_size=4))
def test_unknown_is_three_valued(word: str, sides: list[str]) -> None:
    """Unknown is what it is for some choices of the unknown, and not for others."""
    texts = {"T": "1 < 2", "F": "1 > 2", "U": 'last("torn") > 0'}
    found = value(f" {word} ".join(texts[side] for side in sides), kind="truth")
    choices = itertools.product(*({"T": [True], "F": [False], "U": [True, False]}[side] for side in sides))
    possible = {(all if word == "and" else any)(choice) for choice in choices}
    assert found is (possible.pop() if len(possible) == 1 else None)


@given(st.text("lastwindowminmx()\"', .5<>=and notor+-*/", max_size=40) | st.text(max_size=30))
@settings(max_examples=500)
def test_whatever_is_typed_gives_a_value_or_a_message_with_a_column(text: str) -> None:
    try:
        node = parse_expression(text)
    except ExpressionError as error:
        refused = error
    else:
        assert evaluate_expression(node, RUN).value in (True, False, None)
        return
    assert 1 <= refused.column <= len(text) + 1
    assert str(refused).startswith(f"column {refused.column}: ")


@pytest.mark.parametrize(
    "text",
    ["(" * 500 + "1" + ")" * 500, "-" * 1999 + "1", "not " * 400 + "true", " + ".join(["1"] * 600), "1 < " * 400 + "1", "x" * 5000],
)  # fmt: skip
def test_what_is_too_long_or_too_deep_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"too long|too deeply"):
        parse_expression(text)


def test_the_longest_chain_that_is_read_can_be_reckoned() -> None:
    text = " + ".join(["1"] * 150)
    assert value(text) == 150.0
    assert explain_evaluation(
        evaluate_expression(parse_expression(f"{text[:-4]} > 1"), MetricSummaries({"x": Summary("x")}))
    ).endswith("= 149 > 1: true")
