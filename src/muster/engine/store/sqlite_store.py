"""The SQLite store. Only the holder of controller.lock commits; anyone may read or append."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from muster.engine.ports.store import CommitResult, ControllerSuperseded, DecisionLog, LoggedDecision
from muster.engine.store.database_checks import (
    DatabaseFile,
    database_has_decisions,
    has_rollback_journal,
    refuse_newer_database,
    refuse_newer_decision,
    refuse_newer_format,
    refuse_newer_snapshot,
)
from muster.engine.store.decision_log import FileDecisionLog
from muster.engine.store.fold import DECISION_KINDS, CellRows, fold_decision
from muster.engine.store.fold_campaign_records import CLOCK_META, parse_clock_record
from muster.engine.store.fold_cell_records import gates_by_cell, parse_refused_runs
from muster.engine.store.sql_files import QUERIES, list_migrations, read_meta, write_meta
from muster.files.atomic_write import write_atomically
from muster.files.campaign_snapshots import load_snapshotted_campaign, snapshot_cell_rows
from muster.files.crash_points import reach_crash_point
from muster.files.json_codec import JSON_ERRORS, outcome_in_words
from muster.files.state_folder import damaged_state_error, former_campaign_folders, locate_campaign
from muster.model.attempt import Attempt, CellRecord, Outcome, Reread
from muster.model.campaign import AxisValue, Job, Money
from muster.model.campaign_location import CampaignLocation, campaign_folder_in_path, resolve_decision_paths
from muster.model.campaign_state import CampaignState, FinishRecord, GateRecord, Intent
from muster.model.cell import Cell, list_campaign_cells
from muster.model.decision import Decision, Refusal
from muster.model.errors import MusterError, NewerStateError
from muster.model.variant import LoopRecord
from muster.text.phrases import current_language, phrase, phrase_from_data

DELETING_S = 1.0  # whoever deletes the database may be about to delete all: nothing is made anew in the middle of it
LITTLE = 1 << 16  # bytes: with less, SQLite fails in ways that do not name the reason
_reread = msgspec.json.Decoder(Reread).decode
_outcome = msgspec.json.Decoder(Outcome).decode
_finish = msgspec.json.Decoder(FinishRecord).decode
_loop = msgspec.json.Decoder(LoopRecord).decode
_gates = msgspec.json.Decoder(dict[str, GateRecord]).decode


class SqliteStore:
    """`epoch` is that of the controller which writes; None reads and appends only."""

    def __init__(self, folder: Path, *, log: DecisionLog | None = None, database: str | None = None) -> None:
        self.folder = folder
        self.log: DecisionLog = log or FileDecisionLog(folder / "decisions.jsonl")
        self.epoch: int | None = None
        self._cells: tuple[str, dict[str, Cell]] = ("", {})
        self._where: tuple[CampaignLocation, CampaignLocation] | None = None
        self._published: str | None = None
        self.lasting = database != ":memory:"
        self._file = DatabaseFile(folder / "campaign.db")
        self._open(database)

    def _open(self, database: str | None = None) -> None:
        with contextlib.nullcontext() if database else self._file.made_by_one():
            with self._told():
                self.db = sqlite3.connect(database or self._file.path, isolation_level=None, timeout=30)
            self.db.row_factory = sqlite3.Row
            try:
                self._prepare()
                self._compare_log()
                self._refuse_newer()
            except (sqlite3.DatabaseError, MusterError) as error:
                self.db.close()
                raise (self._trouble(error) if isinstance(error, sqlite3.DatabaseError) else error) from None
            self._file.remember()

    @classmethod
    def is_of_older(cls, folder: Path) -> bool:
        """Whether opening it would change the tables that an older Muster made."""
        path = folder / "campaign.db"
        if not path.exists() or has_rollback_journal(path):
            return False
        with contextlib.closing(sqlite3.connect(path, timeout=30)) as db:
            return 0 < int(db.execute("PRAGMA user_version").fetchone()[0]) < list_migrations()[-1][0]

    @classmethod
    def of_log(cls, folder: Path) -> SqliteStore:
        """For a disk that can't be written: the log alone tells all that was decided."""
        store = cls(folder, database=":memory:")
        store.commit([])
        return store

    def _compare_log(self) -> None:
        """A log that lost its end would swallow every new decision: the fold would never come to them."""
        if int(read_meta(self.db, "applied", "0")) > self.log.size():
            raise damaged_state_error(phrase("store.log_shorter_than_database"))
        if not self.log.size() and (self.folder / "attempts").is_dir():  # or finished work would run again
            raise damaged_state_error(phrase("store.log_gone_attempts_there"))
        if not self.log.size() and not self.lasting and database_has_decisions(self._file.path):
            raise damaged_state_error(phrase("store.log_gone_database_knows"))

    def _refuse_newer(self) -> None:
        """Of what is folded, and of what is not folded yet."""
        refuse_newer_format(read_meta(self.db, "format", "1"), str(self.folder))
        if self.log.size() > int(read_meta(self.db, "applied", "0")):
            for _ in self._unseen():
                pass

    def refuse_newer_campaign(self) -> None:
        with self._told():
            name = read_meta(self.db, "campaign")
        if name:
            refuse_newer_snapshot(self.folder / "campaigns" / f"{name}.json")

    def _prepare(self) -> None:
        version = self.db.execute("PRAGMA user_version").fetchone()[0]
        refuse_newer_database(version, str(self.folder / "campaign.db"))
        pending = [(number, script) for number, script in list_migrations() if number > version]
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute("PRAGMA foreign_keys = ON")
        if not pending:
            return
        self.db.execute("PRAGMA journal_mode = MEMORY")  # while it is made, too, no journal lies beside it
        self.db.execute("PRAGMA journal_mode = WAL")
        for number, script in pending:
            # one transaction per migration; a second process that lost the race finds the tables there
            self.db.execute("BEGIN IMMEDIATE")
            if self.db.execute("PRAGMA user_version").fetchone()[0] >= number:
                self.db.execute("ROLLBACK")
                continue
            for statement in _split_statements(script):
                self.db.execute(statement)
            self.db.execute(f"PRAGMA user_version = {number}")
            self.db.execute("COMMIT")

    # -- writing

    def append(self, decision: Decision) -> None:
        _require_known_kinds([decision])
        self.log.append([decision])

    def commit(self, decisions: Sequence[Decision]) -> CommitResult:
        if self.epoch is not None and self.lasting:
            self._see_that_it_is_there()
        with self._told():
            if decisions:
                _require_known_kinds(decisions)
                self._refuse_newer()  # before anything of ours stands behind it
            begin, end = self.log.append(decisions) if decisions else (0, self._durable())
            reach_crash_point("fold.begin")
            refused: list[Refusal] = []
            seen: list[LoggedDecision] = []
            self.db.execute("BEGIN IMMEDIATE")
            try:
                self._guard()
                offset = int(read_meta(self.db, "applied", "0"))
                for first, last, decision in self._unseen(end):
                    void = fold_decision(self.db, decision, self._declared)
                    seen.append(LoggedDecision(decision, void))
                    if void and decisions and begin <= first:
                        refused.append(Refusal(decision, void))
                    offset = last
                if seen:
                    write_meta(self.db, "applied", str(offset))
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise
            reach_crash_point("fold.commit")
            if any(event.decision.kind == "campaign" for event in seen):
                self._where = None
            self._publish_intent()
            return CommitResult(tuple(refused), tuple(seen))

    def _see_that_it_is_there(self) -> None:
        """State may be deleted under its controller. A log that is gone must not be begun anew: it would tell half."""
        if self.log.size() < int(read_meta(self.db, "applied", "0")):
            raise ControllerSuperseded(phrase("store.log_deleted_or_cut"))
        if self._file.displaced():
            if self._file.displaced_s() >= DELETING_S:
                self.db.close()
                self._open()
                self.commit([])  # of all the log
            raise OSError(errno.ESTALE, phrase("store.database_replaced"))

    def _durable(self) -> int:
        """Up to where the log may be folded: what somebody else wrote and has not synced yet is not in it."""
        size = self.log.size()
        if not self.lasting or size <= int(read_meta(self.db, "applied", "0")):
            return size
        return self.log.sync()

    def _unseen(self, end: int | None = None) -> Iterator[tuple[int, int, Decision]]:
        """What the log holds beyond the database."""
        try:
            for first, last, decision in self.log.read(int(read_meta(self.db, "applied", "0")), end):
                refuse_newer_decision(decision, str(self.folder / "decisions.jsonl"))
                yield first, last, decision
        except JSON_ERRORS as error:
            raise damaged_state_error(phrase("store.log_line_unreadable"), str(error)) from None

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What goes wrong in SQLite, in words that callers know."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise self._trouble(error) from error
        except NewerStateError as error:
            if self.epoch is None:
                raise
            raise ControllerSuperseded(error.message) from None

    def _trouble(self, error: sqlite3.DatabaseError) -> Exception:
        """A damaged file; or a disk that is full or read-only, as the operating system would say it."""
        if type(error) is sqlite3.DatabaseError:  # its subclasses mean other things
            return damaged_state_error(phrase("store.database_damaged"), str(error))
        if not isinstance(error, sqlite3.OperationalError):
            return error
        full = "full" in str(error) or self._free() < LITTLE
        return OSError(
            errno.ENOSPC if full else errno.EIO,
            phrase("store.database_disk_full") if full else phrase("store.database_trouble", reason=error),
        )

    def _free(self) -> int:
        disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize

    def _guard(self) -> None:
        current = int(read_meta(self.db, "epoch", "0"))
        if self.epoch is not None and current > self.epoch:
            raise ControllerSuperseded(phrase("store.newer_epoch_begun", newer=current, epoch=self.epoch))

    def _declared(self, hash_: str) -> CellRows:
        return snapshot_cell_rows(self.folder, hash_)

    def _publish_intent(self) -> None:
        """Shims can't open the database: the intent they obey is a file. A crash may have kept it from the last one."""
        intent = read_meta(self.db, "intent", "down")
        if intent == self._published or not self.lasting:
            return
        write_atomically(self.folder / "intent", intent + "\n", point="fold.intent")
        self._published = intent

    # -- where it lies

    def where(self) -> CampaignLocation:
        """The campaign's folder, and all where it lay: each time it was taken in says where that was."""
        return self._whereabouts()[0]

    def origin(self) -> CampaignLocation:
        """As if the campaign still lay where it was first taken in: definitions are compared there."""
        return self._whereabouts()[1]

    def _whereabouts(self) -> tuple[CampaignLocation, CampaignLocation]:
        if self._where is None:
            rows = self.db.execute(QUERIES["campaigns"]).fetchall()
            told = [root for row in reversed(rows) if (root := _root_when_declared(json.loads(row["data"])))]
            now = locate_campaign(self.folder, (*told, *former_campaign_folders(self.folder)))
            self._where = now, CampaignLocation(told[0] if told else now.now, (now.now, *now.also))
        return self._where

    # -- reading

    def epoch_now(self) -> int:
        with self._told():
            return int(read_meta(self.db, "epoch", "0"))

    def behind(self) -> bool:
        with self._told():
            return next(self._unseen(), None) is not None

    def load(self) -> CampaignState | None:
        with self._told():
            self.db.execute("BEGIN")  # one moment for all the reads
            try:
                return self._load()
            except JSON_ERRORS as error:  # a decision of the log said it, and the fold kept it
                raise damaged_state_error(phrase("store.database_unreadable"), str(error)) from None
            finally:
                self.db.execute("COMMIT")

    def _load(self) -> CampaignState | None:
        meta = {row["key"]: row["value"] for row in self.db.execute(QUERIES["all_meta"])}
        if "campaign" not in meta:
            return None
        where = self.where()
        campaign = load_snapshotted_campaign(self.folder, meta["campaign"], where)
        self._cells = (meta["campaign"], {cell.id: cell for cell in list_campaign_cells(campaign)})
        attempts: dict[str, list[Attempt]] = {}
        for row in self.db.execute(QUERIES["all_attempts"]):
            attempts.setdefault(row["cell"], []).append(_attempt_of_row(row, where))
        cells = {
            row["id"]: self._record(row, attempts.get(row["id"], [])) for row in self.db.execute(QUERIES["all_cells"])
        }
        intent = Intent(
            meta.get("intent", "down"),
            meta.get("intent_reason", ""),
            meta.get("intent_before", "running"),
        )
        only = tuple(
            {axis: tuple(names) for axis, names in part.items()} for part in json.loads(meta.get("only", "[]"))
        )
        epoch = int(meta.get("epoch", "0"))
        at_rest = meta.get("at_rest") == "1"
        env_file = where.here(meta.get("env_file", ""))
        former = self._former_jobs({row.cell.job for row in cells.values()} - {job.name for job in campaign.jobs})
        return CampaignState(
            campaign,
            meta["campaign"],
            env_file,
            intent,
            epoch,
            only,
            cells,
            at_rest,
            former,
            int(meta.get("forgiven", "0")),
            _finish(meta.get("finish", "{}")),
            _decode_prices(meta.get("prices", "[]")),
            frozenset((float(budget), level) for budget, level in json.loads(meta.get("budget_told", "[]"))),
            _resolve_loop_paths(_loop(meta.get("loop", "{}")), where),
            {cell: _gates(found) for cell, found in gates_by_cell(meta).items()},
            self.origin(),
            parse_clock_record(meta.get(CLOCK_META, "{}")),
            tuple(replace(each, path=where.here(each.path)) for each in parse_refused_runs(meta)),
        )

    def _former_jobs(self, missing: set[str]) -> tuple[Job, ...]:
        """Jobs that left the campaign file but have cells, from the newest campaign that had them."""
        found: dict[str, Job] = {}
        for row in self.db.execute(QUERIES["campaigns"]) if missing else ():
            for job in load_snapshotted_campaign(self.folder, json.loads(row["data"])["hash"], self.where()).jobs:
                if job.name in missing:
                    found.setdefault(job.name, job)
        return tuple(found.values())

    def records(self, cells: Iterable[str]) -> list[CellRecord]:
        found = []
        with self._told():
            for cell in cells:
                row = self.db.execute(QUERIES["one_cell"], (cell,)).fetchone()
                if row:
                    attempts = [
                        _attempt_of_row(a, self.where()) for a in self.db.execute(QUERIES["attempts_of"], (cell,))
                    ]
                    found.append(self._record(row, attempts))
        return found

    def _record(self, row: Any, attempts: list[Attempt]) -> CellRecord:
        cell = self._cells[1].get(row["id"]) or _withdrawn_cell(row)
        return CellRecord(
            cell,
            row["position"],
            bool(row["declared"]),
            row["hash"],
            tuple(attempts),
            row["given_up"],
            row["retry_because"],
            row["stop_because"],
            tuple(_decode_names(row["formerly"])),
            json.loads(row["same_as"]),
        )

    def has_decided(self, kind: str) -> bool:
        with self._told():
            return bool(self.db.execute(QUERIES["has_decided"], (kind,)).fetchone()[0])

    def events(self, cell: str | None = None) -> list[LoggedDecision]:
        with self._told():
            now = self._former_names()
            names = [cell, *(old for old, new in now.items() if new == cell)] if cell else [None]
            rows = [row for name in names for row in self.db.execute(QUERIES["events"], (name,))]
            where = self.where()
        rows.sort(key=lambda row: row["id"])
        return [
            LoggedDecision(
                Decision(
                    row["kind"],
                    row["who"],
                    _reason_in_words(row["reason"], data),
                    now.get(row["cell"], row["cell"]),
                    row["attempt"],
                    row["epoch"],
                    row["at"],
                    row["boot"],
                    data,
                ),
                row["void"],
            )
            for row in rows
            for data in (resolve_decision_paths(json.loads(row["data"]), where),)
        ]

    def _former_names(self) -> dict[str, str]:
        """Names that cells had before they were renamed, and have no more: old -> new."""
        found = {
            old: row["id"] for row in self.db.execute(QUERIES["former_names"]) for old in _decode_names(row["formerly"])
        }
        return {old: new for old, new in found.items() if not self.db.execute(QUERIES["one_cell"], (old,)).fetchone()}

    def became_of(self, ref: str) -> LoggedDecision | None:
        with self._told():
            row = self.db.execute(QUERIES["became_of"], (ref,)).fetchone()
        return LoggedDecision(Decision("", "", ref=ref), row["void"]) if row else None

    def close(self) -> None:
        self.db.close()


