"""The facts about a death that the cause rules look at: exit, signals and codes in words, kernel kills for lack of
memory, both logs, and what contributed without being the cause.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from muster.engine.judge.log_clues import FinalException, LogClues, find_final_exception, read_log_clues
from muster.engine.judge.log_notices import LogNotice, shorten_log_line
from muster.engine.judge.tracebacks import RaisedException
from muster.model.attempt_snapshot import ExitRecord, PostMortem
from muster.model.verdict import Cause

CRASH_SIGNALS = (4, 6, 7, 8, 11)


@dataclass(frozen=True, slots=True)
class DeathCase:
    """Everything the rules look at."""

    exit: ExitRecord
    after: PostMortem
    failed: tuple[str, ...]  # parts of the proof that fail, and that can't be read
    unread: tuple[str, ...]
    pid: int | None  # of the run's main process, as the kernel log names it
    log: LogClues  # stderr, or stdout where that is all there is
    other: LogClues  # the other one
    final: FinalException | None  # the exception that the log ends with

    @property
    def code(self) -> int | None:
        return self.exit.code

    @property
    def signal(self) -> int | None:
        return self.exit.signal

    @property
    def lived_s(self) -> float:
        return self.exit.duration_s

    @property
    def raised(self) -> RaisedException | None:
        """The exception that may have ended it: one that was not survived."""
        return self.final.raised if self.final and self.final.after != "progress" else None

    @property
    def crashed(self) -> bool:
        """It ended by its own fault, not by a signal that others send."""
        return self.signal in CRASH_SIGNALS or (self.signal is None and self.code != 0)

    def said(self, *kinds: str) -> tuple[LogNotice, ...]:
        return self.log.said(*kinds) + self.other.said(*kinds)


@dataclass(frozen=True, slots=True)
class CauseFinding:
    """What one rule found, and what of the logs shows it."""

    cause: Cause
    shows: tuple[RaisedException | str, ...] = ()


def cause_finding(
    kind: str, sure: str, note: str, *shows: RaisedException | str | None, detail: str = ""
) -> CauseFinding:
    return CauseFinding(Cause(kind, detail, sure, note), tuple(each for each in shows if each))


def read_death_case(
    exit_: ExitRecord, after: PostMortem, failed: tuple[str, ...], unread: tuple[str, ...], pid: int | None
) -> DeathCase:
    err, out = read_log_clues(after.err or exit_.log), read_log_clues(after.out)
    if err.silent and not out.silent:
        err, out = out, err  # 2>&1
    final, beside = find_final_exception(err), find_final_exception(out)
    if beside is not None and beside.after != "progress":
        if final is None or final.after == "progress":
            final, err, out = beside, out, err
        final = replace(final, agreed=False)  # nothing tells which of the two logs was written last
    return DeathCase(exit_, after, failed, unread, pid, err, out, final)


_RECENT_S = 30.0
_KERNEL_KILL = re.compile(r"(?:Killed process|oom-kill:.*\bpid=|[Oo]ut of memory: Kill\w* process)\s*(\d+)")


def oom_count_rose(case: DeathCase) -> bool:
    after = case.after
    return after.oom_after is not None and after.oom_before is not None and after.oom_after > after.oom_before


def oom_count_rose_at_end(case: DeathCase) -> bool:
    after = case.after
    if after.last_look_s is None:
        return (
            oom_count_rose(case) and case.lived_s <= _RECENT_S
        )  # else it may have been counted for a child, long before
    recent = after.oom_after is not None and after.oom_last is not None and after.oom_after > after.oom_last
    return recent and after.last_look_s <= _RECENT_S


def oom_count_rose_unseen(case: DeathCase) -> bool:
    """It rose, and no look shows that it was long before the end."""
    after = case.after
    return oom_count_rose(case) and (after.oom_last is None or (after.oom_after or 0) > after.oom_last)


def describe_oom_counts(case: DeathCase) -> str:
    before, last, now = case.after.oom_before, case.after.oom_last, case.after.oom_after
    if last is not None and now is not None and now > last:
        return f"the kernel's oom_kill count rose from {last} to {now} after the last look"
    return f"the kernel's oom_kill count rose from {before} to {now}"


def kernel_kills_by_pid(case: DeathCase) -> dict[int | None, str]:
    """The kernel's lines by the pid that they say was killed."""
    return {int(match[1][:18]): line for line in case.after.kernel if (match := _KERNEL_KILL.search(line))}


