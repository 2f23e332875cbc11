"""The reference's seven evaluations through its gate, and what another setting would have decided."""

from __future__ import annotations

import pytest
from gate_world import evaluations, reference_gate

from muster.stages import GateSettings
from muster.stages.replay import (
    drop_criteria_of_keys,
    find_absent_keys,
    first_opening,
    replay_gate,
    summarize_replay,
    try_single_changes,
    windows_of_one,
)
from muster.stages.traces import EvaluationRow, drop_superseded_rows, find_mislabelled_rows

LAST_THREE = GateSettings.of({"success": [{"key": "first_death_p10", "above": 100, "window": "all 3"}]})


def test_each_row_of_the_reference_with_windows_of_one() -> None:
    decided = replay_gate(reference_gate(), evaluations())
    assert {each.iteration: each.verdict for each in decided} == {
        8: "failure", 16: "both", 24: "success", 32: "failure", 40: "failure", 48: "neither", 56: "success",
    }  # fmt: skip
    assert [each.state for each in decided] == [
        "failure_hold", "failure_hold", "hold", "failure_hold", "failure_hold", "hold", "hold",
    ]  # fmt: skip
    assert {each.phase for each in decided} == {0}


def test_the_words_of_its_rows() -> None:
    why = {each.iteration: each.why for each in replay_gate(reference_gate(), evaluations())}
    unmet = {
        each.iteration: [seen.said() for seen in each.unmet()] for each in replay_gate(reference_gate(), evaluations())
    }
    assert "first_death_p10 83 is below 95" in why[8]
    assert "step_one_ratio 0.0208 is above 0.02" in unmet[8]
    assert "although every success criterion holds" in why[16]
    assert "failure wins" in why[16]
    assert "min_final 0.417 is below 0.5" in why[16]
    assert unmet[16] == []
    assert "success 1 of 2" in why[24]
    assert "first_death_p10 87 is below 95" in why[32]
    assert "first_death_p10 89 is below 95" in why[40]
    assert "step_one_ratio 0.0219 is above 0.02" in why[48]
    assert "success 1 of 2" in why[56]


def test_its_gate_stays_shut_and_says_why() -> None:
    decided = replay_gate(reference_gate(), evaluations())
    assert first_opening(decided) is None
    told = summarize_replay(decided)
    assert told.startswith("the gate stays shut: 2 successes in a row are required and the most were 1")
    assert "; a streak was broken at 32: first_death_p10 87 is below 95" in told
    assert told.endswith("at its end it has 1 of 2")


def test_it_would_open_at_24_if_success_won() -> None:
    won = replay_gate(reference_gate()._replace(wins="success"), evaluations())
    assert first_opening(won) == 24
    told = {each.what: each.opens for each in try_single_changes(reference_gate(), evaluations())}
    assert told["if success won where both hold"] == 24
    assert told["without the failure criteria"] == 24
    assert told["with 1 success instead of 2 in a row"] == 24
    assert told["without the success criterion on step_one_ratio"] == 56
    assert told["without the success criterion on first_death_p10"] is None
    assert "if success won where both hold, it would open at 24" in map(
        str, try_single_changes(reference_gate(), evaluations())
    )


def test_with_its_own_windows_it_stays_shut_too() -> None:
    decided = replay_gate(reference_gate(windows=True), evaluations())
    assert first_opening(decided) is None
    assert decided[2].verdict == "unknown", "the fourth value of the median is not there yet"
    assert all(each.opens is None for each in try_single_changes(reference_gate(windows=True), evaluations()))


def test_the_last_three_all_above_100_never_opens() -> None:
    decided = replay_gate(LAST_THREE, evaluations())
    assert first_opening(decided) is None
    assert [each.verdict for each in decided] == ["unknown"] * 2 + ["neither"] * 5
    assert [each.seen[0] for each in decided[2:]] == [83.0, 87.0, 87.0, 87.0, 89.0]
    assert "first_death_p10 (all 3) 83 is not above 100" in decided[2].why
    assert summarize_replay(decided) == (
        "the gate stays shut: no evaluation of 7 counts as a success; 2 of them could not be judged"
    )
    told = list(try_single_changes(LAST_THREE, evaluations()))
    assert [(each.what, each.opens) for each in told] == [("with windows of 1", 16)]


