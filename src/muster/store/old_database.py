"""The database that fsck replaces: is it sound, what has it seen, and does it say the same as the new one?"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster.domain.decision import Decision
from muster.domain.errors import MusterError
from muster.ports.no_json import NO_JSON
from muster.store.database_file import has_journal
from muster.store.text import decode_decision, encode

_TABLES = {
    "meta": ("key",), "cell": ("id",), "attempt": ("cell", "n"), "event": ("id",), "span": ("slot", "cell", "attempt"),
}  # fmt: skip
Dump = dict[str, dict[tuple[Any, ...], dict[str, Any]]]


@dataclass(slots=True)
class Old:
    says: str
    db: sqlite3.Connection | None = None
    events: list[Decision] = field(default_factory=list)
    dump: Dump = field(default_factory=dict)


def read_old(path: Path) -> Old:
    if not path.exists() or path.stat().st_size == 0:
        return Old("missing")
    if has_journal(path):
        return Old("damaged: a rollback journal lies beside it, as beside none of Muster's; neither was opened")
    db = sqlite3.connect(path, isolation_level=None, timeout=5)
    db.row_factory = sqlite3.Row
    try:
        trouble = [row[0] for row in db.execute("PRAGMA integrity_check(5)")]
        if trouble != ["ok"]:
            db.close()
            return Old(f"damaged: {'; '.join(trouble)}")
        known = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not set(_TABLES) <= known:
            db.close()
            return Old("missing")  # an empty database: it knows nothing
        return Old("sound", db, _events(db), dump(db))
    except (sqlite3.DatabaseError, ValueError, *NO_JSON) as error:
        db.close()
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            raise in_use() from None
        return Old(f"damaged: {error}")


def _events(db: sqlite3.Connection) -> list[Decision]:
    """None that the log could not hold."""
    rows = db.execute("SELECT kind, who, reason, cell, attempt, epoch, at, boot, data, ref FROM event ORDER BY id")
    return [
        decode_decision(encode(Decision(r["kind"], r["who"], r["reason"], r["cell"], r["attempt"], r["epoch"], r["at"],
                                        r["boot"], json.loads(r["data"]), r["ref"])))
        for r in rows
    ]  # fmt: skip


def dump(db: sqlite3.Connection) -> Dump:
    """Every row of every table; how far the log was folded apart, which depends on how it was written."""
    found: Dump = {}
    for table, key in _TABLES.items():
        names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        rows = [dict(zip(names, tuple(row), strict=True)) for row in db.execute(f"SELECT * FROM {table}")]
        found[table] = {tuple(row[name] for name in key): row for row in rows}
    found["meta"].pop(("applied",), None)
    return found


def compare(old: Dump, new: Dump) -> Iterator[str]:
    for table in _TABLES:
        before, after = old.get(table, {}), new[table]
        for key in sorted(before.keys() | after.keys(), key=str):
            name = f"{table} {' '.join(map(str, key))}"
            if key not in after:
                yield f"{name}: only in the old database"
            elif key not in before:
                yield f"{name}: missing in the old database"
            else:
                for column, value in after[key].items():
                    if before[key].get(column) != value:
                        yield f"{name}: {column} was {before[key].get(column)!r}, is {value!r}"


def in_use() -> MusterError:
    return MusterError(
        "campaign.db is in use: another muster command has it open",
        hint="end `muster up`, `wait` or `status --watch` of this campaign (Ctrl-C only detaches), then try again",
        code="in_use",
    )
