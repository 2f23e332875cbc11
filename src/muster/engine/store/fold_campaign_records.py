"""The fold of decisions about the whole campaign: the machine's clocks, steps of the finish, rounds of a loop, prices
and budget.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, get_args

from muster.engine.store.sql_files import QUERIES, read_json_meta, write_json_meta
from muster.model.calendar import ClockRecord, seconds_of_iso_time
from muster.model.campaign_state import ShutdownStageKind
from muster.model.decision import Decision
from muster.model.variant import VARIANT_AXIS
from muster.text.phrases import phrase

CLOCK_META = "clock"
_SAME_S = 1.0


def record_clocks(db: sqlite3.Connection, d: Decision) -> None:
    """`epoch` and `clock`. A log of an older version does not say in which boot it was: then nothing is kept.

    A boot whose clock shows a time before all that is known already has not been set yet: the next word counts. One
    that follows a boot in which the clock was set may still be wrong by as much: then whatever makes the gap shorter.
    """
    boot_id, wall = d.data.get("boot_id"), seconds_of_iso_time(d.at)
    if not isinstance(boot_id, str) or wall is None:
        return
    found, offset = read_json_meta(db, CLOCK_META), wall - d.boot
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
    db.execute(QUERIES["set_meta"], (CLOCK_META, json.dumps(found)))


def calendar_time_of(db: sqlite3.Connection, d: Decision) -> str:
    """When it was decided, by the campaign's calendar; as it says itself, where no clock was set."""
    record, wall = parse_clock_record(json.dumps(read_json_meta(db, CLOCK_META))), seconds_of_iso_time(d.at)
    if wall is None:
        return d.at
    moved = record.place(record.boot_id, d.boot, wall) - wall
    if abs(moved) < _SAME_S:
        return d.at
    return (datetime.fromisoformat(d.at) + timedelta(seconds=moved)).isoformat(timespec="milliseconds")


def latest_boot_id(db: sqlite3.Connection) -> str:
    """In which the newest decision was made; "": nobody knows."""
    return str(read_json_meta(db, CLOCK_META).get("boot_id", ""))


def parse_clock_record(text: str) -> ClockRecord:
    found = json.loads(text)
    seen = found.get("seen")
    return ClockRecord(found.get("offsets", {}), (seen[0], seen[1]) if seen else None, found.get("boot_id", ""))


FINISH_META = "finish"
ROUND_STEP_PREFIX = "round-"  # the step that proposes a loop's next round
SHUTDOWN_STAGES = get_args(ShutdownStageKind)


def record_finish_step(db: sqlite3.Connection, d: Decision) -> str | None:
    """`began` or `ended`; returns why it has no effect."""
    found = read_json_meta(db, FINISH_META)
    steps = found.setdefault("steps", {})
    step, n = str(d.data["step"]), int(d.data["n"])
    known = steps.get(step)
    if d.data["what"] == "began":
        if known and n <= known["n"]:
            return phrase("store.step_does_not_follow", n=n, step=step, last=known["n"])
        steps[step] = {
            "step": step,
            "key": str(d.data["key"]),
            "n": n,
            "token": str(d.data["token"]),
            "at": d.at,
            "boot": d.boot,
            "boot_id": str(d.data["boot_id"]),
            "lost": int(d.data.get("lost", 0)),
        }
    elif known is None or known["n"] != n or known.get("ended"):
        return phrase("store.step_not_under_way", n=n, step=step)
    else:
        ok = d.data.get("ok")
        lost = int(d.data.get("lost", known["lost"]))
        known.update(ended=d.at, ok=None if ok is None else bool(ok), why=d.reason, lost=lost)
        known.update({name: str(d.data[name]) for name in ("verdict", "flag") if d.data.get(name)})
    write_json_meta(db, FINISH_META, found)
    return None


def record_shutdown(db: sqlite3.Connection, d: Decision) -> str | None:
    """A wish, its end, or how far it has come; returns why it has no effect."""
    found, what = read_json_meta(db, FINISH_META), str(d.data["what"])
    if what == "wish":
        command, countdown = d.data.get("command"), d.data.get("countdown_s")
        found["wish"] = {
            "who": d.who,
            "at": d.at,
            "command": None if command is None else str(command),
            "countdown_s": None if countdown is None else float(countdown),
        }
        found.update(cancelled="", stage=None, begun="")
    elif what == "cancel":
        found.update(wish=None, cancelled=f"{d.who} at {d.at}", cancels=int(found.get("cancels", 0)) + 1, stage=None)
    elif what not in SHUTDOWN_STAGES:
        return phrase("store.shutdown_unknown", stage=what)
    else:
        if what == "began" and int(d.data.get("cancels", 0)) != int(found.get("cancels", 0)):
            return phrase("store.cancelled_by", who=found.get("cancelled"))
        found["stage"] = {
            "what": what,
            "at": d.at,
            "boot": d.boot,
            "who": d.who,
            "key": str(d.data.get("key", "")),
            "reasons": [str(reason) for reason in d.data.get("reasons", ())],
            "command": str(d.data.get("command", "")),
            "countdown_s": float(d.data.get("countdown_s", 0.0)),
            "mark": str(d.data.get("mark", "")),
        }
        if boot_id := latest_boot_id(db):
            found["stage"]["boot_id"] = boot_id
        if what == "began":  # it must not come again when the machine is switched on
            found.update(wish=None, begun=str(d.data.get("key", "")))
    write_json_meta(db, FINISH_META, found)
    return None


