"""What is true of a simulated run at any moment: the judge must find it out from the readings alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from muster.model.attempt_snapshot import PostMortem, ProgressMark, TreeVitals

NOTHING_LEFT = PostMortem()


@dataclass(frozen=True, slots=True)
class Moment:
    """What probes would read of a living run."""

    marks: tuple[ProgressMark, ...]
    vitals: TreeVitals
    main_state: str  # the letter of /proc/PID/stat


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ends, `at` seconds after its start."""

    at: float
    code: int | None = None
    signal: int | None = None
    aftermath: PostMortem = NOTHING_LEFT
    cause: str = ""  # the true one: the kind that the judge should name
    proof_holds: bool = True
    seen: bool = True  # False: its shim died first, so nobody wrote the exit down


class Truth(Protocol):
    """One execution of a command. Times are seconds after its start, by a clock that never jumps."""

    ending: Ending | None  # None: it never ends by itself

    def look(self, t: float) -> Moment: ...

    def works(self, t: float) -> bool:
        """It advances or is going to without help: calling it stalled is wrong."""

    def stalled_since(self, t: float) -> float | None:
        """Since when it hangs, if it does."""
