"""Contradictions of gates and schedules that can be known before a run is paid for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from muster.stages.criteria import Criterion, Limits
from muster.stages.curriculum import Curriculum
from muster.stages.decision import SUCCESS, Check, short
from muster.stages.findings import ERROR, NOTE, WARNING, Finding
from muster.stages.lint_schedule import lint_curriculum, lint_schedule
from muster.stages.replay import absent, replay, without
from muster.stages.rows import Row, mislabelled
from muster.stages.schedule import Schedule
from muster.stages.settings import GateSettings
from muster.stages.windows import LAST, Window

EVERYWHERE = ""  # the stage of those that no override names


class Facts(NamedTuple):
    """What is known of a run, declared or recorded. None: it is not known."""

    gate: GateSettings | None = None
    schedule: Schedule | None = None
    curriculum: Curriculum | None = None
    iterations: int | None = None
    interval: int | None = None  # iterations from one evaluation to the next
    runs: Sequence[Sequence[Row]] = ()  # evaluations of past runs


def lint(facts: Facts) -> list[Finding]:
    return [*_lint(facts)]


def _lint(facts: Facts) -> Iterator[Finding]:
    if facts.curriculum and facts.iterations:
        yield from lint_curriculum(facts.curriculum, facts.iterations)
    if facts.schedule:
        yield from lint_schedule(facts.schedule, facts.iterations)
        for rows in facts.runs:
            yield from (Finding(WARNING, "label", str(each)) for each in mislabelled(rows, facts.schedule))
    if facts.gate:
        yield from _regions(facts.gate, _stages(facts))
        yield from _names(facts.gate, facts.schedule)
        yield from _lengths(facts.gate, facts)
        if facts.runs:
            yield from _past(facts.gate, facts.runs)


def _stages(facts: Facts) -> list[str]:
    """The schedule's; without one those that the gate names, and one that stands for all others."""
    if facts.schedule:
        return list(facts.schedule.types)
    return [EVERYWHERE, *(facts.gate.stages() if facts.gate else ())]


def _regions(gate: GateSettings, stages: Sequence[str]) -> Iterator[Finding]:
    """Told once for each pair of bounds, with the stages in which it is so."""
    found: dict[Finding, list[str]] = {}
    for stage in stages:
        for finding in (*_self_contradictions(gate, stage), *_overlaps(gate, stage)):
            found.setdefault(finding, []).append(stage)
    for finding, where in found.items():
        some = ", ".join(each or "other stages" for each in where) if len(where) < len(stages) else ""
        yield finding._replace(message=f"{finding.message}{f' (in {some})' if some else ''}")


def _overlaps(gate: GateSettings, stage: str) -> Iterator[Finding]:
    for good in gate.success:
        for bad in gate.failure:
            if good.key == bad.key:
                yield from _pair(gate, good.key, good.at(stage), bad.at(stage))


def _pair(gate: GateSettings, key: str, good: Limits, bad: Limits) -> Iterator[Finding]:
    least, most = _least(good), _most(bad)
    if least is not None and most is not None:
        yield from _between(gate, key, least, most, good, bad, f"at least {short(least)}", f"below {short(most)}")
    greatest, over = _most(good), _least(bad)
    if greatest is not None and over is not None:
        yield from _between(gate, key, over, greatest, good, bad, f"at most {short(greatest)}", f"above {short(over)}")


def _between(
    gate: GateSettings, key: str, low: float, high: float, good: Limits, bad: Limits, success: str, failure: str
) -> Iterator[Finding]:
    """Where `low` is below `high`, what lies between them is both; where it is above, neither."""
    windows = f"; success looks at {good.window}, failure at {bad.window}" if good.window != bad.window else ""
    told = f"{key}: success is {success}, failure {failure}"
    if low < high:
        hint = f"success must not begin before failure ends: move one to the other, e.g. both to {short(high)}"
        yield Finding(
            ERROR,
            "overlap",
            f"{told}: from {short(low)} to {short(high)} it is both, and {gate.wins} wins{windows}",
            hint,
        )
    elif low > high:
        yield Finding(
            NOTE, "dead_zone", f"{told}: from {short(high)} to {short(low)} it is neither, and ends a streak{windows}"
        )


def _least(limits: Limits) -> float | None:
    return limits.min if limits.min is not None else limits.above


def _most(limits: Limits) -> float | None:
    return limits.max if limits.max is not None else limits.below


