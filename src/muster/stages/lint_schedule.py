"""Schedules and curricula against the length of the run."""

from __future__ import annotations

from collections.abc import Iterator

from muster.stages.alarms import early_notices
from muster.stages.curriculum import Curriculum
from muster.stages.findings import ERROR, NOTE, WARNING, Finding
from muster.stages.schedule import Schedule


def lint_curriculum(curriculum: Curriculum, iterations: int) -> Iterator[Finding]:
    total = curriculum.total
    if total == iterations:
        yield Finding(NOTE, "adds_up", f"the curriculum adds up: {total} iterations, as many as the run")
        return
    swapped = sum(each.value for each in curriculum.lessons)
    hint = "it is value:iterations; read the other way round it would add up" if swapped == iterations else ""
    if total < iterations:
        told = f"the run goes on for {iterations - total} more with {curriculum.lessons[-1].value}"
    else:
        told = _never_taught(curriculum, iterations)
    what = f"the curriculum has {total} iterations, the run {iterations}: {told}"
    yield Finding(ERROR, "curriculum_length", what, hint)


def _never_taught(curriculum: Curriculum, iterations: int) -> str:
    told, begun = [], 0
    for at, (value, length) in enumerate(curriculum.lessons, 1):
        if begun >= iterations:
            told.append(f"part {at} ({value}:{length}) never comes")
        elif begun + length > iterations:
            told.append(f"part {at} ({value}:{length}) has {iterations - begun} of its {length} iterations")
        begun += length
    return "; ".join(told)


def lint_schedule(schedule: Schedule, iterations: int | None) -> Iterator[Finding]:
    yield from _shared_files(schedule)
    if iterations is None:
        return
    if schedule.total > iterations:
        yield Finding(ERROR, "schedule_too_long", _too_long(schedule, iterations), "shorten it, or run longer")
    elif schedule.total < iterations:
        last = schedule.stages[-1]
        told = f"the last stage ({last.type}) goes on for {iterations - schedule.total} more"
        what = f"the schedule has {schedule.total} iterations, the run {iterations}: {told}"
        yield Finding(WARNING, "schedule_too_short", what, "lengthen it; if a step is no iteration, say `iterations:`")
    for notice in early_notices(schedule, iterations):
        yield Finding(WARNING, "runs_out", notice)


def _too_long(schedule: Schedule, iterations: int) -> str:
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


def _shared_files(schedule: Schedule) -> Iterator[Finding]:
    """Two types that draw from one file differ in name only."""
    types: dict[str, list[str]] = {}
    for each in schedule.stages:
        if each.type not in types.setdefault(each.source, []):
            types[each.source].append(each.type)
    for source, named in types.items():
        if len(named) > 1:
            what = f"{' and '.join(named)} draw from the same file {source}: they differ in name only"
            yield Finding(WARNING, "shared_file", what)
