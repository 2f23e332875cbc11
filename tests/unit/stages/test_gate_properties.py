"""What must be so of every gate and every stream: against a plain model of it, over crashes, and through its trace."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from typing import Any

import numpy as np
from gate_world import LETTERS
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.stages import Decision, Gate, GateSettings
from muster.stages.replay import replay_gate
from muster.stages.traces import EvaluationRow, drop_superseded_rows, lines, parse_gate_trace, upto

WINDOWS = ("last", "mean 2", "mean 3", "median 2", "median 3", "min 2", "max 3", "all 2", "all 3", "p10 4", "p75 3")
STAGES = ("", "ne", "main")
RANK = {"fall_back": 0, "failure_hold": 1, "hold": 2, "advance": 3}
ODD = (None, math.nan, math.inf, -math.inf, "text", "0.5", "nan", True, 10**400, [1])
ANY = ("min", "max", "above", "below")


class Maker:
    """Gates and streams from a seed: drawn one by one they would hardly ever come far enough to change their phase."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def quarter(self) -> float:
        return self.rng.randint(-4, 4) / 4  # sums of them are exact

    def limits(self, bounds: tuple[str, ...]) -> dict[str, Any]:
        window = self.rng.choice(WINDOWS) if self.rng.random() < 0.5 else "last"
        return {self.rng.choice(bounds): self.quarter(), "window": window}

    def criteria(self, bounds: tuple[str, ...], least: int) -> list[dict[str, Any]]:
        found = []
        for _ in range(self.rng.choice([least, 1, 1, 2, 3])):
            by_stage = {"by_stage": {"ne": self.limits(bounds)}} if self.rng.random() < 0.2 else {}
            found.append({"key": self.rng.choice("xxxy")} | self.limits(bounds) | by_stage)
        return found

    def gate(self, success: tuple[str, ...] = ANY, failure: tuple[str, ...] = ANY) -> GateSettings:
        rng = self.rng
        rules = {
            "required": rng.choice([1, 1, 1, 2, 3]),
            "tolerance": rng.choice([0, 1, 2, {"default": 1, "main": 0}]),
            "allowance": rng.choice([[9], [3, 2], [1, 0, 2]]),
            "freeze": {"advance": rng.choice([0, 0, 2, 4]), "fall_back": rng.choice([0, 0, 3])},
            "phases": rng.choice([2, 3, 9]),
            "wins": rng.choice(["success", "failure", "failure"]),
        }
        some = {name: rule for name, rule in rules.items() if rng.random() < 0.7}
        return GateSettings.of({"success": self.criteria(success, 1), "failure": self.criteria(failure, 0)} | some)

    def rows(self, odd: float = 0.08) -> list[EvaluationRow]:
        found, at = [], -1
        for _ in range(self.rng.randint(0, 25)):
            at += self.rng.choice([1, 1, 2, 3])
            values = {key: self.quarter() if self.rng.random() > odd else self.rng.choice(ODD) for key in "xyz"}
            if self.rng.random() < odd:
                del values["x"]
            found.append(EvaluationRow(at, values, self.rng.choice(STAGES)))
        return found


SEEDS = st.integers(0, 2**40)
WILD = SEEDS.map(Maker).map(lambda made: (made.gate(), made.rows()))
HIGHER = SEEDS.map(Maker).map(lambda made: (made.gate(("min", "above"), ("max", "below")), made.rows(odd=0)))
QUARTERS = st.integers(-4, 4).map(lambda number: number / 4)
World = tuple[
    GateSettings, list[EvaluationRow]
]  # WILD: any of them; HIGHER: higher is better in all of it, and all are numbers


def rows_of(decisions: list[Decision]) -> list[dict[str, Any]]:
    return [each.row() for each in decisions]


