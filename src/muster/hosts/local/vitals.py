"""The activity of living runs, all of them at one look. What can't be read abstains and says why; nothing raises."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from muster.engine.ports.clock import monotonic_boottime
from muster.hosts.local.gpus import GpuProbe, GpuReading, gpu_use_of_run
from muster.hosts.local.kernel import KernelLog, MemoryGroup, free_bytes_at, memory_group_of, oom_kills_in_group
from muster.hosts.local.process_tree import (
    TICKS_PER_S,
    GpuHandles,
    ProcessSnapshot,
    ProcessStat,
    io_bytes_of_processes,
)
from muster.model.attempt import AttemptKey
from muster.model.attempt_snapshot import GpuUse, TreeVitals
from muster.readers.background_reader import PolledProbe
from muster.text.phrases import phrase

DISK_PERIOD_S = 30.0
DISK_PATIENCE_S = 0.05  # of the first look at a disk; one that hangs is not waited for again
GROUP_FRESH_S = 60.0
MOST_REMEMBERED = 4096
ABSTENTION_REASONS = {
    "io_bytes": ("io", "hosts.io_unreadable"),
    "out_bytes": ("output", "hosts.output_unreadable"),
    "opens_gpu": ("handles", "hosts.handles_unreadable"),
    "disk_free": ("disk", "hosts.disk_silent"),
    "oom_kills": ("oom_kills", "hosts.oom_kills_uncounted"),
}
OF_THE_TREE = ("io_bytes", "opens_gpu", "oom_kills")  # without a process there is nothing to read them from


@dataclass(frozen=True, slots=True)
class VitalsRequest:
    """Whom to look at. The pids are those of identity.json."""

    key: AttemptKey
    main_pid: int
    main_ticks: int
    shim_pid: int
    out_folder: str  # the attempt's folder, with stdout.log and stderr.log
    output: str | None = None  # the run's own output folder, where it is known
    devices: tuple[int, ...] = ()
    shared: bool = False  # others lease a share of these devices


@dataclass(slots=True)
class _SharedReadings:
    """What is read once for all runs of a look."""

    snapshot: ProcessSnapshot
    gpus: dict[int, GpuReading]
    oom_kills: dict[MemoryGroup, int | None] = field(default_factory=dict)


class VitalsReader:
    def __init__(
        self,
        gpu: GpuProbe | None = None,
        kernel: KernelLog | None = None,
        snap: Callable[[], ProcessSnapshot] = ProcessSnapshot.take,
        disk_free: Callable[[str], int | None] = free_bytes_at,
    ) -> None:
        self.gpu = gpu
        self.kernel = kernel
        self._snap = snap
        self._handles = GpuHandles()
        self._disks = DiskSpace(disk_free)
        self._trees: dict[AttemptKey, tuple[int, ...]] = {}
        self._groups: dict[tuple[int, int], tuple[float, MemoryGroup | None]] = {}

    def look_all(self, asks: Sequence[VitalsRequest]) -> dict[AttemptKey, TreeVitals]:
        if not asks:
            return {}
        if self.kernel:
            self.kernel.look()
        leased = {device for ask in asks for device in ask.devices}
        look = _SharedReadings(self._snap(), self.gpu.look(leased) if self.gpu else {})
        return {ask.key: self._guarded(ask, look) for ask in asks}

    def pids_of(self, key: AttemptKey) -> tuple[int, ...]:
        """Who belonged to a run when it was seen last, to find them in the kernel log once it is dead."""
        return self._trees.get(key, ())

    def _guarded(self, ask: VitalsRequest, look: _SharedReadings) -> TreeVitals:
        try:
            return self._look(ask, look)
        except Exception as error:  # one run's odd machine must not blind us for all the others
            return TreeVitals(trouble=(("vitals", f"{type(error).__name__}: {error}"),))

    def _look(self, ask: VitalsRequest, look: _SharedReadings) -> TreeVitals:
        tree = look.snapshot.tree(ask.main_pid, ask.main_ticks, ask.shim_pid)
        pids = [proc.pid for proc in tree]
        if tree:
            self._remember(ask.key, pids)
        found = TreeVitals(
            states="".join(proc.state for proc in tree),
            cpu_s=look.snapshot.cpu_s(tree, ask.shim_pid) if tree else None,
            io_bytes=io_bytes_of_processes(pids),
            out_bytes=_log_bytes_of_attempt(ask.out_folder),
            rss_bytes=sum(proc.rss_bytes for proc in tree) if tree else None,
            opens_gpu=self._handles.opens_gpu(tree),
            gpus=tuple(self._gpu(device, ask, look, pids) for device in ask.devices),
            disk_free=self._disks.free(ask.output or ask.out_folder),
            oom_kills=self._oom_kills(tree, look),
        )
        return replace(
            found,
            trouble=_troubles_of_vitals(found, "" if tree else _why_process_is_unseen(ask.main_pid, look.snapshot)),
        )

    def _gpu(self, device: int, ask: VitalsRequest, look: _SharedReadings, pids: Sequence[int]) -> GpuUse:
        reading = look.gpus.get(device)
        if reading is None:
            return GpuUse(device, shared=ask.shared, trouble=phrase("hosts.nobody_asks_nvml_here"))
        if not reading.lost and (said := self._lost_by_kernel(reading.pci, ask.main_ticks / TICKS_PER_S)):
            reading = replace(reading, lost=phrase("hosts.kernel_says", said=said))
        return gpu_use_of_run(reading, set(pids), look.snapshot.procs.keys(), ask.shared)

    def _lost_by_kernel(self, pci: str, since: float) -> str:
        """What the kernel said while this run lived; an older loss has been fixed, or the run would not have it."""
        if not self.kernel or not pci:
            return ""
        return next((note.text for note in self.kernel.xids(pci, since) if note.lost), "")

    def _oom_kills(self, tree: Sequence[ProcessStat], look: _SharedReadings) -> int | None:
        """Runs that share a group share its count: it is read once for all of them."""
        group = self._group_of(tree[0]) if tree else None
        if group is None:
            return None
        if group not in look.oom_kills:
            look.oom_kills[group] = oom_kills_in_group(group)
        return look.oom_kills[group]

    def _group_of(self, main: ProcessStat) -> MemoryGroup | None:
        """Hardly any process is moved while it runs: asked once a minute."""
        now = monotonic_boottime()
        until, group = self._groups.get((main.pid, main.ticks), (0.0, None))
        if now >= until:
            if len(self._groups) > MOST_REMEMBERED:
                self._groups.clear()
            group = memory_group_of(main.pid)
            self._groups[main.pid, main.ticks] = (now + GROUP_FRESH_S, group)
        return group

    def _remember(self, key: AttemptKey, pids: Sequence[int]) -> None:
        self._trees.pop(key, None)
        self._trees[key] = tuple(pids)
        if len(self._trees) > MOST_REMEMBERED:
            del self._trees[next(iter(self._trees))]


class DiskSpace:
    """Free space, read apart: a network file system may hang for hours."""

    def __init__(self, read: Callable[[str], int | None] = free_bytes_at) -> None:
        self._read = read
        self._asked: dict[str, PolledProbe[int | None]] = {}

    def free(self, path: str) -> int | None:
        asking = self._asked.get(path)
        if asking is None:
            if len(self._asked) > MOST_REMEMBERED:
                self._asked.clear()
            calm = all(known.newest for known in self._asked.values())
            asking = self._asked[path] = PolledProbe(lambda: self._read(path), DISK_PERIOD_S)
            asking.refresh()
            if calm:  # where one hangs the others may hang with it, and a hundred short waits are a long one
                asking.settle(DISK_PATIENCE_S)
        asking.refresh()
        answer = asking.newest
        return answer.value if answer and asking.age_s < 3 * DISK_PERIOD_S else None


def _log_bytes_of_attempt(folder: str) -> int | None:
    """Both logs together; one that is not there yet has no bytes."""
    total = 0
    for name in ("stdout.log", "stderr.log"):
        try:
            total += os.stat(os.path.join(folder, name)).st_size
        except FileNotFoundError:
            continue
        except OSError:
            return None
    return total


def _why_process_is_unseen(pid: int, snapshot: ProcessSnapshot) -> str:
    if snapshot.trouble:
        return snapshot.trouble
    if pid in snapshot.procs:
        return phrase("hosts.pid_reused", pid=pid)
    try:
        os.kill(pid, 0)  # no signal: only whether there is such a process
    except ProcessLookupError:
        return phrase("hosts.process_gone", pid=pid)
    except OSError:
        pass
    return phrase("hosts.process_hidden", pid=pid)


def _troubles_of_vitals(found: TreeVitals, unseen: str) -> tuple[tuple[str, str], ...]:
    """One line for each signal that abstains; GPUs say so themselves."""
    troubles = [("process", unseen)] if unseen else []
    for name, (signal, code) in ABSTENTION_REASONS.items():
        if getattr(found, name) is None and not (unseen and name in OF_THE_TREE):
            troubles.append((signal, phrase(code)))
    return tuple(troubles)
