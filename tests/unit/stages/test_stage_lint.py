"""Contradictions that can be known before a run is paid for."""

from __future__ import annotations

from typing import Any

import pytest
from gate_world import evaluations, reference

from muster.stages import Curriculum, GateSettings, Schedule
from muster.stages.contradictions import TrainingFacts, find_contradictions
from muster.stages.traces import EvaluationRow

TWO_TYPES = Schedule.parse("8:a|type=ne;8:b|type=main")


def gate_of(**written: Any) -> GateSettings:
    return GateSettings.of(written)


def told(facts: TrainingFacts, code: str) -> list[str]:
    return [each.message for each in find_contradictions(facts) if each.code == code]


def codes(facts: TrainingFacts) -> list[str]:
    return [each.code for each in find_contradictions(facts)]


def reference_facts() -> TrainingFacts:
    found = reference()
    return TrainingFacts(
        found.gate, found.schedule, found.curriculum, found.iterations, found.evaluations.interval, [evaluations()]
    )


def test_everything_that_is_wrong_with_the_reference_with_its_numbers() -> None:
    found = [(each.level, each.code) for each in find_contradictions(reference_facts())]
    assert found.count(("error", "schedule_too_long")) == 1
    assert found.count(("error", "overlap")) == 1
    assert found.count(("warning", "label")) == 3
    assert {code for level, code in found if level == "error"} == {"schedule_too_long", "overlap"}
    assert told(reference_facts(), "adds_up") == ["the curriculum adds up: 60 iterations, as many as the run"]
    assert told(reference_facts(), "schedule_too_long") == [
        "the schedule has 120 iterations, the run 60: stages 7 (main 76-100), 8 (main 101-120) never run; "
        "stage 6 (main 60-75) has 1 of its 16 iterations"
    ]
    assert told(reference_facts(), "overlap") == [
        "first_death_p10: success is at least 70, failure below 95: from 70 to 95 it is both, and failure wins; "
        "success looks at median 4, failure at last"
    ]
    assert [each.split(" is")[0].split()[-1] for each in told(reference_facts(), "label")] == ["16", "32", "48"]
    assert told(reference_facts(), "runs_out") == ["ne is exhausted at iteration 35 of 60"]
    assert told(reference_facts(), "no_such_key") == [
        "step_one: no evaluation has it; its criterion could not be judged"
    ]
    (shared,) = told(reference_facts(), "shared_file")
    assert shared.startswith("ne and main draw from the same file")


def test_the_reference_s_windows_and_freezes_against_its_evaluations() -> None:
    assert told(reference_facts(), "long_window") == [
        "first_death_p10: a window of 4 evaluations is longer than any stretch of ne (14 iterations, 2 evaluations at "
        "most): it reads other stages too",
        "early_death_100: a window of 3 evaluations is longer than any stretch of ne (14 iterations, 2 evaluations at "
        "most): it reads other stages too",
    ]
    assert told(reference_facts(), "freeze") == [
        "a freeze of 2 after an advance never matters: the next evaluation comes 8 later",
        "a freeze of 5 after a fall back never matters: the next evaluation comes 8 later",
    ]
    assert told(reference_facts(), "never_met") == [
        "early_death_100 (mean 4) max 0.1: met in none of 3 evaluations; they lie from 0.10375 to 0.1055"
    ]


@pytest.mark.parametrize(("freeze", "many"), [(0, 0), (7, 2), (8, 0), (9, 0)])
def test_a_freeze_matters_where_an_evaluation_falls_into_it(freeze: int, many: int) -> None:
    gate = gate_of(success=[{"key": "x", "min": 1}], freeze=freeze)
    assert len(told(TrainingFacts(gate, iterations=60, interval=8), "freeze")) == many


def test_nothing_is_found_where_nothing_is_known() -> None:
    assert find_contradictions(TrainingFacts()) == []
    assert find_contradictions(TrainingFacts(gate=gate_of(success=[{"key": "x", "min": 1}]))) == []