class Model:
    """The same gate as the words of its settings have it, without any haste."""

    def __init__(self, gate: GateSettings) -> None:
        self.gate = gate
        self.seen: list[dict[str, float]] = []
        self.phase = self.streak = self.failures = self.spent = 0
        self.frozen_until = -1

    def observe(self, row: EvaluationRow) -> tuple[str, str, int, int, int]:
        state, verdict = self.decide(row) if row.iteration > self.frozen_until else ("frozen", "unknown")
        if state in ("advance", "fall_back"):
            self.phase += 1 if state == "advance" else -1
            freeze = self.gate.freeze.advance if state == "advance" else self.gate.freeze.fall_back
            self.frozen_until = row.iteration + freeze
            self.streak = self.failures = self.spent = 0
            self.seen = []
        return state, verdict, self.phase, self.streak, self.failures

    def decide(self, row: EvaluationRow) -> tuple[str, str]:
        self.seen.append({key: number(value) for key, value in row.values.items()})
        good = [held for each in self.gate.success for held in self.held(each, row.stage)]
        bad = [held for each in self.gate.failure for held in self.held(each, row.stage)]
        success = False if False in good or not good else None if None in good else True
        failure = True if True in bad else None if None in bad else False
        if success and (failure is False or self.gate.wins == "success"):
            self.streak, self.failures = self.streak + 1, 0
            last = self.gate.phases is not None and self.phase == self.gate.phases - 1
            return (
                "advance" if self.streak >= self.gate.required and not last else "hold",
                "both" if failure else "success",
            )
        self.streak = 0
        if failure is None:
            return "hold", "unknown"
        if not failure:
            self.failures = 0
            return "hold", "unknown" if None in (success, failure) else "neither"
        self.failures, self.spent = self.failures + 1, self.spent + 1
        allowed = self.gate.allowed(self.phase)
        broken = self.failures > self.gate.borne(row.stage) or (allowed is not None and self.spent > allowed)
        return "fall_back" if broken and self.phase else "failure_hold", "both" if success else "failure"

    def held(self, criterion: Any, stage: str) -> list[bool | None]:
        limits = criterion.at(stage)
        kind, size = limits.window.kind, limits.window.size
        last = [each.get(criterion.key, math.nan) for each in self.seen][-size:]
        if len(last) < size or any(map(math.isnan, last)):
            return [None] * len(limits.bounds())
        return [holds(bound, threshold, kind, last) for bound, threshold in limits.bounds().items()]


def holds(bound: str, threshold: float, kind: str, last: list[float]) -> bool | None:
    if kind == "all":
        return all(holds(bound, threshold, "last", [each]) for each in last)
    with np.errstate(invalid="ignore"):
        value = float(
            last[-1] if kind == "last" else getattr(np, kind)(last) if kind in ("mean", "min", "max")
            else interpolated(last, 50 if kind == "median" else float(kind[1:]))
        )  # fmt: skip
    if math.isnan(value):
        return None
    return {
        "min": value >= threshold,
        "max": value <= threshold,
        "above": value > threshold,
        "below": value < threshold,
    }[bound]


def interpolated(values: list[float], percent: float) -> float:
    order, place = sorted(values), percent * (len(values) - 1) / 100
    low, high = order[math.floor(place)], order[math.ceil(place)]
    return low if low == high else low + (place % 1) * (high - low)


def number(value: Any) -> float:
    if value is None or isinstance(value, bool | list):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


@settings(max_examples=400)
@given(WILD)
def test_a_gate_decides_as_its_settings_say(world: World) -> None:
    gate, rows = world
    model = Model(gate)
    for decision, row in zip(replay_gate(gate, rows), rows, strict=True):
        found = (decision.state, decision.verdict, decision.phase, decision.streak, decision.failures)
        assert found == model.observe(row), row


def test_the_streams_of_these_tests_come_far_enough() -> None:
    worlds = [(made.gate(), made.rows()) for made in map(Maker, range(300))]
    seen = Counter(state for gate, rows in worlds for state in {each.state for each in replay_gate(gate, rows)})
    assert min(seen[state] for state in LETTERS) > 20, seen


@given(HIGHER, st.dictionaries(st.sampled_from("xy"), QUARTERS), QUARTERS.map(abs), st.sampled_from(STAGES))
def test_a_better_value_never_turns_a_pass_into_a_fail(
    world: World, values: dict[str, float], more: float, stage: str
) -> None:
    gate, before = world
    better = {key: value + more for key, value in values.items()}
    state = through(gate, before).state()
    at = state["iteration"] + 9  # beyond any freeze
    worse_one = Gate.resume(gate, state).observe(at, values, stage)
    better_one = Gate.resume(gate, state).observe(at, better, stage)
    assert RANK[better_one.state] >= RANK[worse_one.state]
    assert better_one.state == "advance" or better_one.streak >= worse_one.streak
    assert better_one.failures <= worse_one.failures or worse_one.state == "fall_back"


def through(gate: GateSettings, rows: list[EvaluationRow]) -> Gate:
    found = Gate(gate)
    for row in rows:
        found.observe(row.iteration, row.values, row.stage)
    return found


