"""What a gate decided at one iteration, and why: put into words only when somebody asks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from muster.stages.criteria import BOUND_WORDS, LAST, UNMET_BOUND_WORDS, Window, closest_passing_value
from muster.stages.gate_settings import GateSettings

ADVANCE, HOLD, FAILURE_HOLD, FALL_BACK, FROZEN = "advance", "hold", "failure_hold", "fall_back", "frozen"
GATE_STATES = (ADVANCE, HOLD, FAILURE_HOLD, FALL_BACK, FROZEN)
NO_NUMBER = (TypeError, ValueError, OverflowError, RuntimeError)  # the last one: a tensor of several numbers
SUCCESS, FAILURE, BOTH, NEITHER, UNKNOWN = "success", "failure", "both", "neither", "unknown"


class BoundCheck(NamedTuple):
    """One bound of one criterion, as it applies in a stage."""

    side: str  # success | failure
    key: str
    window: Window
    bound: str  # min | max | above | below
    threshold: float

    @property
    def reach(self) -> float:
        """The number that is just enough: what is strict, and what a sum's rounding does, is in it."""
        return closest_passing_value(self.window, self.bound, self.threshold)

    def holds(self, value: float) -> bool:
        return value >= self.reach if self.bound in ("min", "above") else value <= self.reach


class CheckResult(NamedTuple):
    """A check, and what it saw."""

    check: BoundCheck
    value: float  # NaN: it can't be judged
    holds: bool | None
    lacks: int = 0  # values that must come before its window can be judged

    def row(self) -> dict[str, Any]:
        check = self.check
        return {
            "side": check.side,
            "key": check.key,
            "window": str(check.window),
            "bound": check.bound,
            "threshold": check.threshold,
            "value": json_safe_value(self.value),
            "holds": self.holds,
        }

    def name(self) -> str:
        window = self.check.window
        return self.check.key if window == LAST else f"{self.check.key} ({window})"

    def said(self) -> str:
        """`first_death_p10 83 is below 95`"""
        check = self.check
        if self.holds is None:
            return f"{self.name()} can't be judged: {self.lacking()}"
        relation = BOUND_WORDS[check.bound] if self.holds else UNMET_BOUND_WORDS[check.bound]
        return f"{self.name()} {self.shown()} is {relation} {format_six_digits(check.threshold)}"

    def shown(self) -> str:
        """With more digits where 94.9999999 would read as `95 is below 95`."""
        value, threshold = self.value, self.check.threshold
        if value == threshold or format_six_digits(value) != format_six_digits(threshold):
            return format_six_digits(value)
        return repr(value) if self.check.window.exact else f"{value:.12g}"

    def lacking(self) -> str:
        if self.check.window == LAST:
            return "no number was given"
        if not self.lacks:
            return "it is infinite in both directions"
        return f"{self.lacks} more value{'s' if self.lacks != 1 else ''} to come"

    def needed(self) -> str:
        """What would have to be otherwise: for success to hold, or for failure not to."""
        check = self.check
        if self.holds is None:
            return f"{self.name()}: {self.lacking()}"
        relation = (BOUND_WORDS if check.side == SUCCESS else UNMET_BOUND_WORDS)[check.bound]
        return f"{self.name()} {relation} {format_six_digits(check.threshold)}, found {self.shown()}"


