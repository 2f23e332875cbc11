"""The real store of the made-up world: SQLite folded from a log in memory, shared by all controllers of a campaign.

Each controller has a store and a log of its own, which write into the same shelf: it may be killed in the middle of a
line, between the log and the database, or after both.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from muster.engine.ports.store import CommitResult, LoggedDecision
from muster.engine.store.decision_log import InMemoryDecisionLog
from muster.engine.store.sqlite_store import SqliteStore
from muster.files.json_codec import encode_json_bytes
from muster.model.attempt import CellRecord
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from simulator.campaign_ports import Caller, Killed
from simulator.world import World


class Shelf:
    """What outlives every controller: the lines of the log, and the database."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.log = InMemoryDecisionLog()
        self.fold_fails = 0  # so often the database can't be written although the log can
        self.person = SimLog(self, None)
        self.main = SqliteStore(folder, log=self.person, database=":memory:")

    def open(self, caller: Caller) -> SqliteStore:
        """Another process opens the same database."""
        store = SqliteStore(self.folder, log=InMemoryDecisionLog(), database=":memory:")
        store.db.close()
        store.db, store.log = self.main.db, SimLog(self, caller)
        return store

    def lose_database(self) -> None:
        """campaign.db was deleted: whoever comes next folds the whole log again."""
        self.main.close()
        self.main = SqliteStore(self.folder, log=self.person, database=":memory:")


class SimLog(InMemoryDecisionLog):
    """decisions.jsonl as one process has it open; None: a person's command, which nobody disturbs."""

    def __init__(self, shelf: Shelf, caller: Caller | None) -> None:
        self.shelf, self.caller = shelf, caller

    def append(self, decisions: Sequence[Decision]) -> tuple[int, int]:
        data = b"".join(encode_json_bytes(decision) + b"\n" for decision in decisions)
        self._at("log.append")
        self.shelf.world.disk.write(len(data))
        log = self.shelf.log
        if log.data and not log.data.endswith(b"\n"):  # a crash tore its last line
            log.data = log.data[: log.data.rfind(b"\n") + 1]
        try:
            self._at("log.torn", stoppable=False)
        except Killed:
            log.data += data[: self.shelf.world.random.randrange(len(data))]
            raise
        begin = len(log.data)
        log.data += data
        self._at("log.fsync")
        return begin, begin + len(data)

    def _at(self, point: str, *, stoppable: bool = True) -> None:
        if self.caller:
            self.caller.at(point, stoppable=stoppable)

    def sync(self) -> int:
        return len(self.shelf.log.data)

    def size(self) -> int:
        return len(self.shelf.log.data)

    def read(self, offset: int, end: int | None = None) -> Iterator[tuple[int, int, Decision]]:
        if self.caller and self.shelf.fold_fails and offset < len(self.shelf.log.data):
            self.shelf.fold_fails -= 1
            raise OSError(errno.ENOSPC, "campaign.db: the disk is full")
        self._at("fold.begin", stoppable=False)
        return self.shelf.log.read(offset, end)


class Watcher(Protocol):
    """Who checks what is decided."""

    def deciding(self, caller: Caller, decisions: Sequence[Decision]) -> None: ...

    def committed(self, caller: Caller | None, decisions: Sequence[Decision], committed: CommitResult) -> None: ...


class SimStore:
    """One controller's store: the real one, with a look over its shoulder."""

    def __init__(self, shelf: Shelf, caller: Caller, watcher: Watcher) -> None:
        self.caller, self.watcher = caller, watcher
        self.inner = shelf.open(caller)

    @property
    def epoch(self) -> int | None:
        return self.inner.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.inner.epoch = epoch

    def append(self, decision: Decision) -> None:
        self.caller.at("store.append")
        self.inner.append(decision)

    def commit(self, decisions: Sequence[Decision]) -> CommitResult:
        self.caller.at("store.commit")
        self.watcher.deciding(self.caller, decisions)
        committed = self.inner.commit(decisions)
        self.watcher.committed(self.caller, decisions, committed)
        self.caller.at("store.committed")
        return committed

    def epoch_now(self) -> int:
        return self.inner.epoch_now()

    def load(self) -> CampaignState | None:
        self.caller.at("store.load")
        return self.inner.load()

    def records(self, cells: Iterable[str]) -> list[CellRecord]:
        """In one order, so that a seed always tells the same story."""
        self.caller.at("store.records")
        return self.inner.records(sorted(cells))

    def events(self, cell: str | None = None) -> list[LoggedDecision]:
        return self.inner.events(cell)

    def has_decided(self, kind: str) -> bool:
        return self.inner.has_decided(kind)

    def became_of(self, ref: str) -> LoggedDecision | None:
        return self.inner.became_of(ref)

    def behind(self) -> bool:
        self.caller.at("store.behind")
        return self.inner.behind()

    def close(self) -> None:
        """The database outlives its reader."""
