"""Why an attempt ended: its exit, what the kernel and the driver counted, and the last words of its logs.

The rules stand in a table, the strongest first; the first one that applies decides. A fact (how it was executed and
stopped, its signal, its exit code) is proven; what is read off a log is proven only where nothing else can be true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from muster.domain.reading import Aftermath
from muster.domain.sighting import Exit
from muster.domain.verdict import Cause
from muster.domain.wording import unstopped
from muster.judge import symptoms
from muster.judge.cause_case import CRASHES, Case, Finding, finding, read_case
from muster.judge.cause_memory import counts, kernel_kills, rose, rose_at_the_end, rose_unseen
from muster.judge.cause_words import EXIT_NOTES, SIGNAL_NOTES, TRY, how_it_ended, signal_name
from muster.judge.clues import WRAPPERS, last_lines, last_useful_line, last_words, lines_of, went_on
from muster.judge.contributing import contributing_to
from muster.judge.loglines import shown
from muster.judge.notices import Notice
from muster.judge.tracebacks import Raised


@dataclass(frozen=True, slots=True)
class CauseFound:
    """A cause, what added to it, the lines that show it, and what a person may try."""

    cause: Cause
    contributing: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    try_: str = ""


_FOR_MEMORY = "killed by the kernel for lack of memory"
_XID = re.compile(r"NVRM: Xid \([^)]*\): (\d+)")
_LOST_XIDS = frozenset({48, 79, 95, 119, 120})  # the GPU must be reset or is gone
_ILL_XIDS = frozenset({46, 62, 64, 74, 140, 143})
_SENT = (9, 10, 12, 15)  # signals that schedulers send
_SENT_CODES = tuple(128 + number for number in _SENT)
_UNKNOWN = Finding(Cause("unknown", confidence="unknown", note="how it ended is not written down"))


def cause_of(
    exit_: Exit, after: Aftermath, proof_failed: Sequence[str], proof_unread: Sequence[str], *, pid: int | None = None
) -> CauseFound:
    """`pid` is the main process's as the kernel log counts: in a container it may not be known.

    Without it no line of the kernel log proves that this process was the one killed.
    """
    case = read_case(exit_, after, tuple(proof_failed), tuple(proof_unread), pid)
    found = next((found for rule in RULES if (found := rule(case)) is not None), _UNKNOWN)
    return CauseFound(found.cause, contributing_to(found, case), _lines(found, case), _try(found.cause))


# Facts: what was done to it.


def _never_started(case: Case) -> Finding | None:
    if not case.exit.exec_error:
        return None
    note = f"the command could not be executed: {case.exit.exec_error}"
    return Finding(Cause("never_started", note=note))


def _stopped(case: Case) -> Finding | None:
    reason, how = case.exit.stop_reason, how_it_ended(case.exit)
    if not reason:
        return None
    notes = {
        "budget_stop": f"stopped for the budget; it ended with {how}",
        "timeout": f"it ran longer than its timeout; it ended with {how}",
        "pruned": f"stopped as hopeless; it ended with {how}",
        "gate_stop": f"its gate tolerated no more failures; it ended with {how}",
        "stalled": f"it was stopped because it had stalled; it ended with {how}",
    }
    sure = "probable" if reason == "stalled" else "proven"  # that it was stopped is sure; that it had to be is not
    return Finding(Cause(reason, "", sure, notes.get(reason, f"stopped on request; it ended with {how}")))


def _early_exit(case: Case) -> Finding | None:
    if case.code != 0:
        return None
    if case.unread:
        note = f"exit 0, but its proof can't be read: {'; '.join(case.unread)}"
        return Finding(Cause("early_exit", confidence="unknown", note=note))
    return Finding(Cause("early_exit", note=f"exit 0, but its proof fails: {'; '.join(case.failed)}"))


# Killed from outside.


def _oom_kill(case: Case) -> Finding | None:
    """Killed by 9 and a count that rose, or the kernel's own word."""
    kernel, slurm = kernel_kills(case), case.said("slurm_oom")
    if case.signal != 9:
        return None
    if case.pid in kernel:
        return finding("oom_kill", "proven", f"{_FOR_MEMORY}: the kernel log names it", kernel[case.pid])
    if rose_at_the_end(case):
        others = case.pid is not None  # the kernel's log can be read and does not name it: somebody else was killed
        child = case.after.last_look_s is None and case.said("data_worker")  # it may have been counted for a child
        sure = "probable" if others or child else "proven"
        return finding("oom_kill", sure, f"{_FOR_MEMORY}: signal 9, and {counts(case)}", *kernel.values())
    of_another = bool(kernel) and case.pid is not None  # the kernel's log can be read, and names a child only
    if slurm or (not of_another and (kernel or rose_unseen(case))):
        why = counts(case) if rose(case) else "the kernel log or Slurm tells of it"
        shows = *kernel.values(), *(notice.text for notice in slurm)
        return finding("oom_kill", "probable", f"{_FOR_MEMORY}: signal 9, and {why}", *shows)
    return None


