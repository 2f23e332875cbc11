"""What decisions say about gates: the newest event of each, by cell."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from muster.domain.decision import Decision
from muster.store.sql import QUERIES

META = "gates"


def told(db: sqlite3.Connection, d: Decision) -> str | None:
    """`gate`: returns why it has no effect. A controller that died may tell again what it told before."""
    row = db.execute(QUERIES["get_meta"], (META,)).fetchone()
    known: dict[str, dict[str, Any]] = json.loads(row[0]) if row else {}
    before = known.setdefault(str(d.cell), {}).get(d.data["gate"])
    found = {
        "attempt": d.attempt, "iteration": int(d.data["iteration"]), "state": d.data["state"],
        "phase": int(d.data["phase"]), "why": d.reason,
    }  # fmt: skip
    if before and before["attempt"] > d.attempt:
        return "a later attempt was told of"
    if before and all(before[name] == found[name] for name in ("attempt", "iteration", "state", "phase")):
        return "it was told before"
    known[str(d.cell)][d.data["gate"]] = found  # an earlier iteration than before: the run went back
    db.execute(QUERIES["set_meta"], (META, json.dumps(known, ensure_ascii=False)))
    return None
