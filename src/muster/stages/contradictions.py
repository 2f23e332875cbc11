"""Contradictions of gates, schedules and curricula that can be found before a run is paid for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from muster.stages.alarms import describe_early_exhaustion
from muster.stages.criteria import BOUND_WORDS, LAST, Criterion, CriterionLimits, Window
from muster.stages.gate_decision import SUCCESS, BoundCheck, format_six_digits
from muster.stages.gate_settings import GateSettings
from muster.stages.replay import drop_criteria_of_keys, find_absent_keys, replay_gate
from muster.stages.schedule import Curriculum, Schedule
from muster.stages.traces import EvaluationRow, find_mislabelled_rows

ERROR, WARNING, NOTE = "error", "warning", "note"


class GateFinding(NamedTuple):
    level: str  # error: it contradicts itself | warning: hardly what was meant | note
    code: str
    message: str
    hint: str = ""


def check_curriculum_length(curriculum: Curriculum, iterations: int) -> Iterator[GateFinding]:
    total = curriculum.total
    if total == iterations:
        yield GateFinding(NOTE, "adds_up", f"the curriculum adds up: {total} iterations, as many as the run")
        return
    swapped = sum(each.value for each in curriculum.lessons)
    hint = "it is value:iterations; read the other way round it would add up" if swapped == iterations else ""
    if total < iterations:
        told = f"the run goes on for {iterations - total} more with {curriculum.lessons[-1].value}"
    else:
        told = _describe_missing_lessons(curriculum, iterations)
    what = f"the curriculum has {total} iterations, the run {iterations}: {told}"
    yield GateFinding(ERROR, "curriculum_length", what, hint)


def _describe_missing_lessons(curriculum: Curriculum, iterations: int) -> str:
    told, begun = [], 0
    for at, (value, length) in enumerate(curriculum.lessons, 1):
        if begun >= iterations:
            told.append(f"part {at} ({value}:{length}) never comes")
        elif begun + length > iterations:
            told.append(f"part {at} ({value}:{length}) has {iterations - begun} of its {length} iterations")
        begun += length
    return "; ".join(told)


def check_schedule_length(schedule: Schedule, iterations: int | None) -> Iterator[GateFinding]:
    yield from _check_shared_files(schedule)
    if iterations is None:
        return
    if schedule.total > iterations:
        yield GateFinding(
            ERROR, "schedule_too_long", _describe_long_schedule(schedule, iterations), "shorten it, or run longer"
        )
    elif schedule.total < iterations:
        last = schedule.stages[-1]
        told = f"the last stage ({last.type}) goes on for {iterations - schedule.total} more"
        what = f"the schedule has {schedule.total} iterations, the run {iterations}: {told}"
        yield GateFinding(
            WARNING, "schedule_too_short", what, "lengthen it; if a step is no iteration, say `iterations:`"
        )
    for notice in describe_early_exhaustion(schedule, iterations):
        yield GateFinding(WARNING, "runs_out", notice)


def _describe_long_schedule(schedule: Schedule, iterations: int) -> str:
    never = list(schedule.beyond(iterations))
    what = f"the schedule has {schedule.total} iterations, the run {iterations}"
    told = []
    if never:
        which = ", ".join(f"{each.place + 1} ({each})" for each in never)
        told.append(f"stage{'s' if len(never) > 1 else ''} {which} never run{'s' if len(never) == 1 else ''}")
    cut = schedule.stage_at(iterations)
    if cut.last > iterations:
        told.append(f"stage {cut.place + 1} ({cut}) has {iterations - cut.first + 1} of its {cut.length} iterations")
    return f"{what}: {'; '.join(told)}"


def _check_shared_files(schedule: Schedule) -> Iterator[GateFinding]:
    """Two types that draw from one file differ in name only."""
    types: dict[str, list[str]] = {}
    for each in schedule.stages:
        if each.type not in types.setdefault(each.source, []):
            types[each.source].append(each.type)
    for source, named in types.items():
        if len(named) > 1:
            what = f"{' and '.join(named)} draw from the same file {source}: they differ in name only"
            yield GateFinding(WARNING, "shared_file", what)


_LOWER, _UPPER = ("min", "above"), ("max", "below")
OTHER_STAGES = ""  # the stage of those that no override names


class TrainingFacts(NamedTuple):
    """What is known of a run, declared or recorded. None: it is not known."""

    gate: GateSettings | None = None
    schedule: Schedule | None = None
    curriculum: Curriculum | None = None
    iterations: int | None = None
    interval: int | None = None  # iterations from one evaluation to the next
    runs: Sequence[Sequence[EvaluationRow]] = ()  # evaluations of past runs


def find_contradictions(facts: TrainingFacts) -> list[GateFinding]:
    return [*_iterate_contradictions(facts)]


def _iterate_contradictions(facts: TrainingFacts) -> Iterator[GateFinding]:
    if facts.curriculum and facts.iterations:
        yield from check_curriculum_length(facts.curriculum, facts.iterations)
    if facts.schedule:
        yield from check_schedule_length(facts.schedule, facts.iterations)
        for rows in facts.runs:
            yield from (
                GateFinding(WARNING, "label", str(each)) for each in find_mislabelled_rows(rows, facts.schedule)
            )
    if facts.gate:
        yield from _check_regions(facts.gate, _stages_to_check(facts))
        yield from _check_stage_names(facts.gate, facts.schedule)
        yield from _check_window_lengths(facts.gate, facts)
        if facts.runs:
            yield from _check_past_evaluations(facts.gate, facts.runs)


def _stages_to_check(facts: TrainingFacts) -> list[str]:
    """The schedule's; without one those that the gate names, and one that stands for all others."""
    if facts.schedule:
        return list(facts.schedule.types)
    return [OTHER_STAGES, *(facts.gate.stages() if facts.gate else ())]


