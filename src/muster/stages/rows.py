"""What a run observed, iteration by iteration: the stream that a gate reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from muster.stages.schedule import Schedule, Stage
from muster.stages.settings import GateSettings


class Row(NamedTuple):
    iteration: int
    values: Mapping[str, Any]
    stage: str = ""  # its label, as the run wrote it


def judged(rows: Iterable[Row], settings: GateSettings) -> list[Row]:
    """Those that are evaluations: a row with none of the gate's keys is about something else, and breaks no streak."""
    keys = set(settings.watched())
    return [row for row in rows if not keys.isdisjoint(row.values)]


class Mislabelled(NamedTuple):
    row: Row
    stage: Stage  # what the schedule says

    def __str__(self) -> str:
        return (
            f"the row of iteration {self.row.iteration} is labelled {self.row.stage}; "
            f"by the schedule it is {self.stage.type} ({self.stage.first}-{self.stage.last})"
        )


def settled(rows: Iterable[Row]) -> list[Row]:
    """A run that was resumed says again what it said before: from where it goes back, the later rows count."""
    found: list[Row] = []
    for row in rows:
        while found and found[-1].iteration >= row.iteration:
            found.pop()
        found.append(row)
    return found


def mislabelled(rows: Sequence[Row], schedule: Schedule) -> Iterator[Mislabelled]:
    """Labels that contradict the schedule. What lies beyond its end is nobody's."""
    for row in rows:
        if row.stage and 1 <= row.iteration <= schedule.total:
            stage = schedule.stage_at(row.iteration)
            if stage.type != row.stage:
                yield Mislabelled(row, stage)
