"""One log that several attempts wrote: its files, and which of their rows count."""

# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.domain.resumed import Resumption
from muster.observe.joining import below, joint_of, not_run_again, resumption_of, stretch_of

Columns = Mapping[str, tuple[Sequence[float], Sequence[float]]]  # key -> steps and values


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


def log_pieces(files: Iterable[tuple[int, str | None, float | None]]) -> tuple[LogPiece, ...]:
    """Of (attempt, its file, the step that it went on from), the first attempt first."""
    found: list[LogPiece] = []
    for attempt, path, saved in files:
        if path and found and found[-1].path and os.path.realpath(found[-1].path) == os.path.realpath(path):
            found[-1] = replace(found[-1], attempts=(*found[-1].attempts, attempt))
        else:
            found.append(LogPiece((attempt,), path or "", saved))
    return tuple(found)


def is_joined(pieces: Sequence[LogPiece]) -> bool:
    return len(pieces) > 1 or any(piece.times for piece in pieces)


def masks_of(pieces: Sequence[LogPiece], steps: Sequence[Sequence[float]]) -> tuple[list[Any], Resumption]:
    """For one column: what counts of each piece, and what is to be told of it."""
    within = [not_run_again(each, piece.times) for piece, each in zip(pieces, steps, strict=True)]
    stretches = [stretch_of(each) for each in steps]
    joint = joint_of(stretches, [piece.saved for piece in pieces])
    masks = [inside & below(each, end) for inside, each, end in zip(within, steps, joint.ends, strict=True)]
    return masks, resumption_of([piece.attempts for piece in pieces], stretches, joint)


def join_columns(
    pieces: Sequence[LogPiece], parts: Sequence[Columns]
) -> tuple[dict[str, tuple[list[float], list[float]]], Resumption]:
    """For all keys of a log, by the steps of all of them together; and what is to be told of it."""
    stretches = [stretch_of(*(steps for steps, _ in each.values())) for each in parts]
    joint = joint_of(stretches, [piece.saved for piece in pieces])
    found: dict[str, tuple[list[float], list[float]]] = {}
    for piece, columns, end, shift in zip(pieces, parts, joint.ends, joint.shifts, strict=True):
        for key, (steps, values) in columns.items():
            mask = not_run_again(steps, piece.times) & below(steps, end)
            column = found.setdefault(key, ([], []))
            column[0].extend(step + shift for step, kept in zip(steps, mask, strict=True) if kept)
            column[1].extend(value for value, kept in zip(values, mask, strict=True) if kept)
    return found, resumption_of([piece.attempts for piece in pieces], stretches, joint)
