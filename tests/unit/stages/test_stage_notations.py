"""Notations and mappings: what is written is read again as it was, and no text can raise anything but SpecError."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from gate_world import flag_line, reference
from hypothesis import example, given
from hypothesis import strategies as st

from muster.stages import Curriculum, GateSettings, Schedule, SpecError
from muster.stages.criteria import Window
from muster.stages.notation import format_overrides, parse_counts_by_stage, parse_numbers_by_stage
from muster.stages.schedule import Lesson
from muster.stages.training_flags import parse_training_flags

COUNTS = st.integers(1, 10**9)
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.text("abcxyz_-./ 鱼é=", min_size=1).map(str.strip).filter(bool)


@given(st.lists(st.builds(Lesson, NUMBERS, COUNTS), min_size=1).map(tuple).map(Curriculum))
def test_a_curriculum_comes_back(curriculum: Curriculum) -> None:
    assert Curriculum.parse(curriculum.text()) == curriculum
    assert Curriculum.of(curriculum.text()) == curriculum
    assert Curriculum.of(json.loads(json.dumps(curriculum.mappings()))) == curriculum


@given(
    st.lists(
        st.fixed_dictionaries(
            {"iterations": st.integers(1, 10**6), "file": NAMES, "type": NAMES}, optional={"note": NAMES, "w": COUNTS}
        ),
        min_size=1,
    )
)
def test_a_schedule_comes_back(written: list[dict[str, Any]]) -> None:
    schedule = Schedule.of(written)
    assert Schedule.parse(schedule.text()) == schedule
    assert Schedule.of(json.loads(json.dumps(schedule.mappings()))) == schedule
    assert [each.type for each in schedule.stages] == [each["type"] for each in written]


@given(st.dictionaries(NAMES.filter(lambda name: ":" not in name), NUMBERS, min_size=1))
def test_overrides_come_back(values: dict[str, float]) -> None:
    assert parse_numbers_by_stage(format_overrides(values)) == values


@given(st.dictionaries(NAMES, st.integers(0, 10**9), min_size=1))
def test_whole_overrides_come_back(values: dict[str, int]) -> None:
    assert parse_counts_by_stage(format_overrides(values)) == values


THRESHOLDS = st.integers(-9, 9) | st.floats(-1e9, 1e9)
BOUNDS = st.builds(
    lambda low, high: low | high,
    st.dictionaries(st.sampled_from(["min", "above"]), THRESHOLDS, max_size=1),
    st.dictionaries(st.sampled_from(["max", "below"]), THRESHOLDS, max_size=1),
)
WINDOWS = st.fixed_dictionaries(
    {},
    optional={"window": st.sampled_from(["last", "mean 3", "median 4", "p10 20", "p2.5 9", "all 2", "min 1", "max 7"])},
)
LIMITS = st.builds(lambda bounds, window: bounds | window, BOUNDS.filter(bool), WINDOWS)
CRITERIA = st.builds(
    lambda key, limits, stages: {"key": key} | limits | ({"by_stage": stages} if stages else {}),
    st.text(min_size=1).filter(str.strip), LIMITS, st.dictionaries(st.text(min_size=1), LIMITS, max_size=2),
)  # fmt: skip
GATES = st.fixed_dictionaries(
    {"success": st.lists(CRITERIA, min_size=1, max_size=3)},
    optional={
        "failure": st.lists(CRITERIA, max_size=3),
        "required": COUNTS,
        "tolerance": st.integers(0, 9) | st.dictionaries(st.text(min_size=1), st.integers(0, 9)),
        "allowance": st.integers(0, 9) | st.lists(st.integers(0, 9), min_size=1),
        "freeze": st.integers(0, 9) | st.fixed_dictionaries({}, optional={"advance": COUNTS, "fall_back": COUNTS}),
        "phases": st.integers(2, 9),
        "wins": st.sampled_from(["failure", "success"]),
    },
)


@given(GATES)
def test_a_gates_settings_come_back(written: dict[str, Any]) -> None:
    settings = GateSettings.of(written)
    assert GateSettings.of(settings.mapping()) == settings
    through_json = json.loads(json.dumps(settings.mapping()))
    assert through_json == settings.mapping(), "so that a checkpoint's settings can be compared"
    assert GateSettings.of(through_json) == settings


@given(st.sampled_from(["mean", "median", "min", "max", "all", "p0", "p10", "p99.9"]), st.integers(1, 9_999_999))
def test_windows_come_back(kind: str, size: int) -> None:
    window = Window.parse(f" {kind}   {size} ")
    assert (window.kind, window.size) == (kind, size)
    assert Window.parse(str(window)) == window


def test_the_notations_of_the_reference_come_back() -> None:
    found = reference()
    assert found.curriculum is not None
    assert found.schedule is not None
    assert found.gate is not None
    assert found.curriculum.text() in flag_line()
    assert found.schedule.text() in flag_line()
    assert GateSettings.of(found.gate.mapping()) == found.gate
    assert Schedule.of(found.schedule.mappings()) == found.schedule


def test_blanks_and_a_separator_at_the_end_are_let_pass() -> None:
    assert Curriculum.parse(" 15 : 9 ,\n 20:10, ").text() == "15:9,20:10"
    assert Schedule.parse("8: a.json | type = ne ;").text() == "8:a.json|type=ne"
    assert parse_numbers_by_stage(" ne : 0.13 , main:1e-1 ") == {"ne": 0.13, "main": 0.1}


def test_a_number_is_kept_as_it_is_written() -> None:
    first, second, third = Curriculum.parse("15:9,0.5:1,1e3:1").lessons
    assert (repr(first.value), repr(second.value), repr(third.value)) == ("15", "0.5", "1000.0")


def test_a_path_may_have_a_colon_and_an_equals_sign() -> None:
    (stage,) = Schedule.parse("8:s3://b/x=1.json|type=a=b").stages
    assert (stage.source, stage.type) == ("s3://b/x=1.json", "a=b")


PARSERS: list[Callable[[str], Any]] = [Curriculum.parse, Schedule.parse, parse_numbers_by_stage, parse_counts_by_stage]
# made of what the notations are made of, so that it comes far
ODD = st.text("0123456789:,;|=typne. -+e_\0\n\t\u2028鱼٣") | st.text()


@pytest.mark.parametrize("parse", PARSERS)
@given(text=ODD)
@example(text="")
@example(text="\x1c")
@example(text="0:0" * 99)
@example(text="9" * 5000 + ":" + "9" * 5000)
def test_no_text_raises_anything_but_a_spec_error(parse: Callable[[str], Any], text: str) -> None:
    error = refused(parse, text)
    if error is not None:
        assert error.problems
        assert {problem.text for problem in error.problems} <= {"", text}
        assert all(line.isprintable() for line in str(error).split("\n"))
        for problem in error.problems:
            points_at_its_character(problem)


def refused(read: Callable[[Any], Any], written: Any) -> SpecError | None:
    try:
        read(written)
    except SpecError as error:
        return error
    return None


def points_at_its_character(problem: Any) -> None:
    if not problem.text:
        return
    assert 0 <= problem.at < len(problem.text)
    shown = problem.lines()
    assert shown[2].strip() == "^"
    sign = problem.text[problem.at]
    if shown[1].isascii():  # so that a character is a column
        assert shown[1][len(shown[2]) - 1] == (sign if sign.isprintable() else " ")


@given(ODD | st.lists(st.sampled_from(flag_line().split()), max_size=9).map(" ".join))
def test_no_flag_line_raises_anything_but_a_spec_error(line: str) -> None:
    error = refused(parse_training_flags, line)
    for problem in error.problems if error else ():
        points_at_its_character(problem)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["key", "min", "below", "window", "by_stage", "success", "failure", "required", "tolerance",
                         "freeze", "allowance", "phases", "wins", "iterations", "file", "from", "to", "type", "value", "x"]),
        inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.parametrize("read", [Curriculum.of, Schedule.of, GateSettings.of])
@given(written=ANYTHING)
def test_no_mapping_raises_anything_but_a_spec_error(read: Callable[[Any], Any], written: Any) -> None:
    error = refused(read, written)
    assert error is None or (error.problems and str(error))