def test_a_gate_that_opens_says_where_and_how_it_ends() -> None:
    gate = GateSettings.of(
        {"success": [{"key": "x", "min": 10}], "failure": [{"key": "x", "below": 5}], "tolerance": 0, "phases": 3}
    )
    decided = replay_gate(gate, [EvaluationRow(at, {"x": x}) for at, x in enumerate((7, 12, 1, 12, 12), 1)])
    assert summarize_replay(decided) == (
        "the gate opens at 2: on to phase 1 at 2, back to phase 0 at 3, on to phase 1 at 4, on to phase 2 at 5; "
        "it ends in phase 2"
    )


def test_what_kept_it_shut_is_told() -> None:
    both = GateSettings.of({"success": [{"key": "x", "min": 3}], "failure": [{"key": "x", "below": 5}]})
    rows = [EvaluationRow(at, {"x": x}) for at, x in enumerate((4, 1, 4), 1)]
    assert summarize_replay(replay_gate(both, rows)) == (
        "the gate stays shut: no evaluation of 3 counts as a success, and at 1, 3 failure won over success"
    )
    two = GateSettings.of({"success": [{"key": "x", "min": 3}], "required": 2})
    rows = [EvaluationRow(at, {"x": x}) for at, x in enumerate((4, 1, 4, None), 1)]
    assert summarize_replay(replay_gate(two, rows)) == (
        "the gate stays shut: 2 successes in a row are required and the most were 1; "
        "streaks were broken at 2: x 1 is below 3; at 4: x can't be judged: no number was given"
    )


def test_no_row_is_no_decision() -> None:
    assert replay_gate(reference_gate(), []) == []
    assert summarize_replay([]) == "there is nothing to decide on: no row"


def test_criteria_on_keys_that_no_row_has_are_named() -> None:
    gate = GateSettings.of(
        {"success": [{"key": "a", "min": 1}, {"key": "b", "min": 1}], "failure": [{"key": "c", "max": 0}]}
    )
    rows = [EvaluationRow(1, {"a": 1}), EvaluationRow(2, {"c": None})]
    assert find_absent_keys(gate, rows) == ["b"]
    assert [each.key for each in drop_criteria_of_keys(gate, ["b", "c"]).success] == ["a"]
    assert drop_criteria_of_keys(gate, ["b", "c"]).failure == ()


def test_windows_of_one_are_of_every_stage() -> None:
    gate = GateSettings.of(
        {
            "success": [
                {"key": "a", "min": 1, "window": "mean 3", "by_stage": {"ne": {"window": "p10 9"}, "main": {"min": 2}}}
            ]
        }
    )
    found = windows_of_one(gate).success[0]
    assert {str(found.at(stage).window) for stage in ("", "ne", "main")} == {"last"}
    assert found.at("main").min == 2


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ([], []),
        ([1, 2, 3], [1, 2, 3]),
        ([8, 16, 24, 16, 24, 32], [8, 16, 24, 32]),
        ([8, 16, 24, 8], [8]),
        ([8, 8, 8], [8]),
        ([8, 16, 1], [1]),
        ([1, 5, 9, 6], [1, 5, 6]),
    ],
)
def test_rows_that_come_again_replace_the_earlier_ones(said: list[int], kept: list[int]) -> None:
    rows = [EvaluationRow(at, {"order": order}) for order, at in enumerate(said)]
    found = drop_superseded_rows(rows)
    assert [each.iteration for each in found] == kept
    last = {each.iteration: each for each in rows}
    assert all(each is last[each.iteration] for each in found)


def test_labels_of_the_reference_that_contradict_its_schedule() -> None:
    from gate_world import reference

    schedule = reference().schedule
    assert schedule is not None
    found = list(find_mislabelled_rows(evaluations(), schedule))
    assert [(each.row.iteration, each.row.stage, each.stage.type) for each in found] == [
        (16, "ne", "main"), (32, "main", "ne"), (48, "ne", "main"),
    ]  # fmt: skip
    assert str(found[0]) == "the row of iteration 16 is labelled ne; by the schedule it is main (15-29)"


def test_what_lies_beyond_the_schedule_contradicts_nothing() -> None:
    from muster.stages import Schedule

    schedule = Schedule.parse("2:a|type=ne;2:b|type=main")
    rows = [EvaluationRow(0, {}, "main"), EvaluationRow(3, {}, ""), EvaluationRow(5, {}, "ne")]
    assert list(find_mislabelled_rows(rows, schedule)) == []
