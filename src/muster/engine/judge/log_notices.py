"""The end of a log as clean lines (no colours, progress bars or worker labels), and the notices in it: the words of
launchers, shells, schedulers, C++ and the GPU driver.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from muster.text.terminal_text import replace_unprintable, strip_terminal_sequences

TRACEBACK_HEAD = "Traceback (most recent call last)"

_MOST_TEXT = 128 * 1024
_MOST_LINES = 4000
_MOST_WIDTH = 4000
_NEAR_LINES = 300  # lines looked at for steps

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STAMP = re.compile(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: std(?:err|out) [FP])?:? ?"
)
_LABEL = re.compile(
    r"\[(?:rank|default|node|worker|gpu)?[ -]?\d{1,6}\]: ?"  # torch, torchrun --tee, pdsh
    r"|\[\d{1,4},\d{1,6}\]<std(?:err|out)>: ?"  # mpirun --tag-output
    r"|\([^()]{0,80}pid=\d+[^()]{0,80}\) ?"  # ray
    r"|\d{1,4}: "  # srun --label
)
_COUNTER = re.compile(r"\b(?:step|epoch|iter|iteration|update|batch)s?\b[\s:=#\[(/]{0,4}(\d+)", re.IGNORECASE)
_BAR = re.compile(r"\d%\|[^|]{0,400}\| *(\d+)/(\d+)")
_LOSS = re.compile(r"['\"]?\bloss\b['\"]?\s{0,3}[:=]\s{0,3}-?\d", re.IGNORECASE)


def clean_log_lines(text: str) -> list[str]:
    """The lines of `text`, without escapes and control characters; a redraw of a progress bar is a line of its own."""
    text = strip_terminal_sequences(text[-_MOST_TEXT:])
    text = _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = []
    for line in text.split("\n")[-_MOST_LINES:]:
        if TRACEBACK_HEAD in line and "\\n" in line:  # a traceback inside a line of JSON
            lines += [part[:_MOST_WIDTH] for part in line.replace('\\"', '"').split("\\n")]
        else:
            lines.append(line[:_MOST_WIDTH])
    return lines


def shorten_log_line(line: str, width: int = 300) -> str:
    """A line fit to be shown: printable characters alone, not too long."""
    line = replace_unprintable(line[: width * 4]).rstrip()
    return line if len(line) <= width else line[: width - 3] + "..."


def split_worker_labels(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """(row, label of the worker, the rest) of each line. The label is empty where the line has none."""
    own = _find_custom_labels(lines)
    for row, line in enumerate(lines):
        label, body = strip_worker_label(line)
        if own and not label:
            label = next((prefix for prefix in own if body.startswith(prefix)), "")
            body = body[len(label) :]
        yield row, label.strip(), body


def strip_worker_label(line: str) -> tuple[str, str]:
    """A line without its time stamp and the label of its worker, and that label."""
    if not line or line[0] not in "[(0123456789":
        return "", line
    if stamp := _STAMP.match(line):
        line = line[stamp.end() :]
    if label := _LABEL.match(line):
        return label[0], line[label.end() :]
    return "", line


def is_worker_label(label: str) -> bool:
    """One of several, by the form of its label."""
    return _LABEL.match(label + " ") is not None


def _find_custom_labels(lines: Sequence[str]) -> list[str]:
    """Labels that nobody told us about: what stands before `Traceback` and before the line after it, too."""
    found = []
    for row, line in enumerate(lines[:-1]):
        if TRACEBACK_HEAD not in line:
            continue
        prefix = strip_worker_label(line)[1].partition(TRACEBACK_HEAD)[0]
        if prefix.strip(" \t│|╭─+-") and strip_worker_label(lines[row + 1])[1].startswith(prefix):
            found.append(prefix)
    return found[:16]


def read_step_count(line: str) -> tuple[str, int] | None:
    """(what is counted, how far) where a line tells of steps done: a bar, `step 120`, `epoch=3`."""
    if bar := _BAR.search(line):
        return f"/{bar[2]}", int(bar[1][:18])
    if (counter := _COUNTER.search(line)) and not line.startswith((" ", "\t")):
        return counter[0][: -len(counter[1])].strip(" :=#[(/").lower(), int(counter[1][:18])
    return None


def lines_show_progress(lines: Sequence[str], before: Sequence[str]) -> bool:
    """Steps were done in `lines` that `before` did not show yet.

    A bar that is drawn once more is none, whatever it shows: it skips draws, and catches up when it is closed.
    """
    reached: dict[str, int] = {}
    for line in before[-_NEAR_LINES:]:
        if (told := read_step_count(line)) and not told[0].startswith("/"):
            reached[told[0]] = max(told[1], reached.get(told[0], -1))
    return any(_line_advances(line, reached) for line in lines[:_NEAR_LINES])


def _line_advances(line: str, reached: dict[str, int]) -> bool:
    told = read_step_count(line)
    if told is None:
        return _LOSS.search(line) is not None
    what, far = told
    known = reached.get(what)
    reached[what] = max(far, -1 if known is None else known)
    if known is not None:
        return far > known
    return not what.startswith("/") and _LOSS.search(line) is not None


@dataclass(frozen=True, slots=True)
class LogNotice:
    """One thing said, where, and what it names."""

    kind: str
    text: str  # the line, or what it says in it
    row: int
    number: int | None = None  # a signal, or an exit code where it is negative or `kind` is worker_exit
    pid: int | None = None
    rank: int | None = None


_MOST_NOTICES = 20  # of a kind; the last ones count

SIGNAL_NUMBERS = {
    "SIGHUP": 1,
    "SIGINT": 2,
    "SIGQUIT": 3,
    "SIGILL": 4,
    "SIGABRT": 6,
    "SIGBUS": 7,
    "SIGFPE": 8,
    "SIGKILL": 9,
    "SIGUSR1": 10,
    "SIGSEGV": 11,
    "SIGUSR2": 12,
    "SIGPIPE": 13,
    "SIGTERM": 15,
    "SIGXCPU": 24,
    "SIGXFSZ": 25,
}
_SHELL_WORDS = {
    "Hangup": 1,
    "Illegal instruction": 4,
    "Aborted": 6,
    "Bus error": 7,
    "Killed": 9,
    "Segmentation fault": 11,
    "Terminated": 15,
}
_SHELL = re.compile(rf"({'|'.join(_SHELL_WORDS)})(?: \(core dumped\))?")
_SHELL_LINE = re.compile(rf": line \d+: +(\d+) ({'|'.join(_SHELL_WORDS)})\b")
_RANK = re.compile(r"rank +: (\d+)")
_EXITCODE = re.compile(r"exitcode +: (-?\d+) +\(pid: (\d+)\)")


def read_log_notices(lines: Sequence[str]) -> tuple[LogNotice, ...]:
    """Everything of the table below that `lines` say, in their order."""
    lowered = [line.lower() for line in lines]
    whole = "\n".join(lowered)
    found: list[LogNotice] = []
    for literal, read in _NOTICE_READERS:
        if literal not in whole:
            continue
        rows = [row for row, line in enumerate(lowered) if literal in line]
        found += [notice for row in rows[-_MOST_NOTICES:] if (notice := read(lines, row)) is not None]
    return tuple(sorted(set(found), key=lambda n: (n.row, n.kind)))


def _read_cpp_termination(lines: Sequence[str], row: int) -> LogNotice | None:
    """terminate called after throwing an instance of 'c10::Error', and what it says in the lines below."""
    for below in lines[row : row + 4]:
        if "what():" in below:
            return LogNotice("terminate", below.partition("what():")[2].strip(), row)
    return LogNotice("terminate", lines[row].partition("terminate called ")[2].strip(), row)


def _read_shell_report(lines: Sequence[str], row: int) -> LogNotice | None:
    """train.sh: line 3: 610925 Killed   python train.py; or `Killed` alone, as an interactive shell writes it."""
    line = lines[row].strip()
    if match := _SHELL_LINE.search(line):
        return LogNotice("shell", line, row, _SHELL_WORDS[match[2]], int(match[1][:18]))
    if match := _SHELL.fullmatch(line):
        return LogNotice("shell", line, row, _SHELL_WORDS[match[1]])
    return None


def _read_torchrun_root_cause(lines: Sequence[str], row: int) -> LogNotice | None:
    """torchrun's report: the worker that failed first."""
    report = "\n".join(lines[row : row + 10])
    code, rank = _EXITCODE.search(report), _RANK.search(report)
    if code is None:
        return None
    end = next((r for r in range(row, min(row + 10, len(lines))) if "exitcode" in lines[r]), row)
    number = int(code[1][:9])
    return _worker_notice(lines[end], end, number, int(code[2][:18]), int(rank[1][:9]) if rank else None)


