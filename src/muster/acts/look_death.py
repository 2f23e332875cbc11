"""How a run ended that nobody watched: its own last words, which make a cause probable and never more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from muster.domain.look_facts import LogEnd
from muster.domain.reading import Aftermath
from muster.domain.sighting import Exit
from muster.domain.verdict import Cause
from muster.judge.cause import CauseFound, cause_of
from muster.judge.cause_words import TRY
from muster.judge.clues import Clues, read_clues

LATER_S = 60.0  # a run may still save something while it ends
_FATAL = {
    "Segmentation fault": 11,
    "Aborted": 6,
    "Bus error": 7,
    "Floating point exception": 8,
    "Illegal instruction": 4,
}
_NEAR_END = 5  # lines
_FAILED = Exit(1, None, 0.0, 0.0, 0.0)  # nobody saw its exit: taken to have failed, to see what its log would say then


@dataclass(frozen=True, slots=True)
class Death:
    found: CauseFound
    log: LogEnd | None  # the one that shows it
    stale: tuple[str, ...] = ()  # logs that tell of a death before the last sign of life


def read_death(logs: Sequence[LogEnd], alive_at: float | None, exit_: Exit | None) -> Death | None:
    """`alive_at`: when progress was made last, by file times; what a log said before that ended another run.

    None: neither its exit nor any log tells how it ended, or it ended well.
    """
    if exit_ is not None and exit_.code == 0:
        return None
    stale: list[str] = []
    for log in logs:
        found = _told_by(log, exit_)
        if found is None:
            continue
        if alive_at is not None and alive_at > log.at + LATER_S:
            stale.append(f"{log.name} tells of {found.cause}, but progress was made after it: that was an earlier run")
            continue
        return Death(found, log, tuple(stale))
    if exit_ is not None:
        return Death(cause_of(exit_, Aftermath(), (), ()), None, tuple(stale))
    return None


def _told_by(log: LogEnd, exit_: Exit | None) -> CauseFound | None:
    found = cause_of(exit_ or _FAILED, Aftermath(err=log.text), (), ())
    if exit_ is not None and exit_.code != 0:
        known = exit_.signal is not None or found.cause.kind == "exit_code"  # that the log is its own is not known
        return found if known else replace(found, cause=replace(found.cause, confidence="probable"))
    if found.cause.kind == "exit_code":  # only our own supposition
        return _by_notice(read_clues(log.text))
    if found.cause.confidence == "proven":
        return replace(found, cause=replace(found.cause, confidence="probable"))
    return found


def _by_notice(clues: Clues) -> CauseFound | None:
    """What a shell, Python's fault handler or C++ said at the very end."""
    spoken = [row for row, line in enumerate(clues.lines) if line.strip()]
    if not spoken:
        return None
    end = spoken[-_NEAR_END:][0]
    told = [notice for notice in clues.said("shell", "terminate") if notice.row >= end]
    told += clues.said("fatal_python")  # the stacks of its threads follow it
    for notice in reversed(told):
        number = notice.number or next((sign for words, sign in _FATAL.items() if words in notice.text), None)
        if notice.kind == "terminate":
            number = 6
        if number is not None:
            note = f"its log says that it was ended by signal {number}; who sent it is not known"
            return CauseFound(Cause("signal", str(number), "probable", note), (), (notice.text,), TRY.get("signal", ""))
    return None
