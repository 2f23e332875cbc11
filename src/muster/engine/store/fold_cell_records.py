"""The fold of decisions about single cells: the newest event of each gate, runs that `muster adopt` refused (for the
ledger), and renamed cells, which keep their attempts, reasons and gates.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from muster.engine.store.sql_files import QUERIES, read_json_meta, write_json_meta
from muster.model.attempt import UnadoptedRun
from muster.model.cell import escape_cell_value
from muster.model.decision import Decision
from muster.text.phrases import phrase

GATES_META = "gates:"  # then the cell: with a thousand of them, an event must not write all of them anew
_SAME_EVENT_KEYS = ("attempt", "iteration", "state", "phase")


def record_gate_event(db: sqlite3.Connection, d: Decision) -> str | None:
    """`gate`: returns why it has no effect. A controller that died may tell again what it told before."""
    place = f"{GATES_META}{d.cell}"
    row = db.execute(QUERIES["get_meta"], (place,)).fetchone()
    known: dict[str, dict[str, Any]] = json.loads(row[0]) if row else {}
    before = known.get(d.data["gate"])
    found = {
        "attempt": d.attempt,
        "iteration": int(d.data["iteration"]),
        "state": d.data["state"],
        "phase": int(d.data["phase"]),
        "why": d.reason,
    }
    if before and before["attempt"] > d.attempt:
        return phrase("store.later_attempt_told_of")
    if before and all(before[name] == found[name] for name in _SAME_EVENT_KEYS):
        return phrase("store.gate_told_before")
    known[d.data["gate"]] = found  # an earlier iteration than before: the run went back
    db.execute(QUERIES["set_meta"], (place, json.dumps(known, ensure_ascii=False)))
    return None


def gates_by_cell(meta: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(GATES_META): value for key, value in meta.items() if key.startswith(GATES_META)}


REFUSED_META = "refused"


def record_refused_run(db: sqlite3.Connection, d: Decision) -> None:
    """`refuse`: each folder counts once, as it was seen last."""
    run = {"cell": str(d.cell), "started": float(d.data["started"]), "ended": float(d.data["ended"])}
    write_json_meta(
        db, REFUSED_META, {**read_json_meta(db, REFUSED_META), str(d.data["path"]): {**run, "reason": d.reason}}
    )


def drop_refused_run(db: sqlite3.Connection, path: str | None) -> None:
    """`adopt`: its proof holds after all, and it is no loss any more."""
    known = read_json_meta(db, REFUSED_META)
    if path in known:
        write_json_meta(db, REFUSED_META, {name: run for name, run in known.items() if name != path})


def move_refused_runs(db: sqlite3.Connection, cell: str, target: str) -> None:
    """`rename`: they belong to the same cell as before."""
    known = read_json_meta(db, REFUSED_META)
    if any(run["cell"] == cell for run in known.values()):
        write_json_meta(
            db,
            REFUSED_META,
            {path: {**run, "cell": target} if run["cell"] == cell else run for path, run in known.items()},
        )


def parse_refused_runs(meta: Mapping[str, str]) -> tuple[UnadoptedRun, ...]:
    found = json.loads(meta.get(REFUSED_META, "{}"))
    return tuple(UnadoptedRun(path=path, **run) for path, run in found.items())


def move_renamed_cells(db: sqlite3.Connection, d: Decision) -> str | None:
    """Every cell with that value, declared or not; returns why it has no effect."""
    axis, old, new = (str(d.data[key]) for key in ("axis", "old", "new"))
    if old == new or not new:
        return phrase("store.new_name_is_none")
    rows = [row for row in db.execute(QUERIES["all_cells"]).fetchall() if _has_axis_value(row, axis, old)]
    targets = {row["id"]: _renamed_cell_id(row, axis, old, new) for row in rows}
    if not targets:
        return phrase("store.no_cell_has_value", axis=axis, old=old)
    for name, (target, _) in targets.items():
        if why := _rename_obstacle(db, name, target):
            return why
    for name, (target, axes) in targets.items():
        _move_cell_rows(db, name, target, axes)
    _rename_in_filter(db, axis, old, new)
    return None


def keep_old_definitions(db: sqlite3.Connection, same: Mapping[str, Any]) -> None:
    """`same`: cell -> [its definition under the old name, the same under the new one]."""
    for cell, (old, new) in same.items():
        row = db.execute(QUERIES["one_cell"], (cell,)).fetchone()
        if row is not None and old != new:
            known = {**json.loads(row["same_as"]), old: new}
            known.pop(new, None)  # renamed back: a definition that leads to itself leads nowhere
            db.execute(QUERIES["set_same_as"], (json.dumps(known), cell))


def reused_name_reason(db: sqlite3.Connection, cells: Iterable[str]) -> str | None:
    """Why cells can't be declared: folders of attempts that were renamed keep the old name."""
    born = {row["born"]: row["cell"] for row in db.execute(QUERIES["born_elsewhere"])}
    taken = next((cell for cell in cells if cell in born), None)
    return phrase("store.old_name_keeps_folders", cell=taken, new=born[taken]) if taken else None