class Decision:
    """`phase`, `streak` and `failures` are as they stand after it."""

    __slots__ = (
        "before",
        "broken",
        "counts",
        "failures",
        "frozen_until",
        "iteration",
        "lacks",
        "phase",
        "program",
        "seen",
        "settings",
        "spent",
        "stage",
        "state",
        "streak",
        "values",
        "verdict",
    )

    def __init__(
        self,
        settings: GateSettings,
        iteration: int,
        stage: str,
        state: str,
        verdict: str,
        phase: int,
        streak: int,
        before: int,
        failures: int,
        spent: int,
        frozen_until: int,
        values: Mapping[str, Any],
        program: Sequence[BoundCheck],
        seen: Sequence[float],
        lacks: Mapping[int, int],
        broken: bool,
        counts: tuple[int, int],
    ) -> None:
        self.settings = settings
        self.iteration = iteration
        self.stage = stage
        self.state = state
        self.verdict = verdict
        self.phase = phase
        self.streak = streak  # successes in a row
        self.before = before  # the streak before this one
        self.failures = failures  # in a row
        self.spent = spent  # failures of the phase, in all
        self.frozen_until = frozen_until
        self.values = values  # as they were observed
        self.program = program  # what was checked
        self.seen = seen  # what each check saw
        self.lacks = lacks  # by check: values that must come before it can be judged
        self.broken = broken  # more failures than are borne
        self.counts = counts  # failures in a row, and of the phase, before a change begins them anew

    @property
    def required(self) -> int:
        return self.settings.required

    @property
    def tolerance(self) -> int:
        """Failures in a row that are borne in this stage."""
        return self.settings.borne(self.stage)

    def checks(self) -> Iterator[CheckResult]:
        for at, (check, value) in enumerate(zip(self.program, self.seen, strict=True)):
            holds = None if math.isnan(value) else check.holds(value)
            yield CheckResult(check, value, holds, self.lacks.get(at, 0))

    def failed_by(self) -> list[CheckResult]:
        return [each for each in self.checks() if each.check.side == FAILURE and each.holds]

    def unmet(self) -> list[CheckResult]:
        """Success criteria that do not hold, or that can't be judged."""
        return [each for each in self.checks() if each.check.side == SUCCESS and not each.holds]

    def unjudged(self) -> list[CheckResult]:
        return [each for each in self.checks() if each.holds is None]

    @property
    def last_phase(self) -> bool:
        return self.settings.phases is not None and self.phase + 1 >= self.settings.phases

    @property
    def can_succeed(self) -> bool:
        """Whether there is a success criterion in this stage."""
        return any(each.side == SUCCESS for each in self.program)

    @property
    def broke(self) -> str:
        """What ended a streak; "": there was none, or it goes on."""
        if not self.before or self.streak or self.state == ADVANCE:
            return ""
        because = self.failed_by() or self.unmet() or self.unjudged()
        return _join_check_results(because) or _NO_SUCCESS

    @property
    def missing(self) -> list[str]:
        """What would have to come for the gate to advance."""
        if self.state in (ADVANCE, FALL_BACK):
            return []
        if self.state == FROZEN:
            return [_explain_freeze(self)]
        if self.last_phase:
            return ["a further phase: this is the last one"]
        found = [each.needed() for each in self.unmet()] if self.can_succeed else [_NO_SUCCESS]
        if self.settings.wins == FAILURE:
            failing = [each for each in self.checks() if each.check.side == FAILURE]
            found += [each.needed() for each in failing if each.holds is None or each.holds]
        more = self.required - self.streak
        return [*dict.fromkeys(found), f"{more} more success{'es in a row' if more > 1 else ''}"]

    @property
    def why(self) -> str:
        return _EXPLANATIONS[self.state](self)

    def row(self) -> dict[str, Any]:
        """One row of `gate_trace.jsonl`."""
        return {
            "iteration": self.iteration,
            "stage": self.stage,
            "phase": self.phase,
            "state": self.state,
            "verdict": self.verdict,
            "streak": self.streak,
            "required": self.required,
            "failures": self.failures,
            "spent": self.spent,
            "tolerance": self.tolerance,
            "broken": self.broken,
            "frozen_until": self.frozen_until if self.state == FROZEN or self.frozen_until > self.iteration else None,
            "values": {key: json_safe_value(value) for key, value in self.values.items()},
            "criteria": [each.row() for each in self.checks()],
            "broke": self.broke,
            "missing": self.missing,
            "why": self.why,
        }

    def line(self) -> str:
        import json  # a script that only asks need not pay for it

        return json.dumps(self.row(), ensure_ascii=False, allow_nan=False)

    def scalars(self, prefix: str = "gate") -> Iterator[tuple[str, float]]:
        """For TensorBoard and the like."""
        yield f"{prefix}/phase", self.phase
        yield f"{prefix}/streak", self.streak
        yield f"{prefix}/failures", self.failures
        yield f"{prefix}/state", GATE_STATES.index(self.state)

    def add_to(self, writer: Any, prefix: str = "gate") -> None:
        """`writer`: whatever has `add_scalar(tag, value, step)`."""
        for tag, value in self.scalars(prefix):
            writer.add_scalar(tag, value, self.iteration)