SIGNAL_NOTES = {
    2: "interrupted by SIGINT, as Ctrl-C sends it; who sent it is not known",
    3: "ended by SIGQUIT; who sent it is not known",
    4: "it crashed: illegal instruction (SIGILL)",
    6: "it gave up by abort (SIGABRT)",
    7: "it crashed: bus error (SIGBUS), often a file or shared memory that could not be backed",
    8: "it crashed: arithmetic error (SIGFPE)",
    11: "it crashed: segmentation fault (SIGSEGV)",
    13: "ended by SIGPIPE: what it wrote to was closed",
    24: "its limit of CPU time was reached (SIGXCPU)",
    25: "its limit of file size was reached (SIGXFSZ)",
}


def format_signal_name(number: int | None) -> str:
    """`signal 9 (SIGKILL)`."""
    try:
        return f"signal {number} ({signal.Signals(number or 0).name})"
    except ValueError:
        return f"signal {number}"


EXIT_NOTES = {
    120: "Python ends so when its last output could not be written",
    124: "`timeout` reports so that the time was over",
    126: "a shell reports so that the command can't be executed",
    127: "a shell reports so that the command was not found",
    130: "128+2: a shell reports an interrupted child this way",
    134: "128+6: a shell reports an aborted child this way",
    135: "128+7: a shell reports a child with a bus error this way",
    137: "128+9: a shell reports a killed child this way",
    139: "128+11: a shell reports a child with a segmentation fault this way",
    143: "128+15: a shell reports a terminated child this way",
}

CAUSE_ADVICE = {
    "never_started": "check that the command exists, is executable and is spelled right",
    "oom_kill": "give it more memory, or use fewer data workers, a smaller replay or smaller batches",
    "hangup": "start it where no terminal owns it; what muster starts is not hung up",
    "timeout": "raise its timeout, or save checkpoints and resume",
    "preempted": "retry it; save checkpoints often enough to resume",
    "gpu_lost": "retry it on another GPU; this one needs a reset or a look by its owner",
    "cuda_oom": "use a smaller batch or model, or see who else is on that GPU",
    "disk_full": "free space where it writes, or raise the quota; keep fewer checkpoints",
    "non_finite": "lower the learning rate, clip gradients, or look at the data of the last steps",
    "stalled": "look at the evidence before the stop; a longer declared period avoids a false one",
    "early_exit": "see what its proof misses; it may have stopped by a setting of its own",
    "signal(7)": "give it more shared memory (docker --shm-size), or use fewer data workers",
    "signal(9)": "find out who sent it: a memory watchdog, a scheduler, a person; the machine's log may tell",
    "signal(15)": "find out who sent it: a scheduler, a shutdown, a person",
    "exit_code": "read its last lines",
    "exception": "read the lines above; fix the code or the config, then retry",
}


def format_exit_status(exit_: ExitRecord) -> str:
    return f"signal {exit_.signal}" if exit_.signal is not None else f"exit {exit_.code}"


_WITHOUT_CONTRIBUTORS = ("never_started", "user_stop", "budget_stop", "pruned", "gate_stop", "unknown")


def find_contributing_causes(found: CauseFinding, case: DeathCase) -> tuple[str, ...]:
    if found.cause.kind in _WITHOUT_CONTRIBUTORS or case.exit.stop_reason:
        return ()
    return tuple(dict.fromkeys(text for tell in _CONTRIBUTORS for text in tell(found, case)))


