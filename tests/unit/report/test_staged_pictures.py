"""What is drawn of a staged training is what its files say: lines, bounds, decisions, bars, bands, flags."""

from __future__ import annotations

import json
import math

import pytest
from staged_scenes import ROWS, SCENES, all_wrong, made_up, many_keys, one_row, reference

from muster.app.facts.drawing.figure_style import with_bundled_fonts_only
from muster.app.gates.picture_captions import StageCaptions
from muster.app.gates.stage_bands import find_wrong_labels
from muster.app.gates.staged_artifacts import parse_staged_artifacts
from muster.app.gates.staged_pictures import draw_staged_pictures

with with_bundled_fonts_only():
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from muster.app.gates import picture_plan
    from muster.app.gates.gate_timeline import STATE_MARKS
    from muster.app.gates.picture_plan import StagedScene, figures_of_plan
    from muster.app.gates.picture_sheet import WRONG_LABEL_HATCH

Texts = dict[str, str]


def pictures(texts: Texts) -> dict[str, Figure]:
    return dict(figures_of_plan(StagedScene(parse_staged_artifacts(texts), "en")))


def labelled(axes: Axes, label: str) -> list[Line2D]:
    return [line for line in axes.get_lines() if line.get_label() == label]


def points(line: Line2D) -> list[tuple[float, float]]:
    return list(zip(map(float, line.get_xdata()), map(float, line.get_ydata()), strict=True))


def panels(figure: Figure) -> list[Axes]:
    """Without the strips of the stages' names."""
    return [axes for axes in figure.axes if axes.get_lines()]


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.texts)


def test_values_bounds_and_decisions_of_the_reference() -> None:
    figure = pictures(reference())["gate_timeline"]
    p10, _early, _ratio, least, decisions, phase = panels(figure)
    (value,) = labelled(p10, "value")
    assert points(value) == [(row.iteration, row.values["first_death_p10"]) for row in ROWS]
    assert points(labelled(p10, "success lower")[0]) == [(4, 70), (60, 70)]
    assert points(labelled(p10, "failure upper")[0]) == [(4, 95), (60, 95)]
    assert points(labelled(p10, "fails")[0]) == [(8, 83.0), (32, 87.0), (40, 89.0)]
    assert points(labelled(least, "fails")[0]) == [(16, 0.417)]
    assert {state: [x for x, _ in points(labelled(decisions, state)[0])] for state in STATE_MARKS} == {
        "advance": [], "hold": [24, 48, 56], "failure_hold": [8, 16, 32, 40], "fall_back": [], "frozen": [],
    }  # fmt: skip
    assert [each.get_text() for each in decisions.get_yticklabels()][:3] == [
        "advance (0)",
        "hold (3)",
        "failure_hold (4)",
    ]
    assert set(labelled(phase, "phase")[0].get_ydata()) == {0}
    assert "the gate never opened" in words(figure)


def test_a_bound_that_differs_by_stage_is_a_step_line() -> None:
    early = panels(pictures(reference())["gate_timeline"])[1]
    (bound,) = labelled(early, "success upper")
    assert points(bound) == [
        (4, 0.13), (20, 0.13), (20, 0.1), (44, 0.1), (44, 0.13), (52, 0.13), (52, 0.1), (60, 0.1),
    ]  # fmt: skip


def test_decisions_of_every_kind_and_the_phase() -> None:
    figure = pictures(made_up())["gate_timeline"]
    rows = parse_staged_artifacts(made_up()).gates[0].rows
    survival, _, decisions, phase = panels(figure)
    assert {row.state for row in rows} == set(STATE_MARKS)
    for lane, state in enumerate(STATE_MARKS):
        assert points(labelled(decisions, state)[0]) == [(row.iteration, lane) for row in rows if row.state == state]
    looks = [(line.get_marker(), line.get_color()) for state in STATE_MARKS for line in labelled(decisions, state)]
    assert len({marker for marker, _ in looks}) == len({colour for _, colour in looks}) == len(STATE_MARKS)
    assert max(labelled(phase, "phase")[0].get_ydata()) == max(row.phase for row in rows) == 2
    line = labelled(phase, "phase")[0]
    risen = next(x for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True) if y == 1)
    assert risen == next(row.iteration for row in rows if row.phase == 1), "it rises where that was decided"
    moves = [row.iteration for row in rows if row.state in ("advance", "fall_back")]
    vertical = [line.get_xdata()[0] for line in survival.get_lines() if len(set(line.get_xdata())) == 1]
    assert set(moves) <= set(vertical)


