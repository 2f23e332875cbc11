"""What a run left behind, as the journal tells it. Read elsewhere; here are only values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

COUNTERS = ("iter", "iteration", "step", "epoch", "update")
STAGES = ("stage", "stage_type", "phase_name")


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something about a file that a reader must know; `key` is one of the journal's words."""

    key: str
    parts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    at: float | None  # its iteration
    stage: str
    values: Mapping[str, float]  # may hold NaN and infinities


@dataclass(frozen=True, slots=True)
class Evaluations:
    source: str  # relative to the journal
    rows: Sequence[Evaluation]

    @property
    def keys(self) -> list[str]:
        return list(dict.fromkeys(key for row in self.rows for key in row.values))

    def column(self, key: str, stage: str | None = None) -> list[tuple[float | None, float]]:
        return [
            (row.at, row.values[key]) for row in self.rows if key in row.values and stage in (None, row.stage)
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class GateTrace:
    source: str
    name: str
    settings: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Training:
    """Numbers of each iteration, as the script kept them for itself."""

    source: str
    series: Mapping[str, Sequence[float]]
    first: int = 1  # the iteration of the first value


@dataclass(frozen=True, slots=True)
class File:
    path: str  # relative to the journal
    size: int
    sha256: str  # whole; "" where it could not be read
    count: int = 1  # of files, where it is a folder


@dataclass(frozen=True, slots=True)
class Script:
    path: str  # as the command names it
    sha256: str = ""
    text: str | None = None
    newer: bool = False  # it was changed after the run had begun


@dataclass(frozen=True, slots=True)
class Command:
    argv: tuple[str, ...]
    source: str  # where it is known from
    cwd: str = ""  # relative to the journal
    script: Script | None = None
    commit: str = ""
    dirty: bool = False
    attempt: int = 0
    resumed: bool = False
    out: str = ""  # its own folder: a flag that names it differs in every run


@dataclass(frozen=True, slots=True)
class Picture:
    path: str  # relative to the journal
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    name: str  # as it stands in the markers: `runs/v41`, `cell:train/0`
    title: str
    folder: str  # relative to the journal
    command: Command | None = None
    evaluations: Evaluations | None = None
    gates: Sequence[GateTrace] = ()
    schedule: Mapping[str, Any] | None = None
    schedule_source: str = ""
    summary: Mapping[str, Any] | None = None
    summary_source: str = ""
    training: Training | None = None
    files: Sequence[File] = ()
    pictures: Sequence[Picture] = ()
    troubles: Sequence[Trouble] = ()
    state: str = ""  # of its cell, where it is one: DONE, RUNNING, ...

    @property
    def empty(self) -> bool:
        return not (self.evaluations or self.gates or self.schedule or self.summary or self.training or self.files)
