"""One execution of a cell's command, and the facts its folder holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from muster.domain.cell import Cell
from muster.domain.verdict import Cause, Evidence, State


@dataclass(frozen=True, slots=True)
class Identity:
    """What names a process for ever: a pid alone is reused."""

    boot_id: str
    pid_namespace: int
    init_ticks: int
    pid: int
    ticks: int
    shim_pid: int
    shim_ticks: int
    boot: float
    at: float


@dataclass(frozen=True, slots=True)
class Exit:
    """exit.json: how the command ended, as the shim saw it."""

    code: int | None
    signal: int | None
    at: float
    boot: float
    duration_s: float
    core: bool = False
    exec_error: str | None = None
    stop_reason: str | None = None  # a stop that was carried out: user_stop, timeout, budget_stop
    orphans: tuple[int, ...] | None = None  # processes of the run that outlived it; None: can't be told
    log: str = ""  # last bytes of stderr


@dataclass(frozen=True, slots=True)
class ProofReading:
    """What the proof found; `holds` is None where nothing could be read."""

    holds: bool | None
    evidence: tuple[Evidence, ...] = ()
    output: str | None = None  # the output folder that was found
    step: float | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """Everything one look at an open attempt showed."""

    boot: float
    started: Literal["no", "yes", "revoked"]
    execing: bool = False
    identity: Identity | None = None
    exit: Exit | None = None
    host: Literal["same", "rebooted", "restarted"] = "same"
    main: Literal["alive", "zombie", "gone", "unread"] = "unread"
    main_state: str = ""  # the letter of /proc/PID/stat
    shim: Literal["alive", "stopped", "gone"] = "gone"
    shim_locked: bool = False
    tree_locked: bool = False
    stop_reason: str | None = None  # a stop was asked for, whether or not it has been carried out
    strays: tuple[int, ...] = ()  # live processes that carry the token, the main one apart
    proof: ProofReading | None = None
    looks_without_exit: int = 0  # consecutive looks that found it gone without exit.json
    silent_s: float = 0.0  # how long a started attempt has had no identity

    @property
    def tree_lives(self) -> bool:
        """Something of the run may still execute although its main process has ended."""
        if self.exit is not None and self.exit.orphans == ():
            return False  # the shim is the tree's reaper and saw that nothing was left
        return self.tree_locked or bool(self.strays) or (self.exit is not None and self.shim_locked)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: written once."""

    verdict: State  # DONE or DEAD
    cause: Cause | None = None
    reason: str = ""
    note: str = ""
    exit_code: int | None = None
    exit_signal: int | None = None
    started: float | None = None  # wall seconds, for display
    ended: float | None = None
    duration_s: float | None = None  # by boot time
    output: str | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Attempt:
    cell: str
    n: int
    token: str
    epoch: int
    slots: tuple[str, ...]
    hash: str  # of the resolved cell
    claimed_at: str
    claimed_boot: float
    boot_id: str
    retry_cause: str | None = None
    adopted: bool = False
    outcome: Outcome | None = None  # None while open
    accepted: str | None = None  # a person's reason for taking it as done

    @property
    def key(self) -> tuple[str, int]:
        return (self.cell, self.n)

    @property
    def open(self) -> bool:
        return self.outcome is None

    @property
    def completed(self) -> bool:
        """DONE, by its proof or by a person's word."""
        return self.accepted is not None or (self.outcome is not None and self.outcome.verdict == State.DONE)


@dataclass(frozen=True, slots=True)
class CellRecord:
    """A cell and all that was ever decided about it."""

    cell: Cell
    position: int
    declared: bool = True
    hash: str = ""  # of its definition now; attempts keep theirs
    attempts: tuple[Attempt, ...] = ()
    given_up: str | None = None
    retry_because: str | None = None  # asked for, not started yet
    stop_because: str | None = None  # asked for, not ended yet

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def open(self) -> Attempt | None:
        return self.last if self.last and self.last.open else None

    @property
    def completed(self) -> Attempt | None:
        return next((attempt for attempt in self.attempts if attempt.completed), None)

    @property
    def done(self) -> bool:
        return self.completed is not None


@dataclass(frozen=True, slots=True)
class Order:
    """attempt.json: what the shim is to do. Written once, obeyed by whichever shim wins."""

    cell: str
    n: int
    token: str
    epoch: int
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    env_file: str
    slots: tuple[str, ...]
    out: str
    output: str  # the output, perhaps a glob
    hash: str
    claimed_at: str
    claimed_boot: float
    boot_id: str
    retry_cause: str | None
    resumed_from: str | None
    state: str  # the campaign's .muster folder
    bell: str
    ballast: str
    revive: tuple[str, ...]
    revive_s: float
    axes: dict[str, Any]
    code: dict[str, Any]
    muster: int = 1
