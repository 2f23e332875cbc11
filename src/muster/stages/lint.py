"""Contradictions of gates and schedules that can be known before a run is paid for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from muster.stages.criteria import WORDS, Criterion, Limits
from muster.stages.curriculum import Curriculum
from muster.stages.decision import SUCCESS, Check, short
from muster.stages.findings import ERROR, NOTE, WARNING, Finding
from muster.stages.lint_schedule import lint_curriculum, lint_schedule
from muster.stages.replay import absent, replay, without
from muster.stages.rows import Row, mislabelled
from muster.stages.schedule import Schedule
from muster.stages.settings import GateSettings
from muster.stages.windows import LAST, Window

_LOWER, _UPPER = ("min", "above"), ("max", "below")
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
    for sides in ((_LOWER, _UPPER), (_UPPER, _LOWER)):
        success, failure = good.bound(*sides[0]), bad.bound(*sides[1])
        if success and failure:
            told = f"{key}: success is {_said(*success)}, failure {_said(*failure)}"
            ends = (success[1], failure[1]) if sides[0] == _LOWER else (failure[1], success[1])
            yield from _between(gate, told, *ends, good, bad)


def _between(gate: GateSettings, told: str, low: float, high: float, good: Limits, bad: Limits) -> Iterator[Finding]:
    """Where `low` is below `high`, what lies between them is both; where it is above, neither."""
    windows = f"; success looks at {good.window}, failure at {bad.window}" if good.window != bad.window else ""
    if low < high:
        both = f"{told}: from {short(low)} to {short(high)} it is both, and {gate.wins} wins{windows}"
        hint = f"success must not begin before failure ends: move one to the other, e.g. both to {short(high)}"
        yield Finding(ERROR, "overlap", both, hint)
    elif low > high:
        neither = f"{told}: from {short(high)} to {short(low)} it is neither, and ends a streak{windows}"
        yield Finding(NOTE, "dead_zone", neither)


def _said(bound: str, threshold: float) -> str:
    return f"{WORDS[bound]} {short(threshold)}"


def _self_contradictions(gate: GateSettings, stage: str) -> Iterator[Finding]:
    for each in (*gate.success, *gate.failure):
        low, high = each.at(stage).bound(*_LOWER), each.at(stage).bound(*_UPPER)
        if low is None or high is None:
            continue
        apart = low[1] > high[1] or (low[1] == high[1] and (low[0], high[0]) != ("min", "max"))  # no number is in both
        if each in gate.success and apart:
            told = f"{each.key}: success must be {_said(*low)} and {_said(*high)}: that is never so"
            yield Finding(ERROR, "impossible", told, "exchange them, or leave one out")
        if each in gate.failure and (low[1] < high[1] or (low[1] == high[1] and not apart)):
            told = f"{each.key}: failure is {_said(*low)} or {_said(*high)}: that is always so"
            yield Finding(ERROR, "always", told, "exchange them, or leave one out")


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
    if facts.schedule:
        yield from _long_windows(gate, facts.schedule, facts.iterations, every)
    if facts.iterations is None:
        return
    longest = min(filter(None, (_longest(gate, stage) for stage in _stages(facts))), default=0)
    needed, many = longest + gate.required - 1, facts.iterations // every
    if longest and needed > many:
        streak = f", {gate.required} successes in a row" if gate.required > 1 else ""
        told = f"it can't open: {needed} evaluations are needed (a window of {longest} to fill{streak})"
        yield Finding(ERROR, "too_short", f"{told}, and the run has {many}", "shorten the window or the streak")
    for change, freeze in (("an advance", gate.freeze.advance), ("a fall back", gate.freeze.fall_back)):
        if 0 < freeze < every:
            told = f"a freeze of {freeze} after {change} never matters: the next evaluation comes {every} later"
            yield Finding(NOTE, "freeze", told)


def _longest(gate: GateSettings, stage: str) -> int:
    """The window that a success in this stage waits for. 0: there is none."""
    waits = [*gate.success, *(gate.failure if gate.wins != SUCCESS else ())]
    sizes = [_window(each, stage).size for each in waits if each.at(stage).bounds()]
    return max(sizes) if any(each.at(stage).bounds() for each in gate.success) else 0


def _long_windows(gate: GateSettings, schedule: Schedule, iterations: int | None, every: int) -> Iterator[Finding]:
    lengths = _stretches(schedule, iterations or schedule.total)
    if len(lengths) == 1:
        return
    for criterion in (*gate.success, *gate.failure):
        for stage, length in lengths.items():
            size, most = _window(criterion, stage).size, -(-length // every)
            if size > most and criterion.at(stage).bounds():
                told = (
                    f"{criterion.key}: a window of {size} evaluations is longer than any stretch of {stage} ({length} "
                    f"iterations, {most} evaluation{'s' if most != 1 else ''} at most): it reads other stages too"
                )
                yield Finding(WARNING, "long_window", told)


def _stretches(schedule: Schedule, within: int) -> dict[str, int]:
    """The most iterations in a row that each type has in a run of so many: stages of one type may follow each other."""
    longest: dict[str, int] = {}
    for name, stages in groupby(schedule.stages, attrgetter("type")):
        first, *rest = stages
        last = (rest or [first])[-1]
        end = within if last is schedule.stages[-1] else min(last.last, within)
        if first.first <= within:
            longest[name] = max(longest.get(name, 0), end - first.first + 1)
    return longest


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
            known = seen.setdefault(each.check, [])
            known += [(each.value, each.holds)] if each.holds is not None else []
    for check, values in seen.items():
        yield from _extremes(check, values)


def _extremes(check: Check, seen: Sequence[tuple[float, bool]]) -> Iterator[Finding]:
    many = f"{len(seen)} evaluation{'s' if len(seen) != 1 else ''}"
    window = f" ({check.window})" if check.window != LAST else ""
    if not seen:
        yield Finding(WARNING, "never_judged", f"{check.key}{window}: it could not be judged in any evaluation")
        return
    held = sum(holds for _, holds in seen)
    values = [value for value, _ in seen]
    spread = f"they lie from {short(min(values))} to {short(max(values))}"
    told = f"{check.key}{window} {check.bound} {short(check.threshold)}"
    if check.side == SUCCESS and held == 0:
        yield Finding(WARNING, "never_met", f"{told}: met in none of {many}; {spread}")
    elif check.side != SUCCESS and held == len(seen):
        yield Finding(WARNING, "always_failure", f"{told}: a failure in all of {many}; {spread}")
