"""Rebuilds campaign.db from decisions.jsonl and the attempt folders, beside the old one, and puts it in its place.

The log is the truth and the database its fold. What the log lost is taken from whoever still knows it: the old
database's own events first, then the attempt folders, of which each holds the order it was started with.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from pathlib import Path

import msgspec

from muster.engine.ports.store import FindSnapshots, FsckReport, RebuildRequest
from muster.engine.store.database_checks import (
    OldDatabase,
    compare_dumps,
    database_in_use_error,
    dump_database,
    make_private_database,
    read_old_database,
)
from muster.engine.store.decision_log import RepairedLog, mask_decisions, repair_log
from muster.engine.store.fold import fold_decision
from muster.engine.store.sql_files import read_meta, write_meta
from muster.engine.store.sqlite_store import SqliteStore
from muster.files.atomic_write import PRIVATE_FILE, sync_folder
from muster.files.bounded_walk import walk_folders
from muster.files.campaign_snapshots import StoredSnapshot, load_campaign_snapshot, snapshot_digest, write_once_durably
from muster.files.json_codec import JSON_ERRORS, encode_json_bytes, outcome_as_data
from muster.files.safe_open import read_plain_file
from muster.files.state_folder import locate_campaign
from muster.model.attempt import Order, Outcome
from muster.model.campaign_location import relativize_campaign_paths
from muster.model.decision import LARGEST, Decision
from muster.model.errors import ORDER_FORMAT, MusterError, NewerStateError, newer_order_error
from muster.model.verdict import Cause, VerdictState
from muster.text.phrases import join_phrases, phrase

DATABASE_NAME = "campaign.db"
KEPT_DATABASE = "campaign.db.before-fsck"
_BEAT_EVERY = 500


def rebuild_database(folder: Path, asked: RebuildRequest) -> FsckReport:
    """The caller holds controller.lock. Nothing is replaced before the new database is complete."""
    _read_attempt_orders(folder)  # one of a newer Muster is refused before anything is touched
    old = read_old_database(folder / DATABASE_NAME)
    try:
        repaired = repair_log(folder, old.events, _decisions_of_snapshots(folder, asked))
        _require_snapshots(folder, repaired)
        asked.beat()
        target = folder / f"{DATABASE_NAME}.rebuilding"
        _remove_database_files(target)
        make_private_database(target)
        store = SqliteStore(folder, database=str(target))
        try:
            findings = _fill_database(store, old, repaired, asked)
            store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            store.close()
        _swap_databases(folder, target, old)
    finally:
        if old.db:
            old.db.close()
    final = SqliteStore(folder)
    final._publish_intent()
    final.close()
    return findings


def list_missing_snapshots(folder: Path) -> list[str]:
    """Campaigns that the log refers to, or what the old database has of it, and that can't be read."""
    old = read_old_database(folder / DATABASE_NAME)
    if old.db:
        old.db.close()
    return _unreadable_snapshots(folder, repair_log(folder, old.events, [], change=False))


def has_known_decisions(folder: Path) -> bool:
    """Whether the log or the old database tells of any."""
    with contextlib.suppress(OSError):
        if (folder / "decisions.jsonl").stat().st_size:
            return True
    old = read_old_database(folder / DATABASE_NAME)
    if old.db:
        old.db.close()
    return bool(old.events)


def old_cell_hashes(folder: Path) -> dict[str, str]:
    """The hash of each declared cell as the old database has it; {} where it can't be read."""
    old = read_old_database(folder / DATABASE_NAME)
    if old.db:
        old.db.close()
    return {row["id"]: row["hash"] for row in old.dump.get("cell", {}).values() if row["declared"]}


# -- the new one


def _fill_database(store: SqliteStore, old: OldDatabase, repaired: RepairedLog, asked: RebuildRequest) -> FsckReport:
    """The first decisions are those that the old database has seen; after them the two must be the same."""
    known = len(old.events)
    db = store.db
    db.execute("BEGIN IMMEDIATE")
    differences: tuple[str, ...] = ()
    if old.says == "sound" and known == 0:
        differences = tuple(compare_dumps(old.dump, dump_database(db)))
    for count, (_, end, decision) in enumerate(repaired.entries, 1):
        fold_decision(db, decision, store._declared)
        write_meta(db, "applied", str(end))
        if count == known:
            differences = tuple(compare_dumps(old.dump, dump_database(db)))
        if count % _BEAT_EVERY == 0:
            asked.beat()
    recovered, unplaced = _recover_attempts(store, asked)
    db.execute("COMMIT")
    attempts = db.execute("SELECT cell, n, outcome, adopted, born FROM attempt ORDER BY cell, n").fetchall()
    return FsckReport(
        cells=db.execute("SELECT count(*) FROM cell WHERE declared").fetchone()[0],
        attempts=len(attempts),
        decisions=len(repaired.entries),
        ended=tuple(
            _attempt_label(row["cell"], row["n"])
            for row in attempts
            if row["outcome"] is None and (_attempt_path_of_row(store.folder, row) / "exit.json").exists()
        ),
        old=old.says,
        behind=max(0, len(repaired.entries) - known) if old.says == "sound" else 0,
        differences=differences,
        torn=repaired.torn,
        restored=repaired.restored,
        recovered=recovered,
        unplaced=unplaced,
        folderless=tuple(
            _attempt_label(row["cell"], row["n"])
            for row in attempts
            if row["outcome"] and not row["adopted"] and not _attempt_path_of_row(store.folder, row).is_dir()
        ),
    )


