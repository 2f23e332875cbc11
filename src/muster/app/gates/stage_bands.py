"""The stages behind a picture: where each begins and ends, and which labels in the data contradict that."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from muster.app.gates.staged_artifacts import StagedArtifacts, StageLabel
from muster.stages.traces import EvaluationRow, MislabelledRow, find_mislabelled_rows


class StageBand(NamedTuple):
    first: float
    last: float
    type: str


class WrongLabel(NamedTuple):
    file: str
    found: MislabelledRow


def find_wrong_labels(artifacts: StagedArtifacts) -> list[WrongLabel]:
    """Labels that contradict the schedule, file by file."""
    schedule = artifacts.schedule.schedule if artifacts.schedule else None
    if schedule is None:
        return []
    found = []
    for file, labels in artifacts.labels.items():
        rows = [EvaluationRow(at, {}, stage) for at, stage in labels if at >= 1]
        found += [WrongLabel(file, each) for each in find_mislabelled_rows(rows, schedule)]
    return found


def stage_bands_behind(artifacts: StagedArtifacts, labels: Sequence[StageLabel], last: int) -> list[StageBand]:
    """From the schedule; where there is none, from the labels of the data. Neighbours of one type are one band."""
    schedule = artifacts.schedule.schedule if artifacts.schedule else None
    if schedule is not None:
        stages = [StageBand(each.first, each.last, each.type) for each in schedule.stages if each.first <= last]
        ends = [*(each.last for each in stages[:-1]), max(last, stages[-1].first)] if stages else []
        return _join_neighbour_bands([each._replace(last=end) for each, end in zip(stages, ends, strict=True)])
    spans = row_edges([at for at, _ in labels])
    return _join_neighbour_bands(
        [StageBand(low + 0.5, high - 0.5, stage) for (low, high), (_, stage) in zip(spans, labels, strict=True)]
    )


def _join_neighbour_bands(bands: Sequence[StageBand]) -> list[StageBand]:
    found: list[StageBand] = []
    for each in bands:
        if found and found[-1].type == each.type:
            found[-1] = found[-1]._replace(last=each.last)
        else:
            found.append(each)
    return [each for each in found if each.type]


def row_edges(at: Sequence[int]) -> list[tuple[float, float]]:
    """Of each iteration, from where to where its row holds: half way to its neighbours."""
    if not at:
        return []
    middles = [(one + other) / 2 for one, other in pairwise(at)]
    first = at[0] - (middles[0] - at[0] if middles else 0.5)
    last = at[-1] + (at[-1] - middles[-1] if middles else 0.5)
    return list(zip([first, *middles], [*middles, last], strict=True))