def _check_regions(gate: GateSettings, stages: Sequence[str]) -> Iterator[GateFinding]:
    """Told once for each pair of bounds, with the stages in which it is so."""
    found: dict[GateFinding, list[str]] = {}
    for stage in stages:
        for finding in (*_check_criterion_bounds(gate, stage), *_check_overlaps(gate, stage)):
            found.setdefault(finding, []).append(stage)
    for finding, where in found.items():
        some = ", ".join(each or "other stages" for each in where) if len(where) < len(stages) else ""
        yield finding._replace(message=f"{finding.message}{f' (in {some})' if some else ''}")


def _check_overlaps(gate: GateSettings, stage: str) -> Iterator[GateFinding]:
    for good in gate.success:
        for bad in gate.failure:
            if good.key == bad.key:
                yield from _check_criterion_pair(gate, good.key, good.at(stage), bad.at(stage))


def _check_criterion_pair(
    gate: GateSettings, key: str, good: CriterionLimits, bad: CriterionLimits
) -> Iterator[GateFinding]:
    for sides in ((_LOWER, _UPPER), (_UPPER, _LOWER)):
        success, failure = good.bound(*sides[0]), bad.bound(*sides[1])
        if success and failure:
            told = f"{key}: success is {_describe_bound(*success)}, failure {_describe_bound(*failure)}"
            ends = (success[1], failure[1]) if sides[0] == _LOWER else (failure[1], success[1])
            yield from _describe_region_between(gate, told, *ends, good, bad)


def _describe_region_between(
    gate: GateSettings, told: str, low: float, high: float, good: CriterionLimits, bad: CriterionLimits
) -> Iterator[GateFinding]:
    """Where `low` is below `high`, what lies between them is both; where it is above, neither."""
    windows = f"; success looks at {good.window}, failure at {bad.window}" if good.window != bad.window else ""
    if low < high:
        both = (
            f"{told}: from {format_six_digits(low)} to {format_six_digits(high)} it is both, and {gate.wins} "
            f"wins{windows}"
        )
        hint = (
            f"success must not begin before failure ends: move one to the other, e.g. both to {format_six_digits(high)}"
        )
        yield GateFinding(ERROR, "overlap", both, hint)
    elif low > high:
        neither = (
            f"{told}: from {format_six_digits(high)} to {format_six_digits(low)} it is neither, and ends "
            f"a streak{windows}"
        )
        yield GateFinding(NOTE, "dead_zone", neither)


def _describe_bound(bound: str, threshold: float) -> str:
    return f"{BOUND_WORDS[bound]} {format_six_digits(threshold)}"


def _check_criterion_bounds(gate: GateSettings, stage: str) -> Iterator[GateFinding]:
    for each in (*gate.success, *gate.failure):
        low, high = each.at(stage).bound(*_LOWER), each.at(stage).bound(*_UPPER)
        if low is None or high is None:
            continue
        apart = low[1] > high[1] or (low[1] == high[1] and (low[0], high[0]) != ("min", "max"))  # no number is in both
        if each in gate.success and apart:
            told = f"{each.key}: success must be {_describe_bound(*low)} and {_describe_bound(*high)}: that is never so"
            yield GateFinding(ERROR, "impossible", told, "exchange them, or leave one out")
        if each in gate.failure and (low[1] < high[1] or (low[1] == high[1] and not apart)):
            told = f"{each.key}: failure is {_describe_bound(*low)} or {_describe_bound(*high)}: that is always so"
            yield GateFinding(ERROR, "always", told, "exchange them, or leave one out")


def _check_stage_names(gate: GateSettings, schedule: Schedule | None) -> Iterator[GateFinding]:
    if schedule is None:
        return
    for stage in gate.stages():
        if stage not in schedule.types:
            told = f"a setting for the stage '{stage}', which the schedule does not have"
            yield GateFinding(ERROR, "unknown_stage", told, f"its stages are {', '.join(schedule.types)}")
    for stage in schedule.types:
        for side, criteria in (("success", gate.success), ("failure", gate.failure)):
            if criteria and not any(each.at(stage).bounds() for each in criteria):
                told = f"the stage '{stage}' has no {side} criterion: "
                follows = "it can never advance there" if side == SUCCESS else "nothing is a failure there"
                yield GateFinding(WARNING, "no_criteria", told + follows)