def _worker_notice(line: str, row: int, number: int, pid: int | None = None, rank: int | None = None) -> LogNotice:
    if number < 0:
        return LogNotice("worker_signal", line.strip(), row, -number, pid, rank)
    return LogNotice("worker_exit", line.strip(), row, number, pid, rank)


def _reader_by_number(pattern: str) -> Callable[[Sequence[str], int], LogNotice | None]:
    compiled = re.compile(pattern)

    def read(lines: Sequence[str], row: int) -> LogNotice | None:
        match = compiled.search(lines[row])
        return _worker_notice(lines[row], row, int(match[1][:9])) if match else None

    return read


def _reader_by_signal_name(pattern: str) -> Callable[[Sequence[str], int], LogNotice | None]:
    compiled = re.compile(pattern)

    def read(lines: Sequence[str], row: int) -> LogNotice | None:
        match = compiled.search(lines[row])
        number = SIGNAL_NUMBERS.get(match[1]) if match else None
        return _worker_notice(lines[row], row, -number) if number else None

    return read


def _read_data_worker_notice(lines: Sequence[str], row: int) -> LogNotice | None:
    match = re.search(r"DataLoader worker \(pid (\d+)\) is killed by signal: (\w[\w ]*)", lines[row])
    if match is None:
        return None
    return LogNotice("data_worker", lines[row].strip(), row, _SHELL_WORDS.get(match[2].strip()), int(match[1][:18]))