def test_a_value_that_is_none_is_a_gap() -> None:
    survival = panels(pictures(made_up())["gate_timeline"])[0]
    (value,) = labelled(survival, "value")
    assert [x for x, y in points(value) if math.isnan(y)] == [15, 16, 48]
    (window,) = labelled(survival, "success window")
    assert all(math.isnan(y) for x, y in points(window) if x in (15, 16, 17, 18))


def test_a_value_alone_between_gaps_is_seen() -> None:
    rows = [{"iter": at, "avg_final": 0.5 if at == 31 else None if 20 < at < 40 else 0.4} for at in range(1, 61)]
    figure = pictures({"eval_history.jsonl": "\n".join(map(json.dumps, rows))})["survival"]
    (line,) = panels(figure)[0].get_lines()
    assert 30 in line.get_markevery()


def test_one_row_is_enough() -> None:
    figure = pictures(one_row())["gate_timeline"]
    p10 = panels(figure)[0]
    assert points(labelled(p10, "value")[0]) == [(8, 83.0)]
    assert points(labelled(p10, "failure upper")[0]) == [(7.5, 95), (8.5, 95)]
    low, high = p10.get_xlim()
    assert low < 8 < high


def test_hundreds_of_rows_have_no_marks_on_their_line() -> None:
    survival = panels(pictures(made_up(600))["gate_timeline"])[0]
    (value,) = labelled(survival, "value")
    assert len(points(value)) == 600
    assert len(value.get_markevery()) < 10


def test_many_keys_are_dealt_out_to_several_sheets() -> None:
    found = pictures(many_keys())
    assert list(found) == ["gate_timeline", "gate_timeline_2"]
    assert [len(panels(figure)) for figure in found.values()] == [6 + 2, 2 + 2]
    assert "part 2 of 2" in words(found["gate_timeline_2"])


def test_two_gates_get_a_picture_each() -> None:
    text = reference()["gate_trace.jsonl"]
    other = text.replace('"gate": "penalty"', '"gate": "speed.x"')
    assert list(pictures({"gate_trace.jsonl": text, "speed_gate_trace.jsonl": other})) == [
        "gate_timeline_penalty",
        "gate_timeline_speed_x",
    ]
    assert list(pictures({"gate_trace.jsonl": text, "b_gate_trace.jsonl": text})) == [
        "gate_timeline_penalty_1",
        "gate_timeline_penalty_2",
    ]


def hatched(axes: Axes) -> list[tuple[float, float]]:
    """From where to where something is flagged."""
    found = []
    for patch in axes.patches:
        if isinstance(patch, Patch) and patch.get_hatch() == WRONG_LABEL_HATCH:
            box = patch.get_path().get_extents(patch.get_patch_transform())
            found.append((box.x0, box.x1))
    return sorted(found)


@pytest.mark.parametrize("name", ["gate_timeline", "survival"])
def test_labels_that_contradict_the_schedule_are_hatched_and_named(name: str) -> None:
    figure = pictures(reference())[name]
    for axes in panels(figure):
        assert [round((low + high) / 2) for low, high in hatched(axes)] == [16, 32, 48]
    assert "16 ne (schedule: main); 32 main (schedule: ne); 48 ne (schedule: main)" in words(figure)
    names = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert names.count("ne") == 2 + 2  # two bands of it, two labels
    assert names.count("main") == 2 + 1


def test_labels_that_agree_are_not_flagged() -> None:
    for figure in pictures(made_up()).values():
        assert not any(hatched(axes) for axes in figure.axes)
        assert "contradicts" not in words(figure)


def test_many_wrong_labels_are_counted() -> None:
    found = draw_staged_pictures(parse_staged_artifacts(all_wrong()), kinds=("png",))
    assert len(found.contradictions) == 60
    assert len(found.notes) == 13
    assert found.notes[-1] == "48 more labels contradict the schedule"
    events = pictures(all_wrong())["stage_events"]
    assert len(hatched(events.axes[0])) == 12


def test_wrong_labels_that_touch_are_one_mark_with_a_name() -> None:
    figure = pictures(all_wrong())["survival"]
    assert hatched(panels(figure)[0]) == [(0.5, 60.5)]
    assert "a stage t...declared" in [text.get_text() for axes in figure.axes for text in axes.texts]


