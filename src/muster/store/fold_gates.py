"""What decisions say about gates: the newest event of each, by cell."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from muster.domain.decision import Decision
from muster.store.sql import QUERIES

META = "gates:"  # then the cell: with a thousand of them, an event must not write all of them anew
_SAME = ("attempt", "iteration", "state", "phase")


def told(db: sqlite3.Connection, d: Decision) -> str | None:
    """`gate`: returns why it has no effect. A controller that died may tell again what it told before."""
    place = f"{META}{d.cell}"
    row = db.execute(QUERIES["get_meta"], (place,)).fetchone()
    known: dict[str, dict[str, Any]] = json.loads(row[0]) if row else {}
    before = known.get(d.data["gate"])
    found = {
        "attempt": d.attempt, "iteration": int(d.data["iteration"]), "state": d.data["state"],
        "phase": int(d.data["phase"]), "why": d.reason,
    }  # fmt: skip
    if before and before["attempt"] > d.attempt:
        return "a later attempt was told of"
    if before and all(before[name] == found[name] for name in _SAME):
        return "it was told before"
    known[d.data["gate"]] = found  # an earlier iteration than before: the run went back
    db.execute(QUERIES["set_meta"], (place, json.dumps(known, ensure_ascii=False)))
    return None


def by_cell(meta: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(META): value for key, value in meta.items() if key.startswith(META)}
