"""Why an attempt ended: a table of rules over its exit, what the kernel and the driver counted, and the last words of
its logs.

The strongest rules stand first; the first one that applies decides. A fact (how it was executed and stopped, its
signal, its exit code) is proven; what is read off a log is proven only where nothing else can be true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from muster.engine.judge.death_facts import (
    CAUSE_ADVICE,
    CRASH_SIGNALS,
    EXIT_NOTES,
    SIGNAL_NOTES,
    CauseFinding,
    DeathCase,
    cause_finding,
    describe_oom_counts,
    find_contributing_causes,
    format_exit_status,
    format_signal_name,
    kernel_kills_by_pid,
    oom_count_rose,
    oom_count_rose_at_end,
    oom_count_rose_unseen,
    read_death_case,
)
from muster.engine.judge.exception_symptoms import (
    SymptomConfidence,
    concerns_device,
    judge_device_memory,
    judge_no_space,
    judge_not_finite,
    mentions_bad_numbers,
    mentions_device_memory,
    mentions_failed_write,
    mentions_lost_gpu,
    mentions_no_space,
    mentions_shared_memory,
)
from muster.engine.judge.log_clues import (
    WRAPPER_EXCEPTIONS,
    last_log_lines,
    last_unsurvived_lines,
    last_useful_line,
    lines_of_exception,
    log_went_on,
)
from muster.engine.judge.log_notices import LogNotice, shorten_log_line
from muster.engine.judge.tracebacks import RaisedException
from muster.model.attempt_snapshot import ExitRecord, PostMortem
from muster.model.verdict import Cause
from muster.text.phrases import join_phrases, phrase
from muster.text.sentences import strip_full_stop


@dataclass(frozen=True, slots=True)
class CauseReport:
    """A cause, what added to it, the lines that show it, and what a person may try."""

    cause: Cause
    contributing: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    try_: str = ""


_XID = re.compile(r"NVRM: Xid \([^)]*\): (\d+)")
_LOST_XIDS = frozenset({48, 79, 95, 119, 120})  # the GPU must be reset or is gone
_ILL_XIDS = frozenset({46, 62, 64, 74, 140, 143})
_SENT = (9, 10, 12, 15)  # signals that schedulers send
_SENT_CODES = tuple(128 + number for number in _SENT)


def find_cause(
    exit_: ExitRecord,
    after: PostMortem,
    proof_failed: Sequence[str],
    proof_unread: Sequence[str],
    *,
    pid: int | None = None,
) -> CauseReport:
    """`pid` is the main process's as the kernel log counts: in a container it may not be known.

    Without it no line of the kernel log proves that this process was the one killed.
    """
    case = read_death_case(exit_, after, tuple(proof_failed), tuple(proof_unread), pid)
    found = next((found for rule in CAUSE_RULES if (found := rule(case)) is not None), None) or _unknown_cause()
    return CauseReport(
        found.cause,
        find_contributing_causes(found, case),
        _lines_showing_cause(found, case),
        _advice_for_cause(found.cause),
    )


def _unknown_cause() -> CauseFinding:
    return CauseFinding(Cause("unknown", confidence="unknown", note=phrase("judge.how_ended_not_written_down")))


# Facts: what was done to it.


def _rule_never_started(case: DeathCase) -> CauseFinding | None:
    if not case.exit.exec_error:
        return None
    note = phrase("judge.command_could_not_executed", exec_error=case.exit.exec_error)
    return CauseFinding(Cause("never_started", note=note))


def _rule_stopped(case: DeathCase) -> CauseFinding | None:
    reason, how = case.exit.stop_reason, format_exit_status(case.exit)
    if not reason:
        return None
    notes = {
        "budget_stop": phrase("judge.stopped_budget_ended", how=how),
        "timeout": phrase("judge.ran_longer_than_timeout_ended", how=how),
        "pruned": phrase("judge.stopped_hopeless_ended", how=how),
        "gate_stop": phrase("judge.gate_tolerated_no_more_failures_ended", how=how),
        "stalled": phrase("judge.stopped_because_stalled_ended", how=how),
    }
    sure = "probable" if reason == "stalled" else "proven"  # that it was stopped is sure; that it had to be is not
    return CauseFinding(Cause(reason, "", sure, notes.get(reason, phrase("judge.stopped_request_ended", how=how))))


def _rule_early_exit(case: DeathCase) -> CauseFinding | None:
    if case.code != 0:
        return None
    if case.unread:
        note = phrase("judge.exit_0_but_proof_cant_read_why", unread=join_phrases("; ", case.unread))
        return CauseFinding(Cause("early_exit", confidence="unknown", note=note))
    return CauseFinding(
        Cause("early_exit", note=phrase("judge.exit_0_but_proof_fails", failed=join_phrases("; ", case.failed)))
    )


# Killed from outside.


def _rule_oom_kill(case: DeathCase) -> CauseFinding | None:
    """Killed by 9 and a count that rose, or the kernel's own word."""
    kernel, slurm = kernel_kills_by_pid(case), case.said("slurm_oom")
    if case.signal != 9:
        return None
    if case.pid in kernel:
        return cause_finding(
            "oom_kill",
            "proven",
            phrase("judge.kernel_log_names"),
            kernel[case.pid],
        )
    if oom_count_rose_at_end(case):
        others = case.pid is not None  # the kernel's log can be read and does not name it: somebody else was killed
        child = case.after.last_look_s is None and case.said("data_worker")  # it may have been counted for a child
        sure = "probable" if others or child else "proven"
        return cause_finding(
            "oom_kill",
            sure,
            phrase(
                "judge.oom_killed_as_counted",
                oom_counts=describe_oom_counts(case),
            ),
            *kernel.values(),
        )
    of_another = bool(kernel) and case.pid is not None  # the kernel's log can be read, and names a child only
    if slurm or (not of_another and (kernel or oom_count_rose_unseen(case))):
        why = describe_oom_counts(case) if oom_count_rose(case) else phrase("judge.kernel_log_slurm_tells")
        shows = *kernel.values(), *(notice.text for notice in slurm)
        return cause_finding(
            "oom_kill",
            "probable",
            phrase("judge.oom_killed_as_told", why=why),
            *shows,
        )
    return None


