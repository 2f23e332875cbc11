"""What the kernel says: its log (whom it killed for lack of memory, which GPU failed, which task hangs), and the
memory cgroup of a process (kills, limit, use). None means: can't be read.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from muster.engine.ports.clock import monotonic_boottime
from muster.text.phrases import phrase


class CgroupMount(NamedTuple):
    point: str
    root: str  # the group that is shown at the mount point: a container sees a part of the hierarchy
    v2: bool


class MemoryGroup(NamedTuple):
    folder: str
    top: str  # no further up than this
    v2: bool


def memory_group_of(pid: int, proc: str = "/proc") -> MemoryGroup | None:
    """Where a process's memory is counted; machines with both hierarchies count it in one of them."""
    lines = _read_cgroup_file(f"{proc}/{pid}/cgroup").splitlines()
    named = [line.split(":", 2)[1:] for line in lines if line.count(":") >= 2]
    for v2 in (False, True):
        for controllers, path in named:
            if (not controllers) if v2 else ("memory" in controllers.split(",")):
                found = _readable_group(path, v2, cgroup_mounts(proc))
                if found:
                    return found
    return None


def _readable_group(path: str, v2: bool, places: tuple[CgroupMount, ...]) -> MemoryGroup | None:
    for mount in places:
        inner = _path_below_mount(path, mount.root)
        if mount.v2 != v2 or inner is None:
            continue
        group = MemoryGroup((mount.point + inner).rstrip("/"), mount.point, v2)
        while not os.access(f"{group.folder}/{_events_file(group)}", os.R_OK):
            if not v2 or group.folder == group.top:
                break
            group = _parent_group(group)  # in v2 memory is counted in the nearest group for which it is switched on
        else:
            return group
    return None


def _path_below_mount(path: str, root: str) -> str | None:
    """The path below the mount's root; None: it is not shown there."""
    if "/.." in path or not (root in ("/", path) or path.startswith(root + "/")):
        return None
    return path if root == "/" else path[len(root) :]


def oom_kills_in_group(group: MemoryGroup) -> int | None:
    """How many processes the kernel has killed in it for want of memory, since it was made."""
    for line in _read_cgroup_file(f"{group.folder}/{_events_file(group)}").splitlines():
        key, _, number = line.partition(" ")
        if key == "oom_kill" and number.isdecimal():
            return int(number)
    return None


def free_bytes_at(path: str) -> int | None:
    """Bytes that we may still write where the path is, or will be. A file system that hangs hangs whoever asks."""
    place = Path(path)
    for folder in (place, *place.parents):
        try:
            found = os.statvfs(folder)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError):
            return None
        return found.f_bavail * found.f_frsize
    return None


@cache
def cgroup_mounts(proc: str = "/proc") -> tuple[CgroupMount, ...]:
    """Where cgroups that count memory are mounted; that does not change while we live."""
    found = []
    for line in _read_cgroup_file(f"{proc}/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2" or (kind[0] == "cgroup" and "memory" in kind[2].split(",")):
            found.append(
                CgroupMount(_unescape_mount_path(fields[4]), _unescape_mount_path(fields[3]), kind[0] == "cgroup2")
            )
    return tuple(found)


def _parent_group(group: MemoryGroup) -> MemoryGroup:
    return group._replace(folder=group.folder.rpartition("/")[0])


def _events_file(group: MemoryGroup) -> str:
    return "memory.events" if group.v2 else "memory.oom_control"


def _number_in_group_file(group: MemoryGroup, name: str) -> int | None:
    text = _read_cgroup_file(f"{group.folder}/{name}").strip()
    return int(text) if text.isdecimal() else None


def _unescape_mount_path(text: str) -> str:
    """Blanks and the like are written as octal numbers there."""
    return text.encode("latin-1", "replace").decode("unicode_escape") if "\\" in text else text


def _read_cgroup_file(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


RECORD_BYTES = 16384  # one read gives one record, never a part of one
MOST_RECORDS = 16384  # of one look, about what a ring holds: a kernel that complains without end must not hold us
MOST_NOTES = 1024
KERNEL_CLOCK_SLACK_S = 5.0  # the log's clock runs a little apart from the others
FIRST_PID_NAMESPACE = 0xEFFFFFFC  # the inode that the kernel gives it; pids in the log are those of this namespace

_OOM = re.compile(r"(?:(?:Out of memory|Memory cgroup out of memory)[^:]*: )?Killed process (\d+) ")
_OOM_KILL = re.compile(r"oom-kill:constraint=.*,task=.*,pid=(\d+),uid=\d+")
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)(?:, pid='?(\d+))?")
_OFF_THE_BUS = re.compile(
    r"NVRM: .*?GPU (?:at )?(?:PCI:)?([0-9a-fA-F]+:[0-9a-fA-F]+:[0-9a-fA-F]+).*fallen off the bus", re.S
)
_HUNG = re.compile(r"INFO: task .*:(\d+) blocked for more than \d+ seconds")
_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})")
_OFF_THE_BUS_XID = 79
_RECOVERY_XID = 154  # says in words what the GPU needs now


