"""Rows of logs: which of them count where several attempts wrote one history (what was written after the checkpoint
that the next attempt began from is lost), and one pass over a file for all who ask.
"""

# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import math
import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, BinaryIO, Protocol

from muster.files.safe_open import open_log_file
from muster.model.provenance import HistoryGap, KeptRows, Resumption
from muster.readers.records.history_parts import mask_below_step
from muster.readers.records.row_steps import decode_json_row
from muster.readers.records.table_rows import read_table_rows

NEAR_DISTANCES = 2.0  # logging distances between a checkpoint and the first row after it, at most
REGULAR, MOSTLY = 0.01, 0.8  # distances that are the usual one, and how many of them are enough to miss a row
_NUMBER_IN_NAME = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class AttemptSteps:
    """The steps of what one attempt wrote, each once and in order; all keys of a log together."""

    steps: Sequence[float] = ()
    distance: float = 0.0  # between two of them, usually

    @property
    def first(self) -> float | None:
        return self.steps[0] if len(self.steps) else None

    def count_below(self, end: float) -> int:
        return bisect_left(self.steps, end)


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """For each attempt: rows below `ends` count, and `shifts` is added to their steps."""

    ends: tuple[float, ...]
    shifts: tuple[float, ...]
    by_order: bool = False


def steps_of_columns(*columns: Sequence[float]) -> AttemptSteps:
    import numpy as np

    known = last = np.empty(0)
    for each in columns:  # one after another, and most keys have the same steps: there may be hundreds of millions
        steps = np.asarray(each, np.float64)
        if not np.array_equal(steps, last):
            known, last = np.union1d(known, steps[np.isfinite(steps)]), steps
    distance = float(np.median(np.diff(known))) if len(known) > 1 else 0.0
    return AttemptSteps(array("d", known.tobytes()), distance)


def plan_join(stretches: Sequence[AttemptSteps], saved: Sequence[float | None] = ()) -> JoinPlan:
    """`saved`: the step of the checkpoint that each attempt went on from, where it is known."""
    if _steps_begin_anew(stretches):
        return JoinPlan(tuple(math.inf for _ in stretches), tuple(_step_shifts(stretches)), by_order=True)
    ends = [math.inf] * len(stretches)
    for at in range(len(stretches) - 1, 0, -1):
        ends[at - 1] = min(
            ends[at], _end_of_earlier_steps(stretches[:at], stretches[at], saved[at] if at < len(saved) else None)
        )
    return JoinPlan(tuple(ends), tuple(0.0 for _ in stretches))


def _end_of_earlier_steps(before: Sequence[AttemptSteps], later: AttemptSteps, saved: float | None) -> float:
    """Where what was written before `later` ends to count."""
    if later.first is None:
        return math.inf  # it has written nothing yet: nothing is known to be lost
    distance = max([later.distance, *(each.distance for each in before)])
    if saved is not None and saved < later.first and later.first - saved <= NEAR_DISTANCES * distance:
        return math.nextafter(saved, math.inf)
    return later.first


def _steps_begin_anew(stretches: Sequence[AttemptSteps]) -> bool:
    """Whether the steps are numbers of rows, which each attempt counts by itself."""
    some = [each for each in stretches if len(each.steps)]
    again = any(later.steps[0] <= one.steps[0] for one, later in pairwise(some))
    return again and all(map(_counts_own_rows, some))


def _counts_own_rows(each: AttemptSteps) -> bool:
    return each.steps[0] in (0.0, 1.0) and each.steps[-1] - each.steps[0] == len(each.steps) - 1


def _step_shifts(stretches: Sequence[AttemptSteps]) -> list[float]:
    found: list[float] = []
    end: float | None = None
    for each in stretches:
        shift = 0.0 if end is None or each.first is None else end + 1.0 - each.first
        found.append(shift)
        end = each.steps[-1] + shift if len(each.steps) else end
    return found


def build_resumption(pieces: Sequence[Sequence[int]], stretches: Sequence[AttemptSteps], joint: JoinPlan) -> Resumption:
    """What was kept of each attempt, and what nobody wrote down: a writer that buffers loses rows with its process.

    `pieces`: for each stretch the attempts that wrote it, one after another.
    """
    kept: list[KeptRows] = []
    gaps: list[HistoryGap] = []
    last, distance = None, 0.0
    for attempts, each, end in zip(pieces, stretches, joint.ends, strict=True):
        count = each.count_below(end)
        kept.append(KeptRows(attempts[-1], count, len(each.steps) - count, each.steps[count - 1] if count else None))
        if not count:
            continue
        distance = max(distance, each.distance)
        if last is not None and distance > 0 and not joint.by_order:
            missing = round((each.steps[0] - last) / distance) - 1
            gaps += [HistoryGap(missing, last, each.steps[0])] if missing > 0 else []
        gaps += _gaps_within(each, len(attempts) - 1)
        last = each.steps[count - 1]
    before = kept[:-1]
    gone = tuple(each.attempt for each in before if not each.rows and not each.lost)
    first = next((each.first for each in stretches if each.first is not None), None)
    times = sum(map(len, pieces)) - 1
    return Resumption(times, tuple(before), tuple(gaps), gone, first, joint.by_order)


