"""What one look at a living run shows, signal by signal; and what is left of a dead one to explain it."""

from __future__ import annotations

from dataclasses import dataclass

from muster.domain.campaign import ProgressKind


@dataclass(frozen=True, slots=True)
class Mark:
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
class Vitals:
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
class Readings:
    """All signals of one look at a living run."""

    boot: float
    marks: tuple[Mark, ...] = ()
    vitals: Vitals = Vitals()
    clocks: tuple[tuple[str, float], ...] = ()  # periods found in the run's own config: ("log_every", 1000.0)
    output: str | None = None  # where it writes, once that was found


@dataclass(frozen=True, slots=True)
class Aftermath:
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
