"""The processes of all runs, by one pass over /proc: who belongs to whom, and how much it has done so far."""

# thousands of Path objects for nothing

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from muster.engine.ports.clock import monotonic_boottime
from muster.files.process_identity import read_process
from muster.text.phrases import phrase

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
HANDLES_FRESH_S = 60.0  # to list what a process has open costs more than all else here
MOST_HANDLES = 16384


class ProcessStat(NamedTuple):
    pid: int
    ppid: int
    state: str  # R S D T Z ...
    ticks: int  # start time
    cpu_s: float  # its own and that of the children that it waited for
    waited_s: float  # of that, the children's
    rss_bytes: int
    threads: int


class ProcessSnapshot:
    """All processes at one moment. Those that end while we read are left out."""

    def __init__(self, procs: Iterable[ProcessStat], trouble: str = "") -> None:
        self.procs = {proc.pid: proc for proc in procs}
        self.trouble = trouble
        self._children: dict[int, list[int]] = {}
        for proc in self.procs.values():
            self._children.setdefault(proc.ppid, []).append(proc.pid)

    @classmethod
    def take(cls, proc: str = "/proc") -> ProcessSnapshot:
        try:
            names = os.listdir(proc)
        except OSError as error:
            return cls((), phrase("hosts.proc_unreadable", proc=proc, reason=error.strerror))
        read = (_read_process_stat(f"{proc}/{name}/stat", int(name)) for name in names if name.isdigit())
        return cls(found for found in read if found)

    def tree(self, root: int, ticks: int, shim: int = 0) -> list[ProcessStat]:
        """The main process, then its descendants, then what was orphaned and is the shim's child now.

        Empty where the main process is gone; a process of the same pid that started at another time is not it.
        Orphans of a run whose shim has died are somebody else's children: only their token names them.
        """
        main = self.procs.get(root)
        if main is None or main.ticks != ticks:
            return []
        pids = [root]
        seen = {root}
        self._add_below(pids, seen)
        if main.ppid == shim:  # else the shim is gone, and its pid may be anybody's
            pids += [pid for pid in self._children.get(shim, ()) if pid not in seen]
            self._add_below(pids, seen)
        return [_with_thread_state(self.procs[pid]) for pid in pids]

    def _add_below(self, pids: list[int], seen: set[int]) -> None:
        """Extends the list by everything below its members; pids read at slightly different times may form a ring."""
        for pid in pids:  # grows as we go
            seen.add(pid)
            pids += [child for child in self._children.get(pid, ()) if child not in seen]

    def cpu_s(self, tree: Sequence[ProcessStat], shim: int = 0) -> float:
        """Of the whole tree since its start.

        What a dead child used is in its zombie until it is waited for, then in its parent, and for orphans in the shim,
        so the sum rises while anything works. It falls only where a parent has the kernel reap its children (it ignores
        SIGCHLD) or the shim is gone; a fall is no sign of work.
        """
        reaper = self.procs.get(shim) if tree and tree[0].ppid == shim else None
        return (reaper.waited_s if reaper else 0.0) + sum(proc.cpu_s for proc in tree)


def _read_process_stat(path: str, pid: int) -> ProcessStat | None:
    try:
        fd = os.open(path, os.O_RDONLY)
        try:
            data = os.read(fd, 2048)
        finally:
            os.close(fd)
        # from behind the name, which may hold blanks and brackets
        fields = data[data.rindex(b")") + 2 :].split(b" ", 22)
        waited = int(fields[13]) + int(fields[14])
        return ProcessStat(
            pid,
            int(fields[1]),
            fields[0].decode(),
            int(fields[19]),
            (int(fields[11]) + int(fields[12]) + waited) / TICKS_PER_S,
            waited / TICKS_PER_S,
            int(fields[21]) * PAGE_BYTES,
            int(fields[17]),
        )
    except (OSError, ValueError, IndexError):
        return None


