"""The store: decisions in, the campaign's state out; the one lock that makes a process the campaign's controller;
what a rebuild of the database asks for and reports; the storage, which opens all that wherever it is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from muster.engine.ports.clock import Clock
from muster.engine.ports.probe import WatchBookStorage
from muster.files.campaign_snapshots import StoredSnapshot
from muster.model.attempt import CellRecord
from muster.model.campaign_location import CampaignLocation
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


class DecisionLog(Protocol):
    def append(self, decisions: Sequence[Decision]) -> tuple[int, int]:
        """Durably; returns the range of bytes that the new lines take."""

    def read(self, offset: int, end: int | None = None) -> Iterator[tuple[int, int, Decision]]:
        """(begin, end, decision) of every whole line from offset on, up to the byte `end` where it is given."""

    def sync(self) -> int:
        """Makes durable what others have written; returns up to which byte."""

    def size(self) -> int:
        """Its length in bytes."""


class CampaignStore(Store, Protocol):
    """The store as a command needs it, which opens it for a moment and may find it in any condition."""

    log: DecisionLog
    lasting: bool  # False: folded from the log alone, into memory

    def epoch_now(self) -> int:
        """That of the newest controller."""

    def where(self) -> CampaignLocation:
        """The campaign's folder, and all where it lay: each time it was taken in says where that was."""

    def origin(self) -> CampaignLocation:
        """As if the campaign still lay where it was first taken in: definitions are compared there."""

    def refuse_newer_campaign(self) -> None:
        """Raises where a newer Muster took the campaign in."""


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


class TakeableLock(CampaignLock, Protocol):
    """The lock as who may take it sees it."""

    path: Path

    def take(self) -> bool:
        """False: someone else holds it."""

    def held(self) -> bool:
        """Whether anyone holds it, without taking it."""

    def holder(self) -> LockHolder | None: ...

    def hung(self) -> LockHolder | None:
        """The holder, if it lives but has not beaten for long: stopped, or stuck."""

    def take_over(self) -> bool:
        """As `take`, and from a hung holder, which is killed."""

    def take_from(self, holder: LockHolder) -> bool:
        """From a controller of an older Muster, which is killed. It owns nothing that matters, and its runs go on."""

    def give_back(self) -> None: ...


FindSnapshots = Callable[[Mapping[str, str]], Iterable[StoredSnapshot]]


class CampaignStorage(Protocol):
    """Where campaigns are kept. `state` is the .muster of one."""

    def open(self, state: Path, lock: TakeableLock) -> CampaignStore:
        """The truth can be told where nothing can be written: on a full or read-only disk the log is read instead.

        So it is while a controller of an older Muster works on a database that we would have to change. And in a state
        that this user's own `up` has not started: in its database any file may be named, or a view that never ends.
        """

    def open_from_log(self, state: Path) -> CampaignStore:
        """From the log alone: no file is laid beside the database."""

    def open_database(self, state: Path) -> CampaignStore:
        """For who holds the lock. One that was brought here is folded anew. Raises OSError."""

    def lock(self, state: Path, clock: Clock) -> TakeableLock: ...

    def read_only_lock(self, state: Path, clock: Clock) -> TakeableLock:
        """Never locked, not even for a moment: that would keep a controller of somebody else from its work."""

    def watch_book(self, state: Path, boot_id: str) -> WatchBookStorage: ...

    def refuse_newer(self, state: Path) -> None:
        """For those who look at a state's files themselves. What is damaged is not refused: it may still be fixed."""

    def has_decisions(self, state: Path) -> bool:
        """Whether the log or the database tells of any, damaged or not."""

    def rebuild(self, state: Path, asked: RebuildRequest, snapshots: FindSnapshots) -> FsckReport:
        """The database anew from log and attempt folders, for who holds the lock.

        `snapshots` is asked for what a missing snapshot may have been, with the cells' hashes as the old database has
        them.
        """
