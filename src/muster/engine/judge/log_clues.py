"""What the end of a log says about the end of its run: the exceptions, the notices, and which exception ended it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from muster.engine.judge.log_notices import (
    LogNotice,
    clean_log_lines,
    is_worker_label,
    lines_show_progress,
    read_log_notices,
    read_step_count,
    shorten_log_line,
    strip_worker_label,
)
from muster.engine.judge.tracebacks import RaisedException, read_tracebacks

# They say that something else failed, which may have said so itself.
WRAPPER_EXCEPTIONS = frozenset(
    {
        "ChildFailedError",
        "CalledProcessError",
        "RayTaskError",
        "RayActorError",
        "ActorDiedError",
        "TrainingFailedError",
        "ProcessRaisedException",
        "ProcessExitedException",
        "BrokenProcessPool",
        "TerminatedWorkerError",
        "SystemExit",
        "ExceptionGroup",
        "BaseExceptionGroup",
        "JaxStackTraceBeforeTransformation",
        "UnfilteredStackTrace",
        "SimplifiedTraceback",
        "_RemoteTraceback",
        "RemoteTraceback",
    }
)

# What a worker says when another one has died: true, and not the reason.
_ECHO_TYPES = frozenset(
    {
        "DistBackendError",
        "DistNetworkError",
        "DistStoreError",
        "DistError",
        "ConnectionResetError",
        "BrokenPipeError",
        "ConnectionRefusedError",
        "EOFError",
    }
)
_ECHO_WORDS = re.compile(
    r"NCCL communicator was aborted|Connection (?:closed|reset) by peer|Socket Timeout|gloo[/\\]transport"
)

# Lines that come after the last exception of a run and change nothing: of trackers, schedulers, launchers, C++.
_HARMLESS = re.compile(
    r"\W{0,3}(?:wandb|COMET|neptune|mlflow|sentry|clearml)\b|View run |srun: |slurmstepd: |make(?:\[\d+\])?: |[-=*]{5,}"
    r"|Set the environment variable HYDRA_FULL_ERROR|For simplicity, JAX has removed|\[[WEIF]\W?\d|[WEIF]\d{4} "
    r"|(?:WARNING|ERROR|INFO):torch\.distributed|frame #\d|Exception raised from "
    r"|CUDA kernel errors might|For debugging consider|Compile with `|Search for `|terminate called|what\(\): "
    r"|ERROR conda\.cli|Aborted|Segmentation fault|\S+:\d+:\d+ \[\d+\] NCCL |NCCL "
    r"|.{0,400}(?:resource_tracker|leaked |destroy_process_group|never awaited)"
    r"|Exception ignored |Failures:|<NO_OTHER_FAILURES>|Root Cause|\[\d+\]:?$|Original Traceback"
    r"|.{0,200}: line \d+: +\d+ |\"\"\"|\+-+|The above exception|During handling of|-- Process \d"
    r"|The preceding stack trace|\^+C?$|Killed$|from user code:|Set TORCH|\s"
)
_BARS = re.compile(r"\d%\||\bit/s\b|s/it\b")


@dataclass(frozen=True, slots=True)
class LogClues:
    """One log, read. Rows count in `lines`."""

    lines: tuple[str, ...] = ()
    raised: tuple[RaisedException, ...] = ()
    notices: tuple[LogNotice, ...] = ()

    def said(self, *kinds: str) -> tuple[LogNotice, ...]:
        return tuple(notice for notice in self.notices if notice.kind in kinds)

    @property
    def silent(self) -> bool:
        return not any(line.strip() for line in self.lines)


@dataclass(frozen=True, slots=True)
class FinalException:
    """The exception that a log ends with."""

    raised: RaisedException
    after: Literal["nothing", "other", "progress"]  # what came after it: progress means that the run survived it
    agreed: bool = True  # no other worker says otherwise
    earlier: tuple[RaisedException, ...] = ()  # those that it follows from, the nearest first
    wrapper: RaisedException | None = None  # what its launcher said of it

    @property
    def sure(self) -> bool:
        """Nobody can have caught it: the program ended with it."""
        return self.after == "nothing" and self.agreed and self.raised.top and self.raised.role in ("", "group")


def read_log_clues(text: str) -> LogClues:
    """`text` is the end of a log, cut anywhere."""
    lines = clean_log_lines(text)
    return LogClues(tuple(lines), read_tracebacks(lines), read_log_notices(lines))


def find_final_exception(clues: LogClues) -> FinalException | None:
    """The exception that decides, seen through what launchers and other workers said of it."""
    spoken = [raised for raised in clues.raised if raised.role != "ignored"]
    if not spoken:
        return None
    leaves = [raised for raised in spoken if raised.type not in WRAPPER_EXCEPTIONS]
    wrapper = spoken[-1] if spoken[-1].type in WRAPPER_EXCEPTIONS else None
    if not leaves:
        return _launcher_exception(clues, spoken)
    chosen, agreed = _choose_deciding_exception(clues, leaves, wrapper)
    after = classify_what_follows(clues, chosen)
    if wrapper is not None and wrapper.rows[-1] > chosen.last and wrapper.at:
        if after != "nothing":
            return FinalException(
                wrapper, classify_what_follows(clues, wrapper), wrapper=wrapper
            )  # the other one was survived
        agreed = False  # a call of the user's own failed; what stands above it may be the child's word or an older one
    if any(notice.row > chosen.last and notice.number != 6 for notice in clues.said("worker_signal")):
        return _launcher_exception(clues, [wrapper] if wrapper else [])  # the worker that failed first said nothing
    earlier = _earlier_exceptions(clues.raised, chosen)
    return FinalException(_with_worker_place(chosen, earlier), after, agreed, earlier, wrapper)


def _launcher_exception(clues: LogClues, spoken: Sequence[RaisedException]) -> FinalException | None:
    """Nobody said why a worker failed. SystemExit decides nothing: Python ends with it in silence."""
    told = [raised for raised in spoken if raised.type != "SystemExit"]
    if not told:
        return None
    return FinalException(told[-1], classify_what_follows(clues, told[-1]), agreed=bool(told[-1].at), wrapper=told[-1])


def _choose_deciding_exception(
    clues: LogClues, leaves: Sequence[RaisedException], wrapper: RaisedException | None
) -> tuple[RaisedException, bool]:
    last = leaves[-1]
    if last.role == "group":
        return _first_of_group(leaves)
    reports = [notice for notice in clues.notices if notice.rank is not None and notice.row > last.last]
    own = [raised for raised in leaves if reports and raised.lane == f"[rank{reports[-1].rank}]:"]
    if own and last.lane:
        return own[-1], True
    if last.lane:
        first, agreed = _first_of_workers(leaves)
        return first, agreed and not is_worker_label(last.lane)  # other workers may have failed before
    if wrapper is not None and _echoes_other_worker(last):
        first_own = next((raised for raised in reversed(leaves) if not _echoes_other_worker(raised)), None)
        if first_own is not None and classify_what_follows(clues, first_own) == "nothing":
            return first_own, False
    return last, True


def _first_of_group(leaves: Sequence[RaisedException]) -> tuple[RaisedException, bool]:
    group = []
    for raised in reversed(leaves):
        if raised.role != "group":
            break
        group.append(raised)
    return group[-1], len({raised.type for raised in group}) == 1


def _first_of_workers(leaves: Sequence[RaisedException]) -> tuple[RaisedException, bool]:
    """The first of the workers' last words that is no echo of another's death."""
    known = is_worker_label(leaves[-1].lane)
    ends = list(
        {raised.lane: raised for raised in leaves if raised.lane and is_worker_label(raised.lane) == known}.values()
    )
    ends.sort(key=lambda raised: raised.rows[-1])
    own = [raised for raised in ends if not _echoes_other_worker(raised)] or ends
    return own[0], len({raised.type for raised in own}) == 1


def _echoes_other_worker(raised: RaisedException) -> bool:
    return raised.type in _ECHO_TYPES or _ECHO_WORDS.search(raised.message) is not None


def _earlier_exceptions(all_raised: Sequence[RaisedException], chosen: RaisedException) -> tuple[RaisedException, ...]:
    lane = [raised for raised in all_raised if raised.lane == chosen.lane and raised.rows[-1] <= chosen.rows[-1]]
    found, at = [], len(lane) - 1
    while at > 0 and lane[at].link:
        at -= 1
        found.append(lane[at])
    return tuple(found)


def _with_worker_place(chosen: RaisedException, earlier: Sequence[RaisedException]) -> RaisedException:
    """A pool hands on what its worker raised: the worker's place is the one that helps."""
    if earlier and chosen.link == "cause" and earlier[0].told == chosen.told and earlier[0].at:
        return replace(chosen, at=earlier[0].at, raised_at=earlier[0].raised_at, code=earlier[0].code)
    return chosen


