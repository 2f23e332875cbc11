"""What a log says beside Python's exceptions: the words of launchers, shells, schedulers, C++ and the GPU driver."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing said, where, and what it names."""

    kind: str
    text: str  # the line, or what it says in it
    row: int
    number: int | None = None  # a signal, or an exit code where it is negative or `kind` is worker_exit
    pid: int | None = None
    rank: int | None = None


_MOST = 20  # of a kind; the last ones count

SIGNALS = {
    "SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGILL": 4, "SIGABRT": 6, "SIGBUS": 7, "SIGFPE": 8, "SIGKILL": 9,
    "SIGUSR1": 10, "SIGSEGV": 11, "SIGUSR2": 12, "SIGPIPE": 13, "SIGTERM": 15, "SIGXCPU": 24, "SIGXFSZ": 25,
}  # fmt: skip
_SHELL_WORDS = {
    "Hangup": 1, "Illegal instruction": 4, "Aborted": 6, "Bus error": 7, "Killed": 9, "Segmentation fault": 11,
    "Terminated": 15,
}  # fmt: skip
_SHELL = re.compile(rf"({'|'.join(_SHELL_WORDS)})(?: \(core dumped\))?")
_SHELL_LINE = re.compile(rf": line \d+: +(\d+) ({'|'.join(_SHELL_WORDS)})\b")
_RANK = re.compile(r"rank +: (\d+)")
_EXITCODE = re.compile(r"exitcode +: (-?\d+) +\(pid: (\d+)\)")


def read_notices(lines: Sequence[str]) -> tuple[Notice, ...]:
    """Everything of the table below that `lines` say, in their order."""
    lowered = [line.lower() for line in lines]
    whole = "\n".join(lowered)
    found: list[Notice] = []
    for literal, read in _TABLE:
        if literal not in whole:
            continue
        rows = [row for row, line in enumerate(lowered) if literal in line]
        found += [notice for row in rows[-_MOST:] if (notice := read(lines, row)) is not None]
    return tuple(sorted(set(found), key=lambda n: (n.row, n.kind)))


def _terminate(lines: Sequence[str], row: int) -> Notice | None:
    """terminate called after throwing an instance of 'c10::Error', and what it says in the lines below."""
    for below in lines[row : row + 4]:
        if "what():" in below:
            return Notice("terminate", below.partition("what():")[2].strip(), row)
    return Notice("terminate", lines[row].partition("terminate called ")[2].strip(), row)


def _shell(lines: Sequence[str], row: int) -> Notice | None:
    """train.sh: line 3: 610925 Killed   python train.py; or `Killed` alone, as an interactive shell writes it."""
    line = lines[row].strip()
    if match := _SHELL_LINE.search(line):
        return Notice("shell", line, row, _SHELL_WORDS[match[2]], int(match[1][:18]))
    if match := _SHELL.fullmatch(line):
        return Notice("shell", line, row, _SHELL_WORDS[match[1]])
    return None


def _root_cause(lines: Sequence[str], row: int) -> Notice | None:
    """torchrun's report: the worker that failed first."""
    report = "\n".join(lines[row : row + 10])
    code, rank = _EXITCODE.search(report), _RANK.search(report)
    if code is None:
        return None
    end = next((r for r in range(row, min(row + 10, len(lines))) if "exitcode" in lines[r]), row)
    number = int(code[1][:9])
    return _worker(lines[end], end, number, int(code[2][:18]), int(rank[1][:9]) if rank else None)


def _worker(line: str, row: int, number: int, pid: int | None = None, rank: int | None = None) -> Notice:
    if number < 0:
        return Notice("worker_signal", line.strip(), row, -number, pid, rank)
    return Notice("worker_exit", line.strip(), row, number, pid, rank)


def _by_number(pattern: str) -> Callable[[Sequence[str], int], Notice | None]:
    compiled = re.compile(pattern)

    def read(lines: Sequence[str], row: int) -> Notice | None:
        match = compiled.search(lines[row])
        return _worker(lines[row], row, int(match[1][:9])) if match else None

    return read


