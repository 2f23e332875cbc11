"""What is true of a cell now, how sure we are, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class VerdictState(StrEnum):
    DONE = "DONE"
    RUNNING = "RUNNING"
    QUIET = "QUIET"
    STALLED = "STALLED"
    DEAD = "DEAD"
    UNKNOWN = "UNKNOWN"
    PENDING = "PENDING"
    BLOCKED = "BLOCKED"
    HELD = "HELD"
    GIVEN_UP = "GIVEN_UP"


LIVE_STATES = frozenset({VerdictState.RUNNING, VerdictState.QUIET, VerdictState.STALLED})
SETTLED_STATES = frozenset({VerdictState.DONE, VerdictState.GIVEN_UP})


@dataclass(frozen=True, slots=True)
class Evidence:
    """One reading and what it says."""

    signal: str  # process, exit, step, checkpoint, tree, shim, host, ...
    kind: str  # life | progress | activity | exit | proof | decision: the `class` of the JSON
    reading: str
    says: str  # alive, gone, holds, fails, abstains, ...
    boot: float | None = None  # CLOCK_BOOTTIME of the reading; None: read from a record


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an attempt ended: `exit_code(137)`, `signal(9)`, `never_started`."""

    kind: str
    detail: str = ""
    confidence: str = "proven"  # proven | probable | unknown
    note: str = ""  # in plain words

    def __str__(self) -> str:
        return f"{self.kind}({self.detail})" if self.detail else self.kind


@dataclass(frozen=True, slots=True)
class SignalRhythm:
    """How often a progress signal advances, and how long it may be silent."""

    signal: str
    silent_s: float | None  # None: it has not advanced yet
    usual_s: float | None  # the middle of its gaps
    longest_s: float | None
    gaps: int  # that were seen
    suspect_s: float
    convict_s: float
    rests_on: str  # its own cadence, siblings, ...
    phi: float = 0.0  # how unusual this silence is, as a power of ten
    note: str = ""  # "written on a clock of 1000 s"


@dataclass(frozen=True, slots=True)
class Verdict:
    state: VerdictState
    reason: str  # one sentence
    kind: str | None = None  # starting, orphans, stopped, ...
    confidence: str = "proven"  # proven | presumed | unknown
    cause: Cause | None = None
    evidence: tuple[Evidence, ...] = ()
    note: str = ""  # e.g. "artifacts complete"
    final: bool = False  # the attempt has ended and this may be recorded
    rhythms: tuple[SignalRhythm, ...] = ()
    turns: float | None = None  # boot time at which it becomes another verdict if nothing happens
    into: str = ""  # which one
    contributing: tuple[str, ...] = ()  # to a death, besides its cause
    lines: tuple[str, ...] = ()  # of the log, that show the cause
    advice: str = ""  # what a person may try

    @property
    def sort(self) -> tuple[VerdictState, str | None, str]:
        """What counts as a change of the verdict."""
        return (self.state, self.kind, self.confidence)