def _oom_of_worker(case: Case) -> Finding | None:
    """A launcher or shell tells that its child was killed by 9, and memory was short. 137 alone proves nothing."""
    kernel, slurm = kernel_kills(case), case.said("slurm_oom")
    if not case.crashed:
        return None
    workers = [notice for notice in case.said("worker_signal") if notice.number == 9]
    if workers and workers[-1].pid in kernel:
        lines = workers[-1].text, kernel[workers[-1].pid]
        return finding("oom_kill", "proven", f"its worker was {_FOR_MEMORY}: the kernel log names it", *lines)
    shell = [notice for notice in case.said("shell") if notice.number == 9 and case.code == 137]
    told = [*workers, *shell, *(slurm if case.code == 137 else ())]
    if told and (rose(case) or slurm):
        why = counts(case) if rose(case) else "Slurm tells of it"
        return finding("oom_kill", "probable", f"its child was {_FOR_MEMORY}: {why}", told[-1].text)
    return None


def _hangup(case: Case) -> Finding | None:
    received = _received(case)
    if case.signal == 1:
        return finding("hangup", "proven", "its terminal or session was closed: it received SIGHUP")
    if case.code and received and received[1] == 1:
        return finding(
            "hangup", _as_the_end(case), "torchrun received SIGHUP: its terminal or session was closed", received[0]
        )
    if case.code == 129:
        return finding("hangup", "probable", "exit 129 is 128+1: a shell or handler reports SIGHUP this way")
    hung = [notice for notice in case.said("worker_signal") if notice.number == 1]
    if case.code and hung:
        return finding("hangup", "probable", "a worker was ended by SIGHUP", hung[-1].text)
    return None


def _received(case: Case) -> tuple[Raised, int] | None:
    """torchrun's SignalException: the launcher's own word for a signal that it caught."""
    raised = case.raised
    if raised is None or raised.type != "SignalException":
        return None
    match = re.search(r"got signal: (\d+)", raised.message)
    return (raised, int(match[1][:4])) if match else None


def _time_limit(case: Case) -> Finding | None:
    told = case.said("slurm_time")
    if not told or not _ended_by_others(case):
        return None
    return finding("timeout", _by_slurm(case, told[-1]), "Slurm ended it: its time limit was reached", told[-1].text)


def _preempted(case: Case) -> Finding | None:
    slurm = [notice for notice in case.said("slurm_preempted") if not _lived_on(case, notice)]
    if slurm:
        return finding("preempted", _by_slurm(case, slurm[-1]), "Slurm took its machine for other work", slurm[-1].text)
    spot = [notice for notice in case.said("spot") if not _lived_on(case, notice)]
    if spot and _ended_by_others(case):
        return finding("preempted", "probable", "its log tells that the machine was to be taken away", spot[-1].text)
    return None


def _by_slurm(case: Case, notice: Notice) -> str:
    sent = case.signal in _SENT or case.code in _SENT_CODES or _received(case)
    return "proven" if sent and not _lived_on(case, notice) else "probable"


def _lived_on(case: Case, notice: Notice) -> bool:
    """It went on after the notice: what ended it came later."""
    return any(notice in clues.notices and went_on(clues, notice.row) for clues in (case.log, case.other))


def _ended_by_others(case: Case) -> bool:
    """By SIGTERM or SIGKILL, or by an exit that no exception of its own explains."""
    if case.signal is not None:
        return case.signal in _SENT
    if case.code in _SENT_CODES or case.raised is None:
        return True
    return case.raised.type in ("KeyboardInterrupt", "SystemExit", "SignalException", "CalledProcessError")


# The machine.


