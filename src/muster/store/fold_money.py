"""What decisions say about money: which prices were declared when, and what a person was told of the budget."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from muster.domain.decision import Decision
from muster.store import fold_clock
from muster.store.sql import QUERIES

PRICES = "prices"
TOLD = "budget_told"


def declared(db: sqlite3.Connection, d: Decision) -> None:
    """`campaign`: its `money:` holds from now on. A log of an older version does not say it: then nothing is kept."""
    money = d.data.get("money")
    if not isinstance(money, dict):
        return
    known = _read(db, PRICES)
    if not known or known[-1]["money"] != money:
        _write(db, PRICES, [*known, {"at": fold_clock.calendar_at(db, d), "money": money}])


def told(db: sqlite3.Connection, d: Decision) -> None:
    """`budget`: each level is told once for each budget."""
    budget, level = float(d.data["budget"]), str(d.data["level"])
    known = [each for each in _read(db, TOLD) if each[0] == budget and each[1] != level]
    _write(db, TOLD, [*known, [budget, level]])


def _read(db: sqlite3.Connection, key: str) -> list[Any]:
    row = db.execute(QUERIES["get_meta"], (key,)).fetchone()
    found: list[Any] = json.loads(row[0]) if row else []
    return found


def _write(db: sqlite3.Connection, key: str, value: list[Any]) -> None:
    db.execute(QUERIES["set_meta"], (key, json.dumps(value, ensure_ascii=False)))