# success, failure, and the code and a part of what is told
REGIONS: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"min": 70}, {"below": 95}, "overlap", "success is at least 70, failure below 95: from 70 to 95 it is both"),
    ({"above": 70}, {"max": 95}, "overlap", "success is above 70, failure at most 95: from 70 to 95"),
    ({"max": 0.1}, {"above": 0.05}, "overlap", "success is at most 0.1, failure above 0.05: from 0.05 to 0.1"),
    ({"below": 0.1}, {"min": 0.05}, "overlap", "success is below 0.1, failure at least 0.05: from 0.05 to 0.1"),
    ({"min": 100}, {"below": 95}, "dead_zone", "from 95 to 100 it is neither, and ends a streak"),
    ({"max": 0.1}, {"above": 0.2}, "dead_zone", "from 0.1 to 0.2 it is neither"),
    ({"min": 95}, {"below": 95}, "", ""),
    ({"max": 95}, {"above": 95}, "", ""),
    ({"min": 70}, {"above": 95}, "", ""),  # a corridor: too good is a failure too
    ({"max": 5, "min": 9}, {"below": 1}, "impossible", "success must be at least 9 and at most 5: that is never so"),
    ({"above": 5, "max": 5}, {"below": 1}, "impossible", "above 5 and at most 5: that is never so"),
    ({"min": 5, "max": 5}, {"below": 5}, "", ""),
    ({"min": 5}, {"below": 5, "above": 3}, "always", "failure is above 3 or below 5: that is always so"),
    ({"min": 5}, {"max": 5, "min": 5}, "always", "failure is at least 5 or at most 5: that is always so"),
    ({"min": 3, "max": 5}, {"below": 3, "above": 5}, "", ""),
]


@pytest.mark.parametrize(("good", "bad", "code", "part"), REGIONS)
def test_regions_of_success_and_failure(good: dict[str, Any], bad: dict[str, Any], code: str, part: str) -> None:
    facts = TrainingFacts(gate_of(success=[{"key": "x"} | good], failure=[{"key": "x"} | bad]))
    assert [part in each for each in told(facts, code)] == ([True] if code else []), find_contradictions(facts)
    assert code or codes(facts) == []


def test_who_wins_is_told_with_the_overlap() -> None:
    gate = gate_of(success=[{"key": "x", "min": 1}], failure=[{"key": "x", "below": 2}], wins="success")
    assert "it is both, and success wins" in told(TrainingFacts(gate), "overlap")[0]


def test_other_keys_do_not_overlap() -> None:
    assert codes(TrainingFacts(gate_of(success=[{"key": "x", "min": 1}], failure=[{"key": "y", "below": 2}]))) == []


def test_an_overlap_of_some_stages_names_them() -> None:
    success = [{"key": "x", "min": 100, "by_stage": {"ne": {"min": 70}}}]
    gate = gate_of(success=success, failure=[{"key": "x", "below": 95}])
    assert [each.endswith("(in ne)") for each in told(TrainingFacts(gate), "overlap")] == [True]
    assert [each.endswith("(in other stages)") for each in told(TrainingFacts(gate), "dead_zone")] == [True]
    assert [each.endswith("(in main)") for each in told(TrainingFacts(gate, TWO_TYPES), "dead_zone")] == [True]
    assert told(TrainingFacts(gate, Schedule.parse("8:b|type=main")), "overlap") == [], "the stage never comes"


def test_settings_for_a_stage_that_does_not_exist() -> None:
    gate = gate_of(
        success=[{"key": "x", "min": 1, "by_stage": {"mian": {"min": 2}}}], tolerance={"nee": 3, "default": 1}
    )
    found = [each for each in find_contradictions(TrainingFacts(gate, TWO_TYPES)) if each.code == "unknown_stage"]
    assert [each.message for each in found] == [
        "a setting for the stage 'mian', which the schedule does not have",
        "a setting for the stage 'nee', which the schedule does not have",
    ]
    assert found[0].hint == "its stages are ne, main"
    assert codes(TrainingFacts(gate)) == [], "without a schedule nobody knows the stages"