def _gpu_lost(case: Case) -> Finding | None:
    kernel = [(int(match[1][:4]), line) for line in case.after.kernel if (match := _XID.search(line))]
    gone = [line for xid, line in kernel if xid in _LOST_XIDS]
    ill = [line for xid, line in kernel if xid in _ILL_XIDS]
    about_it = case.raised is None or symptoms.is_about_device(case.raised)
    if about_it and (case.after.gpu_lost or gone):
        why = case.after.gpu_lost or shown(gone[-1])
        sure = "proven" if case.crashed and (case.raised or gone) else "probable"
        return finding("gpu_lost", sure, f"its GPU was lost: {why}", *gone[-1:])
    said = [notice.text for notice in case.log.said("gpu_lost")]
    words = [text for text in (case.raised.told if case.raised else "", _what(case)) if symptoms.is_lost_gpu(text)]
    if case.crashed and (words or ((said or ill) and about_it)):
        return finding(
            "gpu_lost", "probable", "its log or the kernel's tells of a lost GPU", *(said or ill or words)[-2:]
        )
    return None


def _what(case: Case) -> str:
    """What C++ said as it gave up."""
    told = case.said("terminate")
    return told[-1].text if told else ""


# What its own last words say.


def _cuda_oom(case: Case) -> Finding | None:
    note = "the GPU's memory did not suffice"
    aborted = case.signal == 6 or any(notice.number == 6 for notice in case.said("worker_signal"))
    if aborted and symptoms.is_device_memory(_what(case)):
        return finding("cuda_oom", "proven" if case.signal == 6 else "probable", note, _what(case))
    if case.signal in CRASHES and case.raised and symptoms.device_memory(case.raised) and not _what(case):
        return finding("cuda_oom", "probable", f"{note}; it crashed as it ended", case.raised)
    return _by_words(case, "cuda_oom", note, symptoms.device_memory, symptoms.is_device_memory)


def _disk_full(case: Case) -> Finding | None:
    def no_space(raised: Raised) -> symptoms.Surely:
        return symptoms.no_space(raised, case.after.disk_free)

    shared = case.raised is not None and symptoms.is_shared_memory(case.raised)
    note = "shared memory (/dev/shm) was full" if shared else "no space was left where it wrote, or a quota was reached"
    before = case.final.earlier[0] if case.final and case.final.earlier else None
    failed = case.raised is not None and symptoms.write_failed(case.raised)
    if case.code and failed and before and symptoms.is_no_space(before.told):
        return finding("disk_full", "probable", note, before)
    return _by_words(case, "disk_full", note, no_space, symptoms.is_no_space)


def _non_finite(case: Case) -> Finding | None:
    def bad(raised: Raised) -> symptoms.Surely:
        return symptoms.not_finite(raised, case.after.non_finite)

    seen = f"; {case.after.non_finite} in its last row" if case.after.non_finite else ""
    note = f"a number that it computes with became NaN or infinite{seen}"
    return _by_words(case, "non_finite", note, bad, symptoms.tells_of_bad_numbers)


def _by_words(
    case: Case, kind: str, note: str, judged: Callable[[Raised], symptoms.Surely], in_line: Callable[[str], bool]
) -> Finding | None:
    """By the last exception; by the one it was raised from; by the last lines where there is no exception."""
    if not case.code:
        return None
    if case.raised is not None and case.final is not None:
        if case.code != 1 and (case.final.after != "nothing" or case.said("shell")):
            return None  # what came after it chose the exit code
        if surely := judged(case.raised):
            sure = surely if _ended_with(case) else "probable"
            return finding(kind, sure, note, case.raised)
        before = case.final.earlier[0] if case.raised.link == "cause" and case.final.earlier else None
        return finding(kind, "probable", note, before) if before and judged(before) else None
    lines = [line for clues in (case.log, case.other) for line in last_words(clues, 6) if in_line(line)]
    return finding(kind, "probable", note, *lines[-2:]) if lines and case.final is None else None


def _as_the_end(case: Case) -> str:
    """For what a launcher itself says: proven where it is the last thing said."""
    last = case.final is not None and case.final.after == "nothing" and case.final.agreed
    return "proven" if last and case.code == 1 else "probable"


def _ended_with(case: Case) -> bool:
    """Python ended with this exception: its own exit code, and nothing after it."""
    return case.code == 1 and case.final is not None and case.final.sure


# What is left.