def _self_contradictions(gate: GateSettings, stage: str) -> Iterator[Finding]:
    for each in gate.success:
        low, high = _least(each.at(stage)), _most(each.at(stage))
        if low is not None and high is not None and low > high:
            told = f"{each.key}: success must be at least {short(low)} and at most {short(high)}: that is never so"
            yield Finding(ERROR, "impossible", told, "exchange them, or leave one out")


def _names(gate: GateSettings, schedule: Schedule | None) -> Iterator[Finding]:
    if schedule is None:
        return
    for stage in gate.stages():
        if stage not in schedule.types:
            told = f"a setting for the stage '{stage}', which the schedule does not have"
            yield Finding(ERROR, "unknown_stage", told, f"its stages are {', '.join(schedule.types)}")
    for stage in schedule.types:
        for side, criteria in (("success", gate.success), ("failure", gate.failure)):
            if criteria and not any(each.at(stage).bounds() for each in criteria):
                told = f"the stage '{stage}' has no {side} criterion: "
                follows = "it can never advance there" if side == SUCCESS else "nothing is a failure there"
                yield Finding(WARNING, "no_criteria", told + follows)


def _lengths(gate: GateSettings, facts: Facts) -> Iterator[Finding]:
    """Windows, streaks and freezes against the evaluations that there are."""
    every = facts.interval or 1
    for criterion in (*gate.success, *gate.failure):
        yield from _long_windows(criterion, facts, every)
    if facts.iterations is None or not gate.success:
        return
    many = facts.iterations // every
    longest = max(_window(each, stage).size for each in gate.success for stage in ("", *gate.stages()))
    needed = longest + gate.required - 1
    if needed > many:
        told = f"it can't open: {needed} evaluations are needed (a window of {longest}, then {gate.required} successes "
        yield Finding(
            ERROR, "too_short", f"{told}in a row), and the run has {many}", "shorten the window or the streak"
        )
    for name, freeze in gate.freeze._asdict().items():
        if 0 < freeze < every:
            told = f"a freeze of {freeze} after each {name} never matters: the next evaluation comes {every} later"
            yield Finding(NOTE, "freeze", told)


def _long_windows(criterion: Criterion, facts: Facts, every: int) -> Iterator[Finding]:
    for stage in facts.schedule.types if facts.schedule else ():
        window = _window(criterion, stage)
        lengths = [each.length for each in facts.schedule.stages if each.type == stage] if facts.schedule else []
        most = -(-max(lengths) // every)
        if window.size > most:
            told = (
                f"{criterion.key}: a window of {window.size} evaluations is longer than any stage of {stage} "
                f"({max(lengths)} iterations, {most} evaluation{'s' if most != 1 else ''}): it reads other stages too"
            )
            yield Finding(WARNING, "long_window", told)


def _window(criterion: Criterion, stage: str) -> Window:
    return criterion.at(stage).window or LAST


def _past(gate: GateSettings, runs: Sequence[Sequence[Row]]) -> Iterator[Finding]:
    """What past evaluations say: thresholds that nothing ever met, keys that nobody wrote."""
    lacking = absent(gate, [row for rows in runs for row in rows])
    for key in lacking:
        yield Finding(WARNING, "no_such_key", f"{key}: no evaluation has it; its criterion could not be judged")
    judged = without(gate, lacking)._replace(required=10**9, allowance=())
    seen: dict[Check, list[tuple[float, bool]]] = {}
    for decision in (each for rows in runs for each in replay(judged, rows)):
        for each in decision.checks():
            if each.holds is not None:
                seen.setdefault(each.check, []).append((each.value, each.holds))
    for check, values in seen.items():
        yield from _extremes(check, values)


def _extremes(check: Check, seen: Sequence[tuple[float, bool]]) -> Iterator[Finding]:
    many = f"{len(seen)} evaluation{'s' if len(seen) != 1 else ''}"
    window = f" ({check.window})" if check.window != LAST else ""
    held = sum(holds for _, holds in seen)
    values = [value for value, _ in seen]
    spread = f"they lie from {short(min(values))} to {short(max(values))}"
    told = f"{check.key}{window} {check.bound} {short(check.threshold)}"
    if check.side == SUCCESS and held == 0:
        yield Finding(WARNING, "never_met", f"{told}: met in none of {many}; {spread}")
    elif check.side != SUCCESS and held == len(seen):
        yield Finding(WARNING, "always_failure", f"{told}: a failure in all of {many}; {spread}")