def test_stages_without_criteria() -> None:
    gate = gate_of(
        success=[{"key": "x", "by_stage": {"main": {"min": 2}}}], failure=[{"key": "x", "by_stage": {"ne": {"max": 1}}}]
    )
    assert told(TrainingFacts(gate, TWO_TYPES), "no_criteria") == [
        "the stage 'ne' has no success criterion: it can never advance there",
        "the stage 'main' has no failure criterion: nothing is a failure there",
    ]


@pytest.mark.parametrize(
    ("text", "iterations", "code", "what"),
    [
        ("15:9,20:10", 19, "adds_up", "the curriculum adds up: 19 iterations, as many as the run"),
        ("15:9,20:10", 25, "curriculum_length", "the curriculum has 19 iterations, the run 25: the run goes on for 6 more with 20"),
        ("15:9,20:10", 15, "curriculum_length", "the curriculum has 19 iterations, the run 15: part 2 (20:10) has 6 of its 10 iterations"),
        ("15:9,20:10", 9, "curriculum_length", "the curriculum has 19 iterations, the run 9: part 2 (20:10) never comes"),
        ("25:9,25:8,25:8", 12, "curriculum_length",
         "the curriculum has 25 iterations, the run 12: part 2 (25:8) has 3 of its 8 iterations; part 3 (25:8) never comes"),
    ],
)  # fmt: skip
def test_a_curriculum_against_the_run(text: str, iterations: int, code: str, what: str) -> None:
    (found,) = find_contradictions(TrainingFacts(curriculum=Curriculum.parse(text), iterations=iterations))
    assert (found.code, found.message) == (code, what)
    assert found.level == ("note" if code == "adds_up" else "error")


def test_a_curriculum_that_was_read_the_other_way_round() -> None:
    (found,) = find_contradictions(TrainingFacts(curriculum=Curriculum.parse("9:15,10:20"), iterations=19))
    assert found.hint == "it is value:iterations; read the other way round it would add up"


def test_a_schedule_against_the_run() -> None:
    assert told(TrainingFacts(schedule=TWO_TYPES, iterations=20), "schedule_too_short") == [
        "the schedule has 16 iterations, the run 20: the last stage (main) goes on for 4 more"
    ]
    assert told(TrainingFacts(schedule=TWO_TYPES, iterations=8), "schedule_too_long") == [
        "the schedule has 16 iterations, the run 8: stage 2 (main 9-16) never runs"
    ]
    assert told(TrainingFacts(schedule=TWO_TYPES, iterations=8), "runs_out") == ["main never comes in 8 iterations"]
    assert codes(TrainingFacts(schedule=TWO_TYPES)) == []
    assert codes(TrainingFacts(schedule=TWO_TYPES, iterations=16)) == ["runs_out"]


def test_a_window_that_is_longer_than_its_stage() -> None:
    gate = gate_of(success=[{"key": "x", "min": 1, "window": "mean 9", "by_stage": {"ne": {"window": "mean 8"}}}])
    assert [each.split(" (")[0] for each in told(TrainingFacts(gate, TWO_TYPES), "long_window")] == [
        "x: a window of 9 evaluations is longer than any stretch of main"
    ]
    assert told(TrainingFacts(gate, TWO_TYPES, iterations=20), "long_window") == [], "main goes on for 12"
    two = Schedule.parse("5:a|type=main;4:b|type=main;1:c|type=ne")
    assert [each.split(" (")[0] for each in told(TrainingFacts(gate, two), "long_window")] == [
        "x: a window of 8 evaluations is longer than any stretch of ne"
    ], "stages of one type that follow each other are one stretch"
    assert told(TrainingFacts(gate, Schedule.parse("5:a|type=main")), "long_window") == [], (
        "there is no other stage to read"
    )


