"""Where an attempt's numbers come from: its files as they are now, and what is known of a history that several
attempts wrote because a run was killed and resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class KeptRows:
    """What counts of one attempt that a later one went on from."""

    attempt: int
    rows: int  # of them
    lost: int = 0  # rows after the checkpoint: the later attempt ran these steps again
    last: float | None = None  # the step of the last row that counts


@dataclass(frozen=True, slots=True)
class HistoryGap:
    """Rows that should be there and are not, by the distance of the others."""

    rows: int
    after: float
    before: float


@dataclass(frozen=True, slots=True)
class Resumption:
    times: int  # it was resumed
    kept: tuple[KeptRows, ...] = ()
    gaps: tuple[HistoryGap, ...] = ()
    gone: tuple[int, ...] = ()  # attempts whose history is not there
    first: float | None = None  # the first step that is there
    by_order: bool = False  # steps begin anew in each attempt: rows are put one after another


CurvePoints = tuple[tuple[float, ...], tuple[float, ...]]  # steps, values


@dataclass(frozen=True, slots=True)
class CheckpointOrigin:
    """What a training left to be evaluated."""

    path: str
    sha256: str | None  # None: it can't be read
    saved: float | None = None  # wall seconds
    share: float | None = None  # of the training's time; None: the clocks do not say
    early: bool = False  # before the training's end
    step: float | None = None  # that it holds, as its file or its name says
    steps_share: float | None = None  # of the steps that were wanted


@dataclass(frozen=True, slots=True)
class MetricRange:
    """Where, of all the times that a metric was measured on the way, it was lowest and highest.

    Steps, or 1, 2, 3 ... where only their order is known. None: it is so at several of them.
    """

    first: float
    last: float
    lowest: float | None
    highest: float | None


@dataclass(frozen=True, slots=True)
class NoCurveReason:
    """Why a training has no curve of a metric."""

    why: Literal["key", "name", "log"]  # its key has no steps; no key is called so; no log is declared
    path: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class ResultOrigins:
    """`files` has every file that is named here, with its hash; None: it is gone or can't be read."""

    results: Mapping[str, str] = field(default_factory=dict)  # result -> file
    values: Mapping[str, float] = field(default_factory=dict)  # result -> what the file says now
    rewritten: frozenset[str] = frozenset()  # results whose file was written after the run's end
    files: Mapping[str, str | None] = field(default_factory=dict)
    checkpoint: CheckpointOrigin | None = None
    episodes: int | None = None
    evaluated: str | None = None  # hash of the checkpoint, where the result file names it
    named: str | None = None  # path of the checkpoint, likewise
    picked: Mapping[str, MetricRange] = field(default_factory=dict)  # result that is one of many -> these
    curves: Mapping[str, tuple[str, CurvePoints]] = field(default_factory=dict)  # metric -> its key, steps and values
    logged: str | None = None  # hash of the last value of every key of the log that has the curves, times left out
    more: Mapping[str, str] = field(default_factory=dict)  # what the result file holds beside the results: path -> text
    tested: Mapping[str, MetricRange] = field(default_factory=dict)  # metric -> its evaluations on the way
    resumed: Resumption | None = None  # what counts of the attempts that wrote its log; None: one wrote all of it
    uncurved: Mapping[str, NoCurveReason] = field(default_factory=dict)  # metric -> why no curve of it was found


@dataclass(frozen=True, slots=True)
class UnreadResults:
    """Results of a DONE cell that can't be read."""

    results: tuple[str, ...]
    path: str  # where its file lay, or should lie
    there: bool  # the file is there, and no number can be read from it