@dataclass(frozen=True, slots=True)
class KernelNote:
    """A line that explains something. `at` is CLOCK_BOOTTIME where it has been dated."""

    kind: Literal["oom", "xid", "hung"]
    text: str
    stamp_s: float  # by the log's own clock
    pid: int | None = None
    pci: str = ""
    xid: int | None = None
    lost: bool = False  # the GPU can't be used any more
    at: float = 0.0


def parse_kernel_record(record: str) -> KernelNote | None:
    """One record as /dev/kmsg gives it, `6,1234,98765432,-;text`; None: it tells us nothing."""
    head, _, rest = record.partition(";")
    fields = head.split(",")
    try:
        priority, stamp_s = int(fields[0]), int(fields[2]) / 1e6
    except (ValueError, IndexError):
        return None
    if priority >> 3:
        return None  # written into the log by somebody else than the kernel
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), rest.split("\n", 1)[0])
    return _kernel_note(text, stamp_s)


def _kernel_note(text: str, stamp_s: float) -> KernelNote | None:
    for pattern in (_OOM, _OOM_KILL):
        if match := pattern.match(text):
            return KernelNote("oom", text, stamp_s, int(match[1]))
    if match := _XID.match(text):
        xid = int(match[2])
        lost = xid == _OFF_THE_BUS_XID or (xid == _RECOVERY_XID and _needs_gpu_reset(text))
        return KernelNote("xid", text, stamp_s, int(match[3]) if match[3] else None, pci_address(match[1]), xid, lost)
    if match := _OFF_THE_BUS.match(text):
        text = " ".join(text.replace("NVRM:", " ").split())  # it may come as three lines in one
        return KernelNote("xid", f"NVRM: {text}", stamp_s, None, pci_address(match[1]), None, True)
    if match := _HUNG.match(text):
        return KernelNote("hung", text, stamp_s, int(match[1]))
    return None


def _needs_gpu_reset(text: str) -> bool:
    """`... changed from 0x0 (None) to 0x1 (GPU Reset Required)`: what counts is what it changed to."""
    return any(need in text.rpartition(" to ")[2] for need in ("Reset Required", "Reboot Required"))


def pci_address(pci: str) -> str:
    """`0000:04:00`: the same for the kernel's and for NVML's way to write it."""
    try:
        domain, bus, device = (int(part, 16) for part in pci.partition(".")[0].split(":"))
    except ValueError:
        return pci
    return f"{domain:04x}:{bus:02x}:{device:02x}"


class KernelLog:
    """What the log holds and what comes in; where it can't be read `trouble` says why, and nothing is known."""

    def __init__(self, opened: Callable[[], int] | None = None, host_pids: bool | None = None) -> None:
        self.trouble = ""
        self.host_pids = is_in_container() if host_pids is None else host_pids
        self._notes: deque[KernelNote] = deque(maxlen=MOST_NOTES)
        self._fd: int | None = None
        self._read_until: float | None = None  # everything older than this has been read
        try:
            self._fd = (opened or open_kernel_log)()
        except OSError as error:
            self.trouble = phrase("hosts.kernel_log_unreadable", reason=error.strerror)

    def look(self) -> None:
        """Takes in what is new, a bounded part of it. Never waits."""
        if self._fd is None:
            return
        now = monotonic_boottime()
        for _ in range(MOST_RECORDS):
            try:
                record = os.read(self._fd, RECORD_BYTES)
            except BrokenPipeError:
                continue  # the kernel has overwritten what we had not read yet
            except BlockingIOError:
                self._read_until = now
                break
            except OSError as error:
                self.trouble = phrase("hosts.kernel_log_unreadable", reason=error.strerror)
                self.close()
                break
            if note := parse_kernel_record(record.decode("utf-8", "replace")):
                self._notes.append(replace(note, at=self._dated(note.stamp_s, now)))

    def lines_about(self, pids: Collection[int], pci: Collection[str] = (), since: float = 0.0) -> tuple[str, ...]:
        """Everything kept that names one of the processes or one of the GPUs, oldest first."""
        return tuple(note.text for note in self._about(pids, pci, since))

    def xids(self, pci: str = "", since: float = 0.0) -> tuple[KernelNote, ...]:
        """What the driver complained about, of one GPU or of all."""
        return tuple(note for note in self._newer(since) if note.kind == "xid" and pci in ("", note.pci))

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _about(self, pids: Collection[int], pci: Collection[str], since: float) -> list[KernelNote]:
        known = () if self.host_pids else pids  # a pid of ours is another process's there
        return [note for note in self._newer(since) if note.pid in known or (note.pci and note.pci in pci)]

    def _newer(self, since: float) -> list[KernelNote]:
        return [note for note in tuple(self._notes) if note.at >= since - KERNEL_CLOCK_SLACK_S]

    def _dated(self, stamp_s: float, now: float) -> float:
        """The log's clock drifts and stops while the machine sleeps; but what came in between two looks did so then."""
        asleep = now - time.clock_gettime(time.CLOCK_MONOTONIC)
        return min(now, max(stamp_s + asleep, self._read_until or 0.0))


def open_kernel_log() -> int:
    return os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def is_in_container() -> bool:
    """Whether our pids differ from those that the kernel itself uses."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino != FIRST_PID_NAMESPACE
    except OSError:
        return True