def _has_axis_value(row: Any, axis: str, name: str) -> bool:
    return any(each[0] == axis and each[1] == name for each in json.loads(row["axes"]))


def _renamed_cell_id(row: Any, axis: str, old: str, new: str) -> tuple[str, str]:
    """(its new name, its axes)."""
    axes = [
        [a, new, new] if (a, name) == (axis, old) else [a, name, value] for a, name, value in json.loads(row["axes"])
    ]
    return "/".join([row["job"], *(escape_cell_value(each[1]) for each in axes)]), json.dumps(axes, ensure_ascii=False)


def _rename_obstacle(db: sqlite3.Connection, name: str, target: str) -> str | None:
    if any(row["outcome"] is None for row in db.execute(QUERIES["attempts_of"], (name,))):
        return phrase("store.cell_is_running", cell=name)
    if db.execute(QUERIES["attempts_of"], (target,)).fetchone() is not None:
        return phrase("store.name_has_attempts", cell=target)
    return reused_name_reason(db, [target]) if not _folders_are_its_own(db, name, target) else None


def _folders_are_its_own(db: sqlite3.Connection, name: str, target: str) -> bool:
    """Renamed back: the folders of that name are its own."""
    born = [row for row in db.execute(QUERIES["born_elsewhere"]) if row["born"] == target]
    return all(row["cell"] == name for row in born)


def _move_cell_rows(db: sqlite3.Connection, name: str, target: str, axes: str) -> None:
    row = db.execute(QUERIES["one_cell"], (name,)).fetchone()
    formerly = [each for each in [*json.loads(row["formerly"]), name] if each != target]
    db.execute(QUERIES["forget_cell"], (target,))  # declared since, and never started
    db.execute(QUERIES["copy_cell"], (target, axes, json.dumps(formerly, ensure_ascii=False), name))
    db.execute(QUERIES["move_attempts"], {"old": name, "new": target})
    db.execute(QUERIES["move_spans"], (target, name))
    db.execute(QUERIES["forget_cell"], (name,))
    move_refused_runs(db, name, target)
    gates = db.execute(QUERIES["get_meta"], (f"{GATES_META}{name}",)).fetchone()
    if gates:
        db.execute(QUERIES["set_meta"], (f"{GATES_META}{target}", gates[0]))
        db.execute(QUERIES["forget_meta"], (f"{GATES_META}{name}",))


def _rename_in_filter(db: sqlite3.Connection, axis: str, old: str, new: str) -> None:
    """What --only leaves out is the same as before."""
    row = db.execute(QUERIES["get_meta"], ("only",)).fetchone()
    only = [
        {a: [new if (a, each) == (axis, old) else each for each in names] for a, names in part.items()}
        for part in json.loads(row[0] if row else "[]")
    ]
    db.execute(QUERIES["set_meta"], ("only", json.dumps(only)))
