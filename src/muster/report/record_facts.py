"""What the written record is made from. Gathered by `acts`; times are ISO texts, reasons as they were recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class JobScope:
    name: str
    axes: tuple[tuple[str, int], ...]  # (axis, number of values); empty: it runs once
    cells: int
    excluded: int  # points of the product that it leaves out
    command: str
    within: str = ""
    cwd: str = ""
    env: tuple[tuple[str, str | None], ...] = ()  # as declared; None: its name sounds like a secret
    needs: tuple[str, ...] = ()
    steps: int | None = None
    proof: bool = False  # more than exit 0 is asked for


@dataclass(frozen=True, slots=True)
class CodeUse:
    """One state of the code, and how many attempts ran it."""

    cwd: str
    commit: str  # "": there is none, or it is not known
    dirty: str | None
    attempts: int
    diff: str | None = None  # where what was not committed is kept
    state: str = ""  # of domain/code.py
    why: str = ""  # it is not known
    files: tuple[str, ...] = ()  # that are in no commit, or not as they are there
    kept: str | None = None  # where their contents are


@dataclass(frozen=True, slots=True)
class TextChange:
    """A campaign text that was taken in, and how it differs from the one before."""

    at: str
    who: str
    file: str
    lines: tuple[str, ...] = ()  # -old, +new; empty for the first one
    more: int = 0  # lines of the difference that are not shown


@dataclass(frozen=True, slots=True)
class FilterSet:
    at: str
    who: str
    only: str  # seed=3,4
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that happened, or several of the same kind in a row."""

    kind: str  # a key of the wording
    at: str
    until: str = ""  # of the last of several
    parts: Mapping[str, str] = field(default_factory=dict)
    cells: tuple[str, ...] = ()
    count: int = 1
    done: int = 0  # of `count` attempts that were started or ended
    evidence: tuple[str, ...] = ()  # readings, FILE:LINE
    lines: tuple[str, ...] = ()  # of a log
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """One row of what is done: `v2_baseline: seeds 0, 1 (2 of 5)`."""

    job: str
    name: str  # the values of all axes but the last; "" where there is none
    axis: str
    done: tuple[str, ...]
    declared: int


@dataclass(frozen=True, slots=True)
class Absent:
    """Cells that are not DONE for one and the same reason."""

    cells: tuple[str, ...]
    state: str
    why: str  # a key of the wording
    parts: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fix:
    """A command that nobody has run yet."""

    command: str
    why: str  # a key of the wording
    parts: Mapping[str, str] = field(default_factory=dict)
    cells: tuple[str, ...] = ()
    hours: float | None = None  # of slots; None: no sibling has finished
    wall_hours: float | None = None
    money: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    what: str  # a key of the wording
    path: str
    of: str = ""  # the cell or job


@dataclass(frozen=True, slots=True)
class RecordFacts:
    campaign: str
    folder: str
    language: Literal["zh", "en"]
    at: str
    version: str
    declared: int
    counts: Mapping[str, int]  # verdict -> cells
    intent: str
    alive: bool  # whether a controller is at work
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    jobs: tuple[JobScope, ...]
    slots: str
    values: tuple[tuple[str, str, str, str, str], ...] = ()  # (axis, value, what it adds, its note, its proxy)
    env: tuple[tuple[str, str | None], ...] = ()  # of the whole campaign, as in JobScope
    price: tuple[float, str, str, float | None] | None = None  # (an hour, currency, gpu, slot or machine, budget)
    hold: tuple[str, str, str] | None = None  # (at, who, why)
    code: tuple[CodeUse, ...] = ()
    texts: tuple[TextChange, ...] = ()
    filters: tuple[FilterSet, ...] = ()
    people: Mapping[str, int] = field(default_factory=dict)  # what they decided -> how often
    files: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # kind -> (files, bytes)
    seen: tuple[Seen, ...] = ()
    unseen: int = 0  # observations between the first and the last ones that are not shown
    quiet: int = 0  # how often a run was QUIET
    tallies: tuple[Tally, ...] = ()
    absent: tuple[Absent, ...] = ()
    adopted: int = 0  # of the DONE cells
    outdated: int = 0
    fixes: tuple[Fix, ...] = ()
    currency: str = ""
    places: tuple[Place, ...] = ()
    more_places: int = 0

    @property
    def done(self) -> int:
        return self.counts.get("DONE", 0)

    @property
    def missing(self) -> int:
        return sum(len(each.cells) for each in self.absent)
