"""One look at an attempt: the facts in its folder, and what the processes say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from muster.domain.reading import Aftermath, Readings
from muster.domain.verdict import Evidence

LARGEST_PID = 1 << 22  # the kernel's own limit, PID_MAX_LIMIT


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
    stop_reason: str | None = (
        None  # a stop that was carried out: user_stop, timeout, budget_stop, stalled, pruned, gate_stop
    )
    orphans: tuple[int, ...] | None = None  # processes of the run that outlived it; None: can't be told
    log: str = ""  # last bytes of stderr
    out: str = ""  # and of stdout
    disk_free: int | None = None
    oom_kills: tuple[int | None, int | None] = (None, None)  # of its memory cgroup: at the start, at the end


@dataclass(frozen=True, slots=True)
class ProofReading:
    """What the proof found; `holds` is None where nothing could be read, or not yet."""

    holds: bool | None
    evidence: tuple[Evidence, ...] = ()
    output: str | None = None  # the output folder that was found
    step: float | None = None
    results: Mapping[str, float] = field(default_factory=dict)
    pending: bool = False  # it is being read
    recorded: int | None = None  # the exit code that the run itself wrote down, where nobody else saw it
    saved: bool | None = (
        None  # a whole checkpoint was saved since the start; None: none is declared, or it can't be told
    )


@dataclass(frozen=True, slots=True)
class Sighting:
    """Everything one look at an open attempt showed."""

    boot: float
    started: Literal["no", "yes", "revoked", "unread", "lost"]  # lost: launched or seen once, and its files are gone
    execing: bool = False
    identity: Identity | None = None
    exit: Exit | None = None
    host: Literal["same", "rebooted", "restarted", "elsewhere"] = "same"
    main: Literal["alive", "hidden", "zombie", "gone", "unread"] = "unread"
    main_state: str = ""  # the letter of /proc/PID/stat
    shim: Literal["alive", "stopped", "gone"] = "gone"
    shim_locked: bool = False
    tree_locked: bool = False
    stop_reason: str | None = None  # a stop was asked for, whether or not it has been carried out
    strays: tuple[int, ...] = ()  # live processes that carry the token, the main one apart
    searched: bool = False  # its token was looked for among all processes
    slot_held: bool = False  # a lease that names it is held; asked for where its files are gone
    proof: ProofReading | None = None
    revoked_because: str = ""
    trouble: str = ""  # what kept us from reading
    readings: Readings | None = None  # of a living run, where this look took them
    aftermath: Aftermath | None = None  # of a dead one
    last_sign: float | None = None  # wall time; of one whose machine or container ended under it
    freed: float | None = None  # when the last of its orphans was gone, as its shim saw it

    @property
    def lives(self) -> bool:
        """Its main process does. Of one that /proc hides, the kernel says so by the lock that its tree holds."""
        return self.main in ("alive", "hidden")

    @property
    def may_have_strays(self) -> bool:
        """Its main process is not seen alive, and nobody has seen that nothing was left."""
        if self.started not in ("yes", "lost") or (self.exit is not None and self.exit.orphans == ()):
            return False
        return self.main in ("gone", "zombie", "unread")

    def with_strays(self, pids: Sequence[int]) -> Sighting:
        """`pids` carry its token."""
        main = self.identity.pid if self.identity else -1
        strays = tuple(pid for pid in pids if pid != main or self.main != "alive")
        return replace(self, strays=strays, searched=True)

    @property
    def tree_lives(self) -> bool:
        """Something of the run may still execute although its main process has ended."""
        if self.exit is not None and self.exit.orphans == ():
            return False  # the shim is the tree's reaper and saw that nothing was left
        return self.tree_locked or bool(self.strays) or (self.exit is not None and self.shim_locked)
