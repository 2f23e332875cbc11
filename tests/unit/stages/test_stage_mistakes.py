"""Settings that can't be read: every mistake at once, each with its place; and nothing but SpecError."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from gate_world import flag_line

from muster.stages import Curriculum, Cycler, GateError, GateSettings, Schedule, SpecError
from muster.stages.alarms import Watch
from muster.stages.notation import parse_counts_by_stage, parse_numbers_by_stage, suggest_closest_name
from muster.stages.training_flags import parse_training_flags

HUGE = "9" * 5000

TEXTS: list[tuple[Callable[[str], Any], str, int | None, str]] = [
    # the parser, the text, where the caret points, and a part of what is told
    (Curriculum.parse, "", None, "it is empty"),
    (Curriculum.parse, " \t", None, "it is empty"),
    (Curriculum.parse, ",", 0, "nothing before this ','"),
    (Curriculum.parse, ",15:9", 0, "nothing before this ','"),
    (Curriculum.parse, "15:9,,20:10", 5, "nothing before this ','"),
    (Curriculum.parse, "15:9, ,20:10", 6, "nothing before this ','"),
    (Curriculum.parse, "15", 0, "'15' has no ':'"),
    (Curriculum.parse, "15:9,20", 5, "'20' has no ':'"),
    (Curriculum.parse, ":9", 0, "nothing before the ':'"),
    (Curriculum.parse, "15:", 2, "nothing behind the ':'"),
    (Curriculum.parse, "15:9,20: ,25:9", 7, "nothing behind the ':'"),
    (Curriculum.parse, "fish:9", 0, "'fish' is no finite number"),
    (Curriculum.parse, "15:nine", 3, "'nine' is no whole number of iterations"),
    (Curriculum.parse, "15:9.5", 3, "'9.5' is no whole number"),
    (Curriculum.parse, "15:9.0", 3, "write 9"),
    (Curriculum.parse, "15:9:3", 3, "'9:3' is no whole number"),
    (Curriculum.parse, "15:0", 3, "0 iterations is zero"),
    (Curriculum.parse, "15:-3", 3, "-3 iterations is negative"),
    (Curriculum.parse, "15:10000000000", 3, "too many"),
    (Curriculum.parse, f"15:{HUGE}", 3, "no whole number"),
    (Curriculum.parse, f"{'1' * 400}:9", 0, "no finite number"),
    (Curriculum.parse, "nan:9", 0, "no finite number"),
    (Curriculum.parse, "-inf:9", 0, "no finite number"),
    (Curriculum.parse, "1e999:9", 0, "no finite number"),
    (Curriculum.parse, "15:٩", 3, "no whole number"),
    (Curriculum.parse, "１５:9", 0, "no finite number"),
    (Curriculum.parse, "1_5:9", 0, "no finite number"),
    (Curriculum.parse, "15:1_0", 3, "no whole number"),
    (Curriculum.parse, "15\0junk:9", 0, "no finite number"),
    (Curriculum.parse, "15;9", 0, "has no ':'"),
    (Curriculum.parse, "15:9 20:10", 3, "no whole number"),
    (Schedule.parse, "", None, "it is empty"),
    (Schedule.parse, ";", 0, "nothing before this ';'"),
    (Schedule.parse, "8:a|type=ne;;6:b|type=ne", 12, "nothing before this ';'"),
    (Schedule.parse, "a.json|type=ne", 0, "has no ':'"),
    (Schedule.parse, "8:", 1, "nothing behind the ':'"),
    (Schedule.parse, "8:|type=ne", 2, "the file is missing"),
    (Schedule.parse, "8: |type=ne", 3, "the file is missing"),
    (Schedule.parse, "0:a|type=ne", 0, "0 iterations is zero"),
    (Schedule.parse, "-8:a|type=ne", 0, "-8 iterations is negative"),
    (Schedule.parse, "8.5:a|type=ne", 0, "no whole number"),
    (Schedule.parse, "8:a|type", 4, "'type' is no mark"),
    (Schedule.parse, "8:a|type=", 4, "'type=' is no mark"),
    (Schedule.parse, "8:a|=ne", 4, "'=ne' is no mark"),
    (Schedule.parse, "8:a||type=ne", 4, "'' is no mark"),
    (Schedule.parse, "8:a|type=ne|", 11, "'' is no mark"),
    (Schedule.parse, "8:a|type=ne|type=main", 12, "'type' is there twice"),
    (Schedule.parse, "8:a|file=b|type=ne", 4, "'file=b' is no mark"),
    (Schedule.parse, "8:a|tpe=ne", 0, "'tpe' gives it no type"),
    (Schedule.parse, "8:a|type=ne;x:b|type=ne", 12, "'x' is no whole number"),
    (parse_numbers_by_stage, "", None, "it is empty"),
    (parse_numbers_by_stage, "ne", 0, "has no ':'"),
    (parse_numbers_by_stage, "ne:", 2, "nothing behind the ':'"),
    (parse_numbers_by_stage, ":0.13", 0, "nothing before the ':'"),
    (parse_numbers_by_stage, "ne:x", 3, "'x' is no finite number"),
    (parse_numbers_by_stage, "ne:nan", 3, "'nan' is no finite number"),
    (parse_numbers_by_stage, "ne:0.13,ne:0.10", 8, "the stage 'ne' is there twice"),
    (parse_numbers_by_stage, "ne:0.13,,main:0.10", 8, "nothing before this ','"),
    (parse_counts_by_stage, "main:0.5", 5, "no whole number"),
    (parse_counts_by_stage, "main:-1", 5, "negative"),
]  # fmt: skip


@pytest.mark.parametrize(("parse", "text", "at", "told"), TEXTS)
def test_texts(parse: Callable[[str], Any], text: str, at: int | None, told: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(text)
    (problem,) = caught.value.problems
    assert told in str(caught.value)
    if at is None:
        assert problem.text == ""
        return
    assert (problem.text, problem.at) == (text, at)
    shown = problem.lines()
    assert shown[0].startswith(f"character {at + 1}: ")
    assert shown[2].strip() == "^"
    if text.isascii() and text.isprintable():
        assert shown[1][len(shown[2]) - 1] == text[at]


def test_all_mistakes_of_a_text_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        Curriculum.parse("x:9,15:0,,20")
    assert [each.at for each in caught.value.problems] == [9, 0, 7, 10]


def test_the_caret_stands_under_a_text_in_chinese() -> None:
    with pytest.raises(SpecError) as caught:
        Schedule.parse("8:数据/难.json|type=ne;x:b|type=ne")
    assert str(caught.value).splitlines()[1:] == [
        "  8:数据/难.json|type=ne;x:b|type=ne",
        "  " + " " * 23 + "^",
    ]


def test_the_caret_stands_under_a_long_text() -> None:
    text = ",".join(["15:9"] * 50 + ["oh:9"] + ["15:9"] * 50)
    with pytest.raises(SpecError) as caught:
        Curriculum.parse(text)
    _, shown, caret = caught.value.problems[0].lines()
    assert shown.startswith("  ...")
    assert shown.endswith("...")
    assert shown[len(caret) - 1 :].startswith("oh:9")


def test_a_text_with_breaks_is_shown_on_one_line() -> None:
    with pytest.raises(SpecError) as caught:
        Curriculum.parse("15:9,\r\n\u2028x\ny:3,\x0b20:1")
    assert len(str(caught.value).splitlines()) == 3


OK = {"key": "x", "min": 1}
MAPPINGS: list[tuple[Callable[[Any], Any], Any, list[str]]] = [
    (Curriculum.of, [], ["expected a list of mappings"]),
    (Curriculum.of, None, ["expected a list of mappings"]),
    (Curriculum.of, {"value": 15}, ["expected a list of mappings"]),
    (Curriculum.of, [15], ["[0]: expected a mapping, found 15"]),
    (Curriculum.of, [{"value": 15}], ["[0]: 'iterations' is missing"]),
    (Curriculum.of, [{"iterations": 9}], ["[0]: 'value' is missing"]),
    (Curriculum.of, [{"value": "15", "iterations": 9}], ["[0]: value: expected a finite number, found '15'"]),
    (Curriculum.of, [{"value": True, "iterations": 9}], ["[0]: value: expected a finite number, found True"]),
    (Curriculum.of, [{"value": math.inf, "iterations": 9}], ["[0]: value: expected a finite number, found inf"]),
    (Curriculum.of, [{"value": 10**400, "iterations": 9}], ["[0]: value: expected a finite number"]),
    (Curriculum.of, [{"value": 10**5000, "iterations": 9}], ["found a number of thousands of digits"]),
    (Curriculum.of, [{"value": 1, "iterations": 0}], ["[0]: iterations: must be at least 1, found 0"]),
    (Curriculum.of, [{"value": 1, "iterations": 10**10}], ["[0]: iterations: must be at most 1000000000"]),
    (Curriculum.of, [{"value": 1, "iterations": 2.0}], ["[0]: iterations: expected a whole number, found 2.0"]),
    (Curriculum.of, [{"value": 1, "iterations": 2, "iteration": 3}], ["unknown key 'iteration'\n  fix: did you mean 'iterations'?"]),
    (Curriculum.of, [{"value": "a"}, {"value": 1, "iterations": -1}], ["[0]: value", "[0]: 'iterations'", "[1]: iterations"]),
    (Schedule.of, [], ["expected a list of mappings"]),
    (Schedule.of, 5, ["expected a list of mappings"]),
    (Schedule.of, [{"iterations": 8}], ["[0]: 'file' is missing"]),
    (Schedule.of, [{"file": "a"}], ["[0]: 'iterations' is missing"]),
    (Schedule.of, [{"iterations": 8, "file": 5}], ["[0]: file: expected text, found 5"]),
    (Schedule.of, [{"iterations": 8, "file": " "}], ["[0]: file: expected text, found ' '"]),
    (Schedule.of, [{"iterations": 8, "file": "a", "type": ["ne"]}], ["[0]: type: expected text, found ['ne']"]),
    (Schedule.of, [{"iterations": 8, "file": "a", "note": None}], ["[0]: note: expected text, found None"]),
    (Schedule.of, [{"iterations": -8, "file": "a"}], ["[0]: iterations: must be at least 1, found -8"]),
    (Schedule.of, [{"from": 1, "to": 5, "file": "a"}, {"from": 6, "to": 3, "file": "a"}], ["[1]: it ends at 3, before it begins at 6"]),
    (Schedule.of, [{"from": 1, "to": 8, "iterations": 9, "file": "a"}], ["1 to 8 is 8 iterations, and not 9"]),
    (Schedule.of, [{"from": 0, "to": 8, "file": "a"}], ["[0]: from: must be at least 1, found 0"]),
    (Schedule.of, [{"from": 1, "to": "x", "file": "a"}], ["[0]: to: expected a whole number, found 'x'"]),
    (Schedule.of, [{"iterations": 8, "file": "a", "note": " "}], ["[0]: note: expected text, found ' '"]),
    (Schedule.of, [{"iterations": 8, "file": "a", "a=b": "c"}], ["[0]: 'a=b' is no name of a mark"]),
    (Schedule.of, [{"iterations": 8, "file": "a", "typ": "ne"}], ["[0]: 'typ' gives it no type\n  fix: did you mean 'type'?"]),
    (Schedule.of, [{"from": 3, "to": 8, "file": "a"}], ["[0]: it begins at 3, and the run at 1\n  fix: write from: 1"]),
    (Schedule.of, [{"from": 1, "to": 8, "file": "a"}, {"from": 5, "to": 14, "file": "a"}, {"from": 15, "to": 20, "file": "a"}],
     ["[1]: it begins at 5 and overlaps the stage before it, which ends at 8\n  fix: write from: 9"]),
    (Schedule.of, [{"iterations": 8, "file": "a"}, {"from": 11, "to": 14, "file": "a"}, {"iterations": 2, "file": "a"}],
     ["[1]: it begins at 11 and leaves a gap behind the stage before it, which ends at 8\n  fix: write from: 9"]),
    (Schedule.of, [{"iterations": "x", "file": "a"}, {"from": 9, "to": 20, "file": "a"}],
     ["[0]: iterations: expected a whole number, found 'x'"]),
    (GateSettings.of, None, ["expected a mapping, found None"]),
    (GateSettings.of, [OK], ["expected a mapping, found [{"]),
    (GateSettings.of, {}, ["it needs success or failure criteria"]),
    (GateSettings.of, {"success": []}, ["it needs success or failure criteria"]),
    (GateSettings.of, {"success": OK}, ["success: expected a list of criteria"]),
    (GateSettings.of, {"success": ["x"]}, ["success[0]: expected a mapping, found 'x'"]),
    (GateSettings.of, {"success": [{"key": "x"}]}, ["success[0]: a criterion needs a bound"]),
    (GateSettings.of, {"success": [{"min": 1}]}, ["success[0]: 'key' is missing"]),
    (GateSettings.of, {"success": [{"key": 5, "min": 1}]}, ["success[0]: key: expected text, found 5"]),
    (GateSettings.of, {"success": [{"key": "x", "min": math.nan}]}, ["success[0]: min: expected a finite number, found nan"]),
    (GateSettings.of, {"success": [{"key": "x", "min": "70"}]}, ["success[0]: min: expected a finite number, found '70'"]),
    (GateSettings.of, {"success": [{"key": "x", "min": 10**400}]}, ["success[0]: min: expected a finite number"]),
    (GateSettings.of, {"failure": [{"key": "x", "belw": 1}]}, ["unknown key 'belw'\n  fix: did you mean 'below'?", "needs a bound"]),
    (GateSettings.of, {"success": [OK | {"above": 1}]}, ["success[0]: min and above bound the same side"]),
    (GateSettings.of, {"success": [OK | {"by_stage": {"ne": {"max": 2, "below": 2}}}]},
     ["success[0].by_stage.ne: max and below bound the same side"]),
    (GateSettings.of, {"success": [OK | {"window": "mean"}]}, ["success[0]: window: expected `median 4`"]),
    (GateSettings.of, {"success": [OK | {"window": 3}]}, ["found '3'"]),
    (GateSettings.of, {"success": [OK | {"window": "mean 0"}]}, ["found 'mean 0'"]),
    (GateSettings.of, {"success": [OK | {"window": "mean -3"}]}, ["found 'mean -3'"]),
    (GateSettings.of, {"success": [OK | {"window": "mean 1٣"}]}, ["success[0]: window: expected"]),
    (GateSettings.of, {"success": [OK | {"window": "p١٠ 3"}]}, ["success[0]: window: expected"]),
    (GateSettings.of, {"success": [OK | {"window": "p100 3"}]}, ["found 'p100 3'"]),
    (GateSettings.of, {"success": [OK | {"by_stage": {"main": 3}}]}, ["success[0].by_stage.main: expected a mapping, found 3"]),
    (GateSettings.of, {"success": [OK | {"by_stage": ["main"]}]}, ["success[0].by_stage: expected a mapping"]),
    (GateSettings.of, {"success": [OK | {"by_stage": {"main": {"mn": 3}}}]}, ["success[0].by_stage.main: unknown key 'mn'"]),
    (GateSettings.of, {"success": [OK], "required": 0}, ["required: must be at least 1, found 0"]),
    (GateSettings.of, {"success": [OK], "required": "2"}, ["required: expected a whole number, found '2'"]),
    (GateSettings.of, {"success": [OK], "required": 10**12}, ["required: must be at most"]),
    (GateSettings.of, {"success": [OK], "tolerance": -1}, ["tolerance: must be at least 0, found -1"]),
    (GateSettings.of, {"success": [OK], "tolerance": {"main": 1.5}}, ["tolerance.main: expected a whole number, found 1.5"]),
    (GateSettings.of, {"success": [OK], "allowance": [4, -1, "x"]}, ["allowance[1]: must be", "allowance[2]: expected"]),
    (GateSettings.of, {"success": [OK], "freeze": -5}, ["freeze: must be at least 0, found -5"]),
    (GateSettings.of, {"success": [OK], "freeze": {"advanced": 5}}, ["freeze: unknown key 'advanced'"]),
    (GateSettings.of, {"success": [OK], "phases": 1}, ["phases: must be at least 2, found 1"]),
    (GateSettings.of, {"success": [OK], "wins": "nobody"}, ["wins: expected failure or success, found 'nobody'"]),
    (GateSettings.of, {"sucess": [OK]}, ["unknown key 'sucess'\n  fix: did you mean 'success'?", "it needs"]),
]  # fmt: skip


@pytest.mark.parametrize(("read", "written", "told"), MAPPINGS)
def test_mappings(read: Callable[[Any], Any], written: Any, told: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        read(written)
    assert len(caught.value.problems) == len(told), str(caught.value)
    for each in told:
        assert each in str(caught.value)


FLAGS = [
    ("--penalty_gate_succes_p10 70", ["unknown flag --penalty_gate_succes_p10\n  fix: did you mean 'penalty_gate_success_p10'?"]),
    ("--tail_replay_cuont 2", ["did you mean 'tail_replay_count'?"]),
    ("--multi_eval_probe 20", ["unknown flag --multi_eval_probe"]),
    ("--penalty_gate_zzz 1", ["unknown flag --penalty_gate_zzz"]),
    ("--total_iterations sixty", ["--total_iterations: expected a whole number from 1 on, found 'sixty'"]),
    ("--total_iterations 0", ["--total_iterations: expected a whole number from 1 on"]),
    ("--total_iterations", ["--total_iterations has no value"]),
    ("--penalty_gate_success_p10 nan", ["--penalty_gate_success_p10: expected a finite number, found 'nan'"]),
    ("--curriculum 15:9,x:3", ["--curriculum: 'x' is no finite number"]),
    ("--penalty_gate_phase_allowance 4,,5", ["--penalty_gate_phase_allowance"]),
    ("--penalty_gate_phase_allowance 4,-5", ["--penalty_gate_phase_allowance"]),
    ("--penalty_gate_failure_tolerance_by_stage main:x", ["--penalty_gate_failure_tolerance_by_stage"]),
    ("--penalty_gate_success_early_death_by_stage ne:0.1,ne:0.2", ["the stage 'ne' is there twice"]),
    ("--tail_stage_warn_ratio 1.5", ["between 0 and 1"]),
    ("--tail_stage_warn_ratio 0.5 --tail_stage_warn_patience 0", ["--tail_stage_warn_patience: expected a whole number from 1 on"]),
    ("--tail_seed_stage_spec '8:a|type=ne", ["character 24: this quote is not closed"]),
    ("--a 'b' \"c\\\" d", ["character 9: this quote is not closed"]),
    ("--a 'b\\' 'c", ["character 10: this quote is not closed"]),
    ("--a b\\", ["character 6: it ends in a backslash"]),
    ("--eval_multi_episods 40", ["did you mean 'eval_multi_episodes'?"]),
    ("--penalty_gate_success_p10_window_by_stage main:0", ["0 evaluations is zero"]),
    ("--penalty_gate_failure_tolerance_by_stage main:1.5", ["'1.5' is no whole number of failures"]),
    ("--curriculum x:9 --total_iterations y --tail_zzz 1", ["--curriculum", "--total_iterations", "--tail_zzz"]),
]  # fmt: skip


@pytest.mark.parametrize(("line", "told"), FLAGS)
def test_flag_lines(line: str, told: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        parse_training_flags(line)
    assert len(caught.value.problems) == len(told)
    for each in told:
        assert each in str(caught.value)


def test_one_wrong_letter_in_the_reference_is_found() -> None:
    with pytest.raises(SpecError, match="did you mean 'penalty_gate_failure_min_final'"):
        parse_training_flags(flag_line().replace("failure_min_final", "failure_min_finl"))


@pytest.mark.parametrize(("ratio", "patience"), [(0, 1), (-0.1, 1), (1.01, 1), (math.nan, 1), (0.5, 0), (0.5, -1)])
def test_a_warning_that_can_never_come_is_refused(ratio: float, patience: int) -> None:
    with pytest.raises(SpecError):
        Watch(ratio, patience).checked()


def test_a_cycler_needs_seeds() -> None:
    with pytest.raises(GateError, match=r"no tail seed in b\.json"):
        Cycler({"a.json": [1], "b.json": []})
    with pytest.raises(GateError, match="replay=0"):
        Cycler({"a.json": [1]}, replay=0)
    with pytest.raises(GateError, match=r"no tail seeds were given for c\.json; given: a\.json"):
        Cycler({"a.json": [1]}).draw("c.json")
    with pytest.raises(GateError, match="given: none"):
        Cycler({}).draw("c.json")


def test_what_was_meant_is_guessed_or_all_of_it_is_named() -> None:
    assert suggest_closest_name("mian", ["main", "ne"]) == "did you mean 'main'?"
    assert suggest_closest_name("zzz", ["main", "ne"]) == "known: main, ne"


def test_iterations_count_from_one() -> None:
    for found in (Curriculum.parse("1:1").value_at, Schedule.parse("1:a").stage_at):
        with pytest.raises(ValueError, match="iterations count from 1, found 0"):
            found(0)
