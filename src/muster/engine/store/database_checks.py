"""Checks of `campaign.db`: is it of a newer Muster, is it sound, does a rebuilt one say the same; and how the file is
made and deleted.

Nobody may read past what it can't know, or write behind it. SQLite keeps `-wal` and `-shm` beside the database and
finds them by name: where the database was deleted and they were not, whoever makes it anew would share them with
whoever still has the old one open, and each would spoil the other's.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from muster.engine.store.fold import DECISION_KINDS
from muster.engine.store.sql_files import list_migrations
from muster.files.atomic_write import PRIVATE_FILE
from muster.files.json_codec import JSON_ERRORS, decode_decision, encode_json_bytes
from muster.files.safe_open import LARGEST_CELLS_FILE, open_plain_file, read_plain_file
from muster.model.decision import Decision
from muster.model.errors import SNAPSHOT_FORMAT, STATE_FORMAT, MusterError, newer_snapshot_error, newer_state_error
from muster.text.phrases import phrase

MAKER_PATIENCE_S = 2.0  # for another process that makes it; one that was stopped in the middle may never go on


def make_private_database(path: Path) -> None:
    """Empty, before SQLite makes one that others may read; it gives the files beside it the same mode."""
    with contextlib.suppress(OSError):  # SQLite has the words for what is wrong
        fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
        os.fchmod(fd, PRIVATE_FILE)
        os.close(fd)


def has_rollback_journal(path: Path) -> bool:
    """Ours never have one beside them. SQLite would obey it before anything else, and delete the file that it names."""
    return os.path.lexists(f"{path}-journal")


def discard_database(path: Path) -> None:
    """With the files beside it, unopened: the log tells all that was decided."""
    for suffix in ("-journal", "-wal", "-shm", ""):
        with contextlib.suppress(OSError):
            path.with_name(path.name + suffix).unlink()


class DatabaseFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: tuple[int, int] | None = None
        self._missed: float | None = None  # monotonic: since when another file, or none, is seen in its place

    @contextlib.contextmanager
    def made_by_one(self) -> Iterator[None]:
        """Where there is none yet: by one process at a time, without what a deleted one has left.

        One with a journal is none: it was never ours, or a kill of an earlier version's maker left it half made.
        """
        if not self._is_missing():
            yield
            return
        with self._locked_folder() as alone:
            if has_rollback_journal(self.path):
                discard_database(self.path)
            if alone and self._is_missing():
                for suffix in ("-wal", "-shm"):
                    with contextlib.suppress(OSError):
                        self.path.with_name(self.path.name + suffix).unlink()
            make_private_database(self.path)
            yield

    def remember(self) -> None:
        self._opened, self._missed = self._identity(), None

    def displaced(self) -> bool:
        """Whether another file, or none, lies where the opened one lay. A folder that has moved took it along."""
        found = self._identity()
        return found != self._opened and (found is not None or self.path.parent.is_dir())

    def displaced_s(self) -> float:
        """For how long, as far as was looked."""
        now = time.monotonic()
        self._missed = now if self._missed is None else self._missed
        return now - self._missed

    def _is_missing(self) -> bool:
        try:
            return self.path.stat().st_size == 0 or has_rollback_journal(
                self.path
            )  # its maker has it open, or was killed
        except OSError:
            return True

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    @contextlib.contextmanager
    def _locked_folder(self) -> Iterator[bool]:
        """False: somebody else makes it and does not come to an end."""
        try:
            fd = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            yield False
            return
        try:
            deadline = time.monotonic() + MAKER_PATIENCE_S
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        yield False
                        return
                    time.sleep(0.002)
            yield True
        finally:
            os.close(fd)


def database_has_decisions(path: Path) -> bool:
    """Whether it was folded from a log, by a look that changes nothing and ends soon, whoever made it."""
    if not path.is_file() or has_rollback_journal(path):
        return False
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            db.set_progress_handler(lambda: 1, 100_000)
            row = db.execute("SELECT value FROM meta WHERE key = 'applied'").fetchone()
            return row is not None and int(row[0]) > 0
    except (sqlite3.Error, ValueError, TypeError):
        return False


class _SnapshotFormat(msgspec.Struct):
    format: int = 1


def refuse_newer_decision(decision: Decision, where: str) -> None:
    if decision.kind == "epoch":
        refuse_newer_format(decision.data.get("format", 1), where)
    elif decision.kind not in DECISION_KINDS:
        raise newer_state_error(phrase("store.decision_kind_newer", kind=decision.kind), where)


def refuse_newer_format(told: object, where: str) -> None:
    written = str(told) if isinstance(told, int | str) else ""
    number = int(written[:9]) if written.isdecimal() else 1
    if number > STATE_FORMAT:
        raise newer_state_error(phrase("store.decisions_format_newer", format=number, known=STATE_FORMAT), where)


def refuse_newer_database(version: int, where: str) -> None:
    known = list_migrations()[-1][0]
    if version > known:
        raise newer_state_error(phrase("store.database_version_newer", version=version, known=known), where)


def refuse_newer_snapshot(path: Path) -> None:
    try:
        told = msgspec.json.decode(read_plain_file(str(path), LARGEST_CELLS_FILE), type=_SnapshotFormat).format
    except (OSError, *JSON_ERRORS):
        return  # others say that it can't be read
    if told > SNAPSHOT_FORMAT:
        raise newer_snapshot_error(told, str(path))


def refuse_newer_state(folder: Path) -> None:
    """For those who look at a state's files themselves: fsck before it fixes, `check` before it keeps its record.

    What is damaged is not refused: it may still be fixed.
    """
    path = folder / "decisions.jsonl"
    with contextlib.suppress(OSError), open(open_plain_file(str(path)), "rb") as log:
        for line in log:
            with contextlib.suppress(*JSON_ERRORS):
                refuse_newer_decision(decode_decision(line), str(path))
    refuse_newer_database(_database_version(folder / "campaign.db"), str(folder / "campaign.db"))
    for path in sorted((folder / "campaigns").glob("[0-9a-f]*.json")):
        refuse_newer_snapshot(path)


def refuse_newer_folded_state(folder: Path) -> None:
    """A quick look at the database alone, for a controller that is about to take the lock.

    One that an older Muster's guard calls must not hold it even for a moment: who is to decide here would go away.
    """
    path = folder / "campaign.db"
    refuse_newer_database(_database_version(path), str(path))
    if path.exists() and not has_rollback_journal(path):
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path, timeout=5)) as db:
            row = db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
            refuse_newer_format(row[0] if row else 1, str(path))


def _database_version(path: Path) -> int:
    if not path.exists() or has_rollback_journal(path):
        return 0
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=5)) as db:
            return int(db.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.Error:
        return 0


_TABLES = {
    "meta": ("key",),
    "cell": ("id",),
    "attempt": ("cell", "n"),
    "event": ("id",),
    "span": ("slot", "cell", "attempt"),
}
DatabaseDump = dict[str, dict[tuple[Any, ...], dict[str, Any]]]


@dataclass(slots=True)
class OldDatabase:
    says: str
    db: sqlite3.Connection | None = None
    events: list[Decision] = field(default_factory=list)
    dump: DatabaseDump = field(default_factory=dict)


def read_old_database(path: Path) -> OldDatabase:
    if not path.exists() or path.stat().st_size == 0:
        return OldDatabase("missing")
    if has_rollback_journal(path):
        return OldDatabase(phrase("store.rollback_journal"))
    db = sqlite3.connect(path, isolation_level=None, timeout=5)
    db.row_factory = sqlite3.Row
    try:
        trouble = [row[0] for row in db.execute("PRAGMA integrity_check(5)")]
        if trouble != ["ok"]:
            db.close()
            return OldDatabase(phrase("store.damaged", reason="; ".join(trouble)))
        known = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not set(_TABLES) <= known:
            db.close()
            return OldDatabase("missing")  # an empty database: it knows nothing
        return OldDatabase("sound", db, _read_event_decisions(db), dump_database(db))
    except (sqlite3.DatabaseError, ValueError, *JSON_ERRORS) as error:
        db.close()
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            raise database_in_use_error() from None
        return OldDatabase(phrase("store.damaged", reason=error))


def _read_event_decisions(db: sqlite3.Connection) -> list[Decision]:
    """None that the log could not hold."""
    rows = db.execute("SELECT kind, who, reason, cell, attempt, epoch, at, boot, data, ref FROM event ORDER BY id")
    return [
        decode_decision(
            encode_json_bytes(
                Decision(
                    r["kind"],
                    r["who"],
                    r["reason"],
                    r["cell"],
                    r["attempt"],
                    r["epoch"],
                    r["at"],
                    r["boot"],
                    json.loads(r["data"]),
                    r["ref"],
                )
            )
        )
        for r in rows
    ]


def dump_database(db: sqlite3.Connection) -> DatabaseDump:
    """Every row of every table; how far the log was folded apart, which depends on how it was written."""
    found: DatabaseDump = {}
    for table, key in _TABLES.items():
        names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        rows = [dict(zip(names, tuple(row), strict=True)) for row in db.execute(f"SELECT * FROM {table}")]
        found[table] = {tuple(row[name] for name in key): row for row in rows}
    found["meta"].pop(("applied",), None)
    return found


def compare_dumps(old: DatabaseDump, new: DatabaseDump) -> Iterator[str]:
    for table in _TABLES:
        before, after = old.get(table, {}), new[table]
        for key in sorted(before.keys() | after.keys(), key=str):
            name = f"{table} {' '.join(map(str, key))}"
            if key not in after:
                yield phrase("store.row_only_old", name=name)
            elif key not in before:
                yield phrase("store.row_only_new", name=name)
            else:
                for column, value in after[key].items():
                    if before[key].get(column) != value:
                        yield phrase(
                            "store.row_differs", name=name, column=column, before=before[key].get(column), after=value
                        )


def database_in_use_error() -> MusterError:
    return MusterError(
        phrase("store.database_in_use"),
        hint=phrase("store.end_other_commands"),
        code="in_use",
    )