def _gaps_within(each: AttemptSteps, times: int) -> list[HistoryGap]:
    """In one file that several attempts appended to, where its steps are regular enough to tell."""
    away = [later - one for one, later in pairwise(each.steps)] if times else []
    usual = sum(abs(distance - each.distance) <= REGULAR * each.distance for distance in away)
    if not away or each.distance <= 0 or usual < MOSTLY * len(away):
        return []
    found = [
        HistoryGap(rows, one, later)
        for one, later in pairwise(each.steps)
        if (rows := round((later - one) / each.distance) - 1) > 0
    ]
    return found if len(found) <= times else []


def mask_of_kept_rows(steps: Sequence[float], times: int) -> Any:
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


def step_in_checkpoint_name(checkpoint: str | None) -> float | None:
    """`checkpoints/001400`, `rl_model_9000_steps.zip`: the last number in the name, or in that of its folder."""
    for part in reversed((checkpoint or "").split("/")[-2:]):
        if numbers := _NUMBER_IN_NAME.findall(part.rpartition(".")[0] or part):
            return float(numbers[-1])
    return None


LogColumns = Mapping[str, tuple[Sequence[float], Sequence[float]]]  # key -> steps and values


@dataclass(frozen=True, slots=True)
class LogPiece:
    """The file of one attempt, or of several that appended to it."""

    attempts: tuple[int, ...]
    path: str  # empty: it is not there
    saved: float | None = None  # the step of the checkpoint that it went on from

    @property
    def times(self) -> int:
        """It was resumed within this file."""
        return len(self.attempts) - 1


def pieces_of_log(files: Iterable[tuple[int, str | None, float | None]]) -> tuple[LogPiece, ...]:
    """Of (attempt, its file, the step that it went on from), the first attempt first."""
    found: list[LogPiece] = []
    for attempt, path, saved in files:
        if path and found and found[-1].path and os.path.realpath(found[-1].path) == os.path.realpath(path):
            found[-1] = replace(found[-1], attempts=(*found[-1].attempts, attempt))
        else:
            found.append(LogPiece((attempt,), path or "", saved))
    return tuple(found)


def is_joined_log(pieces: Sequence[LogPiece]) -> bool:
    return len(pieces) > 1 or any(piece.times for piece in pieces)


def masks_of_pieces(pieces: Sequence[LogPiece], steps: Sequence[Sequence[float]]) -> tuple[list[Any], Resumption]:
    """For one column: what counts of each piece, and what is to be told of it."""
    within = [mask_of_kept_rows(each, piece.times) for piece, each in zip(pieces, steps, strict=True)]
    stretches = [steps_of_columns(each) for each in steps]
    joint = plan_join(stretches, [piece.saved for piece in pieces])
    masks = [inside & mask_below_step(each, end) for inside, each, end in zip(within, steps, joint.ends, strict=True)]
    return masks, build_resumption([piece.attempts for piece in pieces], stretches, joint)


def join_log_columns(
    pieces: Sequence[LogPiece], parts: Sequence[LogColumns]
) -> tuple[dict[str, tuple[list[float], list[float]]], Resumption]:
    """For all keys of a log, by the steps of all of them together; and what is to be told of it."""
    stretches = [steps_of_columns(*(steps for steps, _ in each.values())) for each in parts]
    joint = plan_join(stretches, [piece.saved for piece in pieces])
    found: dict[str, tuple[list[float], list[float]]] = {}
    for piece, columns, end, shift in zip(pieces, parts, joint.ends, joint.shifts, strict=True):
        for key, (steps, values) in columns.items():
            mask = mask_of_kept_rows(steps, piece.times) & mask_below_step(steps, end)
            column = found.setdefault(key, ([], []))
            column[0].extend(step + shift for step, kept in zip(steps, mask, strict=True) if kept)
            column[1].extend(value for value, kept in zip(values, mask, strict=True) if kept)
    return found, build_resumption([piece.attempts for piece in pieces], stretches, joint)


LONGEST_LOG_LINE = 16 << 20


class RowTaker(Protocol):
    needles: Sequence[bytes]  # what a line must hold, all of them, to be worth decoding for this one; empty: any line

    def take_row(self, row: Mapping[str, Any]) -> None: ...


def sweep_log_rows(path: str, kind: str, takers: Sequence[RowTaker]) -> None:
    """Line by line; half a line and what is no row is passed over. Of a table a cell is a number where it can be one.

    Raises OSError, and csv.Error where a row is longer than any table's.
    """
    takes = [taker.take_row for taker in takers]
    with open_log_file(path) as file:
        for row in _table_rows(file) if kind == "csv" else _object_rows(file, [taker.needles for taker in takers]):
            for take in takes:
                take(row)


def _object_rows(file: BinaryIO, asked: Sequence[Sequence[bytes]]) -> Iterator[dict[str, Any]]:
    every = not all(asked)
    while line := file.readline(LONGEST_LOG_LINE):
        if (every or _is_worth_decoding(line, asked)) and isinstance(row := decode_json_row(line), dict):
            yield row


def _table_rows(file: BinaryIO) -> Iterator[dict[str, Any]]:
    for header, fields in read_table_rows(file):
        if len(fields) < len(header.names):  # the header itself, or a row that was cut
            continue
        row: dict[str, Any] = {}
        for name, field in zip(header.names, fields, strict=False):
            if cell := field.strip():
                number = header.number(cell) if "," in cell else None
                row[name] = cell if number is None else number
        yield row


def _is_worth_decoding(line: bytes, asked: Sequence[Sequence[bytes]]) -> bool:
    for needles in asked:  # loops: this runs for every line, and any() over all() takes three times as long
        for needle in needles:
            if needle not in line:
                break
        else:
            return True
    return False
