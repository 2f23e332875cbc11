"""What the rules for causes look at: the exit, what was counted, and both logs, read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from muster.domain.reading import Aftermath
from muster.domain.sighting import Exit
from muster.domain.verdict import Cause
from muster.judge.clues import Clues, Final, final_of, read_clues
from muster.judge.notices import Notice
from muster.judge.tracebacks import Raised

CRASHES = (4, 6, 7, 8, 11)


@dataclass(frozen=True, slots=True)
class Case:
    """Everything the rules look at."""

    exit: Exit
    after: Aftermath
    failed: tuple[str, ...]  # parts of the proof that fail, and that can't be read
    unread: tuple[str, ...]
    pid: int | None  # of the run's main process, as the kernel log names it
    log: Clues  # stderr, or stdout where that is all there is
    other: Clues  # the other one
    final: Final | None  # the exception that the log ends with

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
    def raised(self) -> Raised | None:
        """The exception that may have ended it: one that was not survived."""
        return self.final.raised if self.final and self.final.after != "progress" else None

    @property
    def crashed(self) -> bool:
        """It ended by its own fault, not by a signal that others send."""
        return self.signal in CRASHES or (self.signal is None and self.code != 0)

    def said(self, *kinds: str) -> tuple[Notice, ...]:
        return self.log.said(*kinds) + self.other.said(*kinds)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule found, and what of the logs shows it."""

    cause: Cause
    shows: tuple[Raised | str, ...] = ()


def finding(kind: str, sure: str, note: str, *shows: Raised | str | None, detail: str = "") -> Finding:
    return Finding(Cause(kind, detail, sure, note), tuple(each for each in shows if each))


def read_case(exit_: Exit, after: Aftermath, failed: tuple[str, ...], unread: tuple[str, ...], pid: int | None) -> Case:
    err, out = read_clues(after.err or exit_.log), read_clues(after.out)
    if err.silent and not out.silent:
        err, out = out, err  # 2>&1
    final, beside = final_of(err), final_of(out)
    if beside is not None and beside.after != "progress":
        if final is None or final.after == "progress":
            final, err, out = beside, out, err
        final = replace(final, agreed=False)  # nothing tells which of the two logs was written last
    return Case(exit_, after, failed, unread, pid, err, out, final)
