"""What the decisions about the finish do: the last execution of each step, the wish to power off, how far that is."""

from __future__ import annotations

import json
import sqlite3
from typing import Any, get_args

from muster.domain.decision import Decision
from muster.domain.finish import StageKind
from muster.store import fold_clock
from muster.store.sql import QUERIES

META = "finish"
ROUND = "round-"  # the step that proposes a loop's next round
STAGES = get_args(StageKind)


def finish(db: sqlite3.Connection, d: Decision) -> str | None:
    """`began` or `ended`; returns why it has no effect."""
    found = _read(db)
    steps = found.setdefault("steps", {})
    step, n = str(d.data["step"]), int(d.data["n"])
    known = steps.get(step)
    if d.data["what"] == "began":
        if known and n <= known["n"]:
            return f"execution {n} of {step} does not follow {known['n']}"
        steps[step] = {
            "step": step, "key": str(d.data["key"]), "n": n, "token": str(d.data["token"]), "at": d.at, "boot": d.boot,
            "boot_id": str(d.data["boot_id"]), "lost": int(d.data.get("lost", 0)),
        }  # fmt: skip
    elif known is None or known["n"] != n or known.get("ended"):
        return f"no execution {n} of {step} is under way"
    else:
        ok = d.data.get("ok")
        lost = int(d.data.get("lost", known["lost"]))
        known.update(ended=d.at, ok=None if ok is None else bool(ok), why=d.reason, lost=lost)
        known.update({name: str(d.data[name]) for name in ("verdict", "flag") if d.data.get(name)})
    _write(db, found)
    return None


def shutdown(db: sqlite3.Connection, d: Decision) -> str | None:
    """A wish, its end, or how far it has come; returns why it has no effect."""
    found, what = _read(db), str(d.data["what"])
    if what == "wish":
        command, countdown = d.data.get("command"), d.data.get("countdown_s")
        found["wish"] = {
            "who": d.who, "at": d.at, "command": None if command is None else str(command),
            "countdown_s": None if countdown is None else float(countdown),
        }  # fmt: skip
        found.update(cancelled="", stage=None, begun="")
    elif what == "cancel":
        found.update(wish=None, cancelled=f"{d.who} at {d.at}", cancels=int(found.get("cancels", 0)) + 1, stage=None)
    elif what not in STAGES:
        return f"this version does not know what {what!r} means"
    else:
        if what == "began" and int(d.data.get("cancels", 0)) != int(found.get("cancels", 0)):
            return f"it was cancelled by {found.get('cancelled')}"
        found["stage"] = {
            "what": what, "at": d.at, "boot": d.boot, "who": d.who, "key": str(d.data.get("key", "")),
            "reasons": [str(reason) for reason in d.data.get("reasons", ())], "command": str(d.data.get("command", "")),
            "countdown_s": float(d.data.get("countdown_s", 0.0)), "mark": str(d.data.get("mark", "")),
        }  # fmt: skip
        if boot_id := fold_clock.boot_of(db):
            found["stage"]["boot_id"] = boot_id
        if what == "began":  # it must not come again when the machine is switched on
            found.update(wish=None, begun=str(d.data.get("key", "")))
    _write(db, found)
    return None


def forget_failures(db: sqlite3.Connection) -> None:
    """A person says `muster up`: what failed is tried again, and a loop is asked again. A shutdown that may have
    happened is not."""
    found = _read(db)
    steps = found.get("steps", {}).values()
    ended = [step for step in steps if step.get("ok") is not None]
    failed = [step for step in ended if not step["ok"] or step["step"].startswith(ROUND)]
    for step in failed:
        step.update(ok=None, lost=0)  # its number stays taken: its folder is there
    stage = found.get("stage")
    if stage is not None and stage["what"] == "failed":
        found.update(stage=None, begun="")
    elif not failed:
        return
    _write(db, found)


def _read(db: sqlite3.Connection) -> dict[str, Any]:
    row = db.execute(QUERIES["get_meta"], (META,)).fetchone()
    found: dict[str, Any] = json.loads(row[0]) if row else {}
    return found


def _write(db: sqlite3.Connection, found: dict[str, Any]) -> None:
    db.execute(QUERIES["set_meta"], (META, json.dumps(found, ensure_ascii=False)))
