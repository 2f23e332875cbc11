"""What decisions say about the machine's clocks: an epoch tells both, and `clock` that somebody set one of them."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime, timedelta
from typing import Any

from muster.domain.calendar import ClockRecord
from muster.domain.decision import Decision
from muster.store.sql import QUERIES

META = "clock"
_SAME_S = 1.0


def noted(db: sqlite3.Connection, d: Decision) -> None:
    """`epoch` and `clock`. A log of an older version does not say in which boot it was: then nothing is kept.

    A boot whose clock shows a time before all that is known already has not been set yet: the next word counts. One
    that follows a boot in which the clock was set may still be wrong by as much: then whatever makes the gap shorter.
    """
    boot_id, wall = d.data.get("boot_id"), _moment(d.at)
    if not isinstance(boot_id, str) or wall is None:
        return
    found, offset = _read(db), wall - d.boot
    offsets, seen = found.setdefault("offsets", {}), found.get("seen")
    if boot_id not in offsets:
        drift = seen[1] - offsets.get(seen[0], seen[1]) if seen else 0.0
        likely = [each for each in (offset, offset - drift) if d.boot + each >= found.get("latest", wall)]
        offsets |= {boot_id: min(likely)} if likely else {}
    if d.kind == "clock" or seen is None or seen[0] != boot_id:
        found["seen"] = [boot_id, offset]
    found["boot_id"] = boot_id
    if boot_id in offsets:
        found["latest"] = max(found.get("latest", wall), d.boot + offsets[boot_id])
    db.execute(QUERIES["set_meta"], (META, json.dumps(found)))


def calendar_at(db: sqlite3.Connection, d: Decision) -> str:
    """When it was decided, by the campaign's calendar; as it says itself, where no clock was set."""
    record, wall = record_of(json.dumps(_read(db))), _moment(d.at)
    if wall is None:
        return d.at
    moved = record.place(record.boot_id, d.boot, wall) - wall
    if abs(moved) < _SAME_S:
        return d.at
    return (datetime.fromisoformat(d.at) + timedelta(seconds=moved)).isoformat(timespec="milliseconds")


def boot_of(db: sqlite3.Connection) -> str:
    """In which the newest decision was made; "": nobody knows."""
    return str(_read(db).get("boot_id", ""))


def record_of(text: str) -> ClockRecord:
    found = json.loads(text)
    seen = found.get("seen")
    return ClockRecord(found.get("offsets", {}), (seen[0], seen[1]) if seen else None, found.get("boot_id", ""))


def _moment(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _read(db: sqlite3.Connection) -> dict[str, Any]:
    row = db.execute(QUERIES["get_meta"], (META,)).fetchone()
    found: dict[str, Any] = json.loads(row[0]) if row else {}
    return found
