"""A small campaign and the decisions about it, for every store that keeps the port's promises."""

from __future__ import annotations

import itertools
from pathlib import Path

from muster.engine.ports.store import DecisionLog
from muster.engine.store.database_checks import DatabaseDump, dump_database
from muster.engine.store.decision_log import FileDecisionLog, InMemoryDecisionLog
from muster.engine.store.sqlite_store import SqliteStore
from muster.files import campaign_snapshots
from muster.model.campaign import Axis, AxisValue, Campaign, Job
from muster.model.cell import list_campaign_cells
from muster.model.decision import Decision

CELLS = ("train/a", "train/b", "train/c")


def campaign(names: str = "abc") -> Campaign:
    axis = Axis("config", tuple(AxisValue(name, name) for name in names))
    return Campaign("c", (axis,), (Job("train", ("config",), ("true", "{config}")),))


def snapshot(folder: Path, names: str = "abc", version: int = 1) -> str:
    made = campaign(names)
    return campaign_snapshots.save_snapshot(
        folder, names, made, {cell.id: f"h{version}-{cell.id}" for cell in list_campaign_cells(made)}
    )


class World:
    """A store and what it is made of; `reopen` is another process that comes later."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind = folder, kind
        folder.mkdir(exist_ok=True)
        self.log: DecisionLog = FileDecisionLog(folder / "decisions.jsonl") if kind == "disk" else InMemoryDecisionLog()
        self.store = self.open()
        self.tokens = itertools.count()

    def open(self) -> SqliteStore:
        if self.kind == "disk":
            return SqliteStore(self.folder)
        return SqliteStore(self.folder, log=self.log, database=":memory:")

    def reopen(self) -> SqliteStore:
        self.store.close()
        self.store = self.open()
        return self.store

    def decide(self, *decisions: Decision) -> list[str | None]:
        """Handed in together; why each was refused, None: it took effect."""
        return [event.void for event in self.store.commit(decisions).seen[-len(decisions) :]]

    def one(self, decision: Decision) -> str | None:
        committed = self.store.commit([decision])
        return committed.refused[0].because if committed.refused else None

    def round(self, number: int, names: str, *variants: str) -> Decision:
        """The next round of a loop, after the campaign that holds now."""
        known = self.store.load()
        data = {"round": number, "after": known.campaign_hash if known else "", "hash": snapshot(self.folder, names)}
        proposed = [
            {"name": each, "config": f"/{each}.json", "round": number, "digest": f"d{each}"} for each in variants
        ]
        return Decision("round", "controller", data=data | {"variants": proposed})

    def rename(self, old: str, new: str) -> Decision:
        """Of a config, after the campaign that holds now."""
        known = self.store.load()
        names = "".join(value.name for value in known.campaign.axes[0].values) if known else ""
        after = names.replace(old, new)
        data = {
            "axis": "config", "old": old, "new": new, "after": known.campaign_hash if known else "",
            "hash": snapshot(self.folder, after, version=3),
            "same": {f"train/{new}": ["h1", "h3"]},
        }  # fmt: skip
        return Decision("rename", "me", data=data)

    def begin(self, names: str = "abc") -> None:
        assert self.one(self.campaign(names)) is None
        assert self.one(intent("running")) is None

    def campaign(self, names: str = "abc", version: int = 1) -> Decision:
        return Decision("campaign", "me", data={"hash": snapshot(self.folder, names, version), "env_file": "/env"})

    def start(self, cell: str = "train/a", n: int = 1, cause: str | None = None, epoch: int | None = None) -> Decision:
        data = {"token": f"t{next(self.tokens)}", "slots": ["cpu0"], "hash": "h", "boot_id": "b", "retry_cause": cause}
        return Decision("start", "controller", "", cell, n, epoch, "at", 1.0, data)

    def adopt(self, cell: str = "train/a", n: int = 1, cause: str | None = None) -> Decision:
        data = {"token": f"t{next(self.tokens)}", "slots": [], "hash": "h", "boot_id": "b", "retry_cause": cause,
                "outcome": {"verdict": "DONE", "reason": "adopted"}}  # fmt: skip
        return Decision("adopt", "me", "", cell, n, None, "at", 1.0, data)

    def dump(self) -> DatabaseDump:
        return dump_database(self.store.db)

    def refolded(self) -> DatabaseDump:
        """The whole log folded from nothing."""
        fresh = SqliteStore(self.folder, log=self.log, database=":memory:")
        fresh.commit([])
        found = dump_database(fresh.db)
        fresh.close()
        return found


def settle(
    verdict: str,
    cell: str = "train/a",
    n: int = 1,
    epoch: int | None = None,
    reason: str = "",
    kind: str = "exit_code",
) -> Decision:
    cause = {"kind": kind, "detail": "1"} if verdict == "DEAD" else None
    data = {"outcome": {"verdict": verdict, "cause": cause, "reason": reason}, "ended_boot": 2.0}
    return Decision("settle", "controller", reason, cell, n, epoch, "at", 2.0, data)


def intent(kind: str, reason: str = "") -> Decision:
    return Decision("intent", "me", reason, data={"intent": kind})


def epoch(number: int) -> Decision:
    return Decision("epoch", f"controller {number}", epoch=number, data={"epoch": number, "pid": number})


def about(kind: str, cell: str | None = "train/a", reason: str = "because", attempt: int | None = None) -> Decision:
    return Decision(kind, "me", reason, cell, attempt)