def _rule_oom_of_worker(case: DeathCase) -> CauseFinding | None:
    """A launcher or shell tells that its child was killed by 9, and memory was short. 137 alone proves nothing."""
    kernel, slurm = kernel_kills_by_pid(case), case.said("slurm_oom")
    if not case.crashed:
        return None
    workers = [notice for notice in case.said("worker_signal") if notice.number == 9]
    if workers and workers[-1].pid in kernel:
        lines = workers[-1].text, kernel[workers[-1].pid]
        return cause_finding(
            "oom_kill",
            "proven",
            phrase("judge.worker_kernel_log_names"),
            *lines,
        )
    shell = [notice for notice in case.said("shell") if notice.number == 9 and case.code == 137]
    told = [*workers, *shell, *(slurm if case.code == 137 else ())]
    if told and (oom_count_rose(case) or slurm):
        why = describe_oom_counts(case) if oom_count_rose(case) else phrase("judge.slurm_tells")
        return cause_finding(
            "oom_kill",
            "probable",
            phrase("judge.child_oom_killed", why=why),
            told[-1].text,
        )
    return None


def _rule_hangup(case: DeathCase) -> CauseFinding | None:
    received = _signal_caught_by_launcher(case)
    if case.signal == 1:
        return cause_finding("hangup", "proven", phrase("judge.terminal_session_closed_received"))
    if case.code and received and received[1] == 1:
        return cause_finding(
            "hangup",
            _launcher_confidence(case),
            phrase("judge.torchrun_received_sighup_terminal"),
            received[0],
        )
    if case.code == 129:
        return cause_finding("hangup", "probable", phrase("judge.exit_129_128_1_shell_handler_reports"))
    hung = [notice for notice in case.said("worker_signal") if notice.number == 1]
    if case.code and hung:
        return cause_finding("hangup", "probable", phrase("judge.worker_ended_sighup"), hung[-1].text)
    return None


