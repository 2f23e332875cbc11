"""What a gate would have decided on a finished run, and what would have opened it: no version need be burned for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from muster.stages.criteria import Criterion, Limits
from muster.stages.decision import ADVANCE, BOTH, FALL_BACK, FROZEN, UNKNOWN, Decision
from muster.stages.gate import Gate
from muster.stages.rows import Row, settled
from muster.stages.settings import GateSettings
from muster.stages.windows import LAST


class Otherwise(NamedTuple):
    """One setting changed, and what would have come of it."""

    what: str  # "if success won over failure"
    opens: int | None  # the iteration; None: it stays shut

    def __str__(self) -> str:
        return f"{self.what}, it would {f'open at {self.opens}' if self.opens is not None else 'stay shut'}"


def replay(settings: GateSettings, rows: Iterable[Row]) -> list[Decision]:
    gate = Gate(settings)
    return [gate.observe(row.iteration, row.values, row.stage) for row in settled(rows)]


def opened_at(decisions: Iterable[Decision]) -> int | None:
    return next((each.iteration for each in decisions if each.state == ADVANCE), None)


def without(settings: GateSettings, keys: Sequence[str]) -> GateSettings:
    """Without the criteria on these keys."""
    return settings._replace(
        success=tuple(each for each in settings.success if each.key not in keys),
        failure=tuple(each for each in settings.failure if each.key not in keys),
    )


def absent(settings: GateSettings, rows: Sequence[Row]) -> list[str]:
    """Keys of criteria that no row has."""
    there = {key for row in rows for key in row.values}
    return [key for key in settings.watched() if key not in there]


def windows_of_one(settings: GateSettings) -> GateSettings:
    return settings._replace(
        success=tuple(map(_of_one, settings.success)), failure=tuple(map(_of_one, settings.failure))
    )


def _of_one(criterion: Criterion) -> Criterion:
    return Criterion(criterion.key, _last(criterion.limits), {s: _last(each) for s, each in criterion.by_stage.items()})


def _last(limits: Limits) -> Limits:
    return limits._replace(window=LAST)


def otherwise(settings: GateSettings, rows: Sequence[Row]) -> Iterator[Otherwise]:
    """Single changes, each alone: what it was that kept the gate shut."""
    for what, changed in _changes(settings):
        yield Otherwise(what, opened_at(replay(changed, rows)))


def _changes(settings: GateSettings) -> Iterator[tuple[str, GateSettings]]:
    if settings.success and settings.failure:
        winner = "success" if settings.wins == "failure" else "failure"
        yield f"if {winner} won where both hold", settings._replace(wins=winner)
        yield "without the failure criteria", settings._replace(failure=())
    if settings.required > 1:
        yield f"with 1 success instead of {settings.required} in a row", settings._replace(required=1)
    if windows_of_one(settings) != settings and _windowed(settings):
        yield "with windows of 1", windows_of_one(settings)
    if len(settings.success) > 1:
        for at, each in enumerate(settings.success):
            left = settings.success[:at] + settings.success[at + 1 :]
            yield f"without the success criterion on {each.key}", settings._replace(success=left)


def _windowed(settings: GateSettings) -> bool:
    limits = [own for each in (*settings.success, *settings.failure) for own in (each.limits, *each.by_stage.values())]
    return any(each.window and each.window != LAST for each in limits)


def conclusion(decisions: Sequence[Decision]) -> str:
    """The whole run in a sentence or two."""
    if not decisions:
        return "there is nothing to decide on: no row"
    opened = opened_at(decisions)
    if opened is not None:
        changes = [each for each in decisions if each.state in (ADVANCE, FALL_BACK)]
        told = ", ".join(f"{_change(each)} at {each.iteration}" for each in changes)
        return f"the gate opens at {opened}: {told}; it ends in phase {decisions[-1].phase}"
    return f"the gate stays shut: {_shut(decisions)}"


def _change(each: Decision) -> str:
    return f"{'on' if each.state == ADVANCE else 'back'} to phase {each.phase}"


def _shut(decisions: Sequence[Decision]) -> str:
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
