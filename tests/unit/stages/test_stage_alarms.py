"""Warnings that a type of stage runs out: onset, patience, duration, spells."""

from __future__ import annotations

import json
import math

import pytest
from gate_world import reference
from hypothesis import given
from hypothesis import strategies as st

from muster.stages import Alarm, GateError, Schedule, Watch
from muster.stages.alarms import StageWarning, describe_early_exhaustion


def spells(ratios: list[float], watch: Watch, start: int = 1) -> list[StageWarning]:
    alarm = Alarm(watch)
    for at, ratio in enumerate(ratios, start):
        alarm.observe(at, {"ne": ratio})
    return alarm.events


def test_it_is_told_once_the_share_has_been_below_for_so_long() -> None:
    assert spells([0.8, 0.7, 0.6, 0.5, 0.4], Watch(0.7, 2)) == [StageWarning("ne", 3, 4, 0.5, 2, 2)]
    assert spells([0.8, 0.7, 0.6, 0.5, 0.4], Watch(0.7)) == [StageWarning("ne", 3, 3, 0.6, 3, 3)]
    assert spells([0.6, 0.5], Watch(0.7, 3)) == []


def test_a_spell_ends_where_the_share_rises_and_the_next_one_counts_on() -> None:
    low, high = 0.1, 0.9
    found = spells([low, low, high, low, high, low, low, low], Watch(0.5, 2))
    assert [(each.onset, each.iteration, each.duration, each.total) for each in found] == [(1, 2, 1, 1), (6, 7, 2, 3)]


def test_what_is_no_number_proves_nothing() -> None:
    assert [each.onset for each in spells([0.1, math.nan, 0.1, 0.1], Watch(0.5, 2))] == [3]


def test_types_are_watched_apart_and_told_once() -> None:
    alarm = Alarm(Watch(0.5))
    told = [
        [each.type for each in alarm.observe(at, ratios)]
        for at, ratios in enumerate([{"ne": 0.4, "main": 0.9}, {"ne": 0.3, "main": 0.4}, {"ne": 0.2, "main": 0.3}], 1)
    ]
    assert told == [["ne"], ["main"], []]
    assert alarm.durations() == {"ne": 3, "main": 2}


def test_the_row_of_the_trace() -> None:
    (event,) = spells([0.9, 1 / 3, 0.2], Watch(0.5, 2))
    assert event.row(0.5) == {
        "type": "ne", "onset": 2, "iteration": 3, "ratio": 0.2, "threshold": 0.5, "duration": 1, "total": 1,
    }  # fmt: skip


def test_durations_are_in_iterations_where_not_every_one_is_looked_at() -> None:
    alarm = Alarm(Watch(0.5, 9))
    for at, ratio in ((8, 0.4), (16, 0.4), (24, 0.3), (32, 0.9), (40, 0.1), (48, 0.1), (56, 0.1)):
        alarm.observe(at, {"ne": ratio})
    assert [(each.onset, each.iteration, each.duration, each.total) for each in alarm.events] == [
        (8, 16, 9, 9), (40, 48, 9, 18),
    ]  # fmt: skip


@pytest.mark.parametrize("iteration", [1, 2])
def test_no_iteration_counts_twice(iteration: int) -> None:
    alarm = Alarm(Watch(0.5))
    alarm.observe(2, {"ne": 0.1})
    with pytest.raises(GateError, match=f"iteration {iteration} was observed after 2"):
        alarm.observe(iteration, {"ne": 0.1})
    assert alarm.durations() == {"ne": 1}


RATIOS = st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.8, math.nan]), max_size=12)


@given(RATIOS, st.integers(1, 3))
def test_spells_are_the_stretches_below(ratios: list[float], patience: int) -> None:
    stretches, onset = [], 0
    for at, ratio in enumerate([*ratios, 1.0], 1):
        if ratio < 0.5:
            onset = onset or at
        elif onset:
            stretches.append((onset, at - onset))
            onset = 0
    told = [(first, long - patience + 1) for first, long in stretches if long >= patience]
    found = spells(ratios, Watch(0.5, patience))
    assert [(each.onset, each.duration) for each in found] == told
    assert [each.iteration for each in found] == [first + patience - 1 for first, _ in told]
    assert [each.total for each in found] == [sum(long for _, long in told[: at + 1]) for at in range(len(told))]


@given(RATIOS, RATIOS, st.integers(1, 3))
def test_an_alarm_goes_on_from_a_checkpoint(before: list[float], after: list[float], patience: int) -> None:
    live, resumed = Alarm(Watch(0.5, patience)), Alarm(Watch(0.5, patience))
    for at, ratio in enumerate(before):
        live.observe(at, {"ne": ratio})
    resumed.load(json.loads(json.dumps(live.state())))
    for at, ratio in enumerate(after, len(before)):
        assert live.observe(at, {"ne": ratio}) == resumed.observe(at, {"ne": ratio})
    assert live.events == resumed.events
    assert live.durations() == resumed.durations()


def test_what_can_be_told_before_the_run() -> None:
    schedule = reference().schedule
    assert schedule is not None
    assert list(describe_early_exhaustion(schedule, 60)) == ["ne is exhausted at iteration 35 of 60"]
    assert list(describe_early_exhaustion(schedule, 10)) == ["main never comes in 10 iterations"]
    assert list(describe_early_exhaustion(Schedule.parse("4:a|type=ne;4:b|type=main"), 20)) == [
        "ne is exhausted at iteration 4 of 20"
    ]


def test_the_warning_of_the_reference_comes_as_early_as_it_set_it() -> None:
    """Two iterations below 70 % of the 20 that NE has in the run: told at 8, not at 57."""
    found = reference()
    assert found.schedule is not None
    assert found.watch == Watch(0.7, 2)
    alarm = Alarm(found.watch)
    for at in range(1, 61):
        alarm.observe(at, found.schedule.remaining_ratio(at, 60))
    ne = alarm.events[0]
    assert (ne.type, ne.onset, ne.iteration, ne.ratio, ne.duration) == ("ne", 7, 8, 0.6, 53)
