"""The real judge over simulated runs; the tables of figures, the replay and the command."""

import math
from itertools import pairwise
from random import Random

import pytest

from simulator.__main__ import main
from simulator.bounds import bound_of, seen_by
from simulator.case import Hole
from simulator.drawing import FAULT_NAMES, SHAPE_NAMES, draw, floors_for, names_of
from simulator.figures import Figures
from simulator.many import run_batch
from simulator.polls import polls
from simulator.replay import replay
from simulator.shapes import SHAPES
from simulator.single import simulate
from simulator.truth import Truth

HISTORIES, PARTS = 1500, 6


@pytest.mark.parametrize("part", range(PARTS))
def test_the_judge_is_never_wrong(part: int) -> None:
    size = HISTORIES // PARTS
    figures = run_batch((part * size, (part + 1) * size))
    assert not figures.wrongs, "\n" + figures.table()
    assert figures.presumed_rate <= 6, "\n" + figures.table()  # so few hours say no more; the slow test counts them


def test_these_seeds_hold_every_shape_and_every_fault() -> None:
    shapes, faults = zip(*(names_of(seed) for seed in range(HISTORIES)), strict=True)
    assert set(shapes) == set(SHAPE_NAMES)
    assert set(faults) == set(FAULT_NAMES)


@pytest.mark.parametrize("fault", FAULT_NAMES)
def test_every_fault_in_runs_of_several_shapes(fault: str) -> None:
    for seed in range(4):
        result = simulate(seed, fault=fault, shape=SHAPE_NAMES[(seed * 7 + len(fault)) % len(SHAPE_NAMES)])
        assert not result.wrongs, result


def test_a_seed_is_a_history_for_ever() -> None:
    for seed in (3, 40, 77, 120):
        assert simulate(seed) == simulate(seed)
    assert simulate(1) != simulate(2)


@pytest.mark.parametrize("shape", SHAPE_NAMES)
def test_counters_of_a_shape_only_rise_but_for_workers_that_are_replaced(shape: str) -> None:
    case, rng = draw(5, shape, "healthy", 30.0)
    run: Truth = case.weave(rng)
    before = run.look(0.0)
    for t in range(30, 3600, 30):
        moment = run.look(float(t))
        assert (moment.vitals.io_bytes or 0) >= (before.vitals.io_bytes or 0)
        if case.style.respawn_s == math.inf:
            assert (moment.vitals.cpu_s or 0) >= (before.vitals.cpu_s or 0)
        assert moment.main_state == moment.vitals.states[0]
        assert run.works(float(t))
        before = moment
    assert {mark.signal for mark in before.marks} == {signal.name for signal in case.style.signals}


def test_a_look_does_not_depend_on_those_before_it() -> None:
    case, rng = draw(9, "evaluations", "sigstop_sigcont", 30.0)
    run = case.weave(rng)
    forward = [run.look(t * 100.0) for t in range(30)]
    assert [run.look(t * 100.0) for t in reversed(range(30))] == forward[::-1]


def test_a_stopped_run_stands_still_and_goes_on() -> None:
    case, rng = draw(9, "plain_steps", "sigstop_sigcont", 30.0)
    run = case.weave(rng)
    stop = next(freeze for freeze in run.freezes if freeze.kind == "stopped")
    during, after = run.look(stop.start + 1), run.look(stop.end - 1)
    assert (during.marks, during.vitals.cpu_s) == (after.marks, after.vitals.cpu_s)
    assert not run.works(stop.start + 1)
    assert run.stalled_since(stop.end - 1) == stop.start
    assert run.works(stop.end + 1)
    assert run.own(stop.end + 10) == pytest.approx(stop.start + 10)


def test_idle_pauses_of_healthy_runs_keep_to_the_definition() -> None:
    """Less than 100 s, or less than four of the longest gap before."""
    for seed in range(200):
        style = SHAPES["hiccups"](Random(seed), 7200)
        assert all(pause.length < 100 for pause in style.pauses if not pause.doing.cpu and not pause.doing.io)
        longest = 25.0
        for pause in SHAPES["remote_waits"](Random(seed), 7200).pauses:
            assert pause.length < max(100, 4 * longest)
            longest = max(longest, pause.length)


def test_polls_keep_their_period_and_pass_over_holes() -> None:
    ticks = polls(5.0, [Hole(50.0, 500.0, "starved"), Hole(90.0, 100.0, "lost")], Random(0))
    times, holes = zip(*(next(ticks) for _ in range(100)), strict=True)
    gaps = [b - a for a, b in pairwise(times)]
    assert min(gaps) >= 5.0
    assert not any(50 <= t < 500 for t in times)
    assert [hole.kind for passed in holes for hole in passed] == ["starved", "lost"]
    assert sorted(gaps)[-2] < 12.0


def test_the_bound_of_a_stall_follows_the_gaps_that_could_be_seen() -> None:
    case, rng = draw(4, "plain_steps", "healthy", 5.0)
    case.style.signals[0] = case.style.signals[0].__class__("metrics.jsonl", "jsonl", 40.0)
    run, floors = case.weave(rng), floors_for(5.0)
    times = [5.0 * number for number in range(400)]
    (seen,) = seen_by(run, times, floors.late_s)
    assert seen.gaps > 40
    assert 40 <= seen.longest <= 55
    strict = bound_of([seen], case.style, floors, idle=True, known=True)
    assert strict.strict
    assert strict.seconds == max(120.0, 5 * seen.longest)
    assert bound_of([seen], case.style, floors, idle=False, known=True).seconds == 1800.0
    assert bound_of([seen], case.style, floors, idle=True, known=False).seconds == 2700.0
    assert bound_of([], case.style, floors, idle=True, known=True).seconds == 3600.0


def test_a_history_can_be_read_as_text() -> None:
    text, result = replay(7, fault="sigstop", shape="plain_steps")
    assert "seed 7: plain_steps, sigstop" in text
    assert "STALLED(stopped) proven" in text
    assert "hangs" in text
    assert text.endswith("nothing is wrong")
    assert not result.wrongs
    assert "ended    DEAD" in replay(7, fault="kill_9")[0]


def test_the_command_shows_one_history_or_the_figures_of_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["single", "--seed", "11", "--fault", "deadlock", "--shape", "plain_steps"]) == 0
    assert "deadlock" in capsys.readouterr().out
    assert main(["single", "--histories", "20", "--seed", "300"]) == 0
    shown = capsys.readouterr()
    assert "false proven STALLED" in shown.out
    assert "20 of 20" in shown.err


def test_a_missed_goal_is_shown_with_the_command_that_replays_it() -> None:
    figures = Figures()
    result = simulate(1)
    result.wrongs.append(type("W", (), {"kind": "false_dead", "t": 1.0, "text": "made up"})())
    figures.add(result)
    assert not figures.met
    assert "MISSED" in figures.table()
    assert "python -m simulator single --seed 1  # false_dead: made up" in figures.table()