@pytest.mark.parametrize(
    ("written", "iterations", "interval", "found"),
    [
        ({"success": [{"key": "x", "min": 1, "window": "mean 4"}], "required": 2}, 40, 8, []),
        ({"success": [{"key": "x", "min": 1, "window": "mean 4"}], "required": 3}, 40, 8,
         ["it can't open: 6 evaluations are needed (a window of 4 to fill, 3 successes in a row), and the run has 5"]),
        ({"success": [{"key": "x", "min": 1}], "required": 6}, 5, None,
         ["it can't open: 6 evaluations are needed (a window of 1 to fill, 6 successes in a row), and the run has 5"]),
        # in one of its stages it may open in time
        ({"success": [{"key": "x", "min": 1, "window": "mean 9", "by_stage": {"ne": {"window": "mean 2"}}}]}, 5, 1, []),
        # where there is no success criterion it does not open either
        ({"success": [{"key": "x", "by_stage": {"ne": {"min": 1, "window": "mean 9"}}}]}, 5, 1,
         ["it can't open: 9 evaluations are needed (a window of 9 to fill), and the run has 5"]),
        # a success waits until failure can be judged, unless success wins
        ({"success": [{"key": "x", "min": 1}], "failure": [{"key": "y", "max": 1, "window": "mean 9"}]}, 5, 1,
         ["it can't open: 9 evaluations are needed (a window of 9 to fill), and the run has 5"]),
        ({"success": [{"key": "x", "min": 1}], "failure": [{"key": "y", "max": 1, "window": "mean 9"}],
          "wins": "success"}, 5, 1, []),
        ({"failure": [{"key": "y", "max": 1, "window": "mean 9"}]}, 5, 1, []),
    ],
)  # fmt: skip
def test_a_run_that_is_too_short_for_its_gate(
    written: dict[str, Any], iterations: int, interval: int | None, found: list[str]
) -> None:
    facts = TrainingFacts(gate_of(**written), iterations=iterations, interval=interval)
    assert told(facts, "too_short") == found


def test_thresholds_that_no_past_run_ever_met() -> None:
    gate = gate_of(success=[{"key": "x", "min": 10}], failure=[{"key": "x", "below": 9}])
    runs = [[EvaluationRow(1, {"x": 1}), EvaluationRow(2, {"x": 5})], [EvaluationRow(1, {"x": 7})]]
    assert told(TrainingFacts(gate, runs=runs), "never_met") == [
        "x min 10: met in none of 3 evaluations; they lie from 1 to 7"
    ]
    assert told(TrainingFacts(gate, runs=runs), "always_failure") == [
        "x below 9: a failure in all of 3 evaluations; they lie from 1 to 7"
    ]
    assert told(TrainingFacts(gate, runs=[[EvaluationRow(1, {"x": 10})]]), "never_met") == []


def test_criteria_that_could_never_be_judged() -> None:
    gate = gate_of(success=[{"key": "x", "min": 1, "window": "mean 9"}, {"key": "y", "min": 1}, {"key": "z", "min": 1}])
    rows = [EvaluationRow(at, {"x": 5, "y": "?"}) for at in range(1, 4)]
    facts = TrainingFacts(gate, runs=[rows])
    assert told(facts, "never_judged") == [
        "x (mean 9): it could not be judged in any evaluation",
        "y: it could not be judged in any evaluation",
    ]
    assert told(facts, "no_such_key") == ["z: no evaluation has it; its criterion could not be judged"]


def test_past_runs_are_judged_as_if_the_gate_had_never_moved() -> None:
    gate = gate_of(success=[{"key": "x", "min": 5}], failure=[{"key": "x", "below": 0}], freeze=100)
    rows = [EvaluationRow(1, {"x": 9}), EvaluationRow(2, {"x": -1}), EvaluationRow(3, {"x": 9})]
    assert codes(TrainingFacts(gate, runs=[rows])) == ["dead_zone"]


def test_two_types_of_one_file() -> None:
    schedule = Schedule.parse("1:a|type=x;1:a|type=y;1:a|type=x;1:b|type=z")
    assert told(TrainingFacts(schedule=schedule), "shared_file") == [
        "x and y draw from the same file a: they differ in name only"
    ]