def _signal_caught_by_launcher(case: DeathCase) -> tuple[RaisedException, int] | None:
    """torchrun's SignalException: the launcher's own word for a signal that it caught."""
    raised = case.raised
    if raised is None or raised.type != "SignalException":
        return None
    match = re.search(r"got signal: (\d+)", raised.message)
    return (raised, int(match[1][:4])) if match else None


def _rule_time_limit(case: DeathCase) -> CauseFinding | None:
    told = case.said("slurm_time")
    if not told or not _was_ended_by_others(case):
        return None
    return cause_finding(
        "timeout", _slurm_confidence(case, told[-1]), phrase("judge.slurm_ended_time_limit_reached"), told[-1].text
    )


def _rule_preempted(case: DeathCase) -> CauseFinding | None:
    slurm = [notice for notice in case.said("slurm_preempted") if not _lived_past_notice(case, notice)]
    if slurm:
        return cause_finding(
            "preempted",
            _slurm_confidence(case, slurm[-1]),
            phrase("judge.slurm_took_machine_other_work"),
            slurm[-1].text,
        )
    spot = [notice for notice in case.said("spot") if not _lived_past_notice(case, notice)]
    if spot and _was_ended_by_others(case):
        return cause_finding("preempted", "probable", phrase("judge.log_tells_machine_taken_away"), spot[-1].text)
    return None


def _slurm_confidence(case: DeathCase, notice: LogNotice) -> str:
    sent = case.signal in _SENT or case.code in _SENT_CODES or _signal_caught_by_launcher(case)
    return "proven" if sent and not _lived_past_notice(case, notice) else "probable"


def _lived_past_notice(case: DeathCase, notice: LogNotice) -> bool:
    """It went on after the notice: what ended it came later."""
    return any(notice in clues.notices and log_went_on(clues, notice.row) for clues in (case.log, case.other))


def _was_ended_by_others(case: DeathCase) -> bool:
    """By SIGTERM or SIGKILL, or by an exit that no exception of its own explains."""
    if case.signal is not None:
        return case.signal in _SENT
    if case.code in _SENT_CODES or case.raised is None:
        return True
    return case.raised.type in ("KeyboardInterrupt", "SystemExit", "SignalException", "CalledProcessError")


# The machine.


def _rule_gpu_lost(case: DeathCase) -> CauseFinding | None:
    kernel = [(int(match[1][:4]), line) for line in case.after.kernel if (match := _XID.search(line))]
    gone = [line for xid, line in kernel if xid in _LOST_XIDS]
    ill = [line for xid, line in kernel if xid in _ILL_XIDS]
    about_it = case.raised is None or concerns_device(case.raised)
    if about_it and (case.after.gpu_lost or gone):
        why = case.after.gpu_lost or shorten_log_line(gone[-1])
        sure = "proven" if case.crashed and (case.raised or gone) else "probable"
        return cause_finding("gpu_lost", sure, phrase("judge.gpu_lost", why=why), *gone[-1:])
    said = [notice.text for notice in case.log.said("gpu_lost")]
    words = [
        text
        for text in (case.raised.told if case.raised else "", _cpp_termination_text(case))
        if mentions_lost_gpu(text)
    ]
    if case.crashed and (words or ((said or ill) and about_it)):
        return cause_finding(
            "gpu_lost", "probable", phrase("judge.log_kernels_tells_lost_gpu"), *(said or ill or words)[-2:]
        )
    return None


def _cpp_termination_text(case: DeathCase) -> str:
    """What C++ said as it gave up."""
    told = case.said("terminate")
    return told[-1].text if told else ""


# What its own last words say.


def _rule_cuda_oom(case: DeathCase) -> CauseFinding | None:
    note = phrase("judge.gpus_memory_did_not_suffice")
    aborted = case.signal == 6 or any(notice.number == 6 for notice in case.said("worker_signal"))
    if aborted and mentions_device_memory(_cpp_termination_text(case)):
        return cause_finding(
            "cuda_oom", "proven" if case.signal == 6 else "probable", note, _cpp_termination_text(case)
        )
    if (
        case.signal in CRASH_SIGNALS
        and case.raised
        and judge_device_memory(case.raised)
        and not _cpp_termination_text(case)
    ):
        return cause_finding("cuda_oom", "probable", phrase("judge.crashed_ended", note=note), case.raised)
    return _find_by_log_words(case, "cuda_oom", note, judge_device_memory, mentions_device_memory)


