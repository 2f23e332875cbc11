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
from muster.text.phrases import join_phrases, phrase

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
        return phrase("judge.kernels_oom_kill_count_rose_from_after", last=last, now=now)
    return phrase("judge.kernels_oom_kill_count_rose_from", before=before, now=now)


def kernel_kills_by_pid(case: DeathCase) -> dict[int | None, str]:
    """The kernel's lines by the pid that they say was killed."""
    return {int(match[1][:18]): line for line in case.after.kernel if (match := _KERNEL_KILL.search(line))}


SIGNAL_NOTES = {
    2: "judge.interrupted_sigint_ctrl_c_sends_who",
    3: "judge.ended_sigquit_who_sent_not_known",
    4: "judge.crashed_illegal_instruction_sigill",
    6: "judge.gave_up_abort_sigabrt",
    7: "judge.crashed_bus_error_sigbus_often_file",
    8: "judge.crashed_arithmetic_error_sigfpe",
    11: "judge.crashed_segmentation_fault_sigsegv",
    13: "judge.ended_sigpipe_what_wrote_closed",
    24: "judge.limit_cpu_time_reached_sigxcpu",
    25: "judge.limit_file_size_reached_sigxfsz",
}


def format_signal_name(number: int | None) -> str:
    """`signal 9 (SIGKILL)`."""
    try:
        return phrase("judge.signal_named", number=number, name=signal.Signals(number or 0).name)
    except ValueError:
        return phrase("judge.signal_status", number=number)


EXIT_NOTES = {
    120: "judge.python_ends_so_when_last_output_could",
    124: "judge.timeout_reports_so_time_over",
    126: "judge.shell_reports_so_command_cant_executed",
    127: "judge.shell_reports_so_command_not_found",
    130: "judge.128_2_shell_reports_interrupted_child",
    134: "judge.128_6_shell_reports_aborted_child_way",
    135: "judge.128_7_shell_reports_child_bus_error",
    137: "judge.128_9_shell_reports_killed_child_way",
    139: "judge.128_11_shell_reports_child",
    143: "judge.128_15_shell_reports_terminated_child",
}

CAUSE_ADVICE = {
    "never_started": "judge.check_command_exists_executable",
    "oom_kill": "judge.give_more_memory_use_fewer_data",
    "hangup": "judge.start_where_no_terminal_owns_what",
    "timeout": "judge.raise_timeout_save_checkpoints_resume",
    "preempted": "judge.retry_save_checkpoints_often_enough",
    "gpu_lost": "judge.retry_another_gpu_one_needs_reset_look",
    "cuda_oom": "judge.use_smaller_batch_model_see_who_else",
    "disk_full": "judge.free_space_where_writes_raise_quota",
    "non_finite": "judge.lower_learning_rate_clip_gradients",
    "stalled": "judge.look_evidence_before_stop_longer",
    "early_exit": "judge.see_what_proof_misses_may_stopped",
    "signal(7)": "judge.give_more_shared_memory_docker",
    "signal(9)": "judge.find_out_who_sent_memory_watchdog",
    "signal(15)": "judge.find_out_who_sent_scheduler_shutdown",
    "exit_code": "judge.read_last_lines",
    "exception": "judge.read_lines_above_fix_code_config_then",
}


def format_exit_status(exit_: ExitRecord) -> str:
    if exit_.signal is not None:
        return phrase("judge.signal_status", number=exit_.signal)
    return phrase("judge.exit_status", code=exit_.code)


_WITHOUT_CONTRIBUTORS = ("never_started", "user_stop", "budget_stop", "pruned", "gate_stop", "unknown")


def find_contributing_causes(found: CauseFinding, case: DeathCase) -> tuple[str, ...]:
    if found.cause.kind in _WITHOUT_CONTRIBUTORS or case.exit.stop_reason:
        return ()
    return tuple(dict.fromkeys(text for tell in _CONTRIBUTORS for text in tell(found, case)))


