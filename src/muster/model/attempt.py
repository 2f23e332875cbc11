"""An attempt: one execution of a cell's command. Its order (`attempt.json`), the code that it ran, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from muster.model.cell import Cell
from muster.model.verdict import Cause, Evidence, VerdictState

AttemptKey = tuple[str, int]  # cell, number


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: written once."""

    verdict: VerdictState  # DONE or DEAD
    cause: Cause | None = None
    reason: str = ""
    note: str = ""
    exit_code: int | None = None
    exit_signal: int | None = None
    started: float | None = None  # wall seconds, for display
    ended: float | None = None
    duration_s: float | None = None  # by boot time
    output: str | None = None
    evidence: tuple[Evidence, ...] = ()
    contributing: tuple[str, ...] = ()  # to a death, besides its cause
    lines: tuple[str, ...] = ()  # of the log, that show the cause
    advice: str = ""  # what a person may try
    saved: bool | None = None  # whether it saved a whole checkpoint; None: none is declared
    results: Mapping[str, float] = field(default_factory=dict)
    order: int = 0  # among all that have ended; 0: not recorded yet
    held_s: float | None = None  # by boot time: from the claim until its slots were free; None: an older log
    read_as: str = ""  # hash of the `proof:` and `results:` that it was judged by
    declared: str = ""  # hash of the cell's definition when it ended, which may be another than it ran
    phrases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # code and params of its texts


@dataclass(frozen=True, slots=True)
class Reread:
    """What the proof of an ended attempt said when it was read again, under another `proof:` or `results:`."""

    read_as: str
    hash: str  # of the cell's definition by then
    holds: bool
    reason: str = ""
    results: Mapping[str, float] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Attempt:
    cell: str
    n: int
    token: str
    epoch: int
    slots: tuple[str, ...]
    hash: str  # of the resolved cell
    claimed_at: str
    claimed_boot: float
    boot_id: str
    retry_cause: str | None = None
    adopted: bool = False
    outcome: Outcome | None = None  # None while open
    accepted: str | None = None  # a person's reason for taking it as done
    superseded: str | None = None  # a person's reason for running it again: completed once, it counts no more
    reread: Reread | None = None
    born: str | None = None  # the cell that it was started as, where its folder lies; None: the one it has now

    @property
    def key(self) -> AttemptKey:
        return (self.cell, self.n)

    @property
    def place(self) -> AttemptKey:
        """What its folder is called by: a cell that was renamed keeps the folders of its old attempts."""
        return (self.born or self.cell, self.n)

    @property
    def results(self) -> Mapping[str, float]:
        if self.reread and self.reread.holds:
            return self.reread.results
        return self.outcome.results if self.outcome else {}

    @property
    def open(self) -> bool:
        return self.outcome is None

    @property
    def completed(self) -> bool:
        """DONE, by its proof or by a person's word, and still what counts."""
        return self.superseded is None and self.was_done

    @property
    def was_done(self) -> bool:
        """DONE once, whether or not `muster redo` has superseded it since."""
        return self.accepted is not None or (self.outcome is not None and self.outcome.verdict == VerdictState.DONE)


@dataclass(frozen=True, slots=True)
class CellRecord:
    """A cell and all that was ever decided about it."""

    cell: Cell
    position: int
    declared: bool = True
    hash: str = ""  # of its definition now; attempts keep theirs
    attempts: tuple[Attempt, ...] = ()
    given_up: str | None = None
    retry_because: str | None = None  # asked for, not started yet
    stop_because: str | None = None  # asked for, not ended yet
    formerly: tuple[str, ...] = ()  # its names before it was renamed, oldest first
    same_as: Mapping[str, str] = field(default_factory=dict)  # old definition -> the same under the new name

    def hash_today(self, attempt: Attempt) -> str:
        """Of what the attempt ran, under the name that the cell has now: a new name alone is no new definition."""
        ran, dash, code = attempt.hash.partition("-")
        seen = {ran}
        while (same := self.same_as.get(ran)) and same not in seen:
            seen.add(same)
            ran = same
        return f"{ran}{dash}{code}"

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def open(self) -> Attempt | None:
        return self.last if self.last and self.last.open else None

    @property
    def completed(self) -> Attempt | None:
        return next((attempt for attempt in self.attempts if attempt.completed), None)

    @property
    def done(self) -> bool:
        return self.completed is not None

    @property
    def current(self) -> tuple[Attempt, ...]:
        """Those since the last redo: what came before has no part in checkpoints, retries or counts."""
        last = max((attempt.n for attempt in self.attempts if attempt.superseded is not None), default=0)
        return self.attempts[last:]

    @property
    def redo_because(self) -> str | None:
        """Why it is to be run again, while nothing has started since a person said so."""
        return self.last.superseded if self.last else None


CodeState = Literal["known", "unknown", "no_repository", "no_commit", "unrecorded"]
CODE_STATES: tuple[CodeState, ...] = ("known", "unknown", "no_repository", "no_commit", "unrecorded")


def classify_code_state(code: Mapping[str, Any]) -> CodeState:
    """`unrecorded`: by an older Muster, which wrote the same where git was slow and where there was no repository."""
    for state in CODE_STATES:
        if code.get("state") == state:
            return state
    if not code.get("commit"):
        return "unrecorded"
    return "known" if code.get("readable", True) else "unknown"


def list_code_changes(code: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """(changed since the commit, not under version control)."""
    untracked = [str(each) for each in code.get("untracked") or ()]
    changed = [str(each) for each in code.get("changed") or ()]
    return changed, untracked


def code_identity_key(code: Mapping[str, Any]) -> dict[str, Any]:
    """What makes it the same code or another; of committed code the same words as ever, so that old hashes hold."""
    if classify_code_state(code) == "known":
        return {"commit": code.get("commit"), "dirty": code.get("dirty"), "readable": True}
    told = {name: code[name] for name in ("commit", "dirty") if code.get(name)}
    return told if classify_code_state(code) != "unknown" else {**told, "readable": False}


@dataclass(frozen=True, slots=True)
class Order:
    """attempt.json: what the shim is to do. Written once, obeyed by whichever shim wins."""

    cell: str
    n: int
    token: str
    epoch: int
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    env_file: str
    slots: tuple[str, ...]
    out: str
    output: str  # the output, perhaps a glob
    hash: str
    claimed_at: str
    claimed_boot: float
    boot_id: str
    retry_cause: str | None
    resumed_from: str | None
    state: str  # the campaign's .muster folder
    bell: str
    ballast: str
    revive: tuple[str, ...]
    revive_s: float
    axes: dict[str, Any]
    code: dict[str, Any]
    mkdir: bool = True  # whether {out} must exist when the command starts
    refuges: tuple[str, ...] = ()  # folders for its facts where its own one can't be written
    # what fitted a glob in `output` at the launch, where one clock does not tell: path below the glob -> newest time
    there: Mapping[str, float] = field(default_factory=dict)
    muster: int = 1


@dataclass(frozen=True, slots=True)
class UnadoptedRun:
    """Times by its files: wall seconds."""

    cell: str  # that it would have belonged to
    path: str
    started: float
    ended: float
    reason: str

    @property
    def duration_s(self) -> float:
        return max(0.0, self.ended - self.started)


UNKNOWN_EXIT = "the exit code is not known"