def _rule_disk_full(case: DeathCase) -> CauseFinding | None:
    def no_space(raised: RaisedException) -> SymptomConfidence:
        return judge_no_space(raised, case.after.disk_free)

    shared = case.raised is not None and mentions_shared_memory(case.raised)
    note = phrase("judge.shared_memory_dev_shm_full") if shared else phrase("judge.no_space_left_where_wrote_quota")
    before = case.final.earlier[0] if case.final and case.final.earlier else None
    failed = case.raised is not None and mentions_failed_write(case.raised)
    if case.code and failed and before and mentions_no_space(before.told):
        return cause_finding("disk_full", "probable", note, before)
    return _find_by_log_words(case, "disk_full", note, no_space, mentions_no_space)


def _rule_non_finite(case: DeathCase) -> CauseFinding | None:
    def bad(raised: RaisedException) -> SymptomConfidence:
        return judge_not_finite(raised, case.after.non_finite)

    note = phrase("judge.number_computes_became_nan_infinite")
    if case.after.non_finite:
        note = join_phrases("; ", (note, phrase("judge.non_finite_in_last_row", non_finite=case.after.non_finite)))
    return _find_by_log_words(case, "non_finite", note, bad, mentions_bad_numbers)


def _find_by_log_words(
    case: DeathCase,
    kind: str,
    note: str,
    judged: Callable[[RaisedException], SymptomConfidence],
    in_line: Callable[[str], bool],
) -> CauseFinding | None:
    """By the last exception; by the one it was raised from; by the last lines where there is no exception."""
    if not case.code:
        return None
    if case.raised is not None and case.final is not None:
        if case.code != 1 and (case.final.after != "nothing" or case.said("shell")):
            return None  # what came after it chose the exit code
        if surely := judged(case.raised):
            sure = surely if _ended_with_exception(case) else "probable"
            return cause_finding(kind, sure, note, case.raised)
        before = case.final.earlier[0] if case.raised.link == "cause" and case.final.earlier else None
        return cause_finding(kind, "probable", note, before) if before and judged(before) else None
    lines = [line for clues in (case.log, case.other) for line in last_unsurvived_lines(clues, 6) if in_line(line)]
    return cause_finding(kind, "probable", note, *lines[-2:]) if lines and case.final is None else None


def _launcher_confidence(case: DeathCase) -> str:
    """For what a launcher itself says: proven where it is the last thing said."""
    last = case.final is not None and case.final.after == "nothing" and case.final.agreed
    return "proven" if last and case.code == 1 else "probable"


def _ended_with_exception(case: DeathCase) -> bool:
    """Python ended with this exception: its own exit code, and nothing after it."""
    return case.code == 1 and case.final is not None and case.final.sure


# What is left.


def _rule_interrupted(case: DeathCase) -> CauseFinding | None:
    """Ctrl-C, or SIGINT from elsewhere, which Python turns into an exception."""
    raised, received = case.raised, _signal_caught_by_launcher(case)
    if case.code and received:
        note = phrase("judge.launcher_received_signal_who_sent_not", received=received[1])
        return cause_finding("signal", _launcher_confidence(case), note, raised, detail=str(received[1]))
    if case.code in (1, 130) and raised is not None and raised.type == "KeyboardInterrupt":
        return cause_finding("signal", "probable", phrase("judge.interrupted_keyboardinterrupt"), raised, detail="2")
    return None


def _rule_signal(case: DeathCase) -> CauseFinding | None:
    if case.signal is None:
        return None
    note = (
        phrase(SIGNAL_NOTES[case.signal])
        if case.signal in SIGNAL_NOTES
        else phrase("judge.killed_who_sent_not_known", signal_name=format_signal_name(case.signal))
    )
    what = _cpp_termination_text(case) if case.signal == 6 else ""
    fatal = [notice.text for notice in case.said("fatal_python")]
    lines = (what,) if what else tuple(fatal[-1:])
    note = join_phrases(": ", (note, shorten_log_line(what, 200))) if what else note
    return cause_finding("signal", "proven", note, *lines, detail=str(case.signal))


