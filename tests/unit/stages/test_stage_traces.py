"""The files that a staged training leaves behind: written, read again, cut where a run resumes."""

from __future__ import annotations

import json

import pytest
from gate_world import evaluations, reference, reference_gate

from muster.stages import Curriculum, GateSettings, Schedule
from muster.stages.alarms import Watch
from muster.stages.replay import replay_gate
from muster.stages.traces import EvaluationRow, head, lines, parse_gate_trace, schedule_trace, stage_summary, upto

GATE = GateSettings.of({"success": [{"key": "x", "min": 10}], "required": 2})


def trace_of(rows: list[EvaluationRow]) -> str:
    return lines(GATE, replay_gate(GATE, rows))


def test_the_trace_of_the_reference_says_it_in_words() -> None:
    gate = reference_gate()
    text = lines(gate, replay_gate(gate, evaluations()), "penalty")
    first, *rows = [json.loads(line) for line in text.splitlines()]
    assert first == {"gate": "penalty", "settings": gate.mapping()}
    assert [each["iteration"] for each in rows] == [8, 16, 24, 32, 40, 48, 56]
    assert rows[1]["why"].startswith("failure although every success criterion holds, because failure wins")
    assert rows[3]["broke"] == "first_death_p10 87 is below 95"
    assert rows[5]["missing"] == ["step_one_ratio at most 0.02, found 0.0219", "2 more successes in a row"]
    assert parse_gate_trace(text).settings == gate


@pytest.mark.parametrize("tail", ["{", '{"iteration": 3', '{"iteration": 3, "values": {}}x', "[1]", "3", '"x"'])
def test_lines_that_can_not_be_read_are_counted(tail: str) -> None:
    text = trace_of([EvaluationRow(1, {"x": 1.0}), EvaluationRow(2, {"x": 2.0})])
    trace = parse_gate_trace(text + tail)
    assert [each.iteration for each in trace.rows] == [1, 2]
    assert trace.skipped == 1
    assert (
        parse_gate_trace(text + tail + "\n\n" + replay_gate(GATE, [EvaluationRow(3, {})])[0].line()).rows[-1].iteration
        == 3
    )


def test_a_trace_without_a_head_and_a_head_that_nobody_understands() -> None:
    text = trace_of([EvaluationRow(1, {"x": 1.0})])
    rows = text.split("\n", 1)[1]
    assert parse_gate_trace(rows).settings is None
    trace = parse_gate_trace(json.dumps({"gate": "g", "settings": {"of": "another version"}}) + "\n" + rows)
    assert (trace.settings, trace.skipped, len(trace.rows)) == (None, 1, 1)
    assert parse_gate_trace("") == (None, "", [], [], 0)


def test_rows_of_a_resumed_run_replace_the_earlier_ones() -> None:
    first = trace_of([EvaluationRow(at, {"x": 1.0}) for at in (8, 16, 24)])
    again = "".join(
        each.line() + "\n" for each in replay_gate(GATE, [EvaluationRow(16, {"x": 5.0}), EvaluationRow(32, {"x": 5.0})])
    )
    trace = parse_gate_trace(first + again)
    assert [(row.iteration, row.values["x"]) for row in trace.rows] == [(8, 1.0), (16, 5.0), (32, 5.0)]
    assert [each["iteration"] for each in trace.decided] == [8, 16, 32]


@pytest.mark.parametrize("sign", ["\u2028", "\x85", "\x0c", "\n", "\r", "鱼", '"'])
def test_a_text_among_the_values_may_have_any_sign(sign: str) -> None:
    text = trace_of([EvaluationRow(1, {"x": 10.0, "note": f"a{sign}b"}, f"n{sign}e")])
    trace = parse_gate_trace(text)
    assert (trace.skipped, trace.rows) == (0, [EvaluationRow(1, {"x": 10.0, "note": f"a{sign}b"}, f"n{sign}e")])
    assert upto(text, 1) == text


def test_what_a_resumed_run_keeps() -> None:
    text = trace_of([EvaluationRow(at, {"x": 1.0}) for at in (8, 16, 24)])
    kept = text.splitlines(keepends=True)
    assert upto(text, 24) == text
    assert upto(text, 16) == "".join(kept[:3])
    assert upto(text, 7) == kept[0] == head(GATE) + "\n"
    assert upto(text + '{"iterat', 24) == text
    assert upto("", 5) == ""