def test_labels_are_checked_in_rows_that_are_not_drawn() -> None:
    rows = [{"iter": at, "stage": "ne" if at == 2994 else "main", "survival": 0.5} for at in range(1, 5001)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    schedule = json.dumps({"iterations": 5000, "schedule": "5000:a.json|type=main"})
    artifacts = parse_staged_artifacts({"eval_history.jsonl": text, "schedule_trace.json": schedule})
    assert 2994 not in artifacts.series[0].at
    assert len(artifacts.series[0].at) < 2000
    assert "eval: 5,000 rows" in words(pictures({"eval_history.jsonl": text})["survival"])
    assert "iteration 2994" in StageCaptions("en").contradictions(find_wrong_labels(artifacts))[0]


def test_how_often_a_gate_opened_is_told_of_all_rows() -> None:
    rows = [{"iteration": at, "state": "advance" if at % 2 else "hold", "values": {"a": at}} for at in range(1, 6001)]
    found = parse_staged_artifacts({"gate_trace.jsonl": "\n".join(map(json.dumps, rows))})
    assert len(found.gates[0].rows) < 6000
    figure = dict(figures_of_plan(StagedScene(found, "en")))["gate_timeline"]
    assert "6,000 observations, iterations 1 to 6000: it opened 3,000 times, first at 1" in words(figure)


def test_bars_are_stacked_and_add_up() -> None:
    texts = reference()
    events = parse_staged_artifacts(texts).events
    assert events is not None
    figure = pictures(texts)["stage_events"]
    (axes,) = figure.axes
    bars = [patch for container in axes.containers for patch in container.patches]
    assert sum(bar.get_height() for bar in bars) == sum(events.totals.values())
    by_stage = {container.get_label(): sum(bar.get_height() for bar in container) for container in axes.containers}
    assert by_stage == events.totals
    mixed = [bar for bar in bars if round(bar.get_x() + bar.get_width() / 2) == 2]  # iterations 11 to 15
    assert [bar.get_height() for bar in mixed] == [sum(2 + at % 4 for at in range(11, 15)), 2 + 15 % 4]
    assert mixed[1].get_y() == mixed[0].get_height()
    total = sum(events.totals.values())
    keys = [text.get_text().strip() for text in figure.legends[0].get_texts()]
    assert keys == [f"{name}: {count:g} ({100 * count / total:.1f} %)" for name, count in events.totals.items()]
    assert len({bar.get_hatch() for bar in bars}) == 2  # told apart without colour


def test_events_that_are_not_told_by_iteration_are_one_bar() -> None:
    written = {"what": "first-step deaths", "events": {"ne": 120, "main": 163}}
    figure = pictures({"stage_summary.json": json.dumps(written)})["stage_events"]
    (axes,) = figure.axes
    assert [bar.get_height() for container in axes.containers for bar in container] == [120, 163]
    assert [text.get_text().strip() for text in figure.legends[0].get_texts()] == [
        "ne: 120 (42.4 %)",
        "main: 163 (57.6 %)",
    ]


def test_ratios_threshold_onset_and_duration() -> None:
    texts = reference()
    trace = json.loads(texts["schedule_trace.json"])
    figure = pictures(texts)["stage_warnings"]
    ratios, durations = panels(figure)
    ne = [(row["iteration"], row["remaining_ratio"]["ne"]) for row in trace["trace"]]
    assert points(labelled(ratios, "ne")[0]) == ne
    assert {line.get_ydata()[0] for line in labelled(ratios, "threshold")} == {0.3}
    assert [points(line) for line in labelled(ratios, "onset")] == [
        [(each["onset"], dict(ne if each["type"] == "ne" else main(trace))[each["onset"]])]
        for each in trace["warnings"]
    ]
    assert [line.get_xdata()[0] for line in labelled(ratios, "told")] == [
        each["iteration"] for each in trace["warnings"]
    ]
    assert points(labelled(durations, "ne")[0])[-1] == (60, trace["trace"][-1]["warn_duration"]["ne"])
    assert labelled(ratios, "ne")[0].get_linestyle() != labelled(ratios, "main")[0].get_linestyle()


def main(trace: dict) -> list[tuple[int, float]]:
    return [(row["iteration"], row["remaining_ratio"]["main"]) for row in trace["trace"]]


def test_curves_have_what_the_files_have() -> None:
    figure = pictures(reference())["survival"]
    names = [[line.get_label() for line in axes.get_lines() if line.get_label()[0] != "_"] for axes in panels(figure)]
    assert names == [
        ["survival (train)", "avg_final (eval)", "min_final (eval)"],
        ["first_death (train)"],
        ["first_death_p10 (eval)"],
        ["early_death_100 (eval)"],
    ]
    (least,) = labelled(panels(figure)[0], "min_final (eval)")
    assert points(least) == [(row.iteration, row.values["min_final"]) for row in ROWS]


def test_a_picture_that_can_not_be_drawn_is_named_and_the_others_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Figure:
        raise RuntimeError("no ink")

    monkeypatch.setattr(picture_plan, "draw_stage_events", broken)
    found = draw_staged_pictures(parse_staged_artifacts(reference()), kinds=("png",))
    assert set(found.files) == {"gate_timeline.png", "stage_warnings.png", "survival.png"}
    assert "stage_events could not be drawn: RuntimeError: no ink" in found.notes
    assert "stage_events" not in found.captions


def test_the_files_say_what_they_are_made_from_and_are_the_same_twice() -> None:
    artifacts = parse_staged_artifacts(
        {"eval_history.jsonl": reference()["eval_history.jsonl"]}, {"eval_history.jsonl": "ab" * 32}
    )
    first = draw_staged_pictures(artifacts, "zh", of="train/a/0", version="1.2.3", mark="PARTIAL")
    assert first.files == draw_staged_pictures(artifacts, "zh", of="train/a/0", version="1.2.3", mark="PARTIAL").files
    assert set(first.files) == {"survival.png", "survival.svg", "survival.pdf"}
    assert b"train/a/0; eval_history.jsonl sha256 abababababababab; muster 1.2.3" in first.files["survival.png"]
    assert first.captions["survival"].startswith("PARTIAL。存活率")


def test_captions_say_what_is_in_the_picture_and_nothing_else() -> None:
    said = draw_staged_pictures(
        parse_staged_artifacts({"gate_trace.jsonl": SCENES["no labels"]()["gate_trace.jsonl"]}), kinds=("png",)
    ).captions
    assert said["gate_timeline"].startswith("The gate: values")
    assert said["gate_timeline"].endswith("It never opened.")  # no stages, nothing frozen
    said = draw_staged_pictures(parse_staged_artifacts(made_up()), kinds=("png",)).captions
    assert "It opened at iteration 20, 28, 47, 55. While it is frozen nothing is judged" in said["gate_timeline"]
    assert said["gate_timeline"].endswith("Background: the stages, from the schedule.")


def test_a_name_that_can_not_be_drawn_is_explained_in_the_caption() -> None:
    found = draw_staged_pictures(parse_staged_artifacts(SCENES["chinese names"]()), "zh", kinds=("png",))
    assert all("图中名称：stage 1 = 北侧、stage 2 = 主段。" in caption for caption in found.captions.values())
    assert found.notes == []


@pytest.mark.parametrize(
    "texts",
    [
        {},
        {"gate_trace.jsonl": ""},
        {"gate_trace.jsonl": '{"iteration": 1}'},
        {"gate_trace.jsonl": '{"iteration": 3, "state": "dancing", "values": {"a": "nan"}, "phase": "x"}'},
        {"gate_trace.jsonl": '{"iteration": 0, "stage": 7, "values": {"a": 1e308}, "criteria": [{"key": "a"}, 3]}'},
        {"eval_history.jsonl": '{"iter": 5, "survival": null}'},
        {"eval_history.jsonl": '{"iter": 1000000000000, "survival": 1}\n{"iter": 1, "survival": 2}'},
        {"stage_summary.json": '{"events": {"ne": -3}}'},
        {"stage_summary.json": '{"events": {"": 3, "\\u0000": 2}}'},
        {"stage_summary.json": '{"by_iteration": [{"iteration": 1, "count": 1e300}, {"iteration": 99999999999, "count": 1}]}'},
        {"schedule_trace.json": '{"trace": [{"iteration": 1}], "warnings": [{}], "iterations": -3}'},
        {"schedule_trace.json": '{"trace": [{"iteration": 1, "remaining_ratio": {"a": 5}}], "schedule": "1:a|type=b"}'},
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_odd_data_never_raises_and_nothing_is_drawn_badly(texts: Texts) -> None:
    found = draw_staged_pictures(parse_staged_artifacts(texts), kinds=("png",))
    assert not [note for note in found.notes if "could not be drawn" in note]