def _with_thread_state(proc: ProcessStat) -> ProcessStat:
    """A leader that has ended is called a zombie while other threads of it work on."""
    if proc.state != "Z" or proc.threads < 2:
        return proc
    try:
        found = read_process(proc.pid)
    except OSError:
        return proc
    return proc._replace(state=found.state) if found and found.ticks == proc.ticks else proc


def io_bytes_of_processes(pids: Iterable[int]) -> float | None:
    """Bytes that passed through read and write calls, pipes and sockets too; None where none of them may be read.

    Like CPU time it holds what children did that have been waited for. Mapped files do not count.
    """
    paths = (f"/proc/{pid}/io" for pid in pids)
    found = [sum(counted[:2]) for counted in map(_io_bytes_of_process, paths) if counted is not None]
    return float(sum(found)) if found else None


class Written(NamedTuple):
    passed: int  # bytes that passed through write calls: to terminals, pipes and sockets, too
    to_disk: int  # that made pages of files dirty; of mapped files, too; not on every file system


def written_by(tree: Iterable[ProcessStat]) -> Written | None:
    """By these processes themselves: a shell that started a run and waited for it did not write what the run wrote.

    Of one that waited for children, threads that have ended are left out with them. None: nothing may be read.
    """
    found = [
        counted for proc in tree for path in _io_paths(proc) if (counted := _io_bytes_of_process(path)) is not None
    ]
    return Written(sum(each[1] for each in found), sum(each[2] for each in found)) if found else None


def _io_paths(proc: ProcessStat) -> list[str]:
    if proc.waited_s == 0:
        return [f"/proc/{proc.pid}/io"]
    try:
        return [f"/proc/{proc.pid}/task/{thread}/io" for thread in os.listdir(f"/proc/{proc.pid}/task")]
    except OSError:
        return []


def _io_bytes_of_process(path: str) -> tuple[int, int, int] | None:
    """Read, written, and made dirty."""
    try:
        fd = os.open(path, os.O_RDONLY)
        try:
            words = os.read(fd, 512).split()
        finally:
            os.close(fd)
        return int(words[1]), int(words[3]), int(words[11])  # rchar: N wchar: N ... write_bytes: N
    except (OSError, ValueError, IndexError):
        return None


class GpuHandles:
    """Which processes hold a GPU open, remembered for a while."""

    def __init__(
        self, links: Callable[[int], Iterable[str]] | None = None, now: Callable[[], float] = monotonic_boottime
    ) -> None:
        self._links = links or _descriptor_links
        self._now = now
        self._known: dict[tuple[int, int], tuple[float, bool | None]] = {}

    def opens_gpu(self, procs: Iterable[ProcessStat]) -> bool | None:
        """Whether some of them do; None: none does as far as can be read, but not all can be read."""
        found = {self._opens(proc) for proc in procs}
        if True in found:
            return True
        return None if None in found or not found else False

    def _opens(self, proc: ProcessStat) -> bool | None:
        key = (proc.pid, proc.ticks)
        now = self._now()
        until, known = self._known.get(key, (float("-inf"), None))
        if now < until:
            return known
        if len(self._known) >= MOST_HANDLES:
            self._known.clear()
        known = self._look(proc)
        self._known[key] = (now + HANDLES_FRESH_S, known)
        return known

    def _look(self, proc: ProcessStat) -> bool | None:
        if proc.state in "ZX":
            return False  # it has let go of everything
        try:
            return any(_is_gpu_device(target) for target in self._links(proc.pid))
        except (FileNotFoundError, ProcessLookupError):
            return False  # it ended meanwhile
        except OSError:
            return None


def _is_gpu_device(target: str) -> bool:
    return target.startswith("/dev/nvidia") and target[11:].isdigit()


def _descriptor_links(pid: int) -> Iterable[str]:
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        try:
            yield os.readlink(f"{folder}/{name}")
        except FileNotFoundError:
            continue  # closed meanwhile
