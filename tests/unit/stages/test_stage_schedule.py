"""Curricula, schedules and tail seeds: what holds at an iteration, what is left, what comes again."""

from __future__ import annotations

from collections import Counter

import pytest
from gate_world import reference
from hypothesis import given
from hypothesis import strategies as st

from muster.stages import Curriculum, Cycler, GateError, Schedule, SpecError

LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=8)


def schedule_of(lengths: list[int], types: str = "ab") -> Schedule:
    return Schedule.parse(";".join(f"{n}:f{at}|type={types[at % len(types)]}" for at, n in enumerate(lengths)))


def test_the_curriculum_of_the_reference_is_value_and_iterations() -> None:
    curriculum = reference().curriculum
    assert curriculum is not None
    assert curriculum.total == 60
    assert [each.value for each in curriculum.lessons] == [15, 20, 25, 25, 25, 25, 25]
    assert curriculum.ends == [9, 19, 28, 36, 44, 52, 60]
    assert [curriculum.value_at(at) for at in (1, 9, 10, 19, 20, 60, 61, 1000)] == [15, 15, 20, 20, 25, 25, 25, 25]


def test_the_schedule_of_the_reference_is_120_of_60() -> None:
    schedule = reference().schedule
    assert schedule is not None
    assert schedule.total == 120
    assert [(each.length, each.type, each.first, each.last) for each in schedule.stages] == [
        (8, "ne", 1, 8), (6, "ne", 9, 14), (15, "main", 15, 29), (6, "ne", 30, 35),
        (24, "main", 36, 59), (16, "main", 60, 75), (25, "main", 76, 100), (20, "main", 101, 120),
    ]  # fmt: skip
    assert [each.place + 1 for each in schedule.beyond(60)] == [7, 8]
    assert schedule.stage_at(60).place + 1 == 6, "one iteration of its sixteen"
    assert schedule.lengths(60) == {"ne": 20, "main": 40}
    assert schedule.remaining(32, 60) == {"ne": 3, "main": 25}
    assert schedule.remaining_ratio(32, 60) == {"ne": 0.15, "main": 0.625}
    assert schedule.runs_out(60) == {"ne": 35}
    assert schedule.reinjections(29) == {"ne": 1, "main": 0}
    assert schedule.reinjections(60) == {"ne": 2, "main": 2}


@given(LENGTHS, st.integers(1, 80))
def test_the_value_is_that_of_the_lesson_which_holds(lengths: list[int], iteration: int) -> None:
    curriculum = Curriculum.of([{"value": at, "iterations": n} for at, n in enumerate(lengths)])
    spelt = [at for at, n in enumerate(lengths) for _ in range(n)]
    assert curriculum.total == len(spelt) == curriculum.ends[-1]
    assert curriculum.value_at(iteration) == (spelt[iteration - 1] if iteration <= len(spelt) else spelt[-1])


@given(LENGTHS, st.integers(0, 80), st.integers(1, 80) | st.none())
def test_what_is_left_is_what_will_come(lengths: list[int], iteration: int, within: int | None) -> None:
    schedule = schedule_of(lengths)
    end = schedule.total if within is None else within
    to_come = Counter(schedule.stage_at(at).type for at in range(iteration + 1, end + 1))
    left = schedule.remaining(iteration, within)
    assert set(left) == set(schedule.types)
    assert {name: many for name, many in left.items() if many} == dict(to_come)
    ratios = schedule.remaining_ratio(iteration, within)
    assert all(0 <= ratio <= 1 for ratio in ratios.values())


@given(LENGTHS, st.integers(1, 80))
def test_a_stage_has_its_iterations_and_no_other(lengths: list[int], iteration: int) -> None:
    schedule = schedule_of(lengths)
    stage = schedule.stage_at(iteration)
    assert stage.first <= iteration
    assert iteration <= stage.last or stage is schedule.stages[-1]
    assert schedule.stages[stage.place] is stage