def _contributing_memory(found: CauseFinding, case: DeathCase) -> Iterator[str]:
    if found.cause.kind == "oom_kill" or not (oom_count_rose(case) or kernel_kills_by_pid(case)):
        return
    when = (
        ""
        if oom_count_rose_at_end(case)
        else phrase("judge.earlier")
        if oom_count_rose(case)
        else phrase("judge.kernel_log_says")
    )
    yield phrase("judge.child_killed_kernel_lack_memory_child", when=when)


def _contributing_data_workers(_: CauseFinding, case: DeathCase) -> Iterator[str]:
    for notice in case.said("data_worker")[-1:]:
        who = phrase("judge.dataloader_worker", pid=notice.pid)
        if notice.number == 7:
            yield phrase("judge.died_bus_error_shared_memory_dev_shm", who=who)
        elif notice.number != 9:
            yield (
                phrase("judge.crashed_signal", who=who, number=notice.number)
                if notice.number
                else phrase("judge.data_worker_died", who=who)
            )
        elif not oom_count_rose(case):
            yield phrase("judge.killed_signal_9_who_sent_not_known", who=who)


def _contributing_exceptions(found: CauseFinding, case: DeathCase) -> Iterator[str]:
    final = case.final
    if final is None:
        return
    if final.after == "progress":
        yield phrase("judge.exception_survived_stands_log", raised_exception=_describe_raised_exception(final.raised))
    elif final.raised not in found.shows:
        yield phrase("judge.log_ends", raised_exception=_describe_raised_exception(final.raised))
    if final.wrapper is not None and final.wrapper is not final.raised:
        yield phrase("judge.launcher_reported", type=final.wrapper.type)


def _describe_raised_exception(raised: RaisedException) -> str:
    said = shorten_log_line(raised.message.partition("\n")[0].lstrip("=- "), 120)
    what = phrase("judge.at_place", type=raised.type, place=raised.place) if raised.place else raised.type
    return join_phrases(": ", (what, said)) if said else what


def _contributing_launchers(found: CauseFinding, case: DeathCase) -> Iterator[str]:
    for notice in case.said("worker_signal", "worker_exit")[-1:]:
        if notice.text not in found.shows:
            how = _describe_worker_end(notice)
            if notice.rank is None:
                yield phrase("judge.some_worker_failed_first", how=how)
            else:
                yield phrase("judge.worker_failed_first", rank=notice.rank, how=how)
    for notice in case.said("shell")[-1:]:
        if found.cause.kind != "oom_kill":
            yield phrase("judge.shell_reports", log_line=shorten_log_line(notice.text, 160))


def _describe_worker_end(notice: LogNotice) -> str:
    if notice.kind == "worker_signal":
        return phrase("judge.signal_status", number=notice.number)
    return phrase("judge.exit_status", code=notice.number)


def _contributing_machine(found: CauseFinding, case: DeathCase) -> Iterator[str]:
    after, kind = case.after, found.cause.kind
    if after.gpu_lost and kind != "gpu_lost":
        yield phrase("judge.gpu_was_lost", gpu_lost=after.gpu_lost)
    if after.disk_free is not None and after.disk_free < 1 << 20 and kind != "disk_full":
        yield phrase("judge.disk_full_when_ended")
    if after.non_finite and kind != "non_finite":
        yield phrase("judge.not_finite_last_row", non_finite=after.non_finite)


def _contributing_log_words(found: CauseFinding, case: DeathCase) -> Iterator[str]:
    for kind, code in _NOTICE_TEXTS:
        if case.said(kind) and not (kind == "spot" and found.cause.kind == "preempted"):
            yield phrase(code)


_NOTICE_TEXTS = (
    ("nccl_timeout", "judge.collective_operation_timed_out_nccl"),
    ("sigterm", "judge.log_says_received_sigterm"),
    ("slurm_cancelled", "judge.slurm_cancelled"),
    ("slurm_node", "judge.slurm_says_node_failed"),
    ("spot", "judge.log_tells_machine_taken_away"),
    ("fatal_python", "judge.python_itself_reported_fatal_error"),
)

_CONTRIBUTORS: tuple[Callable[[CauseFinding, DeathCase], Iterator[str]], ...] = (
    _contributing_memory,
    _contributing_data_workers,
    _contributing_exceptions,
    _contributing_launchers,
    _contributing_machine,
    _contributing_log_words,
)