@given(HIGHER, st.integers(0, 24), QUARTERS.map(abs))
def test_a_better_value_anywhere_makes_no_later_verdict_worse(world: World, place: int, more: float) -> None:
    gate, rows = world
    if not rows:
        return
    steady = gate._replace(required=10**9, tolerance={"default": 10**9}, allowance=())
    at = place % len(rows)
    raised = {key: value + more for key, value in rows[at].values.items()}
    better = [*rows[:at], rows[at]._replace(values=raised), *rows[at + 1 :]]
    for old, new in zip(replay_gate(steady, rows), replay_gate(steady, better), strict=True):
        for one, other in zip(old.checks(), new.checks(), strict=True):
            assert one.holds is other.holds or other.holds is (one.check.side == "success")


@given(WILD, st.integers(0, 25))
def test_no_window_reads_the_future(world: World, cut: int) -> None:
    gate, rows = world
    assert rows_of(replay_gate(gate, rows[:cut])) == rows_of(replay_gate(gate, rows))[:cut]


@given(WILD)
def test_what_is_decided_rests_on_what_is_watched_and_on_nothing_else(world: World) -> None:
    gate, rows = world
    bare = [row._replace(values={key: row.values[key] for key in gate.watched() if key in row.values}) for row in rows]
    assert [each.why for each in replay_gate(gate, bare)] == [each.why for each in replay_gate(gate, rows)]


@given(WILD)
def test_the_replay_of_a_trace_equals_the_live_decisions(world: World) -> None:
    gate, rows = world
    live = replay_gate(gate, rows)
    trace = parse_gate_trace(lines(gate, live, "penalty"))
    assert (trace.settings, trace.name, trace.skipped) == (gate, "penalty", 0)
    assert trace.decided == rows_of(live)
    assert rows_of(replay_gate(gate, trace.rows)) == rows_of(live)


@given(WILD)
def test_a_crash_and_a_resume_change_nothing(world: World) -> None:
    """Killed before every row once: what comes next, and what is kept for later, is as if it had not been."""
    gate, rows = world
    live, again = Gate(gate), GateSettings.of(gate.mapping())
    for row in rows:
        resumed = Gate.resume(again, json.loads(json.dumps(live.state(), allow_nan=False)))
        one, other = (each.observe(row.iteration, row.values, row.stage) for each in (live, resumed))
        assert one.row() == other.row()
        assert live.state() == resumed.state()


@given(WILD, st.integers(0, 25), st.integers(0, 25), st.integers(0, 200))
def test_the_trace_of_a_run_that_was_killed_and_resumed_is_that_of_one_that_was_not(
    world: World, saved: int, more: int, size: int
) -> None:
    """Killed in the middle of a line, `more` rows after its last checkpoint."""
    gate, rows = world
    decided = replay_gate(gate, rows)
    whole = lines(gate, decided)
    written = "".join(whole.splitlines(keepends=True)[: saved + more + 1])
    torn = written + whole[len(written) :][:size]
    at = rows[min(saved, len(rows)) - 1].iteration if saved and rows else -1
    assert upto(torn, at) + "".join(each.line() + "\n" for each in decided[saved:]) == whole


@given(st.lists(st.integers(0, 9)))
def test_of_rows_that_go_backwards_the_later_ones_count(said: list[int]) -> None:
    rows = [EvaluationRow(at, {"order": order}) for order, at in enumerate(said)]
    kept = [
        row for order, row in enumerate(rows) if all(row.iteration < later.iteration for later in rows[order + 1 :])
    ]
    assert drop_superseded_rows(rows) == kept
    assert drop_superseded_rows(drop_superseded_rows(rows)) == kept


@given(WILD, st.integers(0, 25))
def test_a_replay_over_rows_that_go_backwards_is_that_of_the_settled_ones(world: World, again: int) -> None:
    gate, rows = world
    assert rows_of(replay_gate(gate, [*rows, *rows[again:]])) == rows_of(replay_gate(gate, rows))


@given(WILD)
def test_every_decision_can_be_told(world: World) -> None:
    gate, rows = world
    for each in replay_gate(gate, rows):
        assert each.state in LETTERS
        assert each.why
        assert not each.why.startswith((":", ";"))
        assert ": ;" not in each.why
        assert "; ;" not in each.why
        assert bool(each.missing) == (each.state not in ("advance", "fall_back"))
        assert bool(each.broke) == (each.before > 0 and not each.streak and each.state != "advance")
        assert each.streak >= 0
        assert each.phase >= 0
        assert gate.phases is None or each.phase < gate.phases
        assert not (each.streak and each.failures)