def test_a_whole_line_that_lacks_only_its_end_is_kept() -> None:
    text = trace_of([EvaluationRow(8, {"x": 1.0})])
    assert upto(text[:-1], 8) == text
    assert upto(text[:-2], 8) == head(GATE) + "\n"


def test_other_files_of_rows_are_cut_by_their_own_key() -> None:
    text = '{"iter": 8, "p10": 1}\n{"iter": 16.0}\n{"note": "kept"}\n{"iter": 24}\n{"iter": "x"}\n'
    assert upto(text, 16, "iter") == '{"iter": 8, "p10": 1}\n{"iter": 16.0}\n{"note": "kept"}\n{"iter": "x"}\n'


def test_the_schedule_trace_of_the_reference() -> None:
    found = reference()
    assert found.schedule is not None
    trace = schedule_trace(found.schedule, 60, curriculum=found.curriculum, watch=found.watch)
    assert json.loads(json.dumps(trace, allow_nan=False)) == trace
    assert (trace["iterations"], len(trace["stages"]), len(trace["trace"])) == (60, 8, 60)
    assert trace["schedule"] == found.schedule.text()
    assert trace["curriculum"] == "15:9,20:10,25:9,25:8,25:8,25:8,25:8"
    assert trace["stages"][3] == {
        "from": 30, "to": 35, "type": "ne", "source": "experiments/v34/artifacts/checkpoints/tail_seed_mix_v34_ne.json",
    }  # fmt: skip
    assert trace["reinjections_by_type"] == {"ne": 2, "main": 2}
    assert trace["trace"][31] == {
        "iteration": 32, "stage": "ne", "value": 25, "remaining": {"ne": 3, "main": 25},
        "remaining_ratio": {"ne": 0.15, "main": 0.625}, "warn_duration": {"ne": 25, "main": 5},
    }  # fmt: skip
    assert [(each["type"], each["onset"], each["iteration"], each["duration"]) for each in trace["warnings"]] == [
        ("ne", 7, 8, 53), ("main", 27, 28, 33),
    ]  # fmt: skip
    assert {each["threshold"] for each in trace["warnings"]} == {0.7}


def test_a_run_that_has_come_half_way() -> None:
    schedule = Schedule.parse("4:a|type=ne;4:b|type=main;2:a|type=ne")
    trace = schedule_trace(schedule, 10, reached=5)
    assert [each["iteration"] for each in trace["trace"]] == [1, 2, 3, 4, 5]
    assert trace["reinjections_by_type"] == {"ne": 0, "main": 0}
    assert trace["curriculum"] is None
    assert trace["warnings"] == []
    assert "value" not in trace["trace"][0]
    assert len(schedule_trace(schedule, 10, reached=99)["trace"]) == 10


def test_a_run_that_outlasts_its_schedule_and_curriculum() -> None:
    trace = schedule_trace(
        Schedule.parse("2:a|type=ne;2:b|type=main"), 6, curriculum=Curriculum.parse("15:3"), watch=Watch(0.3)
    )
    assert [each["stage"] for each in trace["trace"]] == ["ne"] * 2 + ["main"] * 4
    assert [each["remaining"]["main"] for each in trace["trace"]] == [4, 4, 3, 2, 1, 0]
    assert {each["value"] for each in trace["trace"]} == {15}


def test_the_summary_of_events_by_stage() -> None:
    found = stage_summary([(1, "ne", 3, 1920), (2, "main", 1, 1920), (3, "ne", 0, 1920)])
    assert found["events"] == {"ne": 3, "main": 1}
    assert found["share"] == {"ne": 0.75, "main": 0.25}
    assert found["by_iteration"][0] == {"iteration": 1, "stage": "ne", "count": 3, "of": 1920}
    assert stage_summary([(1, "ne", 0, 9)])["share"] == {}
    counts = [(1, "main", 163, 1000), (2, "ne", 120, 1000)]
    assert stage_summary(counts, "x")["share"] == {"main": 0.575972, "ne": 0.424028}, "57.6 and 42.4 % of the reference"
