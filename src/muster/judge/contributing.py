"""What added to a death without being its cause: shown beside it, so that nothing that was seen is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from muster.judge.cause_case import Case, Finding
from muster.judge.cause_memory import kernel_kills, rose, rose_at_the_end
from muster.judge.loglines import shown
from muster.judge.tracebacks import Raised

_STOPPED = ("never_started", "user_stop", "budget_stop", "pruned", "gate_stop", "unknown")


def contributing_to(found: Finding, case: Case) -> tuple[str, ...]:
    if found.cause.kind in _STOPPED or case.exit.stop_reason:
        return ()
    return tuple(dict.fromkeys(text for tell in _TELL for text in tell(found, case)))


def _memory(found: Finding, case: Case) -> Iterator[str]:
    if found.cause.kind == "oom_kill" or not (rose(case) or kernel_kills(case)):
        return
    when = "" if rose_at_the_end(case) else " earlier" if rose(case) else ", as the kernel log says"
    yield f"a child was killed by the kernel for lack of memory{when} (child OOM)"


def _data_workers(_: Finding, case: Case) -> Iterator[str]:
    for notice in case.said("data_worker")[-1:]:
        who = f"DataLoader worker {notice.pid}"
        if notice.number == 7:
            yield f"{who} died of a bus error: shared memory (/dev/shm) may be too small"
        elif notice.number != 9:
            yield f"{who} crashed: signal {notice.number}" if notice.number else f"{who} died"
        elif not rose(case):
            yield f"{who} was killed by signal 9; who sent it is not known"


def _exceptions(found: Finding, case: Case) -> Iterator[str]:
    final = case.final
    if final is None:
        return
    if final.after == "progress":
        yield f"an exception that it survived stands in its log: {_told(final.raised)}"
    elif final.raised not in found.shows:
        yield f"its log ends with {_told(final.raised)}"
    if final.wrapper is not None and final.wrapper is not final.raised:
        yield f"its launcher reported {final.wrapper.type}"


def _told(raised: Raised) -> str:
    where = f" at {raised.place}" if raised.place else ""
    said = shown(raised.message.partition("\n")[0].lstrip("=- "), 120)
    return f"{raised.type}{where}{f': {said}' if said else ''}"


def _launchers(found: Finding, case: Case) -> Iterator[str]:
    for notice in case.said("worker_signal", "worker_exit")[-1:]:
        if notice.text not in found.shows:
            how = f"signal {notice.number}" if notice.kind == "worker_signal" else f"exit {notice.number}"
            yield f"worker {notice.rank if notice.rank is not None else ''} failed first, with {how}".replace("  ", " ")
    for notice in case.said("shell")[-1:]:
        if found.cause.kind != "oom_kill":
            yield f"a shell reports: {shown(notice.text, 160)}"


def _machine(found: Finding, case: Case) -> Iterator[str]:
    after, kind = case.after, found.cause.kind
    if after.gpu_lost and kind != "gpu_lost":
        yield f"its GPU was lost: {after.gpu_lost}"
    if after.disk_free is not None and after.disk_free < 1 << 20 and kind != "disk_full":
        yield "the disk was full when it ended"
    if after.non_finite and kind != "non_finite":
        yield f"not finite in its last row: {after.non_finite}"


def _words(found: Finding, case: Case) -> Iterator[str]:
    for kind, text in _SAID:
        if case.said(kind) and not (kind == "spot" and found.cause.kind == "preempted"):
            yield text


_SAID = (
    ("nccl_timeout", "a collective operation timed out (NCCL): another worker was late or gone"),
    ("sigterm", "its log says that it received SIGTERM"),
    ("slurm_cancelled", "Slurm cancelled it"),
    ("slurm_node", "Slurm says that its node failed"),
    ("spot", "its log tells that the machine was to be taken away"),
    ("fatal_python", "Python itself reported a fatal error"),
)

_TELL: tuple[Callable[[Finding, Case], Iterator[str]], ...] = (
    _memory,
    _data_workers,
    _exceptions,
    _launchers,
    _machine,
    _words,
)
