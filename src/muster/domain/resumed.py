"""What is known of a history that several attempts wrote: a run that was killed and resumed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kept:
    """What counts of one attempt that a later one went on from."""

    attempt: int
    rows: int  # of them
    lost: int = 0  # rows after the checkpoint: the later attempt ran these steps again
    last: float | None = None  # the step of the last row that counts


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows that should be there and are not, by the distance of the others."""

    rows: int
    after: float
    before: float


@dataclass(frozen=True, slots=True)
class Resumption:
    times: int  # it was resumed
    kept: tuple[Kept, ...] = ()
    gaps: tuple[Gap, ...] = ()
    gone: tuple[int, ...] = ()  # attempts whose history is not there
    first: float | None = None  # the first step that is there
    by_order: bool = False  # steps begin anew in each attempt: rows are put one after another