def json_safe_value(value: Any) -> Any:
    """As JSON has it; what is no finite number is a text, so that a replay sees what was seen."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    if value is None or isinstance(value, str | bool | int):
        return value
    try:
        return json_safe_value(float(value)) if not isinstance(value, float) else float(value)
    except NO_NUMBER:
        return str(value)


def format_six_digits(number: float) -> str:
    return f"{number:.6g}"


_NO_SUCCESS = "no success criterion applies in this stage"


def _explain_advance(found: Decision) -> str:
    streak = f"{found.required} successes in a row" if found.required > 1 else "a success"
    return f"{streak}{_explain_precedence(found)}: on to phase {found.phase}"


def _explain_fall_back(found: Decision) -> str:
    return f"{_explain_failure(found)}: back to phase {found.phase}"


def _explain_freeze(found: Decision) -> str:
    return f"nothing is decided before iteration {found.frozen_until + 1}"


def _explain_failure_hold(found: Decision) -> str:
    return _explain_failure(found) + (", and there is no phase to fall back to" if found.broken else "")


def _explain_failure(found: Decision) -> str:
    both = " although every success criterion holds, because failure wins" if found.verdict == BOTH else ""
    told = {each.check.key for each in found.failed_by()}
    lacking = [each for each in found.unmet() if each.check.key not in told]
    unmet = f"; no success either: {_join_check_results(lacking)}" if lacking else ""
    return f"failure{both}: {_failure_reasons(found)}{unmet}; {_explain_tolerance(found)}"


def _explain_tolerance(found: Decision) -> str:
    """`failure 3 in a row, 2 are borne here`, or that of the phase where it is this one that broke."""
    in_a_row, in_all = found.counts
    phase = found.phase + (found.state == FALL_BACK)
    if found.broken and in_a_row <= found.tolerance:
        return f"failure {in_all} of phase {phase}, {_count_with_verb(found.settings.allowed(phase) or 0)} allowed"
    return f"failure {in_a_row} in a row, {_count_with_verb(found.tolerance)} borne here"


def _count_with_verb(count: int) -> str:
    return f"{count} are" if count > 1 else "1 is" if count else "none is"


def _explain_hold(found: Decision) -> str:
    if found.verdict in (SUCCESS, BOTH):
        if found.last_phase:
            return f"success{_explain_precedence(found)}, and this is the last phase"
        return f"success {found.streak} of {found.required} in a row{_explain_precedence(found)}"
    if found.verdict == UNKNOWN:
        return _join_check_results(found.unjudged())
    unmet = _join_check_results(found.unmet()) if found.can_succeed else _NO_SUCCESS
    return f"neither success nor failure: {unmet}"


def _explain_precedence(found: Decision) -> str:
    return f" although {_failure_reasons(found)}, because success wins" if found.verdict == BOTH else ""


def _failure_reasons(found: Decision) -> str:
    return _join_check_results(found.failed_by())


def _join_check_results(seen: Sequence[CheckResult]) -> str:
    """Each once: success and failure may look at the same key."""
    return "; ".join(dict.fromkeys(each.said() for each in seen))


_EXPLANATIONS = {
    ADVANCE: _explain_advance,
    HOLD: _explain_hold,
    FAILURE_HOLD: _explain_failure_hold,
    FALL_BACK: _explain_fall_back,
    FROZEN: _explain_freeze,
}