def _check_window_lengths(gate: GateSettings, facts: TrainingFacts) -> Iterator[GateFinding]:
    """Windows, streaks and freezes against the evaluations that there are."""
    every = facts.interval or 1
    if facts.schedule:
        yield from _check_long_windows(gate, facts.schedule, facts.iterations, every)
    if facts.iterations is None:
        return
    longest = min(filter(None, (_longest_success_window(gate, stage) for stage in _stages_to_check(facts))), default=0)
    needed, many = longest + gate.required - 1, facts.iterations // every
    if longest and needed > many:
        streak = f", {gate.required} successes in a row" if gate.required > 1 else ""
        told = f"it can't open: {needed} evaluations are needed (a window of {longest} to fill{streak})"
        yield GateFinding(ERROR, "too_short", f"{told}, and the run has {many}", "shorten the window or the streak")
    for change, freeze in (("an advance", gate.freeze.advance), ("a fall back", gate.freeze.fall_back)):
        if 0 < freeze < every:
            told = f"a freeze of {freeze} after {change} never matters: the next evaluation comes {every} later"
            yield GateFinding(NOTE, "freeze", told)


def _longest_success_window(gate: GateSettings, stage: str) -> int:
    """The window that a success in this stage waits for. 0: there is none."""
    waits = [*gate.success, *(gate.failure if gate.wins != SUCCESS else ())]
    sizes = [_window_in_stage(each, stage).size for each in waits if each.at(stage).bounds()]
    return max(sizes) if any(each.at(stage).bounds() for each in gate.success) else 0


def _check_long_windows(
    gate: GateSettings, schedule: Schedule, iterations: int | None, every: int
) -> Iterator[GateFinding]:
    lengths = _longest_stretches(schedule, iterations or schedule.total)
    if len(lengths) == 1:
        return
    for criterion in (*gate.success, *gate.failure):
        for stage, length in lengths.items():
            size, most = _window_in_stage(criterion, stage).size, -(-length // every)
            if size > most and criterion.at(stage).bounds():
                told = (
                    f"{criterion.key}: a window of {size} evaluations is longer than any stretch of {stage} ({length} "
                    f"iterations, {most} evaluation{'s' if most != 1 else ''} at most): it reads other stages too"
                )
                yield GateFinding(WARNING, "long_window", told)


def _longest_stretches(schedule: Schedule, within: int) -> dict[str, int]:
    """The most iterations in a row that each type has in a run of so many: stages of one type may follow each other."""
    longest: dict[str, int] = {}
    for name, stages in groupby(schedule.stages, attrgetter("type")):
        first, *rest = stages
        last = (rest or [first])[-1]
        end = within if last is schedule.stages[-1] else min(last.last, within)
        if first.first <= within:
            longest[name] = max(longest.get(name, 0), end - first.first + 1)
    return longest


def _window_in_stage(criterion: Criterion, stage: str) -> Window:
    return criterion.at(stage).window or LAST


def _check_past_evaluations(gate: GateSettings, runs: Sequence[Sequence[EvaluationRow]]) -> Iterator[GateFinding]:
    """What past evaluations say: thresholds that nothing ever met, keys that nobody wrote."""
    lacking = find_absent_keys(gate, [row for rows in runs for row in rows])
    for key in lacking:
        yield GateFinding(WARNING, "no_such_key", f"{key}: no evaluation has it; its criterion could not be judged")
    judged = drop_criteria_of_keys(gate, lacking)._replace(required=10**9, allowance=())
    seen: dict[BoundCheck, list[tuple[float, bool]]] = {}
    for decision in (each for rows in runs for each in replay_gate(judged, rows)):
        for each in decision.checks():
            known = seen.setdefault(each.check, [])
            known += [(each.value, each.holds)] if each.holds is not None else []
    for check, values in seen.items():
        yield from _check_thresholds_met(check, values)


def _check_thresholds_met(check: BoundCheck, seen: Sequence[tuple[float, bool]]) -> Iterator[GateFinding]:
    many = f"{len(seen)} evaluation{'s' if len(seen) != 1 else ''}"
    window = f" ({check.window})" if check.window != LAST else ""
    if not seen:
        yield GateFinding(WARNING, "never_judged", f"{check.key}{window}: it could not be judged in any evaluation")
        return
    held = sum(holds for _, holds in seen)
    values = [value for value, _ in seen]
    spread = f"they lie from {format_six_digits(min(values))} to {format_six_digits(max(values))}"
    told = f"{check.key}{window} {check.bound} {format_six_digits(check.threshold)}"
    if check.side == SUCCESS and held == 0:
        yield GateFinding(WARNING, "never_met", f"{told}: met in none of {many}; {spread}")
    elif check.side != SUCCESS and held == len(seen):
        yield GateFinding(WARNING, "always_failure", f"{told}: a failure in all of {many}; {spread}")
