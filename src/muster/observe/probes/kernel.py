"""The kernel's own log: whom it killed for want of memory, which GPU failed, which task hangs in it."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from muster.observe.probes.apart import boottime

RECORD_BYTES = 16384  # one read gives one record, never a part of one
MOST_RECORDS = 16384  # of one look, about what a ring holds: a kernel that complains without end must not hold us
MOST_NOTES = 1024
SLACK_S = 5.0  # the log's clock runs a little apart from the others
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


def parse(record: str) -> KernelNote | None:
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
    return _note(text, stamp_s)


def _note(text: str, stamp_s: float) -> KernelNote | None:
    for pattern in (_OOM, _OOM_KILL):
        if match := pattern.match(text):
            return KernelNote("oom", text, stamp_s, int(match[1]))
    if match := _XID.match(text):
        xid = int(match[2])
        lost = xid == _OFF_THE_BUS_XID or (xid == _RECOVERY_XID and _needs_help(text))
        return KernelNote("xid", text, stamp_s, int(match[3]) if match[3] else None, place(match[1]), xid, lost)
    if match := _OFF_THE_BUS.match(text):
        text = " ".join(text.replace("NVRM:", " ").split())  # it may come as three lines in one
        return KernelNote("xid", f"NVRM: {text}", stamp_s, None, place(match[1]), None, True)
    if match := _HUNG.match(text):
        return KernelNote("hung", text, stamp_s, int(match[1]))
    return None


def _needs_help(text: str) -> bool:
    """`... changed from 0x0 (None) to 0x1 (GPU Reset Required)`: what counts is what it changed to."""
    return any(need in text.rpartition(" to ")[2] for need in ("Reset Required", "Reboot Required"))


def place(pci: str) -> str:
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
        self.host_pids = in_a_container() if host_pids is None else host_pids
        self._notes: deque[KernelNote] = deque(maxlen=MOST_NOTES)
        self._fd: int | None = None
        self._read_until: float | None = None  # everything older than this has been read
        try:
            self._fd = (opened or open_kmsg)()
        except OSError as error:
            self.trouble = f"the kernel log can't be read: {error.strerror}"

    def look(self) -> None:
        """Takes in what is new, a bounded part of it. Never waits."""
        if self._fd is None:
            return
        now = boottime()
        for _ in range(MOST_RECORDS):
            try:
                record = os.read(self._fd, RECORD_BYTES)
            except BrokenPipeError:
                continue  # the kernel has overwritten what we had not read yet
            except BlockingIOError:
                self._read_until = now
                break
            except OSError as error:
                self.trouble = f"the kernel log can't be read: {error.strerror}"
                self.close()
                break
            if note := parse(record.decode("utf-8", "replace")):
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
        return [note for note in tuple(self._notes) if note.at >= since - SLACK_S]

    def _dated(self, stamp_s: float, now: float) -> float:
        """The log's clock drifts and stops while the machine sleeps; but what came in between two looks did so then."""
        asleep = now - time.clock_gettime(time.CLOCK_MONOTONIC)
        return min(now, max(stamp_s + asleep, self._read_until or 0.0))


def open_kmsg() -> int:
    return os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def in_a_container() -> bool:
    """Whether our pids differ from those that the kernel itself uses."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino != FIRST_PID_NAMESPACE
    except OSError:
        return True
