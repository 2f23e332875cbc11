"""What each kind of decision does to the database. One decision at a time, in the order of the log.

A decision that comes too late or against a rule is refused: it stays in the log and in the event table, marked void,
and changes nothing. So the same log always folds to the same database, whoever folds it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from muster.engine.store.fold_campaign_records import (
    forget_finish_failures,
    is_outrun_by_round,
    record_base_variants,
    record_budget_level,
    record_clocks,
    record_finish_step,
    record_prices,
    record_round,
    record_shutdown,
    resume_loop,
)
from muster.engine.store.fold_cell_records import (
    drop_refused_run,
    keep_old_definitions,
    move_renamed_cells,
    record_gate_event,
    record_refused_run,
    reused_name_reason,
)
from muster.engine.store.sql_files import QUERIES, read_meta, write_meta
from muster.model.decision import EVENT_KINDS, LARGEST, OUTRUN_REASON, Decision
from muster.text.phrases import english_text, phrase


class DecisionRefused(Exception):
    """The reason why a decision has no effect."""


# what the fold needs from outside: the cells of a campaign that was taken in, as (id, job, axes JSON, hash)
CellRows = list[tuple[str, str, str, str]]
CellRowsLoader = Callable[[str], CellRows]
UNREADABLE = (  # the last three are of what no column can hold
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)
KINDS_THAT_START_NOTHING = (  # a gate that opens may
    "epoch",
    "clock",
    "hold",
    "stop",
    "finish",
    "shutdown",
    "budget",
    "flag",
    "clean",
    "refuse",
)


def fold_decision(db: sqlite3.Connection, decision: Decision, declared: CellRowsLoader) -> str | None:
    """Applies one decision and writes its event; returns why it was refused, if it was."""
    void = None
    twice = decision.ref is not None and db.execute(QUERIES["became_of"], (decision.ref,)).fetchone() is not None
    db.execute("SAVEPOINT one")
    try:
        if twice:
            raise DecisionRefused(phrase("store.same_decision_twice"))
        _check_epoch(db, decision)
        handler = _FOLD_HANDLERS.get(decision.kind)
        if handler:
            handler(db, decision, declared)
            if decision.kind not in KINDS_THAT_START_NOTHING:  # the others may let a cell start
                write_meta(db, "at_rest", "1" if decision.kind == "end" else "0")
    except (DecisionRefused, sqlite3.IntegrityError) as refusal:
        db.execute("ROLLBACK TO one")
        void = refusal.args[0] if isinstance(refusal, DecisionRefused) else str(refusal)
    except UNREADABLE as error:  # a line of another version, or fixed by hand
        db.execute("ROLLBACK TO one")
        void = phrase("store.decision_unreadable", reason=error)
    db.execute("RELEASE one")
    _write_event(db, decision, void, None if twice else decision.ref)
    return void


def _write_event(db: sqlite3.Connection, d: Decision, void: str | None, ref: str | None) -> None:
    data = json.dumps(d.data, ensure_ascii=False)
    row = (d.at, d.boot, d.who, d.epoch, d.kind, d.cell, d.attempt, d.reason, data, ref, void and english_text(void))
    db.execute(QUERIES["add_event"], row)


def _check_epoch(db: sqlite3.Connection, decision: Decision) -> None:
    if decision.epoch is None or decision.kind == "epoch":
        return
    current = int(read_meta(db, "epoch", "0"))
    if decision.epoch < current:
        raise DecisionRefused(phrase("store.decided_in_old_epoch", epoch=decision.epoch, current=current))


def _fold_epoch(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    epoch = int(d.data["epoch"])
    if epoch <= int(read_meta(db, "epoch", "0")):
        raise DecisionRefused(phrase("store.epoch_exists"))
    if epoch >= LARGEST:
        raise DecisionRefused(phrase("store.last_possible_epoch"))
    write_meta(db, "epoch", str(epoch))
    if "format" in d.data:
        write_meta(db, "format", str(d.data["format"]))
    record_clocks(db, d)


def _check_not_held(db: sqlite3.Connection) -> None:
    if read_meta(db, "intent", "down") == "held":
        raise DecisionRefused(phrase("store.campaign_held", reason=read_meta(db, "intent_reason")))


def _fold_campaign(db: sqlite3.Connection, d: Decision, declared: CellRowsLoader) -> None:
    if d.data.get("with_up"):
        _check_not_held(db)
    if is_outrun_by_round(db, d):
        raise DecisionRefused(OUTRUN_REASON)
    _declare_cells(db, d.data["hash"], declared)
    write_meta(db, "env_file", d.data["env_file"])
    write_meta(db, "only", "[]")
    record_prices(db, d)
    record_base_variants(db, d)


def _declare_cells(db: sqlite3.Connection, name: str, declared: CellRowsLoader) -> None:
    db.execute(QUERIES["withdraw_all"])
    rows = declared(name)
    if why := reused_name_reason(db, (row[0] for row in rows)):
        raise DecisionRefused(why)
    db.executemany(
        QUERIES["declare_cell"], ((cell, at, job, axes, hash_) for at, (cell, job, axes, hash_) in enumerate(rows))
    )
    write_meta(db, "campaign", name)


def _fold_round(db: sqlite3.Connection, d: Decision, declared: CellRowsLoader) -> None:
    if d.data["after"] != read_meta(db, "campaign"):
        raise DecisionRefused(phrase("store.other_campaign_taken_in"))
    if why := record_round(db, d):
        raise DecisionRefused(why)
    if d.data.get("hash"):
        _declare_cells(db, d.data["hash"], declared)


def _fold_rename(db: sqlite3.Connection, d: Decision, declared: CellRowsLoader) -> None:
    if d.data["after"] != read_meta(db, "campaign"):
        raise DecisionRefused(phrase("store.other_campaign_taken_in"))
    if why := move_renamed_cells(db, d):
        raise DecisionRefused(why)
    _declare_cells(db, d.data["hash"], declared)
    keep_old_definitions(db, d.data["same"])


def _fold_filter(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    if d.data.get("with_up"):
        _check_not_held(db)
    only = [{axis: list(names) for axis, names in part.items()} for part in d.data["only"]]
    write_meta(db, "only", json.dumps(only))


def _fold_intent(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    wanted = d.data["intent"]
    if wanted != "down":
        _check_not_held(db)
        forget_finish_failures(db)
        resume_loop(db)
    if read_meta(db, "intent", "down") == "held":
        write_meta(db, "intent_before", "down")
    else:
        write_meta(db, "intent", wanted)
        write_meta(db, "intent_reason", d.reason)


def _fold_hold(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    before = read_meta(db, "intent", "down")
    if before != "held":
        write_meta(db, "intent_before", before)
    write_meta(db, "intent", "held")
    write_meta(db, "intent_reason", d.reason)


def _fold_release(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    if read_meta(db, "intent", "down") != "held":
        raise DecisionRefused(phrase("store.campaign_not_held"))
    if d.data.get("held_for", read_meta(db, "intent_reason", "")) != read_meta(db, "intent_reason", ""):
        raise DecisionRefused(phrase("store.held_another_reason_now"))
    write_meta(db, "intent", read_meta(db, "intent_before", "running"))
    write_meta(db, "intent_reason", d.reason)
    write_meta(db, "forgiven", read_meta(db, "settled", "0"))
    resume_loop(db)


def _fold_start(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    cell = _find_cell_row(db, d)
    recovered = d.data.get("recovered")  # fsck found its folder: it did start, whatever is wanted now
    if not recovered:
        _check_may_start(db, cell)
        _check_needs_still_count(db, d)
    _insert_claim(db, d, adopted=False)
    db.execute(QUERIES["set_retry"], (None, d.cell))
    db.execute(QUERIES["set_stop"], (None, d.cell))
    for slot in d.data["slots"]:
        if not recovered:  # a slot is held by one at a time; one that is recovered may be older than what is open
            db.execute(QUERIES["end_spans_of_slot"], (d.at, slot))
        db.execute(QUERIES["begin_span"], (slot, d.cell, d.attempt, d.data["boot_id"], d.at, d.boot))


def _check_may_start(db: sqlite3.Connection, cell: Any) -> None:
    intent = read_meta(db, "intent", "down")
    if intent != "running":
        raise DecisionRefused(
            phrase("store.campaign_not_running", intent=intent, reason=read_meta(db, "intent_reason"))
        )
    if not cell["declared"] or cell["given_up"] is not None:
        raise DecisionRefused(
            phrase("store.cell_given_up") if cell["declared"] else phrase("store.cell_no_longer_declared")
        )
    if cell["stop_because"] is not None:
        raise DecisionRefused(phrase("store.stop_asked_for", reason=cell["stop_because"]))


def _check_needs_still_count(db: sqlite3.Connection, d: Decision) -> None:
    """What it was to rest on must still count: a redo may have come between the decision and this moment."""
    for need, n in d.data.get("rests_on", {}).items():
        if not any(row["n"] == n and _is_completed_row(row) for row in db.execute(QUERIES["attempts_of"], (need,))):
            raise DecisionRefused(phrase("store.needed_attempt_counts_no_more", n=n, need=need))


def _insert_claim(db: sqlite3.Connection, d: Decision, *, adopted: bool) -> None:
    known = db.execute(QUERIES["attempts_of"], (d.cell,)).fetchall()
    if d.attempt != len(known) + 1:
        raise DecisionRefused(phrase("store.attempt_does_not_follow", attempt=d.attempt, last=len(known)))
    a, slots = d.data, list(d.data["slots"])
    if not all(isinstance(slot, str) for slot in slots):
        raise DecisionRefused(phrase("store.slots_no_names"))
    db.execute(
        QUERIES["claim"],
        (
            d.cell,
            d.attempt,
            a["token"],
            d.epoch or 0,
            json.dumps(slots),
            a["hash"],
            d.at,
            d.boot,
            a["boot_id"],
            a.get("retry_cause"),
            int(adopted),
        ),
    )


def _fold_settle(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    order = int(read_meta(db, "settled", "0")) + 1  # wall times of different zones and clocks tell no order
    write_meta(db, "settled", str(order))
    outcome = {**d.data["outcome"], "order": order}
    changed = db.execute(QUERIES["settle"], (outcome["verdict"], json.dumps(outcome), d.cell, d.attempt))
    if changed.rowcount != 1:
        raise DecisionRefused(phrase("store.no_such_attempt"))
    if outcome["verdict"] == "DONE" or (outcome.get("cause") or {}).get("kind") == "user_stop":
        db.execute(QUERIES["set_stop"], (None, d.cell))  # else it died of something else, and stopped it shall stay
    if (outcome.get("cause") or {}).get("kind") == "pruned":  # as the campaign declares: nobody has to give it up
        db.execute(QUERIES["set_given_up"], (outcome["reason"], d.cell))
    held_until = d.data.get("held_until_boot")  # orphans hold a slot longer than the main process lives
    db.execute(
        QUERIES["end_spans"],
        {
            "at": d.data.get("ended_at") or d.at,
            "boot": d.data.get("ended_boot") if held_until is None else held_until,
            "boot_id": d.data.get("boot_id"),
            "cell": d.cell,
            "attempt": d.attempt,
        },
    )


def _fold_adopt(db: sqlite3.Connection, d: Decision, declared: CellRowsLoader) -> None:
    if not _find_cell_row(db, d)["declared"]:
        raise DecisionRefused(phrase("store.cell_not_declared"))
    _insert_claim(db, d, adopted=True)
    _fold_settle(db, d, declared)
    drop_refused_run(db, d.data.get("path"))


def _fold_refused_run(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    _find_cell_row(db, d)
    record_refused_run(db, d)


def _fold_retry(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    attempts = _ended_attempt_rows(db, d, "retried")
    if not attempts and _find_cell_row(db, d)["given_up"] is None:
        raise DecisionRefused(phrase("store.not_run_starts_itself"))
    db.execute(QUERIES["set_given_up"], (None, d.cell))
    db.execute(QUERIES["set_stop"], (None, d.cell))
    db.execute(QUERIES["set_retry"], (d.reason, d.cell))
    resume_loop(db)  # what it brings may change what comes next


def _fold_redo(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    """Its completed attempt counts no more. What needs it must have been redone before, and may not be running."""
    if "campaign" in d.data and d.data["campaign"] != read_meta(db, "campaign"):
        raise DecisionRefused(phrase("store.other_campaign_taken_in"))
    cell = _find_cell_row(db, d)
    if not cell["declared"]:
        raise DecisionRefused(phrase("store.undeclared_cant_be_redone"))
    attempts = db.execute(QUERIES["attempts_of"], (cell["id"],)).fetchall()
    if any(row["outcome"] is None for row in attempts):
        raise DecisionRefused(phrase("store.running_cant_be_redone"))
    done = next((row for row in attempts if _is_completed_row(row)), None)
    if done is None:
        raise DecisionRefused(phrase("store.not_done_retry_starts") if attempts else phrase("store.not_run_yet"))
    for follower in d.data.get("needed_by", ()):
        _check_follower_idle(db, follower)
    db.execute(QUERIES["supersede"], (d.reason, d.cell, done["n"]))
    resume_loop(db)


def _check_follower_idle(db: sqlite3.Connection, cell: str) -> None:
    for row in db.execute(QUERIES["attempts_of"], (cell,)).fetchall():
        if row["outcome"] is None:
            raise DecisionRefused(phrase("store.follower_is_running", cell=cell))
        if _is_completed_row(row):
            raise DecisionRefused(phrase("store.follower_is_done", cell=cell))


def _fold_giveup(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    _ended_attempt_rows(db, d, phrase("store.given_up"))
    db.execute(QUERIES["set_given_up"], (d.reason, d.cell))
    db.execute(QUERIES["set_retry"], (None, d.cell))
    db.execute(QUERIES["set_stop"], (None, d.cell))


def _fold_reread(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    """The newest reading of its last attempt's proof. One that holds makes it DONE; the verdict stays as it was."""
    if d.data["campaign"] != read_meta(db, "campaign"):
        raise DecisionRefused(phrase("store.other_campaign_taken_in"))
    attempts = _ended_attempt_rows(db, d, phrase("store.read_again"))
    last = attempts[-1] if attempts else None
    outcome = json.loads(last["outcome"]) if last else {}
    if last is None or last["n"] != d.attempt or last["superseded"] is not None:
        raise DecisionRefused(phrase("store.attempt_not_last_one", attempt=d.attempt))
    if outcome.get("exit_code") != 0 or (outcome.get("cause") or {}).get("kind") != "early_exit":
        raise DecisionRefused(phrase("store.not_only_proof_failed"))
    found = {key: value for key, value in d.data.items() if key != "campaign"}
    db.execute(QUERIES["set_reread"], (json.dumps(found, ensure_ascii=False), d.cell, d.attempt))
    if d.data["holds"]:
        db.execute(QUERIES["accept"], (d.reason, d.cell, d.attempt))
        db.execute(QUERIES["set_retry"], (None, d.cell))
        db.execute(QUERIES["set_stop"], (None, d.cell))
        resume_loop(db)


