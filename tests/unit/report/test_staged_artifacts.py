"""Files of a staged training, however odd: what can be read is, the rest is noted."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from staged_scenes import ROWS, SCHEDULE, made_up, objects, reference

from muster.app.gates.gate_timeline import step_line, threshold_lines, windowed_values
from muster.app.gates.picture_captions import StageCaptions
from muster.app.gates.stage_bands import StageBand, find_wrong_labels, row_edges, stage_bands_behind
from muster.app.gates.stage_figures import iteration_blocks
from muster.app.gates.staged_artifacts import (
    MOST_DRAWN_ROWS,
    STAGED_FILE_ENDINGS,
    StagedArtifacts,
    parse_staged_artifacts,
    staged_file_kind,
)
from muster.locales import LANGUAGES, load_texts


def notes(found: StagedArtifacts) -> list[str]:
    return [each.key for each in found.notes]


def test_everything_of_the_reference_is_read() -> None:
    found = parse_staged_artifacts(reference())
    assert notes(found) == []
    (gate,) = found.gates
    assert gate.name == "penalty"
    assert [row.state for row in gate.rows] == [
        "failure_hold", "failure_hold", "hold", "failure_hold", "failure_hold", "hold", "hold",
    ]  # fmt: skip
    assert gate.counts == {"failure_hold": 4, "hold": 3}
    assert found.schedule is not None
    assert found.schedule.schedule == SCHEDULE
    assert found.schedule.iterations == 60
    assert found.events is not None
    assert sum(found.events.totals.values()) == sum(2 + at % 4 for at in range(1, 61))
    kinds = {each.kind: each for each in found.series}
    assert kinds["eval"].values["first_death_p10"] == tuple(row.values["first_death_p10"] for row in ROWS)
    assert set(kinds["train"].values) == {"survival", "first_death"}


def test_labels_that_contradict_the_schedule_are_found_in_every_file() -> None:
    wrong = find_wrong_labels(parse_staged_artifacts(reference()))
    assert {(each.file, each.found.row.iteration, each.found.row.stage) for each in wrong} == {
        (file, at, label)
        for file in ("gate_trace.jsonl", "eval_history.jsonl")
        for at, label in ((16, "ne"), (32, "main"), (48, "ne"))
    }
    said = StageCaptions("en").contradictions(wrong)
    assert len(said) == 3
    assert "gate_trace.jsonl, eval_history.jsonl: the row of iteration 16 is labelled ne" in said[0]
    assert "by the schedule it is main (15-29)" in said[0]
    assert "16" in StageCaptions("zh").contradictions(wrong)[0]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("gate_trace.jsonl", "gate_trace.jsonl"), ("v40_gate_trace.jsonl", "gate_trace.jsonl"),
     ("step_one_stage_summary.json", "stage_summary.json"), ("logs/eval_multi_history.jsonl", "eval_multi_history.jsonl"),
     ("xgate_trace.jsonl", None), ("gate_trace.jsonl.bak", None), ("train.jsonl", "train.jsonl")],
)  # fmt: skip
def test_which_file_is_what(name: str, kind: str | None) -> None:
    assert staged_file_kind(name) == kind


def test_a_torn_last_line_is_left_out_and_told() -> None:
    text = objects(ROWS)
    found = parse_staged_artifacts({"eval_history.jsonl": text[:-20]})
    assert notes(found) == ["torn"]
    assert found.series[0].at == (8, 16, 24, 32, 40, 48)


def test_lines_that_are_no_rows_are_counted() -> None:
    text = "no json\n[1]\n" + objects(ROWS[:2]) + '{"stage": "ne"}\n'
    found = parse_staged_artifacts({"eval_history.jsonl": text})
    assert [(each.key, each.parts["count"]) for each in found.notes] == [("skipped", 2), ("no_iteration", 1)]
    assert found.series[0].at == (8, 16)


def test_a_resumed_run_counts_as_it_was_last() -> None:
    again = [row._replace(values={**row.values, "min_final": 0.9}) for row in ROWS[2:4]]
    found = parse_staged_artifacts({"eval_history.jsonl": objects([*ROWS, *again])})
    assert found.series[0].at == (8, 16, 24, 32)
    assert found.series[0].values["min_final"] == (0.615, 0.417, 0.9, 0.9)


def test_events_of_a_resumed_run_are_not_counted_twice() -> None:
    rows = [{"iteration": at, "stage": "ne", "count": 1, "of": 10} for at in (1, 2, 3, 2, 3)]
    two = [{"iteration": 4, "stage": stage, "count": 1} for stage in ("ne", "main")]
    found = parse_staged_artifacts({"stage_summary.json": json.dumps({"by_iteration": rows + two})})
    assert found.events is not None
    assert found.events.totals == {"ne": 4, "main": 1}


def test_totals_that_are_not_the_sum_of_the_rows_are_told() -> None:
    written = {"events": {"ne": 5}, "by_iteration": [{"iteration": 1, "stage": "ne", "count": 3}]}
    found = parse_staged_artifacts({"stage_summary.json": json.dumps(written)})
    assert notes(found) == ["sums"]
    assert found.events is not None
    assert found.events.totals == {"ne": 3}


def test_many_rows_are_thinned_and_no_move_is_lost() -> None:
    rows = [
        {"iteration": at, "stage": "", "state": "advance" if at % 1000 == 7 else "hold", "values": {}, "criteria": []}
        for at in range(1, 10_001)
    ]
    found = parse_staged_artifacts({"gate_trace.jsonl": "\n".join(map(json.dumps, rows))})
    (gate,) = found.gates
    assert len(gate.rows) <= MOST_DRAWN_ROWS + 11
    assert sum(row.state == "advance" for row in gate.rows) == 10
    assert gate.rows[-1].iteration == 10_000
    assert gate.counts == {"advance": 10, "hold": 9990}
    assert notes(found) == ["thinned"]


def test_a_gate_of_which_not_all_was_read_has_no_counts() -> None:
    found = parse_staged_artifacts(
        {"gate_trace.jsonl": reference()["gate_trace.jsonl"]}, thinned={"gate_trace.jsonl": 9000}
    )
    assert found.gates[0].counts is None
    assert [(each.key, each.parts) for each in found.notes] == [
        ("sampled", {"file": "gate_trace.jsonl", "count": 7, "total": 9000})
    ]


@pytest.mark.parametrize("written", ["", "{", "[]", "1", "null", "[" * 100_000, '{"trace": 3}', '{"stages": [{}]}'])
def test_a_schedule_that_can_not_be_read(written: str) -> None:
    found = parse_staged_artifacts({"schedule_trace.json": written})
    assert found.schedule is None or (found.schedule.rows == () and found.schedule.schedule is None)
    assert find_wrong_labels(found) == []


def test_stages_stand_in_for_a_schedule_that_is_not_written() -> None:
    stages = [{"from": 1, "to": 3, "type": "ne", "source": "a"}, {"from": 4, "to": 9, "type": "main", "source": "b"}]
    found = parse_staged_artifacts({"schedule_trace.json": json.dumps({"iterations": 6, "stages": stages})})
    assert stage_bands_behind(found, [], 6) == [StageBand(1, 3, "ne"), StageBand(4, 6, "main")]


def test_bands_are_joined_and_cut_where_the_run_ends() -> None:
    found = parse_staged_artifacts(reference())
    assert stage_bands_behind(found, [], 60) == [
        StageBand(1, 14, "ne"),
        StageBand(15, 29, "main"),
        StageBand(30, 35, "ne"),
        StageBand(36, 60, "main"),
    ]


def test_without_a_schedule_bands_come_from_the_labels() -> None:
    labels = [(row.iteration, row.stage) for row in ROWS]
    assert [(band.first, band.last, band.type) for band in stage_bands_behind(StagedArtifacts(), labels, 56)] == [
        (4.5, 19.5, "ne"),
        (20.5, 43.5, "main"),
        (44.5, 51.5, "ne"),
        (52.5, 59.5, "main"),
    ]


def test_edges_lie_half_way() -> None:
    assert row_edges([]) == []
    assert row_edges([8]) == [(7.5, 8.5)]
    assert row_edges([8, 16, 18]) == [(4, 12), (12, 17), (17, 19)]


def test_bounds_follow_the_stage_of_each_row() -> None:
    (gate,) = parse_staged_artifacts(reference()).gates
    (line,) = threshold_lines(gate.rows, "early_death_100")
    assert (line.side, line.bound) == ("success", "upper")
    assert line.thresholds == [0.13, 0.13, 0.1, 0.1, 0.1, 0.13, 0.1]
    xs, ys = step_line(row_edges([row.iteration for row in gate.rows]), line.thresholds)
    assert xs == [4, 20, 20, 44, 44, 52, 52, 60]
    assert ys == [0.13, 0.13, 0.1, 0.1, 0.13, 0.13, 0.1, 0.1]


def test_while_it_is_frozen_no_bound_applies() -> None:
    (gate,) = parse_staged_artifacts(made_up()).gates
    frozen = [row.state == "frozen" for row in gate.rows]
    assert any(frozen)
    for line in threshold_lines(gate.rows, "survival"):
        assert [math.isnan(each) for each in line.thresholds] == frozen


def test_what_a_window_made_of_the_values() -> None:
    (gate,) = parse_staged_artifacts(made_up()).gates
    assert [side for side, _ in windowed_values(gate.rows, "survival")] == ["success"]
    assert [side for side, _ in windowed_values(gate.rows, "early")] == ["failure"]
    ((_, judged),) = windowed_values(gate.rows, "survival")
    values = [row.values["survival"] for row in gate.rows]
    assert math.isnan(judged[1])
    assert judged[2] == pytest.approx(sum(values[:3]) / 3)


def test_blocks_of_iterations_add_up() -> None:
    found = parse_staged_artifacts(made_up(600)).events
    assert found is not None
    blocks = iteration_blocks(found.rows)
    assert [block.name for block in blocks][:2] == ["1-50", "51-100"]
    assert len(blocks) == 12
    for stage, count in found.totals.items():
        assert sum(block.counts.get(stage, 0) for block in blocks) == count


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
row = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("iteration", "iter", "stage", "phase", "state", "values", "criteria", "settings", "survival"), anything
    ),
)
document = st.fixed_dictionaries(
    {},
    optional={
        name: anything | st.lists(row, max_size=3)
        for name in ("trace", "stages", "warnings", "iterations", "schedule", "events", "by_iteration", "what")
    },
)


@settings(max_examples=40, deadline=None)
@given(
    files=st.dictionaries(
        st.sampled_from(STAGED_FILE_ENDINGS),
        st.lists(row, max_size=4).map(lambda rows: "\n".join(map(json.dumps, rows)))
        | document.map(json.dumps)
        | st.text(max_size=30),
    )
)
def test_whatever_is_in_the_files_they_are_read(files: dict[str, str]) -> None:
    found = parse_staged_artifacts(files)
    wrong = find_wrong_labels(found)
    for language in LANGUAGES:
        say: Any = StageCaptions(language)
        assert all(say.note(each) for each in found.notes)
        say.contradictions(wrong)


def test_both_languages_have_the_same_sentences() -> None:
    assert load_texts("gates", "en").keys() == load_texts("gates", "zh").keys()