def forget_finish_failures(db: sqlite3.Connection) -> None:
    """A person says `muster up`: what failed is tried again, and a loop is asked again. A shutdown that may have
    happened is not."""
    found = read_json_meta(db, FINISH_META)
    steps = found.get("steps", {}).values()
    ended = [step for step in steps if step.get("ok") is not None]
    failed = [step for step in ended if not step["ok"] or step["step"].startswith(ROUND_STEP_PREFIX)]
    for step in failed:
        step.update(ok=None, lost=0)  # its number stays taken: its folder is there
    stage = found.get("stage")
    if stage is not None and stage["what"] == "failed":
        found.update(stage=None, begun="")
    elif not failed:
        return
    write_json_meta(db, FINISH_META, found)


LOOP_META = "loop"


def record_base_variants(db: sqlite3.Connection, d: Decision) -> None:
    """`campaign`: its base configs are round 1. Variants of earlier rounds stay, but for bases that were fixed."""
    bases = d.data.get("bases")
    if not isinstance(bases, list):
        return
    found = _read_loop_meta(db)
    known = {each["name"] for each in found["variants"]}
    mended = {each["name"]: each for each in d.data.get("mended", ())}
    found["variants"] = [mended.get(each["name"], each) for each in found["variants"]]
    found["variants"] += [each for each in bases if each["name"] not in known]
    found["round"] = max(1, found["round"])
    found["most"] = int(d.data.get("rounds") or 0)
    write_json_meta(db, LOOP_META, found)


def is_outrun_by_round(db: sqlite3.Connection, d: Decision) -> bool:
    """Whether variants were taken in that whoever read the campaign did not see: they would be withdrawn.

    Or a base was fixed, and a run of it has begun or come to a good end meanwhile, with the old config.
    """
    seen = d.data.get("variants_seen")
    if seen is not None and seen != len(_read_loop_meta(db)["variants"]):
        return True
    names = {each["name"] for each in d.data.get("mended", ())}
    return bool(names) and not names.isdisjoint(_variants_in_use(db))


def _variants_in_use(db: sqlite3.Connection) -> Iterator[str]:
    """Variants with an open or a completed attempt: their config can't be another one."""
    for row in db.execute(QUERIES["cells_with_open_or_done"]):
        yield from (name for axis, name, _ in json.loads(row[0]) if axis == VARIANT_AXIS)


def record_round(db: sqlite3.Connection, d: Decision) -> str | None:
    """`round`: the variants of the next one, or why there is none; returns why it has no effect."""
    found, number = _read_loop_meta(db), int(d.data["round"])
    if number != found["round"] + 1:
        return phrase("store.round_does_not_follow_round", number=number, last=found["round"])
    if stopped := str(d.data.get("stopped", "")):
        found["stopped"] = stopped
    else:
        known = {each["name"] for each in found["variants"]} | {each["digest"] for each in found["variants"]}
        fresh = list(d.data["variants"])
        if not fresh:
            return phrase("store.proposes_nothing")
        if twice := [each["name"] for each in fresh if each["name"] in known or each["digest"] in known]:
            return phrase("store.tried_before", variants=", ".join(twice))
        found.update(variants=[*found["variants"], *fresh], round=number, stopped="")
    write_json_meta(db, LOOP_META, found)
    return None


def resume_loop(db: sqlite3.Connection) -> None:
    """A person says `up`, `release` or `retry`: a loop that had stopped may propose again."""
    found = _read_loop_meta(db)
    if found["stopped"]:
        found["stopped"] = ""
        write_json_meta(db, LOOP_META, found)


def _read_loop_meta(db: sqlite3.Connection) -> dict[str, Any]:
    found: dict[str, Any] = read_json_meta(db, LOOP_META)
    return {"variants": [], "round": 0, "stopped": "", "most": 0} | found


PRICES_META = "prices"
BUDGET_META = "budget_told"


def record_prices(db: sqlite3.Connection, d: Decision) -> None:
    """`campaign`: its `money:` holds from now on. A log of an older version does not say it: then nothing is kept."""
    money = d.data.get("money")
    if not isinstance(money, dict):
        return
    known = read_json_meta(db, PRICES_META, "[]")
    if not known or known[-1]["money"] != money:
        write_json_meta(db, PRICES_META, [*known, {"at": calendar_time_of(db, d), "money": money}])


def record_budget_level(db: sqlite3.Connection, d: Decision) -> None:
    """`budget`: each level is told once for each budget."""
    budget, level = float(d.data["budget"]), str(d.data["level"])
    known = [each for each in read_json_meta(db, BUDGET_META, "[]") if each[0] == budget and each[1] != level]
    write_json_meta(db, BUDGET_META, [*known, [budget, level]])