def _reader_by_pattern(
    kind: str, pattern: str, flags: int = re.IGNORECASE
) -> Callable[[Sequence[str], int], LogNotice | None]:
    compiled = re.compile(pattern, flags)

    def read(lines: Sequence[str], row: int) -> LogNotice | None:
        return LogNotice(kind, lines[row].strip(), row) if compiled.search(lines[row]) else None

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
_NOTICE_READERS: tuple[tuple[str, Callable[[Sequence[str], int], LogNotice | None]], ...] = (
    ("terminate called", _read_cpp_termination),
    ("fatal python error", _reader_by_pattern("fatal_python", r"^\W{0,3}Fatal Python error: ")),
    ("due to preemption", _reader_by_pattern("slurm_preempted", _SLURM + "PREEMPTION", 0)),
    ("due to time limit", _reader_by_pattern("slurm_time", _SLURM + "TIME LIMIT", 0)),
    (
        "cancelled at",
        _reader_by_pattern("slurm_cancelled", r"\*\*\* (?:JOB|STEP) \S+ (?:ON \S+ )?CANCELLED AT \S+ \*\*\*", 0),
    ),
    ("due to node failure", _reader_by_pattern("slurm_node", _SLURM + "NODE FAILURE", 0)),
    ("oom", _reader_by_pattern("slurm_oom", r"slurmstepd: error: (?:Detected \d+ oom.kill event|.*OOM Killed)")),
    ("spot", _reader_by_pattern("spot", _SPOT)),
    ("preempt", _reader_by_pattern("spot", _SPOT)),
    ("root cause (first observed failure)", _read_torchrun_root_cause),
    ("terminated with signal sig", _reader_by_signal_name(r"process \d+ terminated with signal (SIG\w+)")),
    ("died with <signals.", _reader_by_signal_name(r"died with <Signals\.(SIG\w+)")),
    ("returned non-zero exit status", _reader_by_number(r"returned non-zero exit status (\d+)")),
    ("exits with return code =", _reader_by_number(r"exits with return code = (-\d+)")),
    ("dataloader worker (pid", _read_data_worker_notice),
    ("gpu is lost", _reader_by_pattern("gpu_lost", _LOST)),
    ("fallen off the bus", _reader_by_pattern("gpu_lost", _LOST)),
    ("nvrm: xid", _reader_by_pattern("gpu_lost", _LOST)),
    ("device handle for gpu", _reader_by_pattern("gpu_lost", _LOST)),
    ("uncorrectable ecc", _reader_by_pattern("gpu_lost", _LOST)),
    ("sigterm", _reader_by_pattern("sigterm", r"\b(?:received|caught|got)(?: signal)? SIGTERM\b")),
    ("nccl", _reader_by_pattern("nccl_timeout", r"NCCL.{0,200}(?:collective operation timeout|timed out|timeout)")),
    ("watchdog caught collective", _reader_by_pattern("nccl_timeout", r"Watchdog caught collective operation timeout")),
    *((word.lower(), _read_shell_report) for word in _SHELL_WORDS),
)
