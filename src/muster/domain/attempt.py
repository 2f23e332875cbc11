"""One execution of a cell's command, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.domain.cell import Cell
from muster.domain.verdict import Cause, Evidence, State


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: written once."""

    verdict: State  # DONE or DEAD
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
    def key(self) -> tuple[str, int]:
        return (self.cell, self.n)

    @property
    def place(self) -> tuple[str, int]:
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
        return self.accepted is not None or (self.outcome is not None and self.outcome.verdict == State.DONE)


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