def _fold_accept(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    attempts = _ended_attempt_rows(db, d, "accepted")
    if not attempts:
        raise DecisionRefused(phrase("store.no_attempt_accept"))
    chosen = next((row for row in attempts if row["n"] == d.attempt), None)
    if chosen is None:
        raise DecisionRefused(phrase("store.no_attempt", attempt=d.attempt))
    if chosen["superseded"] is not None:
        raise DecisionRefused(phrase("store.attempt_superseded", attempt=d.attempt, reason=chosen["superseded"]))
    db.execute(QUERIES["accept"], (d.reason, d.cell, d.attempt))
    db.execute(QUERIES["set_retry"], (None, d.cell))
    db.execute(QUERIES["set_stop"], (None, d.cell))


def _fold_stop(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    attempts = db.execute(QUERIES["attempts_of"], (_find_cell_row(db, d)["id"],)).fetchall()
    if not attempts or attempts[-1]["outcome"] is not None:
        raise DecisionRefused(phrase("store.not_running"))
    if d.attempt is not None and d.attempt != attempts[-1]["n"]:
        raise DecisionRefused(phrase("store.attempt_ended_already", attempt=d.attempt))
    db.execute(QUERIES["set_stop"], (d.reason, d.cell))


def _fold_finish_or_shutdown(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    if why := (record_finish_step if d.kind == "finish" else record_shutdown)(db, d):
        raise DecisionRefused(why)


def _fold_gate(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    _find_cell_row(db, d)
    if why := record_gate_event(db, d):
        raise DecisionRefused(why)


def _fold_flag(_db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    """Kept as an event: reports ask for those."""
    if not d.reason or not d.data["code"] or not d.data["flags"]:
        raise DecisionRefused(phrase("store.flag_or_reason_missing"))


def _fold_clean(db: sqlite3.Connection, d: Decision, _: CellRowsLoader) -> None:
    """Kept as an event. What counts now, whoever made it count in the same moment, stays."""
    if d.cell is None:
        return
    rows = db.execute(QUERIES["attempts_of"], (_find_cell_row(db, d)["id"],)).fetchall()
    row = next((row for row in rows if row["n"] == d.attempt), None)
    if row is None:
        raise DecisionRefused(phrase("store.no_attempt", attempt=d.attempt))
    if row["outcome"] is None or _is_completed_row(row):
        raise DecisionRefused(
            phrase("store.attempt_counts" if row["outcome"] else "store.attempt_is_running", attempt=d.attempt)
        )
    if not any(map(_is_completed_row, rows)):
        raise DecisionRefused(phrase("store.cell_not_done_any_more"))


def _find_cell_row(db: sqlite3.Connection, d: Decision) -> Any:
    row = db.execute(QUERIES["one_cell"], (d.cell,)).fetchone()
    if row is None:
        raise DecisionRefused(phrase("store.no_such_cell"))
    return row


def _ended_attempt_rows(db: sqlite3.Connection, d: Decision, verb: str) -> list[Any]:
    """The cell's attempts, all ended and none completed."""
    cell = _find_cell_row(db, d)
    if not cell["declared"]:
        raise DecisionRefused(phrase("store.undeclared_cant_be", verb=verb))
    attempts = db.execute(QUERIES["attempts_of"], (cell["id"],)).fetchall()
    if any(row["outcome"] is None for row in attempts):
        raise DecisionRefused(phrase("store.running_cant_be", verb=verb))
    if any(map(_is_completed_row, attempts)):
        raise DecisionRefused(phrase("store.done_cant_be", verb=verb))
    return attempts


def _is_completed_row(row: Any) -> bool:
    if row["superseded"] is not None or row["outcome"] is None:
        return False
    return row["accepted"] is not None or bool(json.loads(row["outcome"])["verdict"] == "DONE")


_FOLD_HANDLERS: dict[str, Callable[[sqlite3.Connection, Decision, CellRowsLoader], None]] = {
    "epoch": _fold_epoch,
    "clock": lambda db, d, _: record_clocks(db, d),
    "campaign": _fold_campaign,
    "filter": _fold_filter,
    "intent": _fold_intent,
    "hold": _fold_hold,
    "release": _fold_release,
    "start": _fold_start,
    "settle": _fold_settle,
    "adopt": _fold_adopt,
    "refuse": _fold_refused_run,
    "retry": _fold_retry,
    "redo": _fold_redo,
    "reread": _fold_reread,
    "giveup": _fold_giveup,
    "accept": _fold_accept,
    "stop": _fold_stop,
    "finish": _fold_finish_or_shutdown,
    "round": _fold_round,
    "rename": _fold_rename,
    "shutdown": _fold_finish_or_shutdown,
    "budget": lambda db, d, _: record_budget_level(db, d),
    "gate": _fold_gate,
    "flag": _fold_flag,
    "clean": _fold_clean,
    "end": lambda *_: None,
}
DECISION_KINDS = frozenset((*_FOLD_HANDLERS, *EVENT_KINDS))
