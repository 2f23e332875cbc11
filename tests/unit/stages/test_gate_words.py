"""A decision says why in plain words, what broke a streak, and what is missing; and nothing of it is untrue."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from gate_world import fed, gate_of

from muster.stages import Decision

UP = [{"key": "x", "min": 10}]
DOWN = [{"key": "x", "below": 5}]
ONE = {"success": UP, "failure": DOWN}
TWO = ONE | {"required": 2}
MEAN = {"success": [{"key": "x", "min": 10, "window": "mean 3"}]}
BOTH = {"success": [{"key": "x", "min": 3}], "failure": DOWN, "required": 2}

WHY: list[tuple[dict[str, Any], list[Any], str]] = [
    # the settings, what is seen, and why of the last decision
    (ONE, [10], "a success: on to phase 1"),
    (TWO, [10], "success 1 of 2 in a row"),
    (TWO, [10, 10], "2 successes in a row: on to phase 1"),
    (ONE | {"phases": 2}, [10, 10], "success, and this is the last phase"),
    (TWO | {"phases": 2}, [10, 10, 10], "success, and this is the last phase"),
    (ONE, [7], "neither success nor failure: x 7 is below 10"),
    ({"failure": DOWN}, [7], "neither success nor failure: no success criterion applies in this stage"),
    ({"success": [{"key": "x", "by_stage": {"main": {"min": 1}}}]}, [(7, "ne")],
     "neither success nor failure: no success criterion applies in this stage"),
    (ONE, [1], "failure: x 1 is below 5; failure 1 in a row, none is borne here, and there is no phase to fall back to"),
    (ONE | {"tolerance": 1}, [1], "failure: x 1 is below 5; failure 1 in a row, 1 is borne here"),
    (ONE | {"tolerance": 2}, [1, 1], "failure: x 1 is below 5; failure 2 in a row, 2 are borne here"),
    (ONE | {"tolerance": 2}, [10, 1, 1, 1],
     "failure: x 1 is below 5; failure 3 in a row, 2 are borne here: back to phase 0"),
    (ONE | {"tolerance": 9, "allowance": [9, 1]}, [10, 1, 7, 1],
     "failure: x 1 is below 5; failure 2 of phase 1, 1 is allowed: back to phase 0"),
    (ONE | {"tolerance": 1, "allowance": [9, 0]}, [10, 1],
     "failure: x 1 is below 5; failure 1 of phase 1, none is allowed: back to phase 0"),
    (ONE | {"tolerance": 9, "allowance": 0}, [1],
     "failure: x 1 is below 5; failure 1 of phase 0, none is allowed, and there is no phase to fall back to"),
    (BOTH, [4], "failure although every success criterion holds, because failure wins: x 4 is below 5; "
     "failure 1 in a row, none is borne here, and there is no phase to fall back to"),
    (BOTH | {"wins": "success"}, [4], "success 1 of 2 in a row although x 4 is below 5, because success wins"),
    (BOTH | {"wins": "success"}, [9, 4],
     "2 successes in a row although x 4 is below 5, because success wins: on to phase 1"),
    (ONE | {"freeze": 2}, [10, 1], "nothing is decided before iteration 4"),
    (ONE | {"freeze": 2}, [10, 1, 1], "nothing is decided before iteration 4"),
    (ONE, [None], "x can't be judged: no number was given"),
    ({"success": UP}, ["?"], "x can't be judged: no number was given"),
    (MEAN, [10], "x (mean 3) can't be judged: 2 more values to come"),
    (MEAN, [10, 10], "x (mean 3) can't be judged: 1 more value to come"),
    (MEAN, [10, 10, 9], "neither success nor failure: x (mean 3) 9.66667 is below 10"),
    (MEAN, [10, 10, math.nan], "x (mean 3) can't be judged: 3 more values to come"),
    (MEAN, [10, math.nan, 10], "x (mean 3) can't be judged: 2 more values to come"),
    (MEAN, [10, math.inf, -math.inf], "x (mean 3) can't be judged: it is infinite in both directions"),
    ({"success": [{"key": "x", "above": 10}]}, [10], "neither success nor failure: x 10 is not above 10"),
    ({"success": [{"key": "x", "below": 10}]}, [10], "neither success nor failure: x 10 is not below 10"),
    ({"success": [{"key": "x", "max": 10}]}, [11], "neither success nor failure: x 11 is above 10"),
    ({"success": [{"key": "x", "min": 95}]}, [94.99999999], "neither success nor failure: x 94.99999999 is below 95"),
    ({"success": [{"key": "x", "max": 0.1}]}, [0.1 + 1e-16],
     "neither success nor failure: x 0.1000000000000001 is above 0.1"),
    ({"success": [{"key": "x", "max": 0.1, "window": "mean 2"}]}, [0.1, 0.1 + 1e-9],
     "neither success nor failure: x (mean 2) 0.1000000005 is above 0.1"),
    ({"success": [*UP, {"key": "y", "max": 1}]}, [{"x": 9, "y": 2}],
     "neither success nor failure: x 9 is below 10; y 2 is above 1"),
    ({"failure": [*DOWN, {"key": "y", "above": 1}]}, [{"x": 1, "y": 2}],
     "failure: y 2 is above 1; x 1 is below 5; failure 1 in a row, none is borne here, "
     "and there is no phase to fall back to"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "values", "why"), WHY)
def test_why(settings: dict[str, Any], values: list[Any], why: str) -> None:
    assert last(settings, values).why == why


def last(settings: dict[str, Any], values: list[Any]) -> Decision:
    return fed(gate_of(**settings), values)[-1]


BROKE: list[tuple[dict[str, Any], list[Any], str]] = [
    (TWO, [10], ""),
    (TWO, [7, 7], ""),
    (TWO, [10, 10], ""),
    (TWO, [10, 7], "x 7 is below 10"),
    (TWO, [10, 1], "x 1 is below 5"),
    (TWO, [10, 1, 1], ""),
    (TWO, [10, None], "x can't be judged: no number was given"),
    (BOTH, [6, 4], "x 4 is below 5"),
    # success holds, but nobody can say whether failure does
    ({"success": UP, "failure": [{"key": "y", "below": 5}], "required": 2}, [{"x": 10, "y": 5}, {"x": 10}],
     "y can't be judged: no number was given"),
    ({"success": [{"key": "x", "by_stage": {"main": {"min": 1}}}], "required": 2}, [(5, "main"), (5, "ne")],
     "no success criterion applies in this stage"),
    (TWO | {"tolerance": 0}, [10, 10, 10, 1], "x 1 is below 5"),
    (TWO | {"freeze": 5}, [10, 10, 1], ""),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "values", "broke"), BROKE)
def test_what_broke_a_streak(settings: dict[str, Any], values: list[Any], broke: str) -> None:
    decision = last(settings, values)
    assert decision.broke == broke
    assert bool(decision.broke) == (decision.before > 0 and decision.streak == 0 and decision.state != "advance")


MISSING: list[tuple[dict[str, Any], list[Any], list[str]]] = [
    (ONE, [10], []),
    (TWO, [10], ["1 more success"]),
    (TWO | {"required": 4}, [10], ["3 more successes in a row"]),
    (TWO, [7], ["x at least 10, found 7", "2 more successes in a row"]),
    (TWO, [1], ["x at least 10, found 1", "x not below 5, found 1", "2 more successes in a row"]),
    (BOTH, [4], ["x not below 5, found 4", "2 more successes in a row"]),
    (BOTH | {"wins": "success"}, [4], ["1 more success"]),
    (BOTH | {"wins": "success"}, [1], ["x at least 3, found 1", "2 more successes in a row"]),
    (ONE, [10, 1], []),
    (ONE | {"freeze": 2}, [10, 10], ["nothing is decided before iteration 4"]),
    (ONE | {"phases": 2}, [10, 7], ["a further phase: this is the last one"]),
    (ONE | {"phases": 2}, [10, 10], ["a further phase: this is the last one"]),
    ({"failure": DOWN}, [7], ["no success criterion applies in this stage", "1 more success"]),
    (ONE, [None], ["x: no number was given", "1 more success"]),
    (MEAN, [10], ["x (mean 3): 2 more values to come", "1 more success"]),
    ({"success": UP, "failure": [{"key": "y", "below": 5}]}, [{"x": 10}], ["y: no number was given", "1 more success"]),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "values", "missing"), MISSING)
def test_what_is_missing_to_pass(settings: dict[str, Any], values: list[Any], missing: list[str]) -> None:
    assert last(settings, values).missing == missing


@pytest.mark.parametrize(
    ("settings", "values", "until"),
    [
        (ONE, [10], None),
        (ONE | {"freeze": 3}, [10], 4),
        (ONE | {"freeze": 3}, [10, 1], 4),
        (ONE | {"freeze": 3}, [10, 1, 1, 1], 4),
        (ONE | {"freeze": 3}, [10, 1, 1, 1, 7], None),
        (ONE | {"freeze": {"fall_back": 2}}, [10, 1], 4),
        (ONE, [7], None),
    ],
)
def test_a_row_says_until_when_it_is_frozen(settings: dict[str, Any], values: list[Any], until: int | None) -> None:
    assert last(settings, values).row()["frozen_until"] == until


def test_a_row_counts_what_stands_after_the_decision() -> None:
    rows = [each.row() for each in fed(gate_of(**TWO, tolerance=1), [10, 10, 1, 1, 10])]
    assert [each["streak"] for each in rows] == [1, 0, 0, 0, 1]
    assert [each["failures"] for each in rows] == [0, 0, 1, 0, 0]
    assert [each["phase"] for each in rows] == [0, 1, 1, 0, 0]
    assert [each["broken"] for each in rows] == [False, False, False, True, False]


class Tensor:
    """As a tensor of several numbers is: it can't be one."""

    def __float__(self) -> float:
        raise RuntimeError("a Tensor with 3 elements cannot be converted to Scalar")

    def __repr__(self) -> str:
        return "tensor([1, 2, 3])"


class Vast:
    def __float__(self) -> float:
        raise OverflowError


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, None, "text", True, [1], {"a": 1}, Tensor(), Vast(), 10**400, b"x"]
)
def test_a_line_is_json_whatever_the_script_gives(value: Any) -> None:
    decision = gate_of(**ONE).observe(1, {"x": value, "other": value})
    row = json.loads(decision.line(), parse_constant=lambda found: pytest.fail(f"{found} is no JSON"))
    assert row["verdict"] in ("unknown", "success", "failure")
    assert json.loads(json.dumps(row)) == row