def _recover_attempts(store: SqliteStore, asked: RebuildRequest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Attempts that have a folder and no `start`: one is made from the folder's own order, and written to the log."""
    db = store.db
    rows = db.execute("SELECT cell, n, token, born FROM attempt").fetchall()
    known = {(row["born"] or row["cell"], row["n"]): row["token"] for row in rows}
    orders, unplaced = _read_attempt_orders(store.folder)
    made: list[Decision] = []
    recovered: list[str] = []
    for key, order in sorted(orders.items()):
        name = _attempt_label(*key)
        if key in known:
            if known[key] != order.token:
                unplaced.append(phrase("store.folder_of_other_attempt", name=name))
            continue
        wanted = [
            _recovered_start(order, asked),
            *_recovered_ending(db, order, (order.cell, order.n + 1) in orders, asked),
        ]
        wanted = mask_decisions(wanted)  # as the log will have them
        refusal = _try_decisions(store, wanted)
        if refusal:
            unplaced.append(join_phrases(": ", (name, refusal)))
        else:
            made += wanted
            recovered.append(name)
    if made:
        begin, end = store.log.append(made)  # the fact in the file first; the transaction around us is committed after
        if begin == int(read_meta(db, "applied", "0")):  # else somebody decided meanwhile: ours, folded twice, are void
            write_meta(db, "applied", str(end))
    return tuple(recovered), tuple(unplaced)


def _try_decisions(store: SqliteStore, decisions: list[Decision]) -> str | None:
    """All of them, or none of them and the reason."""
    store.db.execute("SAVEPOINT trial")
    for decision in decisions:
        refusal = fold_decision(store.db, decision, store._declared)
        if refusal:
            store.db.execute("ROLLBACK TO trial")
            store.db.execute("RELEASE trial")
            return refusal
    store.db.execute("RELEASE trial")
    return None


def _recovered_start(order: Order, asked: RebuildRequest) -> Decision:
    data = {
        "token": order.token,
        "slots": list(order.slots),
        "hash": order.hash,
        "boot_id": order.boot_id,
        "retry_cause": order.retry_cause,
        "recovered": True,
    }
    reason = phrase("store.recovered_from_folder", at=asked.at)
    return Decision("start", asked.who, reason, order.cell, order.n, None, order.claimed_at, order.claimed_boot, data)


def _recovered_ending(db: sqlite3.Connection, order: Order, followed: bool, asked: RebuildRequest) -> list[Decision]:
    """Its settlement, if the log has one that came to nothing without the start; else only where a retry followed.

    An attempt with exit.json and without either is left open: the controller judges it.
    """
    rows = db.execute(
        "SELECT kind, who, reason, at, boot, data FROM event WHERE cell = ? AND attempt = ? AND void IS NOT NULL "
        "AND kind IN ('settle', 'accept') ORDER BY id",
        (order.cell, order.n),
    ).fetchall()
    found = {row["kind"]: row for row in rows}
    again = [
        Decision(
            row["kind"],
            row["who"],
            row["reason"],
            order.cell,
            order.n,
            None,
            row["at"],
            row["boot"],
            json.loads(row["data"]),
        )
        for kind in ("settle", "accept")
        if (row := found.get(kind)) and "settle" in found
    ]
    if again or not followed:
        return again
    reason = phrase("store.ending_lost")
    outcome = Outcome(VerdictState.DEAD, Cause("unknown", confidence="unknown", note=reason), reason)
    data = {"outcome": outcome_as_data(outcome)}
    return [Decision("settle", asked.who, reason, order.cell, order.n, None, asked.at, asked.boot, data)]


# -- the folders


def _read_attempt_orders(folder: Path) -> tuple[dict[tuple[str, int], Order], list[str]]:
    """attempt.json of every attempt folder, and those that can't be read."""
    found: dict[tuple[str, int], Order] = {}
    bad: list[str] = []
    for path, folders, files in walk_folders(folder / "attempts"):
        if "attempt.json" not in files:
            continue
        folders.clear()  # below it lie the run's own files
        try:
            order = msgspec.json.decode(read_plain_file(f"{path}/attempt.json"), type=Order)
        except (OSError, *JSON_ERRORS) as error:
            bad.append(phrase("store.order_unreadable", path=path, reason=error))
            continue
        if order.muster > ORDER_FORMAT:
            raise newer_order_error(order.muster, str(Path(path, "attempt.json")))
        if order.n <= LARGEST and _attempt_path(folder, order.cell, order.n) == Path(path):
            found[order.cell, order.n] = order
        else:
            bad.append(
                phrase("store.folder_names_other_attempt", path=path, attempt=_attempt_label(order.cell, order.n))
            )
    return found, bad


def _attempt_path(state: Path, cell: str, n: int) -> Path:
    return state / "attempts" / cell / str(n)


def _attempt_path_of_row(state: Path, row: sqlite3.Row) -> Path:
    return _attempt_path(state, row["born"] or row["cell"], row["n"])


def _attempt_label(cell: str, n: int) -> str:
    return phrase("store.attempt_of_cell", cell=cell, n=n)


def _decisions_of_snapshots(folder: Path, asked: RebuildRequest) -> list[Decision]:
    """For a log that is lost altogether: the campaigns that were taken in, oldest first. Nothing starts from them."""
    snapshots = sorted((folder / "campaigns").glob("[0-9a-f]*.json"), key=lambda path: path.stat().st_mtime)
    env = max((folder / "env").glob("*.json"), key=lambda path: path.stat().st_mtime, default=None)
    reason = phrase("store.recovered_from_snapshot", at=asked.at)
    return [
        Decision(
            "campaign",
            asked.who,
            reason,
            at=asked.at,
            boot=asked.boot,
            data={"hash": path.stem, "env_file": f".muster/env/{env.name}" if env else ""},
        )
        for path in snapshots
    ]


def _unreadable_snapshots(folder: Path, repaired: RepairedLog) -> list[str]:
    kinds = ("campaign", "rename")
    names = {str(decision.data.get("hash")): None for _, _, decision in repaired.entries if decision.kind in kinds}
    missing = []
    for name in names:
        try:
            load_campaign_snapshot(folder, name)
        except NewerStateError:
            raise
        except MusterError:
            missing.append(name)
    return missing


def _require_snapshots(folder: Path, repaired: RepairedLog) -> None:
    missing = _unreadable_snapshots(folder, repaired)
    if not any(decision.kind == "campaign" for _, _, decision in repaired.entries) and (folder / "attempts").is_dir():
        raise MusterError(
            phrase("store.nothing_to_rebuild"),
            where=str(folder),
            hint=phrase("store.restore_log"),
            code="snapshot_missing",
        )
    if missing:
        raise MusterError(
            phrase("store.snapshot_missing", snapshot=missing[0]),
            where=str(folder / "campaigns" / f"{missing[0]}.json"),
            hint=phrase("store.restore_snapshot"),
            code="snapshot_missing",
        )


def restore_missing_snapshots(folder: Path, snapshots: FindSnapshots) -> None:
    """Those that are among what can still be made."""
    for name in list_missing_snapshots(folder):
        with contextlib.suppress(MusterError, OSError):
            any(restore_missing_snapshot(folder, name, each) for each in snapshots(old_cell_hashes(folder)))


def restore_missing_snapshot(folder: Path, name: str, taken: StoredSnapshot) -> bool:
    """Writes a snapshot again if it is bit for bit the one that is missing."""
    inside = StoredSnapshot(
        taken.text, relativize_campaign_paths(taken.campaign, locate_campaign(folder)), taken.hashes
    )
    for data in (encode_json_bytes(inside), encode_json_bytes(taken)):  # earlier versions wrote absolute paths
        if snapshot_digest(data) == name:
            write_once_durably(folder / "campaigns" / f"{name}.json", data, PRIVATE_FILE, "campaign.write")
            return True
    return False


# -- putting it in place


def _swap_databases(folder: Path, target: Path, old: OldDatabase) -> None:
    """At every moment there is a whole campaign.db, and never the write-ahead log of another one beside it."""
    path, kept = folder / DATABASE_NAME, folder / KEPT_DATABASE
    if old.db:
        _flush_wal_file(old.db)
    _remove_database_files(kept)
    Path(f"{path}-journal").unlink(missing_ok=True)  # whoever opened what is kept would obey it
    for suffix in ("-wal", "-shm"):
        left = Path(f"{path}{suffix}")
        if left.exists():
            left.replace(f"{kept}{suffix}")
    if path.exists():
        os.link(path, kept)
    target.replace(path)
    sync_folder(folder)


def _flush_wal_file(db: sqlite3.Connection) -> None:
    """Everything into the file itself; succeeds only if nobody else has the database open."""
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        mode = db.execute("PRAGMA journal_mode = MEMORY").fetchone()[
            0
        ]  # a journal in a file would be taken for foreign
    except sqlite3.OperationalError:
        mode = "in use"
    if mode != "memory":
        raise database_in_use_error()
    db.close()


def _remove_database_files(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
