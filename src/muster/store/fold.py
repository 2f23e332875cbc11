"""What each kind of decision does to the database. One decision at a time, in the order of the log.

A decision that comes too late or against a rule is refused: it stays in the log and in the event table, marked void,
and changes nothing. So the same log always folds to the same database, whoever folds it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from muster.domain.decision import EVENT_KINDS, LARGEST, Decision
from muster.store import fold_clock, fold_finish, fold_gates, fold_loop, fold_money, fold_refused, fold_rename
from muster.store.sql import QUERIES


class Refused(Exception):
    """The reason why a decision has no effect."""


# what the fold needs from outside: the cells of a campaign that was taken in, as (id, job, axes JSON, hash)
CellRows = list[tuple[str, str, str, str]]
Declared = Callable[[str], CellRows]
OUTRUN = "a round of the loop was taken in meanwhile"
UNREADABLE = (  # the last three are of what no column can hold
    AttributeError, KeyError, TypeError, ValueError, OverflowError, sqlite3.InterfaceError, sqlite3.ProgrammingError,
)  # fmt: skip
STARTS_NOTHING = (  # a gate that opens may
    "epoch", "clock", "hold", "stop", "finish", "shutdown", "budget", "flag", "clean", "refuse",
)  # fmt: skip


def fold(db: sqlite3.Connection, decision: Decision, declared: Declared) -> str | None:
    """Applies one decision and writes its event; returns why it was refused, if it was."""
    void = None
    twice = decision.ref is not None and db.execute(QUERIES["became_of"], (decision.ref,)).fetchone() is not None
    db.execute("SAVEPOINT one")
    try:
        if twice:
            raise Refused("the same decision twice")
        _guard_epoch(db, decision)
        handler = _HANDLERS.get(decision.kind)
        if handler:
            handler(db, decision, declared)
            if decision.kind not in STARTS_NOTHING:  # the others may let a cell start
                set_meta(db, "at_rest", "1" if decision.kind == "end" else "0")
    except (Refused, sqlite3.IntegrityError) as refusal:
        db.execute("ROLLBACK TO one")
        void = str(refusal)
    except UNREADABLE as error:  # a line of another version, or mended by hand
        db.execute("ROLLBACK TO one")
        void = f"it can't be read: {error!r}"
    db.execute("RELEASE one")
    _add_event(db, decision, void, None if twice else decision.ref)
    return void


def meta(db: sqlite3.Connection, key: str, default: str = "") -> str:
    row = db.execute(QUERIES["get_meta"], (key,)).fetchone()
    return row[0] if row else default


def set_meta(db: sqlite3.Connection, key: str, value: str) -> None:
    db.execute(QUERIES["set_meta"], (key, value))


def _add_event(db: sqlite3.Connection, d: Decision, void: str | None, ref: str | None) -> None:
    data = json.dumps(d.data, ensure_ascii=False)
    row = (d.at, d.boot, d.who, d.epoch, d.kind, d.cell, d.attempt, d.reason, data, ref, void)
    db.execute(QUERIES["add_event"], row)


def _guard_epoch(db: sqlite3.Connection, decision: Decision) -> None:
    if decision.epoch is None or decision.kind == "epoch":
        return
    current = int(meta(db, "epoch", "0"))
    if decision.epoch < current:
        raise Refused(f"decided in epoch {decision.epoch}, the campaign is in epoch {current}")


def _epoch(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    epoch = int(d.data["epoch"])
    if epoch <= int(meta(db, "epoch", "0")):
        raise Refused("a controller of this epoch or a newer one exists")
    if epoch >= LARGEST:
        raise Refused("no epoch could follow it")
    set_meta(db, "epoch", str(epoch))
    if "format" in d.data:
        set_meta(db, "format", str(d.data["format"]))
    fold_clock.noted(db, d)


def _refuse_if_held(db: sqlite3.Connection) -> None:
    if meta(db, "intent", "down") == "held":
        raise Refused(f"the campaign is held: {meta(db, 'intent_reason')}")


def _campaign(db: sqlite3.Connection, d: Decision, declared: Declared) -> None:
    if d.data.get("with_up"):
        _refuse_if_held(db)
    if fold_loop.outrun(db, d):
        raise Refused(OUTRUN)
    _declare(db, d.data["hash"], declared)
    set_meta(db, "env_file", d.data["env_file"])
    set_meta(db, "only", "[]")
    fold_money.declared(db, d)
    fold_loop.declared(db, d)


def _declare(db: sqlite3.Connection, name: str, declared: Declared) -> None:
    db.execute(QUERIES["withdraw_all"])
    rows = declared(name)
    if why := fold_rename.reused(db, (row[0] for row in rows)):
        raise Refused(why)
    db.executemany(
        QUERIES["declare_cell"], ((cell, at, job, axes, hash_) for at, (cell, job, axes, hash_) in enumerate(rows))
    )
    set_meta(db, "campaign", name)


def _round(db: sqlite3.Connection, d: Decision, declared: Declared) -> None:
    if d.data["after"] != meta(db, "campaign"):
        raise Refused("another campaign was taken in meanwhile")
    if why := fold_loop.proposed(db, d):
        raise Refused(why)
    if d.data.get("hash"):
        _declare(db, d.data["hash"], declared)


def _rename(db: sqlite3.Connection, d: Decision, declared: Declared) -> None:
    if d.data["after"] != meta(db, "campaign"):
        raise Refused("another campaign was taken in meanwhile")
    if why := fold_rename.move_cells(db, d):
        raise Refused(why)
    _declare(db, d.data["hash"], declared)
    fold_rename.keep_definitions(db, d.data["same"])


def _filter(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    if d.data.get("with_up"):
        _refuse_if_held(db)
    only = [{axis: list(names) for axis, names in part.items()} for part in d.data["only"]]
    set_meta(db, "only", json.dumps(only))


def _intent(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    wanted = d.data["intent"]
    if wanted != "down":
        _refuse_if_held(db)
        fold_finish.forget_failures(db)
        fold_loop.go_on(db)
    if meta(db, "intent", "down") == "held":
        set_meta(db, "intent_before", "down")
    else:
        set_meta(db, "intent", wanted)
        set_meta(db, "intent_reason", d.reason)


def _hold(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    before = meta(db, "intent", "down")
    if before != "held":
        set_meta(db, "intent_before", before)
    set_meta(db, "intent", "held")
    set_meta(db, "intent_reason", d.reason)


def _release(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    if meta(db, "intent", "down") != "held":
        raise Refused("the campaign is not held")
    if d.data.get("held_for", meta(db, "intent_reason", "")) != meta(db, "intent_reason", ""):
        raise Refused("it is held for another reason now")
    set_meta(db, "intent", meta(db, "intent_before", "running"))
    set_meta(db, "intent_reason", d.reason)
    set_meta(db, "forgiven", meta(db, "settled", "0"))
    fold_loop.go_on(db)


def _start(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    cell = _cell(db, d)
    recovered = d.data.get("recovered")  # fsck found its folder: it did start, whatever is wanted now
    if not recovered:
        _may_start(db, cell)
        _refuse_superseded(db, d)
    _claim(db, d, adopted=False)
    db.execute(QUERIES["set_retry"], (None, d.cell))
    db.execute(QUERIES["set_stop"], (None, d.cell))
    for slot in d.data["slots"]:
        if not recovered:  # a slot is held by one at a time; one that is recovered may be older than what is open
            db.execute(QUERIES["end_spans_of_slot"], (d.at, slot))
        db.execute(QUERIES["begin_span"], (slot, d.cell, d.attempt, d.data["boot_id"], d.at, d.boot))


def _may_start(db: sqlite3.Connection, cell: Any) -> None:
    intent = meta(db, "intent", "down")
    if intent != "running":
        raise Refused(f"the campaign is {intent}: {meta(db, 'intent_reason')}")
    if not cell["declared"] or cell["given_up"] is not None:
        raise Refused("the cell is given up" if cell["declared"] else "the cell is no longer declared")
    if cell["stop_because"] is not None:
        raise Refused(f"a stop was asked for: {cell['stop_because']}; `muster retry` lets it start again")


def _refuse_superseded(db: sqlite3.Connection, d: Decision) -> None:
    """What it was to rest on must still count: a redo may have come between the decision and this moment."""
    for need, n in d.data.get("rests_on", {}).items():
        if not any(row["n"] == n and _completed(row) for row in db.execute(QUERIES["attempts_of"], (need,))):
            raise Refused(f"attempt {n} of {need}, which it needs, does not count any more")


def _claim(db: sqlite3.Connection, d: Decision, *, adopted: bool) -> None:
    known = db.execute(QUERIES["attempts_of"], (d.cell,)).fetchall()
    if d.attempt != len(known) + 1:
        raise Refused(f"attempt {d.attempt} does not follow {len(known)}")
    a, slots = d.data, list(d.data["slots"])
    if not all(isinstance(slot, str) for slot in slots):
        raise Refused("its slots have no names")
    db.execute(
        QUERIES["claim"],
        (d.cell, d.attempt, a["token"], d.epoch or 0, json.dumps(slots), a["hash"], d.at, d.boot, a["boot_id"],
         a.get("retry_cause"), int(adopted)),
    )  # fmt: skip


def _settle(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    order = int(meta(db, "settled", "0")) + 1  # wall times of different zones and clocks tell no order
    set_meta(db, "settled", str(order))
    outcome = {**d.data["outcome"], "order": order}
    changed = db.execute(QUERIES["settle"], (outcome["verdict"], json.dumps(outcome), d.cell, d.attempt))
    if changed.rowcount != 1:
        raise Refused("there is no such attempt")
    if outcome["verdict"] == "DONE" or (outcome.get("cause") or {}).get("kind") == "user_stop":
        db.execute(QUERIES["set_stop"], (None, d.cell))  # else it died of something else, and stopped it shall stay
    if (outcome.get("cause") or {}).get("kind") == "pruned":  # as the campaign declares: nobody has to give it up
        db.execute(QUERIES["set_given_up"], (outcome["reason"], d.cell))
    held_until = d.data.get("held_until_boot")  # orphans hold a slot longer than the main process lives
    db.execute(
        QUERIES["end_spans"],
        {"at": d.data.get("ended_at") or d.at, "boot": d.data.get("ended_boot") if held_until is None else held_until,
         "boot_id": d.data.get("boot_id"), "cell": d.cell, "attempt": d.attempt},
    )  # fmt: skip


def _adopt(db: sqlite3.Connection, d: Decision, declared: Declared) -> None:
    if not _cell(db, d)["declared"]:
        raise Refused("the cell is not declared")
    _claim(db, d, adopted=True)
    _settle(db, d, declared)
    fold_refused.taken(db, d.data.get("path"))


def _refuse(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    _cell(db, d)
    fold_refused.refused(db, d)


def _retry(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    attempts = _ended(db, d, "retried")
    if not attempts and _cell(db, d)["given_up"] is None:
        raise Refused("it has not run yet; it starts by itself when a slot is free")
    db.execute(QUERIES["set_given_up"], (None, d.cell))
    db.execute(QUERIES["set_stop"], (None, d.cell))
    db.execute(QUERIES["set_retry"], (d.reason, d.cell))
    fold_loop.go_on(db)  # what it brings may change what comes next


def _redo(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    """Its completed attempt counts no more. What needs it must have been redone before, and may not be running."""
    if "campaign" in d.data and d.data["campaign"] != meta(db, "campaign"):
        raise Refused("another campaign was taken in meanwhile")
    cell = _cell(db, d)
    if not cell["declared"]:
        raise Refused("it is no longer declared and can't be redone")
    attempts = db.execute(QUERIES["attempts_of"], (cell["id"],)).fetchall()
    if any(row["outcome"] is None for row in attempts):
        raise Refused("it is running and can't be redone; stop it first")
    done = next((row for row in attempts if _completed(row)), None)
    if done is None:
        raise Refused("it is not DONE; `muster retry` lets it start again" if attempts else "it has not run yet")
    for follower in d.data.get("needed_by", ()):
        _refuse_follower(db, follower)
    db.execute(QUERIES["supersede"], (d.reason, d.cell, done["n"]))
    fold_loop.go_on(db)


def _refuse_follower(db: sqlite3.Connection, cell: str) -> None:
    for row in db.execute(QUERIES["attempts_of"], (cell,)).fetchall():
        if row["outcome"] is None:
            raise Refused(f"{cell} is running on it; stop it first, or wait for its end")
        if _completed(row):
            raise Refused(f"{cell} rests on it and is DONE; it must be redone, too")


def _giveup(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    _ended(db, d, "given up")
    db.execute(QUERIES["set_given_up"], (d.reason, d.cell))
    db.execute(QUERIES["set_retry"], (None, d.cell))
    db.execute(QUERIES["set_stop"], (None, d.cell))


def _reread(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    """The newest reading of its last attempt's proof. One that holds makes it DONE; the verdict stays as it was."""
    if d.data["campaign"] != meta(db, "campaign"):
        raise Refused("another campaign was taken in meanwhile")
    attempts = _ended(db, d, "read again")
    last = attempts[-1] if attempts else None
    outcome = json.loads(last["outcome"]) if last else {}
    if last is None or last["n"] != d.attempt or last["superseded"] is not None:
        raise Refused(f"attempt {d.attempt} is not its last one")
    if outcome.get("exit_code") != 0 or (outcome.get("cause") or {}).get("kind") != "early_exit":
        raise Refused("it did not end with exit 0 and a proof that fails")
    found = {key: value for key, value in d.data.items() if key != "campaign"}
    db.execute(QUERIES["set_reread"], (json.dumps(found, ensure_ascii=False), d.cell, d.attempt))
    if d.data["holds"]:
        db.execute(QUERIES["accept"], (d.reason, d.cell, d.attempt))
        db.execute(QUERIES["set_retry"], (None, d.cell))
        db.execute(QUERIES["set_stop"], (None, d.cell))
        fold_loop.go_on(db)