@given(LENGTHS, st.integers(1, 80))
def test_a_type_runs_out_where_its_last_iteration_in_the_run_is(lengths: list[int], within: int) -> None:
    schedule = schedule_of(lengths, "abc")
    came = [schedule.stage_at(at).type for at in range(1, within + 1)]
    last = {name: max((at for at, each in enumerate(came, 1) if each == name), default=0) for name in schedule.types}
    assert schedule.runs_out(within) == {name: at for name, at in last.items() if at < within}


@given(LENGTHS, st.integers(0, 80))
def test_reinjections_are_the_stages_begun_less_the_first(lengths: list[int], iteration: int) -> None:
    schedule = schedule_of(lengths)
    found = schedule.reinjections(iteration)
    for name in schedule.types:
        begun = [each for each in schedule.stages if each.type == name and each.first <= iteration]
        assert found[name] == max(0, len(begun) - 1)


def test_from_and_to_may_stand_for_iterations() -> None:
    written = [
        {"from": 1, "to": 8, "file": "a.json", "type": "ne"},
        {"to": 14, "file": "a.json", "type": "ne"},
        {"from": 15, "iterations": 3, "file": "b.json", "type": "main", "weight": 2},
    ]
    schedule = Schedule.of(written)
    assert schedule.text() == "8:a.json|type=ne;6:a.json|type=ne;3:b.json|type=main|weight=2"
    assert schedule.stages[2].marks == {"weight": "2"}


def test_a_stage_without_a_type_is_called_as_its_file() -> None:
    assert Schedule.parse("8:seeds/ne_hard.v2.json;6:plain;2:.json").types == ("ne_hard", "plain", ".json")


def test_what_the_notation_can_not_hold_is_refused_when_it_is_written() -> None:
    schedule = Schedule.of([{"iterations": 8, "file": "a;b.json", "type": "ne"}])
    with pytest.raises(SpecError, match=r"'a;b\.json' can't be written"):
        schedule.text()


def test_seeds_come_as_often_as_they_are_replayed_and_then_the_next() -> None:
    cycler = Cycler({"a": [7, 8, 9], "b": ["x"]}, replay=2)
    assert cycler.draw("a", 4) == [7, 7, 8, 8]
    assert cycler.draw("b", 3) == ["x", "x", "x"]
    assert cycler.draw("a", 3) == [9, 9, 7], "a stage that comes back goes on where it was left"
    assert cycler.replays("a") == {0: 3, 1: 2, 2: 2}
    assert cycler.drawn() == {"a": 7, "b": 3}
    assert cycler.draw("a", 0) == []


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 4), st.integers(1, 5))
def test_replays_are_what_was_handed_out(counts: list[int], replay: int, size: int) -> None:
    cycler = Cycler({"a": range(size)}, replay)
    handed = [seed for count in counts for seed in cycler.draw("a", count)]
    assert cycler.replays("a") == {at: handed.count(at) for at in range(size)}
    assert cycler.drawn() == {"a": len(handed)}


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 3))
def test_a_cycler_goes_on_from_a_checkpoint(counts: list[int], replay: int) -> None:
    live, seeds = Cycler({"a": "pqr", "b": "s"}, replay), {"a": "pqr", "b": "s", "new": "t"}
    for count in counts:
        live.draw("a", count)
    resumed = Cycler(seeds, replay)
    resumed.load(live.state())
    assert resumed.draw("a", 5) == live.draw("a", 5)
    assert resumed.draw("new") == ["t"]


@pytest.mark.parametrize("count", [-1, -100])
def test_no_seed_is_taken_back(count: int) -> None:
    cycler = Cycler({"a": [1, 2]})
    with pytest.raises(GateError, match="can't hand out"):
        cycler.draw("a", count)
    assert cycler.drawn() == {"a": 0}


def test_replays_of_a_source_that_was_not_given() -> None:
    with pytest.raises(GateError, match="no tail seeds were given for b"):
        Cycler({"a": [1]}).replays("b")
