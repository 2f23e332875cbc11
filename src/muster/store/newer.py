"""Is this state of a newer Muster? Nobody may read past what it can't know, or write behind it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import msgspec

from muster.domain.decision import Decision
from muster.domain.formats import SNAPSHOT_FORMAT, STATE_FORMAT, newer_snapshot, newer_state
from muster.ports.no_json import NO_JSON
from muster.ports.plain_files import LARGEST_OF_CELLS, open_plain, read_plain
from muster.store.database_file import has_journal
from muster.store.fold import KINDS
from muster.store.sql import migrations
from muster.store.text import decode_decision


class _Snapshot(msgspec.Struct):
    format: int = 1


def refuse_newer_decision(decision: Decision, where: str) -> None:
    if decision.kind == "epoch":
        refuse_newer_format(decision.data.get("format", 1), where)
    elif decision.kind not in KINDS:
        raise newer_state(f"it has a decision {decision.kind!r}, which this Muster does not know", where)


def refuse_newer_format(told: object, where: str) -> None:
    written = str(told) if isinstance(told, int | str) else ""
    number = int(written[:9]) if written.isdecimal() else 1
    if number > STATE_FORMAT:
        raise newer_state(f"its decisions have format {number}, and this Muster knows {STATE_FORMAT}", where)


def refuse_newer_database(version: int, where: str) -> None:
    known = migrations()[-1][0]
    if version > known:
        raise newer_state(f"its database has version {version}, and this Muster knows {known}", where)


def refuse_newer_snapshot(path: Path) -> None:
    try:
        told = msgspec.json.decode(read_plain(str(path), LARGEST_OF_CELLS), type=_Snapshot).format
    except (OSError, *NO_JSON):
        return  # others say that it can't be read
    if told > SNAPSHOT_FORMAT:
        raise newer_snapshot(told, str(path))


def refuse_newer_state(folder: Path) -> None:
    """For those who look at a state's files themselves: fsck before it mends, `check` before it keeps its record.

    What is damaged is not refused: it may still be mended.
    """
    path = folder / "decisions.jsonl"
    with contextlib.suppress(OSError), open(open_plain(str(path)), "rb") as log:
        for line in log:
            with contextlib.suppress(*NO_JSON):
                refuse_newer_decision(decode_decision(line), str(path))
    refuse_newer_database(_database_version(folder / "campaign.db"), str(folder / "campaign.db"))
    for path in sorted((folder / "campaigns").glob("[0-9a-f]*.json")):
        refuse_newer_snapshot(path)


def refuse_newer_folded(folder: Path) -> None:
    """A quick look at the database alone, for a controller that is about to take the lock.

    One that an older Muster's guard calls must not hold it even for a moment: who is to decide here would go away.
    """
    path = folder / "campaign.db"
    refuse_newer_database(_database_version(path), str(path))
    if path.exists() and not has_journal(path):
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path, timeout=5)) as db:
            row = db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
            refuse_newer_format(row[0] if row else 1, str(path))


def _database_version(path: Path) -> int:
    if not path.exists() or has_journal(path):
        return 0
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=5)) as db:
            return int(db.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.Error:
        return 0