def _contributing_memory(found: CauseFinding, case: DeathCase) -> Iterator[str]:
    if found.cause.kind == "oom_kill" or not (oom_count_rose(case) or kernel_kills_by_pid(case)):
        return
    when = "" if oom_count_rose_at_end(case) else " earlier" if oom_count_rose(case) else ", as the kernel log says"
    yield f"a child was killed by the kernel for lack of memory{when} (child OOM)"


def _contributing_data_workers(_: CauseFinding, case: DeathCase) -> Iterator[str]:
    for notice in case.said("data_worker")[-1:]:
        who = f"DataLoader worker {notice.pid}"
        if notice.number == 7:
            yield f"{who} died of a bus error: shared memory (/dev/shm) may be too small"
        elif notice.number != 9:
            yield f"{who} crashed: signal {notice.number}" if notice.number else f"{who} died"
        elif not oom_count_rose(case):
            yield f"{who} was killed by signal 9; who sent it is not known"


def _contributing_exceptions(found: CauseFinding, case: DeathCase) -> Iterator[str]:
    final = case.final
    if final is None:
        return
    if final.after == "progress":
        yield f"an exception that it survived stands in its log: {_describe_raised_exception(final.raised)}"
    elif final.raised not in found.shows:
        yield f"its log ends with {_describe_raised_exception(final.raised)}"
    if final.wrapper is not None and final.wrapper is not final.raised:
        yield f"its launcher reported {final.wrapper.type}"


def _describe_raised_exception(raised: RaisedException) -> str:
    where = f" at {raised.place}" if raised.place else ""
    said = shorten_log_line(raised.message.partition("\n")[0].lstrip("=- "), 120)
    return f"{raised.type}{where}{f': {said}' if said else ''}"


def _contributing_launchers(found: CauseFinding, case: DeathCase) -> Iterator[str]:
    for notice in case.said("worker_signal", "worker_exit")[-1:]:
        if notice.text not in found.shows:
            how = f"signal {notice.number}" if notice.kind == "worker_signal" else f"exit {notice.number}"
            yield f"worker {notice.rank if notice.rank is not None else ''} failed first, with {how}".replace("  ", " ")
    for notice in case.said("shell")[-1:]:
        if found.cause.kind != "oom_kill":
            yield f"a shell reports: {shorten_log_line(notice.text, 160)}"


def _contributing_machine(found: CauseFinding, case: DeathCase) -> Iterator[str]:
    after, kind = case.after, found.cause.kind
    if after.gpu_lost and kind != "gpu_lost":
        yield f"its GPU was lost: {after.gpu_lost}"
    if after.disk_free is not None and after.disk_free < 1 << 20 and kind != "disk_full":
        yield "the disk was full when it ended"
    if after.non_finite and kind != "non_finite":
        yield f"not finite in its last row: {after.non_finite}"


def _contributing_log_words(found: CauseFinding, case: DeathCase) -> Iterator[str]:
    for kind, text in _NOTICE_TEXTS:
        if case.said(kind) and not (kind == "spot" and found.cause.kind == "preempted"):
            yield text


_NOTICE_TEXTS = (
    ("nccl_timeout", "a collective operation timed out (NCCL): another worker was late or gone"),
    ("sigterm", "its log says that it received SIGTERM"),
    ("slurm_cancelled", "Slurm cancelled it"),
    ("slurm_node", "Slurm says that its node failed"),
    ("spot", "its log tells that the machine was to be taken away"),
    ("fatal_python", "Python itself reported a fatal error"),
)

_CONTRIBUTORS: tuple[Callable[[CauseFinding, DeathCase], Iterator[str]], ...] = (
    _contributing_memory,
    _contributing_data_workers,
    _contributing_exceptions,
    _contributing_launchers,
    _contributing_machine,
    _contributing_log_words,
)
