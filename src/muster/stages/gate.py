"""A gate over a metric stream: may the difficulty rise, must it fall? Cheap enough to be asked at every step.

The training script asks it with its own numbers, the controller with what a run wrote: the same code, the same trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from operator import ge, gt, le, lt
from typing import Any, NamedTuple

from muster.stages.criteria import LAST, NAN, Criterion, ValueRing, make_ring
from muster.stages.gate_decision import (
    ADVANCE,
    BOTH,
    FAILURE,
    FAILURE_HOLD,
    FALL_BACK,
    FROZEN,
    HOLD,
    NEITHER,
    NO_NUMBER,
    SUCCESS,
    UNKNOWN,
    BoundCheck,
    Decision,
    json_safe_value,
)
from muster.stages.gate_settings import GateSettings
from muster.stages.notation import GateError

_NOTHING: Mapping[int, int] = {}


class _CheckSide:
    """The checks of success or of failure: least values first, greatest ones behind them."""

    def __init__(self, checks: list[tuple[BoundCheck, ValueRing]]) -> None:
        lower = [each for each in checks if each[0].bound in ("min", "above")]
        upper = [each for each in checks if each[0].bound in ("max", "below")]
        self.checks = [check for check, _ in (*lower, *upper)]
        self.rings = [ring for _, ring in (*lower, *upper)]
        self.lows = [ring.low for _, ring in lower]
        self.highs = [ring.high for _, ring in upper]
        self.least = [check.reach for check, _ in lower]
        self.most = [check.reach for check, _ in upper]


class _StageChecks(NamedTuple):
    """All that is checked in a stage."""

    wins: _CheckSide
    fails: _CheckSide
    checks: list[BoundCheck]
    rings: list[ValueRing]


class Gate:
    """Phases count from 0. Iterations must grow: a resumed run resumes its gate too (`state`, `resume`).

    An iteration 0 is let pass: many a run evaluates before it trains.
    """

    def __init__(self, settings: GateSettings) -> None:
        self.settings = settings
        self.phase = 0
        self.streak = 0  # successes in a row
        self.failures = 0  # in a row
        self.spent = 0  # failures of this phase, in all
        self.iteration = -1  # the last one that was observed; -1: none yet
        self.frozen_until = -1
        self._rings: dict[tuple[str, str], ValueRing] = {}
        self._programs = {stage: self._program(stage) for stage in ("", *settings.stages())}
        # every window sees every value, whatever the stage
        self._pushes = [(ring.key, ring.push) for ring in self._rings.values()]

    def observe(self, iteration: int, values: Mapping[str, Any], stage: str = "") -> Decision:
        if iteration <= self.iteration:
            raise GateError(_backwards_message(iteration, self.iteration))
        self.iteration = iteration
        if iteration <= self.frozen_until:
            return self._decision(stage, FROZEN, UNKNOWN, self.streak, values)
        for key, push in self._pushes:
            value = values.get(key)
            push(value if type(value) is float else _float_or_nan(value))
        wins, fails, checks, rings = self._programs.get(stage) or self._programs[""]
        lows, highs = [read() for read in wins.lows], [read() for read in wins.highs]
        success: bool | None = all(map(ge, lows, wins.least)) and all(map(le, highs, wins.most))
        good = lows + highs
        if not success and True in map(isnan, good):  # unless one of the others settles it
            success = False if True in map(lt, lows, wins.least) or True in map(gt, highs, wins.most) else None
        lows, highs = [read() for read in fails.lows], [read() for read in fails.highs]
        failure: bool | None = True in map(ge, lows, fails.least) or True in map(le, highs, fails.most)
        bad = lows + highs
        if not failure and True in map(isnan, bad):
            failure = None
        seen, lacks = good + bad, _NOTHING
        total = sum(seen)
        if total != total:  # noqa: PLR0124  one of them is NaN
            lacks = {at: rings[at].lacks() for at, value in enumerate(seen) if value != value}  # noqa: PLR0124
        return self._step(stage, success and bool(wins.checks), failure, values, checks, seen, lacks)

    def _step(
        self,
        stage: str,
        success: bool | None,
        failure: bool | None,
        values: Mapping[str, Any],
        checks: Sequence[BoundCheck],
        seen: Sequence[float],
        lacks: Mapping[int, int],
    ) -> Decision:
        before, settings = self.streak, self.settings
        verdict = _weigh_both_sides(success, failure, settings.wins)
        if verdict == SUCCESS or (verdict == BOTH and settings.wins == SUCCESS):
            self.streak, self.failures = before + 1, 0
            state = self._advance() if self.streak >= settings.required else HOLD
            return self._decision(stage, state, verdict, before, values, checks, seen, lacks)
        self.streak = 0
        if not failure:
            self.failures = self.failures if failure is None else 0  # what can't be judged ends no row of failures
            return self._decision(stage, HOLD, verdict, before, values, checks, seen, lacks)
        self.failures += 1
        self.spent += 1
        allowed = settings.allowed(self.phase)
        broken = self.failures > settings.borne(stage) or (allowed is not None and self.spent > allowed)
        counts = self.failures, self.spent
        state = self._fall_back() if broken and self.phase else FAILURE_HOLD
        return self._decision(stage, state, verdict, before, values, checks, seen, lacks, broken, counts)

    def _advance(self) -> str:
        if self.settings.phases is not None and self.phase + 1 >= self.settings.phases:
            return HOLD
        self._change(self.phase + 1, self.settings.freeze.advance)
        return ADVANCE

    def _fall_back(self) -> str:
        self._change(self.phase - 1, self.settings.freeze.fall_back)
        return FALL_BACK

    def _change(self, phase: int, freeze: int) -> None:
        """What was seen before is about another difficulty: it is forgotten."""
        self.phase, self.frozen_until = phase, self.iteration + freeze
        self.streak = self.failures = self.spent = 0
        for ring in self._rings.values():
            ring.clear()

    def _decision(
        self,
        stage: str,
        state: str,
        verdict: str,
        before: int,
        values: Mapping[str, Any],
        checks: Sequence[BoundCheck] = (),
        seen: Sequence[float] = (),
        lacks: Mapping[int, int] = _NOTHING,
        broken: bool = False,
        counts: tuple[int, int] = (0, 0),
    ) -> Decision:
        return Decision(
            self.settings,
            self.iteration,
            stage,
            state,
            verdict,
            self.phase,
            self.streak,
            before,
            self.failures,
            self.spent,
            self.frozen_until,
            dict(values),
            checks,
            seen,
            lacks,
            broken,
            counts,
        )

    def _program(self, stage: str) -> _StageChecks:
        settings = self.settings
        wins = _CheckSide([check for each in settings.success for check in self._checks(SUCCESS, each, stage)])
        fails = _CheckSide([check for each in settings.failure for check in self._checks(FAILURE, each, stage)])
        return _StageChecks(wins, fails, wins.checks + fails.checks, wins.rings + fails.rings)

    def _checks(self, side: str, criterion: Criterion, stage: str) -> list[tuple[BoundCheck, ValueRing]]:
        limits = criterion.at(stage)
        window = limits.window or LAST
        place = (criterion.key, str(window))
        ring = self._rings.get(place)
        if ring is None:
            ring = self._rings[place] = make_ring(criterion.key, window)
        return [(BoundCheck(side, criterion.key, window, *bound), ring) for bound in limits.bounds().items()]

    def state(self) -> dict[str, Any]:
        """Everything that a later decision rests on, as JSON can hold it: put it into the checkpoint."""
        return {
            "settings": self.settings.mapping(),
            "phase": self.phase,
            "streak": self.streak,
            "failures": self.failures,
            "spent": self.spent,
            "iteration": self.iteration,
            "frozen_until": self.frozen_until,
            "windows": [
                [*place, [json_safe_value(value) for value in ring.values()]] for place, ring in self._rings.items()
            ],
        }

    @classmethod
    def resume(cls, settings: GateSettings, state: Mapping[str, Any]) -> Gate:
        """Goes on where `state` was taken. Other settings would read old streaks by new rules: GateError."""
        if state.get("settings") != settings.mapping():
            raise GateError("the checkpoint's gate has other settings: begin a new gate, or give it those of the run")
        gate = cls(settings)
        for name in ("phase", "streak", "failures", "spent", "iteration", "frozen_until"):
            setattr(gate, name, int(state[name]))
        for key, window, values in state["windows"]:
            gate._rings[key, window].load([_float_or_nan(value) for value in values])
        return gate


def _backwards_message(iteration: int, last: int) -> str:
    if last < 0:
        return f"an iteration can't be negative, found {iteration}"
    return (
        f"iteration {iteration} was observed after {last}: a streak must not count anything twice. "
        "A resumed run resumes its gate: Gate.resume(settings, checkpoint['gate'])"
    )


def _weigh_both_sides(success: bool | None, failure: bool | None, wins: str) -> str:
    if failure:
        return BOTH if success else FAILURE
    if success and wins == SUCCESS:  # whatever the failure criteria would say
        return SUCCESS
    if success is None or failure is None:
        return UNKNOWN
    return SUCCESS if success else NEITHER


def _float_or_nan(value: Any) -> float:
    """NaN where it is none: a metric may be missing, or a text."""
    try:
        return NAN if value is None or isinstance(value, bool) else float(value)
    except NO_NUMBER:
        return NAN