def _rule_worker_killed(case: DeathCase) -> CauseFinding | None:
    """A launcher's report that its worker died of a signal, where no worker said more."""
    told = case.said("worker_signal")
    own = case.raised if case.raised and case.raised.type not in WRAPPER_EXCEPTIONS else None
    if not told or (own is not None and own.last > told[-1].row):
        return None
    number = told[-1].number or 0
    note = phrase("judge.worker_ended_signal_launcher_reports", number=number)
    return cause_finding("signal", "probable", note, told[-1].text, detail=str(number))


def _rule_worker_exited(case: DeathCase) -> CauseFinding | None:
    """A launcher's own exception, `returned non-zero exit status 2`, where its child raised none: the child's exit."""
    wrapper = case.final.wrapper if case.final else None
    if not case.code or wrapper is None or wrapper.at or (case.raised is not None and case.raised != wrapper):
        return None
    told = [notice for notice in case.log.said("worker_exit") if notice.number and notice.row >= wrapper.rows[0]]
    if not told:
        return None
    line = last_useful_line(case.log, wrapper.rows[0])
    note = _with_last_line(phrase("judge.command_exited_launcher_reports", number=told[-1].number), line)
    return cause_finding("exit_code", "probable", note, line, told[-1].text, detail=str(told[-1].number))


def _with_last_line(note: str, line: str) -> str:
    return join_phrases("; ", (note, phrase("judge.last_line", line=strip_full_stop(line)))) if line else note


def _rule_exception(case: DeathCase) -> CauseFinding | None:
    raised = case.raised
    if raised is None or case.code != 1 or case.final is None:
        return None
    detail = f"{raised.type}, {raised.place}" if raised.place else raised.type
    said = strip_full_stop(shorten_log_line(raised.message.partition("\n")[0], 160))
    note = phrase("judge.ended_with_exception", type=raised.type)
    if said:
        note = phrase("judge.ended_with_exception_said", type=raised.type, said=said)
    sure = case.final.sure and not mentions_failed_write(raised)  # whose reason a disk may be, full for a moment
    return cause_finding("exception", "proven" if sure else "probable", note, raised, detail=detail)


def _rule_exit_code(case: DeathCase) -> CauseFinding | None:
    if case.code is None:
        return None
    note = phrase("judge.command_exited", code=case.code)
    if more := EXIT_NOTES.get(case.code):
        note = join_phrases("; ", (note, phrase(more)))
    note = _with_last_line(note, last_useful_line(case.log))
    return cause_finding("exit_code", "proven", note, *last_log_lines(case.log), detail=str(case.code))


CAUSE_RULES: tuple[Callable[[DeathCase], CauseFinding | None], ...] = (
    _rule_never_started,
    _rule_stopped,
    _rule_early_exit,
    _rule_oom_kill,
    _rule_oom_of_worker,
    _rule_hangup,
    _rule_time_limit,
    _rule_preempted,
    _rule_gpu_lost,
    _rule_cuda_oom,
    _rule_disk_full,
    _rule_non_finite,
    _rule_interrupted,
    _rule_signal,
    _rule_worker_killed,
    _rule_worker_exited,
    _rule_exception,
    _rule_exit_code,
)


def _lines_showing_cause(found: CauseFinding, case: DeathCase) -> tuple[str, ...]:
    lines: list[str] = []
    for each in found.shows:
        lines += [shorten_log_line(each)] if isinstance(each, str) else lines_of_exception(case.log, each)
    if not lines and found.cause.kind not in (
        "never_started",
        "user_stop",
        "budget_stop",
        "pruned",
        "gate_stop",
        "unknown",
    ):
        lines += lines_of_exception(case.log, case.raised) if case.raised else last_log_lines(case.log)
    return tuple(dict.fromkeys(lines))[:8]


def _advice_for_cause(cause: Cause) -> str:
    code = CAUSE_ADVICE.get(f"{cause.kind}({cause.detail})") or CAUSE_ADVICE.get(cause.kind)
    return phrase(code) if code else ""
