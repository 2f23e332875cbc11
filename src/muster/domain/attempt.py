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

    @property
    def key(self) -> tuple[str, int]:
        return (self.cell, self.n)

    @property
    def open(self) -> bool:
        return self.outcome is None

    @property
    def completed(self) -> bool:
        """DONE, by its proof or by a person's word."""
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
