"""An independent record of a campaign, kept from the decisions that took effect. It refuses what must never happen."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from muster.model.campaign import Campaign, Job
from muster.model.decision import Decision
from simulator.world import Violation

AT_ONCE = ("never_started", "host_reboot", "container_restart", "preempted", "gpu_lost")


@dataclass(slots=True, eq=False)
class Try:
    """An attempt."""

    n: int
    slots: tuple[str, ...]
    hash: str
    epoch: int
    boot_id: str
    verdict: str = ""  # DONE or DEAD once it has ended
    kind: str = ""  # of its cause
    cause: str = ""  # in full
    why: str = ""
    note: str = ""
    saved: bool | None = None
    declared: str = ""  # what its cell was declared as when it ended
    accepted: bool = False
    told: tuple[str, str | None, str] = ("RUNNING", None, "")  # the last verdict that was recorded

    @property
    def done(self) -> bool:
        return self.accepted or self.verdict == "DONE"


@dataclass(slots=True, eq=False)
class Entry:
    """A cell."""

    id: str
    job: str
    values: dict[str, str]
    hash: str = ""
    declared: bool = True
    tries: list[Try] = field(default_factory=list)
    given_up: bool = False
    retry: bool = False
    stop: bool = False

    @property
    def open(self) -> Try | None:
        return self.tries[-1] if self.tries and not self.tries[-1].verdict else None

    @property
    def done(self) -> bool:
        return any(each.done for each in self.tries)

    @property
    def settled(self) -> bool:
        return self.done or self.given_up


Taken = tuple[Campaign, dict[str, str]]  # a campaign and the hashes of its cells


class Book:
    def __init__(self, campaigns: dict[str, Taken]) -> None:
        self.campaigns = campaigns
        self.cells: dict[str, Entry] = {}
        self.jobs: dict[str, Job] = {}
        self.needs: dict[str, list[str]] = {}
        self.intent, self.before, self.reason = "down", "running", ""
        self.epoch = 0
        self.clock = ("", 0.0)  # boot id, and wall time less boot time as it was told last
        self.only: list[dict[str, list[str]]] = []
        self.end: Decision | None = None  # the last decision, where that was `end`
        self.campaign: Campaign | None = None

    # -- what took effect

    def apply(self, decision: Decision) -> None:
        handler = getattr(self, f"_{decision.kind}", None)
        if handler is not None:
            handler(decision)
        if decision.kind not in ("verdict", "notice", "found", "note", "budget", "gate", "clock"):
            self.end = decision if decision.kind == "end" else None

    def _epoch(self, d: Decision) -> None:
        self.require(int(d.data["epoch"]) > self.epoch, "an epoch follows that is not newer")
        self.epoch = int(d.data["epoch"])
        if d.data["boot_id"] != self.clock[0]:
            self._clock(d)

    def _clock(self, d: Decision) -> None:
        """What the log says of wall time less boot time, in the boot that it tells of."""
        self.clock = (str(d.data["boot_id"]), datetime.fromisoformat(d.at).timestamp() - d.boot)

    def _campaign(self, d: Decision) -> None:
        campaign, hashes = self.campaigns[d.data["hash"]]
        self.campaign = campaign
        for entry in self.cells.values():
            entry.declared = False
        for job in campaign.jobs:
            self.jobs[job.name] = job
            for cell, values in points(campaign, job):
                entry = self.cells.setdefault(cell, Entry(cell, job.name, values))
                entry.declared, entry.hash = True, hashes[cell]
        self.needs = {entry.id: self._needs_of(entry) for entry in self.cells.values() if entry.declared}
        self.only = []

    def _needs_of(self, entry: Entry) -> list[str]:
        wanted = self.jobs[entry.job].needs
        return [
            other.id
            for other in self.cells.values()
            if other.declared
            and other.job in wanted
            and all(entry.values.get(axis, name) == name for axis, name in other.values.items())
        ]

    def _filter(self, d: Decision) -> None:
        self.only = d.data["only"]

    def _intent(self, d: Decision) -> None:
        if self.intent == "held":
            self.require(d.data["intent"] == "down", "a held campaign was made to run")
            self.before = "down"
        else:
            self.intent, self.reason = d.data["intent"], d.reason

    def _hold(self, d: Decision) -> None:
        if self.intent != "held":
            self.before = self.intent
        self.intent, self.reason = "held", d.reason

    def _release(self, _: Decision) -> None:
        self.require(self.intent == "held", "a campaign that is not held was released")
        self.intent = self.before

    def _start(self, d: Decision) -> None:
        entry, data = self._entry(d), d.data
        self.require(self.intent == "running", f"{entry.id} starts while the campaign is {self.intent}")
        self.require(entry.declared and not entry.given_up, f"{entry.id} starts although nobody wants it")
        self.require(not entry.done, f"{entry.id} starts although it is DONE")
        self.require(entry.open is None, f"{entry.id} has two open attempts")
        self.require(d.attempt == len(entry.tries) + 1, f"{entry.id}: attempt {d.attempt} of {len(entry.tries)}")
        missing = [need for need in self.needs[entry.id] if not self.cells[need].done]
        self.require(not missing, f"{entry.id} starts although {missing} is not DONE")
        self.require(not entry.stop, f"{entry.id} starts although a person wants it stopped")
        if entry.tries:
            last, cause = entry.tries[-1], data.get("retry_cause") or ""
            self.require(
                bool(cause) and cause.startswith(last.cause), f"{entry.id}: a retry without its cause: {cause!r}"
            )
            self.require(self.may_retry(entry), f"{entry.id} is retried although {last.cause} is not")
        entry.tries.append(Try(d.attempt or 0, tuple(data["slots"]), data["hash"], d.epoch or 0, data["boot_id"]))
        entry.retry = entry.stop = False

    def _settle(self, d: Decision) -> None:
        entry, outcome = self._entry(d), d.data["outcome"]
        self.require(d.attempt is not None and d.attempt <= len(entry.tries), f"{entry.id}@{d.attempt} does not exist")
        attempt = entry.tries[(d.attempt or 0) - 1]
        self.require(not attempt.verdict, f"the verdict of {entry.id}@{d.attempt} is overwritten")
        attempt.verdict = outcome["verdict"]
        cause = outcome.get("cause")
        self.require(bool(cause) == (attempt.verdict == "DEAD"), f"{entry.id}@{d.attempt} ended without a cause")
        if cause:
            attempt.kind, attempt.why = cause["kind"], cause.get("note", "")
            attempt.cause = f"{cause['kind']}({cause['detail']})" if cause.get("detail") else cause["kind"]
        attempt.note, attempt.saved = outcome.get("note", ""), outcome.get("saved")
        attempt.declared = outcome.get("declared", "")
        if attempt.verdict == "DONE" or attempt.kind == "user_stop":
            entry.stop = False

    def _retry(self, d: Decision) -> None:
        entry = self._entry(d)
        entry.given_up, entry.stop, entry.retry = False, False, True

    def _giveup(self, d: Decision) -> None:
        entry = self._entry(d)
        self.require(entry.open is None and not entry.done, f"{entry.id} was given up although it runs or is DONE")
        entry.given_up, entry.stop, entry.retry = True, False, False

    def _accept(self, d: Decision) -> None:
        entry = self._entry(d)
        self.require(entry.open is None and not entry.done, f"{entry.id} was accepted although it runs or is DONE")
        entry.tries[(d.attempt or 0) - 1].accepted = True
        entry.stop = entry.retry = False

    def _stop(self, d: Decision) -> None:
        self._entry(d).stop = True

    def _verdict(self, d: Decision) -> None:
        entry = self._entry(d)
        state, _, kind = d.data["to"].partition("(")
        entry.tries[(d.attempt or 0) - 1].told = loud(state, kind.rstrip(")") or None, d.data["confidence"])

    def _entry(self, d: Decision) -> Entry:
        self.require(d.cell in self.cells, f"there is no cell {d.cell}")
        return self.cells[d.cell or ""]

    @staticmethod
    def require(holds: bool, otherwise: str) -> None:
        if not holds:
            raise Violation(otherwise)

    # -- what follows from it

    @property
    def declared(self) -> list[Entry]:
        return [entry for entry in self.cells.values() if entry.declared]

    @property
    def complete(self) -> bool:
        """None open, none pending; a cell that is no longer declared may still run."""
        return all(entry.settled for entry in self.cells.values() if entry.declared) and not self.open()

    def open(self) -> list[tuple[Entry, Try]]:
        return [(entry, attempt) for entry in self.cells.values() if (attempt := entry.open)]

    def startable(self) -> list[Entry]:
        """What may start as soon as there are slots; a hold or a campaign that is down apart."""
        return [entry for entry in self.declared if self._may_start(entry)]

    def _may_start(self, entry: Entry) -> bool:
        if entry.settled or entry.open or not self._wanted(entry):
            return False
        if any(not self.cells[need].done for need in self.needs[entry.id]):
            return False
        return not entry.tries or self.may_retry(entry)

    def _wanted(self, entry: Entry) -> bool:
        names = {**entry.values, "job": entry.job}
        return all(names[axis] in chosen for part in self.only for axis, chosen in part.items() if axis in names)

    def may_retry(self, entry: Entry) -> bool:
        """By VERDICTS.md: what is retried by itself, and what a person or a change lets start again."""
        last, job = entry.tries[-1], self.jobs[entry.job]
        if entry.retry:
            return True
        if entry.stop or last.note:
            return False
        ran = last.declared or last.hash if last.kind in ("signal", "hangup") else last.hash
        if entry.hash != ran and last.kind != "user_stop":
            return True
        if last.kind == "never_started" and last.why.startswith("the command could not be executed"):
            return False
        if last.kind in AT_ONCE or (last.kind == "stalled" and job.on_stall == "restart"):
            most = job.max_retries
        else:
            most = min(1, job.max_retries) if last.kind == "unknown" else 0
        same = sum(1 for each in entry.tries if each.kind == last.kind)
        stuck = len(entry.tries) >= 3 and all(each.saved is not None and not each.saved for each in entry.tries[-3:])
        return same <= most and not stuck


def points(campaign: Campaign, job: Job) -> list[tuple[str, dict[str, str]]]:
    """The cells of a job, by their names."""
    axes = [next(axis for axis in campaign.axes if axis.name == name) for name in job.axes]
    return [
        (
            "/".join([job.name, *(value.name for value in point)]),
            {a.name: v.name for a, v in zip(axes, point, strict=True)},
        )
        for point in itertools.product(*(axis.values for axis in axes))
    ]


def loud(state: str, kind: str | None, confidence: str) -> tuple[str, str | None, str]:
    """What of a verdict must not change without an event."""
    if state == "RUNNING":
        return state, None if kind == "starting" else kind, ""
    return str(state), kind, confidence


def summary(book: Book) -> dict[str, Any]:
    done = sum(1 for entry in book.declared if entry.done)
    return {"declared": len(book.declared), "done": done, "given_up": sum(entry.given_up for entry in book.declared)}
