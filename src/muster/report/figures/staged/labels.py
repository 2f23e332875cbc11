"""The stages behind a picture: where each begins and ends, and which labels in the data contradict that."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from muster.report.figures.staged.artifacts import Label, StagedArtifacts
from muster.stages.rows import Mislabelled, Row, mislabelled


class Band(NamedTuple):
    first: float
    last: float
    type: str


class Wrong(NamedTuple):
    file: str
    found: Mislabelled


def contradictions(artifacts: StagedArtifacts) -> list[Wrong]:
    """Labels that contradict the schedule, file by file."""
    schedule = artifacts.schedule.schedule if artifacts.schedule else None
    if schedule is None:
        return []
    found = []
    for file, labels in artifacts.labels.items():
        rows = [Row(at, {}, stage) for at, stage in labels if at >= 1]
        found += [Wrong(file, each) for each in mislabelled(rows, schedule)]
    return found


def bands_of(artifacts: StagedArtifacts, labels: Sequence[Label], last: int) -> list[Band]:
    """From the schedule; where there is none, from the labels of the data. Neighbours of one type are one band."""
    schedule = artifacts.schedule.schedule if artifacts.schedule else None
    if schedule is not None:
        stages = [Band(each.first, each.last, each.type) for each in schedule.stages if each.first <= last]
        ends = [*(each.last for each in stages[:-1]), max(last, stages[-1].first)] if stages else []
        return _joined([each._replace(last=end) for each, end in zip(stages, ends, strict=True)])
    spans = edges([at for at, _ in labels])
    return _joined([Band(low + 0.5, high - 0.5, stage) for (low, high), (_, stage) in zip(spans, labels, strict=True)])


def _joined(bands: Sequence[Band]) -> list[Band]:
    found: list[Band] = []
    for each in bands:
        if found and found[-1].type == each.type:
            found[-1] = found[-1]._replace(last=each.last)
        else:
            found.append(each)
    return [each for each in found if each.type]


def edges(at: Sequence[int]) -> list[tuple[float, float]]:
    """Of each iteration, from where to where its row holds: half way to its neighbours."""
    if not at:
        return []
    middles = [(one + other) / 2 for one, other in pairwise(at)]
    first = at[0] - (middles[0] - at[0] if middles else 0.5)
    last = at[-1] + (at[-1] - middles[-1] if middles else 0.5)
    return list(zip([first, *middles], [*middles, last], strict=True))
