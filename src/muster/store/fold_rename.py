"""What the decision `rename` does: cells get another name, and keep their attempts, reasons and gates."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from muster.domain.cell import escape
from muster.domain.decision import Decision
from muster.store import fold_gates, fold_refused
from muster.store.sql import QUERIES


def move_cells(db: sqlite3.Connection, d: Decision) -> str | None:
    """Every cell with that value, declared or not; returns why it has no effect."""
    axis, old, new = (str(d.data[key]) for key in ("axis", "old", "new"))
    if old == new or not new:
        return "the new name is none"
    rows = [row for row in db.execute(QUERIES["all_cells"]).fetchall() if _has(row, axis, old)]
    targets = {row["id"]: _renamed(row, axis, old, new) for row in rows}
    if not targets:
        return f"no cell has the {axis} {old!r}"
    for name, (target, _) in targets.items():
        if why := _in_the_way(db, name, target):
            return why
    for name, (target, axes) in targets.items():
        _move(db, name, target, axes)
    _filter(db, axis, old, new)
    return None


def keep_definitions(db: sqlite3.Connection, same: Mapping[str, Any]) -> None:
    """`same`: cell -> [its definition under the old name, the same under the new one]."""
    for cell, (old, new) in same.items():
        row = db.execute(QUERIES["one_cell"], (cell,)).fetchone()
        if row is not None and old != new:
            known = {**json.loads(row["same_as"]), old: new}
            known.pop(new, None)  # renamed back: a definition that leads to itself leads nowhere
            db.execute(QUERIES["set_same_as"], (json.dumps(known), cell))


def reused(db: sqlite3.Connection, cells: Iterable[str]) -> str | None:
    """Why cells can't be declared: folders of attempts that were renamed keep the old name."""
    born = {row["born"]: row["cell"] for row in db.execute(QUERIES["born_elsewhere"])}
    taken = next((cell for cell in cells if cell in born), None)
    return f"{taken} was renamed to {born[taken]}, and its old attempts keep their folders" if taken else None


def _has(row: Any, axis: str, name: str) -> bool:
    return any(each[0] == axis and each[1] == name for each in json.loads(row["axes"]))


def _renamed(row: Any, axis: str, old: str, new: str) -> tuple[str, str]:
    """(its new name, its axes)."""
    axes = [
        [a, new, new] if (a, name) == (axis, old) else [a, name, value] for a, name, value in json.loads(row["axes"])
    ]
    return "/".join([row["job"], *(escape(each[1]) for each in axes)]), json.dumps(axes, ensure_ascii=False)


def _in_the_way(db: sqlite3.Connection, name: str, target: str) -> str | None:
    if any(row["outcome"] is None for row in db.execute(QUERIES["attempts_of"], (name,))):
        return f"{name} is running; stop it first, or wait for its end"
    if db.execute(QUERIES["attempts_of"], (target,)).fetchone() is not None:
        return f"{target} has attempts of its own"
    return reused(db, [target]) if not _its_own(db, name, target) else None


def _its_own(db: sqlite3.Connection, name: str, target: str) -> bool:
    """Renamed back: the folders of that name are its own."""
    born = [row for row in db.execute(QUERIES["born_elsewhere"]) if row["born"] == target]
    return all(row["cell"] == name for row in born)


def _move(db: sqlite3.Connection, name: str, target: str, axes: str) -> None:
    row = db.execute(QUERIES["one_cell"], (name,)).fetchone()
    formerly = [each for each in [*json.loads(row["formerly"]), name] if each != target]
    db.execute(QUERIES["forget_cell"], (target,))  # declared since, and never started
    db.execute(QUERIES["copy_cell"], (target, axes, json.dumps(formerly, ensure_ascii=False), name))
    db.execute(QUERIES["move_attempts"], {"old": name, "new": target})
    db.execute(QUERIES["move_spans"], (target, name))
    db.execute(QUERIES["forget_cell"], (name,))
    fold_refused.moved(db, name, target)
    gates = db.execute(QUERIES["get_meta"], (f"{fold_gates.META}{name}",)).fetchone()
    if gates:
        db.execute(QUERIES["set_meta"], (f"{fold_gates.META}{target}", gates[0]))
        db.execute(QUERIES["forget_meta"], (f"{fold_gates.META}{name}",))


def _filter(db: sqlite3.Connection, axis: str, old: str, new: str) -> None:
    """What --only leaves out is the same as before."""
    row = db.execute(QUERIES["get_meta"], ("only",)).fetchone()
    only = [
        {a: [new if (a, each) == (axis, old) else each for each in names] for a, names in part.items()}
        for part in json.loads(row[0] if row else "[]")
    ]
    db.execute(QUERIES["set_meta"], ("only", json.dumps(only)))
