"""The kernel log: recorded lines, a log of our own, and the real one where it may be read."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.engine.ports.clock import monotonic_boottime
from muster.hosts.local import kernel
from muster.hosts.local.kernel import (
    KernelLog,
    KernelNote,
    is_in_container,
    open_kernel_log,
    parse_kernel_record,
    pci_address,
)

OOM_KILL = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/jobs/a,"
    "task_memcg=/jobs/a,task=python3,pid=31687,uid=0"
)
CGROUP_OOM = (
    "Memory cgroup out of memory: Killed process 31687 (python3) total-vm:75160kB, anon-rss:65152kB, file-rss:6624kB, "
    "shmem-rss:0kB, UID:0 pgtables:188kB oom_score_adj:300"
)
GLOBAL_OOM = "Out of memory: Killed process 4242 (a (b) c) total-vm:9kB, anon-rss:1kB, file-rss:0kB"
OLD_OOM = "Killed process 815 (python) total-vm:1024kB, anon-rss:512kB, file-rss:0kB"
OFF = "NVRM: Xid (PCI:0000:2b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
OFF_UNKNOWN = "NVRM: Xid (PCI:0000:2B:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
OFF_BARE = "NVRM: GPU 0000:2b:00.0: GPU has fallen off the bus."
OFF_OLD = "NVRM: GPU at 0000:2b:00.0 has fallen off the bus."
OFF_LINES = (
    "NVRM: The NVIDIA GPU 0000:2b:00.0\\x0aNVRM: (PCI ID: 10de:26b5) installed in this system has\\x0a"
    "NVRM: fallen off the bus and is not responding to commands."
)
FAULT = "NVRM: Xid (PCI:0000:04:00): 31, pid=4711, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS"
RESET = "NVRM: Xid (PCI:0000:2b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
FINE = "NVRM: Xid (PCI:0000:2b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
HUNG = "INFO: task my:python:555 blocked for more than 120 seconds."


def killed(log: KernelLog, pid: int, since: float = 0.0) -> str | None:
    lines = [line for line in log.lines_about([pid], since=since) if "blocked" not in line]
    return lines[-1] if lines else None


def record(text: str, stamp_s: float = 98.765432, priority: int = 3, more: str = "") -> str:
    return f"{priority},1234,{round(stamp_s * 1e6)},-{more};{text}\n"


@pytest.mark.parametrize(
    ("text", "kind", "pid", "pci", "xid", "lost"),
    [
        (OOM_KILL, "oom", 31687, "", None, False),
        (CGROUP_OOM, "oom", 31687, "", None, False),
        (GLOBAL_OOM, "oom", 4242, "", None, False),
        (OLD_OOM, "oom", 815, "", None, False),
        (OFF, "xid", 1234, "0000:2b:00", 79, True),
        (OFF_UNKNOWN, "xid", None, "0000:2b:00", 79, True),
        (OFF_BARE, "xid", None, "0000:2b:00", None, True),
        (OFF_OLD, "xid", None, "0000:2b:00", None, True),
        (OFF_LINES, "xid", None, "0000:2b:00", None, True),
        (FAULT, "xid", 4711, "0000:04:00", 31, False),
        (RESET, "xid", None, "0000:2b:00", 154, True),
        (FINE, "xid", None, "0000:2b:00", 154, False),
        (HUNG, "hung", 555, "", None, False),
    ],
)
def test_recorded_lines(text: str, kind: str, pid: int | None, pci: str, xid: int | None, lost: bool) -> None:
    note = parse_kernel_record(record(text))
    assert note
    assert (note.kind, note.pid, note.pci, note.xid, note.lost) == (kind, pid, pci, xid, lost)
    assert note.stamp_s == pytest.approx(98.765432)
    assert parse_kernel_record(record(text, more=",caller=T99") + " SUBSYSTEM=pci\n DEVICE=+pci:0000:2b:00.0\n") == note
    assert "\n" not in note.text


@pytest.mark.parametrize(
    "line",
    [
        "",
        "no record at all",
        "6,1;Out of memory: Killed process 1 (x) ",
        record("python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"),
        record("Out of memory: Kill process 77 (python) score 900 or sacrifice child"),  # the child may be the victim
        record("[  31687]     0 31687    18790    17944   192512        0             0 python3"),
        record("evil: Killed process 1 (x) "),
        record("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04"),
        record(CGROUP_OOM, priority=11),  # facility "user": written by a process
    ],
)
def test_lines_that_prove_nothing(line: str) -> None:
    assert parse_kernel_record(line) is None


def test_two_ways_to_write_a_place() -> None:
    assert pci_address("00000000:2B:00.0") == pci_address("0000:2b:00") == "0000:2b:00"
    assert pci_address("nonsense") == "nonsense"


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A log of our own: one read gives one record, as in the real one."""
    writer, reader = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reader.setblocking(False)
    with writer, reader:
        yield writer, reader


