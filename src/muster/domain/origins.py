"""Where an attempt's numbers come from: files, as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a training left to be evaluated."""

    path: str
    sha256: str | None  # None: it can't be read
    saved: float | None = None  # wall seconds
    share: float | None = None  # of the training; None: the clocks do not say
    early: bool = False  # before the training's end


@dataclass(frozen=True, slots=True)
class Origins:
    """`files` has every file that is named here, with its hash; None: it is gone or can't be read."""

    results: Mapping[str, str] = field(default_factory=dict)  # result -> file
    values: Mapping[str, float] = field(default_factory=dict)  # result -> what the file says now
    trouble: Mapping[str, str] = field(default_factory=dict)  # result -> why it can't be read now
    rewritten: frozenset[str] = frozenset()  # results whose file was written after the run's end
    files: Mapping[str, str | None] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None
    episodes: int | None = None
    evaluated: str | None = None  # hash of the checkpoint, where the result file names it
