"""Campaigns that are kept in their folder: the log in decisions.jsonl, its fold in campaign.db.

SQLite is loaded when somebody opens one: many commands open none.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from muster.files.campaign_ownership import begun_by_us

if TYPE_CHECKING:
    from muster.engine.ports.clock import Clock
    from muster.engine.ports.store import FindSnapshots, FsckReport, RebuildRequest, TakeableLock
    from muster.engine.store.controller_files import ControllerLock, ReadOnlyLock, WatchBookFile
    from muster.engine.store.sqlite_store import SqliteStore


class FolderStorage:
    def open(self, state: Path, lock: TakeableLock) -> SqliteStore:
        from muster.engine.store.sqlite_store import SqliteStore

        if not begun_by_us(state):
            return SqliteStore.of_log(state)
        holder = lock.holder()
        if holder and holder.outdated and SqliteStore.is_of_older(state):
            return SqliteStore.of_log(state)
        try:
            return SqliteStore(state)
        except OSError:
            return SqliteStore.of_log(state)

    def open_from_log(self, state: Path) -> SqliteStore:
        from muster.engine.store.sqlite_store import SqliteStore

        return SqliteStore.of_log(state)

    def open_database(self, state: Path) -> SqliteStore:
        from muster.engine.store.database_checks import discard_database
        from muster.engine.store.sqlite_store import SqliteStore

        if not begun_by_us(state):
            discard_database(state / "campaign.db")
        store = SqliteStore(state)
        store.commit([])
        return store

    def lock(self, state: Path, clock: Clock) -> ControllerLock:
        from muster.engine.store.controller_files import ControllerLock

        return ControllerLock(state, clock)

    def read_only_lock(self, state: Path, clock: Clock) -> ReadOnlyLock:
        from muster.engine.store.controller_files import ReadOnlyLock

        return ReadOnlyLock(state, clock)

    def watch_book(self, state: Path, boot_id: str) -> WatchBookFile:
        from muster.engine.store.controller_files import WatchBookFile

        return WatchBookFile(state, boot_id)

    def refuse_newer(self, state: Path) -> None:
        from muster.engine.store.database_checks import refuse_newer_state

        refuse_newer_state(state)

    def has_decisions(self, state: Path) -> bool:
        from muster.engine.store.database_rebuild import has_known_decisions

        return has_known_decisions(state)

    def rebuild(self, state: Path, asked: RebuildRequest, snapshots: FindSnapshots) -> FsckReport:
        from muster.engine.store.database_checks import refuse_newer_state
        from muster.engine.store.database_rebuild import rebuild_database, restore_missing_snapshots

        refuse_newer_state(state)
        restore_missing_snapshots(state, snapshots)
        return rebuild_database(state, asked)
