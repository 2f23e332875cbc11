"""The ports that look: the probe of an attempt, the reader of its proof, the signals of living runs and the memory of
earlier looks, and traces of an attempt outside its own folder, which can be deleted while it runs.
"""

# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from muster.engine.judge.signal_history import SignalHistory
from muster.model.attempt import Attempt, AttemptKey, Order
from muster.model.attempt_snapshot import AttemptSnapshot, ExitRecord, ProcessIdentity, ProofReading, RunReadings
from muster.model.campaign import Job
from muster.model.cell import Cell


class Probe(Protocol):
    def look(self, attempts: Sequence[Attempt]) -> dict[AttemptKey, AttemptSnapshot]:
        """A sighting for each; one pass over /proc serves them all."""


class ProofReader(Protocol):
    def read(self, job: Job, cell: Cell, order: Order, exit: ExitRecord | None) -> ProofReading:  # noqa: A002
        """Evaluates `job.proof` on files only; never raises for what a run may leave behind.

        `exit` gives the run's wall window (`at - duration_s` to `at`); None: the window is not known.
        """


class RunSignals(Protocol):
    def read(self, living: Sequence[tuple[Attempt, AttemptSnapshot]]) -> Mapping[AttemptKey, RunReadings]:
        """The newest readings of each run. Never waits for a probe that hangs: what it did not bring is missing."""

    def forget(self, key: AttemptKey) -> None: ...


@dataclass(slots=True)
class GroupCadence:
    """What ended or living attempts of a job with the same code have shown."""

    longest: dict[str, float] = field(default_factory=dict)
    first_s: float | None = None


@dataclass(slots=True)
class WatchBookState:
    """Histories are dated by boot time: those of another boot mean nothing."""

    boot_id: str = ""
    histories: dict[str, SignalHistory] = field(default_factory=dict)  # "cell@n"
    siblings: dict[str, GroupCadence] = field(default_factory=dict)  # "job@code"
    told: dict[str, tuple[str, str | None, str]] = field(default_factory=dict)  # the last verdict that was recorded
    disk: list[tuple[float, int]] = field(default_factory=list)  # when, and how much was free where least was


class WatchBookStorage(Protocol):
    def load(self) -> WatchBookState:
        """Empty where there is none: cadences are then learned again."""

    def save(self, remembered: WatchBookState) -> None: ...


REQUEST_TIMEOUT_S = 10.0  # a lease that was signed since may hang with a request for a shim that has not come yet


class AttemptTraces(Protocol):
    def launched(self, token: str) -> bool:
        """A shim was asked for once: whatever its folder says now, it may have been executed."""

    def identity(self, token: str) -> ProcessIdentity | None:
        """Who it was when a controller last saw who it is."""

    def saw(self, token: str, identity: ProcessIdentity) -> None:
        """Remembers it for whoever looks later. Never fails: the folder says the same while it is there."""

    def refuges(self, token: str) -> Sequence[str]:
        """Folders for its facts where its own one can't be written."""

    def holds_slot(self, attempt: Attempt, for_s: float = 0.0) -> bool:
        """A lease of its slots names it for at least so long, and somebody holds that lease."""

    def elsewhere(self, attempt: Attempt) -> bool:
        """It was claimed on another machine: another boot id proves nothing about it."""


class NoAttemptTraces:
    """Where the folder is all there is."""

    def launched(self, token: str) -> bool:
        return False

    def identity(self, token: str) -> ProcessIdentity | None:
        return None

    def saw(self, token: str, identity: ProcessIdentity) -> None:
        pass

    def refuges(self, token: str) -> Sequence[str]:
        return ()

    def holds_slot(self, attempt: Attempt, for_s: float = 0.0) -> bool:
        return False

    def elsewhere(self, attempt: Attempt) -> bool:
        return False