def _interrupted(case: Case) -> Finding | None:
    """Ctrl-C, or SIGINT from elsewhere, which Python turns into an exception."""
    raised, received = case.raised, _received(case)
    if case.code and received:
        note = f"its launcher received signal {received[1]}; who sent it is not known"
        return finding("signal", _as_the_end(case), note, raised, detail=str(received[1]))
    if case.code in (1, 130) and raised is not None and raised.type == "KeyboardInterrupt":
        return finding("signal", "probable", "it was interrupted (KeyboardInterrupt)", raised, detail="2")
    return None


def _signal(case: Case) -> Finding | None:
    if case.signal is None:
        return None
    note = SIGNAL_NOTES.get(case.signal, f"killed by {signal_name(case.signal)}; who sent it is not known")
    what = _what(case) if case.signal == 6 else ""
    fatal = [notice.text for notice in case.said("fatal_python")]
    lines = (what,) if what else tuple(fatal[-1:])
    return finding("signal", "proven", f"{note}: {shown(what, 200)}" if what else note, *lines, detail=str(case.signal))


def _worker_killed(case: Case) -> Finding | None:
    """A launcher's report that its worker died of a signal, where no worker said more."""
    told = case.said("worker_signal")
    own = case.raised if case.raised and case.raised.type not in WRAPPERS else None
    if not told or (own is not None and own.last > told[-1].row):
        return None
    number = told[-1].number or 0
    note = f"a worker of it was ended by signal {number}, as its launcher reports; who sent it is not known"
    return finding("signal", "probable", note, told[-1].text, detail=str(number))


def _worker_exited(case: Case) -> Finding | None:
    """A launcher's own exception, `returned non-zero exit status 2`, where its child raised none: the child's exit."""
    wrapper = case.final.wrapper if case.final else None
    if not case.code or wrapper is None or wrapper.at or (case.raised is not None and case.raised != wrapper):
        return None
    told = [notice for notice in case.log.said("worker_exit") if notice.number and notice.row >= wrapper.rows[0]]
    if not told:
        return None
    line = last_useful_line(case.log, wrapper.rows[0])
    note = f"the command exited with {told[-1].number}, as its launcher reports" + _last_line(line)
    return finding("exit_code", "probable", note, line, told[-1].text, detail=str(told[-1].number))


def _last_line(line: str) -> str:
    return f"; last line: {unstopped(line)}" if line else ""


def _exception(case: Case) -> Finding | None:
    raised = case.raised
    if raised is None or case.code != 1 or case.final is None:
        return None
    detail = f"{raised.type}, {raised.place}" if raised.place else raised.type
    said = unstopped(shown(raised.message.partition("\n")[0], 160))
    note = f"it ended with {raised.type}{f': {said}' if said else ''}"
    sure = case.final.sure and not symptoms.write_failed(raised)  # whose reason a disk may be, full for a moment
    return finding("exception", "proven" if sure else "probable", note, raised, detail=detail)


def _exit_code(case: Case) -> Finding | None:
    if case.code is None:
        return None
    note = f"the command exited with {case.code}"
    if more := EXIT_NOTES.get(case.code):
        note += f"; {more}"
    note += _last_line(last_useful_line(case.log))
    return finding("exit_code", "proven", note, *last_lines(case.log), detail=str(case.code))


RULES: tuple[Callable[[Case], Finding | None], ...] = (
    _never_started,
    _stopped,
    _early_exit,
    _oom_kill,
    _oom_of_worker,
    _hangup,
    _time_limit,
    _preempted,
    _gpu_lost,
    _cuda_oom,
    _disk_full,
    _non_finite,
    _interrupted,
    _signal,
    _worker_killed,
    _worker_exited,
    _exception,
    _exit_code,
)


def _lines(found: Finding, case: Case) -> tuple[str, ...]:
    lines: list[str] = []
    for each in found.shows:
        lines += [shown(each)] if isinstance(each, str) else lines_of(case.log, each)
    if not lines and found.cause.kind not in (
        "never_started",
        "user_stop",
        "budget_stop",
        "pruned",
        "gate_stop",
        "unknown",
    ):
        lines += lines_of(case.log, case.raised) if case.raised else last_lines(case.log)
    return tuple(dict.fromkeys(lines))[:8]


def _try(cause: Cause) -> str:
    return TRY.get(f"{cause.kind}({cause.detail})", TRY.get(cause.kind, ""))
