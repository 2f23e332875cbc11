"""What decisions say about a loop: which variants each round has, and why no further one comes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from muster.domain.decision import Decision
from muster.domain.variants import AXIS
from muster.store.sql import QUERIES

META = "loop"


def declared(db: sqlite3.Connection, d: Decision) -> None:
    """`campaign`: its base configs are round 1. Variants of earlier rounds stay, but for bases that were mended."""
    bases = d.data.get("bases")
    if not isinstance(bases, list):
        return
    found = _read(db)
    known = {each["name"] for each in found["variants"]}
    mended = {each["name"]: each for each in d.data.get("mended", ())}
    found["variants"] = [mended.get(each["name"], each) for each in found["variants"]]
    found["variants"] += [each for each in bases if each["name"] not in known]
    found["round"] = max(1, found["round"])
    found["most"] = int(d.data.get("rounds") or 0)
    _write(db, found)


def outrun(db: sqlite3.Connection, d: Decision) -> bool:
    """Whether variants were taken in that whoever read the campaign did not see: they would be withdrawn.

    Or a base was mended, and a run of it has begun or come to a good end meanwhile, with the old config.
    """
    seen = d.data.get("variants_seen")
    if seen is not None and seen != len(_read(db)["variants"]):
        return True
    names = {each["name"] for each in d.data.get("mended", ())}
    return bool(names) and not names.isdisjoint(_resting(db))


def _resting(db: sqlite3.Connection) -> Iterator[str]:
    """Variants with an open or a completed attempt: their config can't be another one."""
    for row in db.execute(QUERIES["cells_with_open_or_done"]):
        yield from (name for axis, name, _ in json.loads(row[0]) if axis == AXIS)


def proposed(db: sqlite3.Connection, d: Decision) -> str | None:
    """`round`: the variants of the next one, or why there is none; returns why it has no effect."""
    found, number = _read(db), int(d.data["round"])
    if number != found["round"] + 1:
        return f"round {number} does not follow round {found['round']}"
    if stopped := str(d.data.get("stopped", "")):
        found["stopped"] = stopped
    else:
        known = {each["name"] for each in found["variants"]} | {each["digest"] for each in found["variants"]}
        fresh = list(d.data["variants"])
        if not fresh:
            return "it proposes nothing"
        if twice := [each["name"] for each in fresh if each["name"] in known or each["digest"] in known]:
            return f"{', '.join(twice)} was tried before"
        found.update(variants=[*found["variants"], *fresh], round=number, stopped="")
    _write(db, found)
    return None


def go_on(db: sqlite3.Connection) -> None:
    """A person says `up`, `release` or `retry`: a loop that had stopped may propose again."""
    found = _read(db)
    if found["stopped"]:
        found["stopped"] = ""
        _write(db, found)


def _read(db: sqlite3.Connection) -> dict[str, Any]:
    row = db.execute(QUERIES["get_meta"], (META,)).fetchone()
    found: dict[str, Any] = json.loads(row[0]) if row else {}
    return {"variants": [], "round": 0, "stopped": "", "most": 0} | found


def _write(db: sqlite3.Connection, found: dict[str, Any]) -> None:
    db.execute(QUERIES["set_meta"], (META, json.dumps(found, ensure_ascii=False)))