def log_went_on(clues: LogClues, row: int) -> bool:
    """The log tells of steps, or of another exception, after that row."""
    later = any(raised.rows[0] > row and raised.role != "ignored" for raised in clues.raised)
    return later or lines_show_progress(clues.lines[row + 1 :], clues.lines[: row + 1])


def classify_what_follows(clues: LogClues, raised: RaisedException) -> Literal["nothing", "other", "progress"]:
    """What the log says after an exception, tracebacks apart: nothing that matters, something, or that it went on."""
    told = {row for other in clues.raised for row in other.rows}
    told |= {row for other in clues.raised for row in range(other.rows[-1], other.last + 1)}
    rest, ignored = [], False
    for row in range(raised.last + 1, len(clues.lines)):
        label, body = strip_worker_label(clues.lines[row])
        mine = not label or label.strip() == raised.lane or not raised.lane
        if row not in told and mine and body.strip() and not ignored:
            rest.append(body)
        ignored = body.startswith("Exception ignored ")  # its own line follows
    if lines_show_progress(rest, clues.lines[: raised.last + 1]):
        return "progress"
    return "other" if any(not _HARMLESS.match(body) and not _BARS.search(body) for body in rest) else "nothing"


def lines_of_exception(clues: LogClues, raised: RaisedException, most: int = 8) -> tuple[str, ...]:
    """The lines to show for an exception: where it was raised, and what it said."""
    message = [row for row in range(raised.rows[-1], raised.last + 1) if clues.lines[row].strip()][: most // 2]
    rows = [row for row in raised.rows[:-1] if clues.lines[row].strip(" \t^~|│")][-(most - len(message)) :]
    return tuple(shorten_log_line(clues.lines[row]) for row in [*rows, *message])


_FEW = 20  # exceptions at the end of a log
_PREAMBLE = re.compile(
    r"The following values were not passed to `accelerate launch`|To avoid this warning pass in values|usage: |Usage: "
    r"|Setting OMP_NUM_THREADS|\*{5,}"
)


def last_useful_line(clues: LogClues, before: int | None = None) -> str:
    """The last line above row `before` that a program of its own said: no bar, no step, nothing of a launcher's."""
    told = [(raised.rows[0], raised.last) for raised in clues.raised[-_FEW:]]
    until = len(clues.lines) if before is None else before
    for row in range(until - 1, max(-1, until - 60), -1):
        body = strip_worker_label(clues.lines[row])[1]
        if any(first <= row <= last for first, last in told) or not body.strip():
            continue
        if _HARMLESS.match(body) or _PREAMBLE.match(body):
            continue
        return "" if "%|" in body or read_step_count(body) is not None else shorten_log_line(body, 200)
    return ""


def last_unsurvived_lines(clues: LogClues, most: int = 4) -> tuple[str, ...]:
    """The last lines, without those that the run survived: steps follow them."""
    rows = [row for row, line in enumerate(clues.lines) if line.strip() and "%|" not in line][-most:]
    return tuple(shorten_log_line(clues.lines[row]) for row in rows if not log_went_on(clues, row))


def last_log_lines(clues: LogClues, most: int = 4) -> tuple[str, ...]:
    """The last lines that are no progress bar."""
    spoken = [line for line in clues.lines[-200:] if line.strip() and "%|" not in line]
    return tuple(shorten_log_line(line) for line in spoken[-most:])