def _require_known_kinds(decisions: Sequence[Decision]) -> None:
    """What we write we must know ourselves: a log with another kind is refused by the next who opens it."""
    for decision in decisions:
        if decision.kind not in DECISION_KINDS:
            raise ValueError(f"no kind of decision: {decision.kind!r}; domain/decision.py names them")


def _root_when_declared(data: dict[str, Any]) -> str | None:
    """Where the campaign lay when it was taken in; earlier versions tell it by the path of the environment."""
    root = data.get("root")
    return root if root and isinstance(root, str) else campaign_folder_in_path(str(data.get("env_file", "")))


def _resolve_loop_paths(found: LoopRecord, where: CampaignLocation) -> LoopRecord:
    if not found.variants:
        return found
    placed = (replace(each, config=where.here(each.config), source=where.here(each.source)) for each in found.variants)
    return replace(found, variants=tuple(placed))


def _reason_in_words(reason: str, data: Mapping[str, Any]) -> str:
    """In the language of this process, where the log has its code."""
    for told in (data, data.get("outcome")):
        known = told.get("phrases") if isinstance(told, Mapping) else None
        if isinstance(known, Mapping) and isinstance(of_reason := known.get(reason), Mapping):
            return phrase_from_data(reason, of_reason)
    return reason


def _attempt_of_row(row: Any, where: CampaignLocation) -> Attempt:
    outcome = _outcome(row["outcome"]) if row["outcome"] else None
    if outcome and outcome.output:
        outcome = replace(outcome, output=where.here(outcome.output))
    if outcome and current_language() != "en":
        outcome = outcome_in_words(outcome)
    if outcome and where.former:
        evidence = (replace(each, reading=where.text(each.reading)) for each in outcome.evidence)
        outcome = replace(outcome, evidence=tuple(evidence))
    return Attempt(
        row["cell"],
        row["n"],
        row["token"],
        row["epoch"],
        tuple(json.loads(row["slots"])),
        row["hash"],
        row["claimed_at"],
        row["claimed_boot"],
        row["boot_id"],
        row["retry_cause"],
        bool(row["adopted"]),
        outcome,
        row["accepted"],
        row["superseded"],
        _reread(row["reread"]) if row["reread"] else None,
        row["born"],
    )


def _decode_names(text: str) -> list[str]:
    found: list[str] = json.loads(text)
    return found


def _decode_prices(text: str) -> tuple[tuple[str, Money], ...]:
    return tuple((each["at"], msgspec.convert(each["money"], Money)) for each in json.loads(text))


def _withdrawn_cell(row: Any) -> Cell:
    """A cell that is no longer declared, from what its row remembers."""
    values = tuple((axis, AxisValue(name, value)) for axis, name, value in json.loads(row["axes"]))
    return Cell(row["id"], row["job"], values)


def _split_statements(script: str) -> list[str]:
    statements, text = [], ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            statements.append(text)
            text = ""
    return statements
