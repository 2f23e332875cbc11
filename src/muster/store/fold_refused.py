"""Runs that `muster adopt` found and did not take in: what they took is known, and stands in the ledger."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from muster.domain.decision import Decision
from muster.domain.refused import RefusedRun
from muster.store.sql import QUERIES

KEY = "refused"


def refused(db: sqlite3.Connection, d: Decision) -> None:
    """`refuse`: each folder counts once, as it was seen last."""
    run = {"cell": str(d.cell), "started": float(d.data["started"]), "ended": float(d.data["ended"])}
    _write(db, {**_read(db), str(d.data["path"]): {**run, "reason": d.reason}})


def taken(db: sqlite3.Connection, path: str | None) -> None:
    """`adopt`: its proof holds after all, and it is no loss any more."""
    known = _read(db)
    if path in known:
        _write(db, {name: run for name, run in known.items() if name != path})


def moved(db: sqlite3.Connection, cell: str, target: str) -> None:
    """`rename`: they belong to the same cell as before."""
    known = _read(db)
    if any(run["cell"] == cell for run in known.values()):
        _write(db, {path: {**run, "cell": target} if run["cell"] == cell else run for path, run in known.items()})


def runs(meta: Mapping[str, str]) -> tuple[RefusedRun, ...]:
    found = json.loads(meta.get(KEY, "{}"))
    return tuple(RefusedRun(path=path, **run) for path, run in found.items())


def _read(db: sqlite3.Connection) -> dict[str, dict[str, object]]:
    row = db.execute(QUERIES["get_meta"], (KEY,)).fetchone()
    found: dict[str, dict[str, object]] = json.loads(row[0]) if row else {}
    return found


def _write(db: sqlite3.Connection, known: Mapping[str, object]) -> None:
    db.execute(QUERIES["set_meta"], (KEY, json.dumps(known, ensure_ascii=False)))
