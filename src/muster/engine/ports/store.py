"""The store: decisions in, the campaign's state out; the one lock that makes a process the campaign's controller;
what a rebuild of the database asks for and reports.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.model.attempt import CellRecord
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision, Refusal
from muster.model.errors import STATE_FORMAT


class CampaignLock(Protocol):
    def beat(self, epoch: int, trouble: str = "") -> None:
        """A sign of life, and what keeps the controller from its work, where nothing else can be written."""


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """A decision as the event table keeps it; `void` says why it had no effect."""

    decision: Decision
    void: str | None = None


@dataclass(frozen=True, slots=True)
class CommitResult:
    refused: tuple[Refusal, ...]  # of the decisions that were handed in
    seen: tuple[LoggedDecision, ...]  # everything that was folded, other people's decisions too, in order


class ControllerSuperseded(Exception):
    """A newer controller exists: this one must end at once."""


class Store(Protocol):
    def append(self, decision: Decision) -> None:
        """Durably in the log; it takes effect when the controller folds it."""

    def commit(self, decisions: Sequence[Decision]) -> CommitResult:
        """Log first (fsync), database second, in one transaction with all that others appended before."""

    def load(self) -> CampaignState | None:
        """All that was decided so far; None before the first campaign was taken in."""

    def records(self, cells: Iterable[str]) -> list[CellRecord]:
        """The current rows of some cells."""

    def events(self, cell: str | None = None) -> list[LoggedDecision]:
        """Who decided what, when and why, oldest first."""

    def has_decided(self, kind: str) -> bool:
        """Whether a decision of this kind took effect, without reading all of them."""

    def became_of(self, ref: str) -> LoggedDecision | None:
        """What became of a person's decision; None: not folded yet."""

    def behind(self) -> bool:
        """Whether the log holds decisions that the database has not seen."""

    def close(self) -> None: ...


class DiskBallast(Protocol):
    """Room laid by for the day the disk is full."""

    def lay(self) -> bool: ...

    def free(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RebuildRequest:
    """Who rebuilds, and when; `beat` shows a sign of life, for a lock that is silent too long is taken over."""

    who: str
    at: str
    boot: float
    beat: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class FsckReport:
    cells: int = 0
    attempts: int = 0
    decisions: int = 0
    ended: tuple[str, ...] = ()  # open attempts whose exit is known: the controller judges them
    old: str = "sound"  # sound | missing | damaged: ...
    behind: int = 0  # decisions that the old database had not seen
    differences: tuple[str, ...] = ()  # between the old database and the fold of the same decisions
    torn: tuple[str, ...] = ()  # lines of the log that could not be read, now in decisions.torn
    restored: int = 0  # decisions that the log had lost and the old database knew
    recovered: tuple[str, ...] = ()  # attempts that only their folders knew
    unplaced: tuple[str, ...] = ()  # folders that fit nothing, with the reason
    folderless: tuple[str, ...] = ()  # ended attempts whose folder is gone


STALE_LOCK_S = float(os.environ.get("MUSTER_STALE_S", "10"))  # it beats every second; a hung one still holds its lock


@dataclass(frozen=True, slots=True)
class LockHolder:
    pid: int
    ticks: int
    epoch: int
    since: float  # wall
    beat: float  # boot time of the last sign of life
    trouble: str  # what keeps it from its work
    alive: bool  # the process exists and is the one that wrote this
    format: int = 1  # STATE_FORMAT of its Muster
    version: str = ""

    @property
    def outdated(self) -> bool:
        """A controller of an older Muster: it can't know all that we may write. A command holds the lock at epoch 0."""
        return self.alive and self.epoch > 0 and self.format < STATE_FORMAT