def _by_signal_name(pattern: str) -> Callable[[Sequence[str], int], Notice | None]:
    compiled = re.compile(pattern)

    def read(lines: Sequence[str], row: int) -> Notice | None:
        match = compiled.search(lines[row])
        number = SIGNALS.get(match[1]) if match else None
        return _worker(lines[row], row, -number) if number else None

    return read


def _data_worker(lines: Sequence[str], row: int) -> Notice | None:
    match = re.search(r"DataLoader worker \(pid (\d+)\) is killed by signal: (\w[\w ]*)", lines[row])
    if match is None:
        return None
    return Notice("data_worker", lines[row].strip(), row, _SHELL_WORDS.get(match[2].strip()), int(match[1][:18]))


def _says(kind: str, pattern: str, flags: int = re.IGNORECASE) -> Callable[[Sequence[str], int], Notice | None]:
    compiled = re.compile(pattern, flags)

    def read(lines: Sequence[str], row: int) -> Notice | None:
        return Notice(kind, lines[row].strip(), row) if compiled.search(lines[row]) else None

    return read


_SLURM = r"\*\*\* (?:JOB|STEP) \S+ (?:ON \S+ )?CANCELLED AT \S+ DUE TO "
_SPOT = (
    r"spot (?:instance )?(?:interruption|termination) (?:notice|warning)|spot ITN\b"
    r"|(?:instance|vm|node|machine|host|job) (?:is being|was|has been|will be|is going to be|is) preempted"
    r"|preemption (?:notice|event|signal) (?:was )?(?:received|detected)"
    r"|received (?:a )?preemption (?:notice|event|signal)"
    r"|spot instance .{0,60}(?:interrupted|terminated|reclaimed)"
)
_LOST = (
    r"GPU is lost|fallen off the bus|NVRM: Xid .*?: (?:46|48|62|64|74|79|95|119|120|140|143)\b"
    r"|Unable to determine the device handle for GPU|uncorrectable ECC error encountered"
)

# (what must be in the line, in lower case; how the line is read)
_TABLE: tuple[tuple[str, Callable[[Sequence[str], int], Notice | None]], ...] = (
    ("terminate called", _terminate),
    ("fatal python error", _says("fatal_python", r"^\W{0,3}Fatal Python error: ")),
    ("due to preemption", _says("slurm_preempted", _SLURM + "PREEMPTION", 0)),
    ("due to time limit", _says("slurm_time", _SLURM + "TIME LIMIT", 0)),
    ("cancelled at", _says("slurm_cancelled", r"\*\*\* (?:JOB|STEP) \S+ (?:ON \S+ )?CANCELLED AT \S+ \*\*\*", 0)),
    ("due to node failure", _says("slurm_node", _SLURM + "NODE FAILURE", 0)),
    ("oom", _says("slurm_oom", r"slurmstepd: error: (?:Detected \d+ oom.kill event|.*OOM Killed)")),
    ("spot", _says("spot", _SPOT)),
    ("preempt", _says("spot", _SPOT)),
    ("root cause (first observed failure)", _root_cause),
    ("terminated with signal sig", _by_signal_name(r"process \d+ terminated with signal (SIG\w+)")),
    ("died with <signals.", _by_signal_name(r"died with <Signals\.(SIG\w+)")),
    ("returned non-zero exit status", _by_number(r"returned non-zero exit status (\d+)")),
    ("exits with return code =", _by_number(r"exits with return code = (-\d+)")),
    ("dataloader worker (pid", _data_worker),
    ("gpu is lost", _says("gpu_lost", _LOST)),
    ("fallen off the bus", _says("gpu_lost", _LOST)),
    ("nvrm: xid", _says("gpu_lost", _LOST)),
    ("device handle for gpu", _says("gpu_lost", _LOST)),
    ("uncorrectable ecc", _says("gpu_lost", _LOST)),
    ("sigterm", _says("sigterm", r"\b(?:received|caught|got)(?: signal)? SIGTERM\b")),
    ("nccl", _says("nccl_timeout", r"NCCL.{0,200}(?:collective operation timeout|timed out|timeout)")),
    ("watchdog caught collective", _says("nccl_timeout", r"Watchdog caught collective operation timeout")),
    *((word.lower(), _shell) for word in _SHELL_WORDS),
)
