"""What one look at an attempt shows: the facts in its folder, its processes, its signals while it lives, and what is
left of it when it is dead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from muster.model.campaign import ProgressKind
from muster.model.verdict import Evidence


@dataclass(frozen=True, slots=True)
class ProgressMark:
    """A progress signal at one look.

    `count` rises when the run advances: the newest step, new chunks seen so far, whole checkpoints saved so far. It may
    fall where a file was truncated or replaced; a fall is never progress.
    """

    signal: str  # as declared: "metrics.jsonl", "replay/*.npz", "checkpoint.ckpt", "stdout"
    kind: ProgressKind
    count: float | None  # None: nothing yet
    reading: str  # in words: "step 41984", "512 files, newest chunk_511.npz"
    every_s: float | None = None  # the declared period
    stage: str = ""  # the stage that the run says it is in, where it says so
    trouble: str = ""  # why it abstains: what it said before stands
    unfit: int = 0  # lines or rows seen so far of which none held a step
    own: bool = False  # where it is counted is this attempt's alone: what is there, this attempt has made
    non_finite: str = ""  # a metric that is NaN or inf in the newest row
    delay_s: float = 0.0  # how late a healthy run may show here what it did: its writer keeps it back
    ended: int | None = None  # the exit code that the newest file itself records: the run's own word that it is over
    held: float | None = None  # the step that the newest whole checkpoint holds

    @property
    def is_log(self) -> bool:
        """What a person would look at to see whether it runs."""
        return self.kind not in ("files", "checkpoint")


@dataclass(frozen=True, slots=True)
class GpuUse:
    """A leased GPU at one look."""

    device: int
    utilisation: float | None = None  # percent
    power_w: float | None = None
    memory_bytes: int | None = None  # of the run's own processes where they can be told, else of the device
    shared: bool = False  # other attempts lease a share of it: its readings are not this run's alone
    lost: str = ""  # how we know that it fell off the bus
    trouble: str = ""  # why it abstains


@dataclass(frozen=True, slots=True)
class TreeVitals:
    """Activity of the whole process tree: counters that rise while something of it works. None: can't be read."""

    states: str = ""  # one letter per process, the main one first
    cpu_s: float | None = None
    io_bytes: float | None = None
    out_bytes: int | None = None  # stdout and stderr
    rss_bytes: int | None = None
    opens_gpu: bool | None = None  # some process of the tree holds /dev/nvidiaN open
    gpus: tuple[GpuUse, ...] = ()
    disk_free: int | None = None  # where the output is
    oom_kills: int | None = None  # of the run's memory cgroup
    trouble: tuple[tuple[str, str], ...] = ()  # (signal, why it abstains)


@dataclass(frozen=True, slots=True)
class RunReadings:
    """All signals of one look at a living run."""

    boot: float
    marks: tuple[ProgressMark, ...] = ()
    vitals: TreeVitals = TreeVitals()
    clocks: tuple[tuple[str, float], ...] = ()  # periods found in the run's own config: ("log_every", 1000.0)
    output: str | None = None  # where it writes, once that was found


@dataclass(frozen=True, slots=True)
class PostMortem:
    """What explains a death best, read once when it is seen."""

    err: str = ""  # the end of stderr.log
    out: str = ""  # the end of stdout.log
    disk_free: int | None = None  # at the exit, as the shim saw it
    oom_before: int | None = None  # oom_kill count of the cgroup at the start, at the last look, at the exit
    oom_last: int | None = None
    oom_after: int | None = None
    last_look_s: float | None = None  # how long before the exit the last look was; None: nobody looked
    kernel: tuple[str, ...] = ()  # lines of the kernel log since the start that name the run or its GPUs
    kernel_pid: int | None = None  # its pid in the kernel log; None: that log can't be read, or counts other pids
    gpu_lost: str = ""  # NVML said so while it ran or when it ended
    own: bool = False  # where it is counted is this attempt's alone: what is there, this attempt has made
    non_finite: str = ""  # a metric that was NaN or inf in the last row


LARGEST_PID = 1 << 22  # the kernel's own limit, PID_MAX_LIMIT


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
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
class ExitRecord:
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
class AttemptSnapshot:
    """Everything one look at an open attempt showed."""

    boot: float
    started: Literal["no", "yes", "revoked", "unread", "lost"]  # lost: launched or seen once, and its files are gone
    execing: bool = False
    identity: ProcessIdentity | None = None
    exit: ExitRecord | None = None
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
    readings: RunReadings | None = None  # of a living run, where this look took them
    aftermath: PostMortem | None = None  # of a dead one
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

    def with_strays(self, pids: Sequence[int]) -> AttemptSnapshot:
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
