"""Which rows count where several attempts wrote one history: a run that was killed and resumed. Numbers only.

What an attempt wrote after the checkpoint that the next one went on from is lost: those steps were run again.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from muster.domain.resumed import Gap, Kept, Resumption

NEAR = 2.0  # logging distances between a checkpoint and the first row after it, at most
REGULAR, MOSTLY = 0.01, 0.8  # distances that are the usual one, and how many of them are enough to miss a row
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Stretch:
    """The steps of what one attempt wrote, each once and in order; all keys of a log together."""

    steps: Sequence[float] = ()
    distance: float = 0.0  # between two of them, usually

    @property
    def first(self) -> float | None:
        return self.steps[0] if len(self.steps) else None

    def count_below(self, end: float) -> int:
        return bisect_left(self.steps, end)


@dataclass(frozen=True, slots=True)
class Joint:
    """For each attempt: rows below `ends` count, and `shifts` is added to their steps."""

    ends: tuple[float, ...]
    shifts: tuple[float, ...]
    by_order: bool = False


def stretch_of(*columns: Sequence[float]) -> Stretch:
    import numpy as np

    known = last = np.empty(0)
    for each in columns:  # one after another, and most keys have the same steps: there may be hundreds of millions
        steps = np.asarray(each, np.float64)
        if not np.array_equal(steps, last):
            known, last = np.union1d(known, steps[np.isfinite(steps)]), steps
    distance = float(np.median(np.diff(known))) if len(known) > 1 else 0.0
    return Stretch(array("d", known.tobytes()), distance)


def joint_of(stretches: Sequence[Stretch], saved: Sequence[float | None] = ()) -> Joint:
    """`saved`: the step of the checkpoint that each attempt went on from, where it is known."""
    if _begins_anew(stretches):
        return Joint(tuple(math.inf for _ in stretches), tuple(_shifts(stretches)), by_order=True)
    ends = [math.inf] * len(stretches)
    for at in range(len(stretches) - 1, 0, -1):
        ends[at - 1] = min(ends[at], _end(stretches[:at], stretches[at], saved[at] if at < len(saved) else None))
    return Joint(tuple(ends), tuple(0.0 for _ in stretches))


def _end(before: Sequence[Stretch], later: Stretch, saved: float | None) -> float:
    """Where what was written before `later` ends to count."""
    if later.first is None:
        return math.inf  # it has written nothing yet: nothing is known to be lost
    distance = max([later.distance, *(each.distance for each in before)])
    if saved is not None and saved < later.first and later.first - saved <= NEAR * distance:
        return math.nextafter(saved, math.inf)
    return later.first


def _begins_anew(stretches: Sequence[Stretch]) -> bool:
    """Whether the steps are numbers of rows, which each attempt counts by itself."""
    some = [each for each in stretches if len(each.steps)]
    again = any(later.steps[0] <= one.steps[0] for one, later in pairwise(some))
    return again and all(map(_counts_rows, some))


def _counts_rows(each: Stretch) -> bool:
    return each.steps[0] in (0.0, 1.0) and each.steps[-1] - each.steps[0] == len(each.steps) - 1


def _shifts(stretches: Sequence[Stretch]) -> list[float]:
    found: list[float] = []
    end: float | None = None
    for each in stretches:
        shift = 0.0 if end is None or each.first is None else end + 1.0 - each.first
        found.append(shift)
        end = each.steps[-1] + shift if len(each.steps) else end
    return found


def resumption_of(pieces: Sequence[Sequence[int]], stretches: Sequence[Stretch], joint: Joint) -> Resumption:
    """What was kept of each attempt, and what nobody wrote down: a writer that buffers loses rows with its process.

    `pieces`: for each stretch the attempts that wrote it, one after another.
    """
    kept: list[Kept] = []
    gaps: list[Gap] = []
    last, distance = None, 0.0
    for attempts, each, end in zip(pieces, stretches, joint.ends, strict=True):
        count = each.count_below(end)
        kept.append(Kept(attempts[-1], count, len(each.steps) - count, each.steps[count - 1] if count else None))
        if not count:
            continue
        distance = max(distance, each.distance)
        if last is not None and distance > 0 and not joint.by_order:
            missing = round((each.steps[0] - last) / distance) - 1
            gaps += [Gap(missing, last, each.steps[0])] if missing > 0 else []
        gaps += _gaps_within(each, len(attempts) - 1)
        last = each.steps[count - 1]
    before = kept[:-1]
    gone = tuple(each.attempt for each in before if not each.rows and not each.lost)
    first = next((each.first for each in stretches if each.first is not None), None)
    times = sum(map(len, pieces)) - 1
    return Resumption(times, tuple(before), tuple(gaps), gone, first, joint.by_order)


def _gaps_within(each: Stretch, times: int) -> list[Gap]:
    """In one file that several attempts appended to, where its steps are regular enough to tell."""
    away = [later - one for one, later in pairwise(each.steps)] if times else []
    usual = sum(abs(distance - each.distance) <= REGULAR * each.distance for distance in away)
    if not away or each.distance <= 0 or usual < MOSTLY * len(away):
        return []
    found = [
        Gap(rows, one, later)
        for one, later in pairwise(each.steps)
        if (rows := round((later - one) / each.distance) - 1) > 0
    ]
    return found if len(found) <= times else []


def below(steps: Sequence[float], end: float) -> Any:
    """A mask of the rows that count; one without a step does."""
    import numpy as np

    return ~(np.asarray(steps, np.float64) >= end)


def not_run_again(steps: Sequence[float], times: int) -> Any:
    """A mask of the rows that count in one file that attempts appended to: where steps go back, a run was resumed.

    `times`: it was resumed. Where steps go back more often they are no counter, and all rows count.
    """
    import numpy as np

    found = np.asarray(steps, np.float64)
    away = np.diff(found)
    back = next((at for at in (np.flatnonzero(away <= 0), np.flatnonzero(away < 0)) if len(at) <= times), None)
    if back is None:
        return np.ones(len(found), bool)
    ends = np.full(len(found), np.inf)
    ends[back] = found[back + 1]
    ends = np.minimum.accumulate(ends[::-1])[::-1]
    return ~(found >= ends)


def step_in_name(checkpoint: str | None) -> float | None:
    """`checkpoints/001400`, `rl_model_9000_steps.zip`: the last number in the name, or in that of its folder."""
    for part in reversed((checkpoint or "").split("/")[-2:]):
        if numbers := _NUMBER.findall(part.rpartition(".")[0] or part):
            return float(numbers[-1])
    return None