Ends = tuple[socket.socket, socket.socket]


def log_of(ends: Ends, host_pids: bool = False) -> KernelLog:
    return KernelLog(lambda: os.dup(ends[1].fileno()), host_pids)


def write(ends: Ends, text: str, stamp_s: float | None = None) -> None:
    now = time.clock_gettime(time.CLOCK_MONOTONIC)
    ends[0].send(record(text, now if stamp_s is None else stamp_s).encode())


def test_it_names_whom_the_kernel_killed(ends: Ends) -> None:
    log = log_of(ends)
    for text in ("hello", OOM_KILL, CGROUP_OOM, OFF, HUNG):
        write(ends, text)
    assert killed(log, 31687) is None, "nobody has looked yet"
    log.look()
    assert killed(log, 31687) == CGROUP_OOM
    assert killed(log, 555) is None, "it hangs, it was not killed"
    assert log.lines_about([31687]) == (OOM_KILL, CGROUP_OOM)
    assert log.lines_about([555], ["0000:2b:00"]) == (OFF, HUNG)
    assert [note.xid for note in log.xids()] == [79]
    assert log.xids("0000:04:00") == ()
    log.close()
    log.close()
    log.look()


def test_what_is_older_than_a_run_is_not_about_it(ends: Ends) -> None:
    started = monotonic_boottime()
    log = log_of(ends)
    write(ends, CGROUP_OOM, time.clock_gettime(time.CLOCK_MONOTONIC) - 60)
    log.look()
    assert killed(log, 31687)
    assert killed(log, 31687, since=started) is None, "that pid was another process then"
    write(ends, OOM_KILL, stamp_s=1.0)  # a clock that lags far behind
    log.look()
    assert killed(log, 31687, since=started) == OOM_KILL, "it came in while we watched"
    log.close()


def test_pids_of_the_host_say_nothing_about_ours(ends: Ends) -> None:
    log = log_of(ends, host_pids=True)
    for text in (CGROUP_OOM, OFF):
        write(ends, text)
    log.look()
    assert killed(log, 31687) is None
    assert log.lines_about([31687, 1234], ["0000:2b:00"]) == (OFF,)
    log.close()


def test_a_kernel_that_complains_without_end_does_not_hold_us(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "MOST_RECORDS", 2)
    log = log_of(ends)
    for text in ("one", "two", "three", CGROUP_OOM):
        write(ends, text)
    log.look()
    assert killed(log, 31687) is None
    log.look()
    assert killed(log, 31687)
    log.close()


def test_overwritten_records_are_passed_over_and_a_broken_log_is_left(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(ends)
    write(ends, CGROUP_OOM)
    failures = [BrokenPipeError(errno.EPIPE, "Broken pipe")]
    read = os.read

    def failing(fd: int, size: int) -> bytes:
        if failures:
            raise failures.pop()
        return read(fd, size)

    monkeypatch.setattr(kernel.os, "read", failing)
    log.look()
    assert killed(log, 31687)
    failures.append(OSError(errno.EIO, "Input/output error"))
    log.look()
    assert log.trouble == "the kernel log can't be read: Input/output error"
    assert killed(log, 31687), "what it said stands"


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOENT])
def test_where_it_may_not_be_read_it_says_why(number: int) -> None:
    def refused() -> int:
        raise OSError(number, os.strerror(number))

    log = KernelLog(refused)
    log.look()
    assert log.trouble == f"the kernel log can't be read: {os.strerror(number)}"
    assert (killed(log, 1), log.lines_about([1]), log.xids()) == (None, (), ())


def test_the_real_log_can_be_looked_at() -> None:
    try:
        os.close(open_kernel_log())
    except OSError as error:
        pytest.skip(f"/dev/kmsg can't be opened here: {error}")
    log = KernelLog()
    log.look()
    log.look()
    assert log.trouble == ""
    assert all(isinstance(note, KernelNote) for note in log.xids())
    log.close()


def test_whether_our_pids_are_the_kernels() -> None:
    assert is_in_container() == (Path("/proc/self/ns/pid").stat().st_ino != 0xEFFFFFFC)
