"""What a gate would have decided on a finished run, and what would have opened it: no version need be burned for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from muster.stages.criteria import LAST, Criterion, CriterionLimits
from muster.stages.gate import Gate
from muster.stages.gate_decision import ADVANCE, BOTH, FALL_BACK, FROZEN, UNKNOWN, Decision
from muster.stages.gate_settings import GateSettings
from muster.stages.traces import EvaluationRow, drop_superseded_rows


class SingleChange(NamedTuple):
    """One setting changed, and what would have come of it."""

    what: str  # "if success won over failure"
    opens: int | None  # the iteration; None: it stays shut

    def __str__(self) -> str:
        return f"{self.what}, it would {f'open at {self.opens}' if self.opens is not None else 'stay shut'}"


def replay_gate(settings: GateSettings, rows: Iterable[EvaluationRow]) -> list[Decision]:
    gate = Gate(settings)
    return [gate.observe(row.iteration, row.values, row.stage) for row in drop_superseded_rows(rows)]


def first_opening(decisions: Iterable[Decision]) -> int | None:
    return next((each.iteration for each in decisions if each.state == ADVANCE), None)


def drop_criteria_of_keys(settings: GateSettings, keys: Sequence[str]) -> GateSettings:
    """Without the criteria on these keys."""
    return settings._replace(
        success=tuple(each for each in settings.success if each.key not in keys),
        failure=tuple(each for each in settings.failure if each.key not in keys),
    )


def find_absent_keys(settings: GateSettings, rows: Sequence[EvaluationRow]) -> list[str]:
    """Keys of criteria that no row has."""
    there = {key for row in rows for key in row.values}
    return [key for key in settings.watched() if key not in there]


def windows_of_one(settings: GateSettings) -> GateSettings:
    return settings._replace(
        success=tuple(map(_criterion_with_last_value, settings.success)),
        failure=tuple(map(_criterion_with_last_value, settings.failure)),
    )


def _criterion_with_last_value(criterion: Criterion) -> Criterion:
    return Criterion(
        criterion.key,
        _limits_with_last_value(criterion.limits),
        {s: _limits_with_last_value(each) for s, each in criterion.by_stage.items()},
    )


def _limits_with_last_value(limits: CriterionLimits) -> CriterionLimits:
    return limits._replace(window=LAST)


def try_single_changes(settings: GateSettings, rows: Sequence[EvaluationRow]) -> Iterator[SingleChange]:
    """Single changes, each alone: what it was that kept the gate shut."""
    for what, changed in _single_changes(settings):
        yield SingleChange(what, first_opening(replay_gate(changed, rows)))


def _single_changes(settings: GateSettings) -> Iterator[tuple[str, GateSettings]]:
    if settings.success and settings.failure:
        winner = "success" if settings.wins == "failure" else "failure"
        yield f"if {winner} won where both hold", settings._replace(wins=winner)
        yield "without the failure criteria", settings._replace(failure=())
    if settings.required > 1:
        yield f"with 1 success instead of {settings.required} in a row", settings._replace(required=1)
    if windows_of_one(settings) != settings and _has_longer_window(settings):
        yield "with windows of 1", windows_of_one(settings)
    if len(settings.success) > 1:
        for at, each in enumerate(settings.success):
            left = settings.success[:at] + settings.success[at + 1 :]
            yield f"without the success criterion on {each.key}", settings._replace(success=left)


def _has_longer_window(settings: GateSettings) -> bool:
    limits = [own for each in (*settings.success, *settings.failure) for own in (each.limits, *each.by_stage.values())]
    return any(each.window and each.window != LAST for each in limits)


def summarize_replay(decisions: Sequence[Decision]) -> str:
    """The whole run in a sentence or two."""
    if not decisions:
        return "there is nothing to decide on: no row"
    opened = first_opening(decisions)
    if opened is not None:
        changes = [each for each in decisions if each.state in (ADVANCE, FALL_BACK)]
        told = ", ".join(f"{_describe_phase_change(each)} at {each.iteration}" for each in changes)
        return f"the gate opens at {opened}: {told}; it ends in phase {decisions[-1].phase}"
    return f"the gate stays shut: {_explain_closed_gate(decisions)}"


def _describe_phase_change(each: Decision) -> str:
    return f"{'on' if each.state == ADVANCE else 'back'} to phase {each.phase}"


def _explain_closed_gate(decisions: Sequence[Decision]) -> str:
    judged = [each for each in decisions if each.state != FROZEN]
    longest = max((each.streak for each in judged), default=0)
    required = decisions[0].required
    if longest == 0:
        both = [str(each.iteration) for each in judged if each.verdict == BOTH]
        because = f", and at {', '.join(both)} failure won over success" if both else ""
        unknown = sum(each.verdict == UNKNOWN for each in judged)
        left = f"; {unknown} of them could not be judged" if unknown else ""
        return f"no evaluation of {len(decisions)} counts as a success{because}{left}"
    ended = [f"{each.iteration}: {each.broke}" for each in judged if each.broke]
    tail = judged[-1]
    running = f"; at its end it has {tail.streak} of {required}" if tail.streak else ""
    broken = (
        f"; {'streaks were' if len(ended) > 1 else 'a streak was'} broken at {'; at '.join(ended)}" if ended else ""
    )
    return f"{required} successes in a row are required and the most were {longest}{broken}{running}"