def _accept(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    attempts = _ended(db, d, "accepted")
    if not attempts:
        raise Refused("it has no attempt to accept")
    chosen = next((row for row in attempts if row["n"] == d.attempt), None)
    if chosen is None:
        raise Refused(f"it has no attempt {d.attempt}")
    if chosen["superseded"] is not None:
        raise Refused(f"attempt {d.attempt} was superseded: {chosen['superseded']}")
    db.execute(QUERIES["accept"], (d.reason, d.cell, d.attempt))
    db.execute(QUERIES["set_retry"], (None, d.cell))
    db.execute(QUERIES["set_stop"], (None, d.cell))


def _stop(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    attempts = db.execute(QUERIES["attempts_of"], (_cell(db, d)["id"],)).fetchall()
    if not attempts or attempts[-1]["outcome"] is not None:
        raise Refused("it is not running")
    if d.attempt is not None and d.attempt != attempts[-1]["n"]:
        raise Refused(f"attempt {d.attempt} has ended already")
    db.execute(QUERIES["set_stop"], (d.reason, d.cell))


def _finish(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    if why := (fold_finish.finish if d.kind == "finish" else fold_finish.shutdown)(db, d):
        raise Refused(why)


def _gate(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    _cell(db, d)
    if why := fold_gates.told(db, d):
        raise Refused(why)


def _flag(_db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    """Kept as an event: reports ask for those."""
    if not d.reason or not d.data["code"] or not d.data["flags"]:
        raise Refused("it names no flag, or no reason")


def _clean(db: sqlite3.Connection, d: Decision, _: Declared) -> None:
    """Kept as an event. What counts now, whoever made it count in the same moment, stays."""
    if d.cell is None:
        return
    rows = db.execute(QUERIES["attempts_of"], (_cell(db, d)["id"],)).fetchall()
    row = next((row for row in rows if row["n"] == d.attempt), None)
    if row is None:
        raise Refused(f"it has no attempt {d.attempt}")
    if row["outcome"] is None or _completed(row):
        raise Refused(f"attempt {d.attempt} {'counts' if row['outcome'] else 'is running'}")
    if not any(map(_completed, rows)):
        raise Refused("the cell is not DONE any more")


def _cell(db: sqlite3.Connection, d: Decision) -> Any:
    row = db.execute(QUERIES["one_cell"], (d.cell,)).fetchone()
    if row is None:
        raise Refused("there is no such cell")
    return row


def _ended(db: sqlite3.Connection, d: Decision, verb: str) -> list[Any]:
    """The cell's attempts, all ended and none completed."""
    cell = _cell(db, d)
    if not cell["declared"]:
        raise Refused(f"it is no longer declared and can't be {verb}")
    attempts = db.execute(QUERIES["attempts_of"], (cell["id"],)).fetchall()
    if any(row["outcome"] is None for row in attempts):
        raise Refused(f"it is running and can't be {verb}; stop it first")
    if any(map(_completed, attempts)):
        raise Refused(f"it is DONE and can't be {verb}")
    return attempts


def _completed(row: Any) -> bool:
    if row["superseded"] is not None or row["outcome"] is None:
        return False
    return row["accepted"] is not None or bool(json.loads(row["outcome"])["verdict"] == "DONE")


_HANDLERS: dict[str, Callable[[sqlite3.Connection, Decision, Declared], None]] = {
    "epoch": _epoch,
    "clock": lambda db, d, _: fold_clock.noted(db, d),
    "campaign": _campaign,
    "filter": _filter,
    "intent": _intent,
    "hold": _hold,
    "release": _release,
    "start": _start,
    "settle": _settle,
    "adopt": _adopt,
    "refuse": _refuse,
    "retry": _retry,
    "redo": _redo,
    "reread": _reread,
    "giveup": _giveup,
    "accept": _accept,
    "stop": _stop,
    "finish": _finish,
    "round": _round,
    "rename": _rename,
    "shutdown": _finish,
    "budget": lambda db, d, _: fold_money.told(db, d),
    "gate": _gate,
    "flag": _flag,
    "clean": _clean,
    "end": lambda *_: None,
}
KINDS = frozenset((*_HANDLERS, *EVENT_KINDS))
