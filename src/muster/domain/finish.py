"""What was done at the end of a campaign, and whether somebody wants the machine powered off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# dropped: the one who asked for it by hand let it go. unclear: it began, and nobody saw its end
StageKind = Literal["refused", "clear", "counting", "began", "ended", "failed", "dropped", "unclear"]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step of the finish as it was carried out last."""

    step: str  # report, docs, run-1, notify
    key: str  # the state of the matrix that it was done for
    n: int  # which execution of this step, over all states of the matrix: its folder
    token: str
    at: str  # when it began
    boot: float
    boot_id: str
    lost: int = 0  # executions for this key before it whose end nobody saw
    ended: str | None = None
    ok: bool | None = None  # None with an end: it counts as not done
    why: str = ""
    verdict: str = ""  # that the report came to
    flag: str = ""  # its first red flag of level ERROR


@dataclass(frozen=True, slots=True)
class Wish:
    """`muster shutdown --when-done`: power off once all is done."""

    who: str
    at: str
    command: str | None = None  # of an older version, which took it from an option: not used any more
    countdown_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """How far a shutdown has come, as it was told last."""

    what: StageKind
    at: str
    boot: float
    who: str
    key: str
    reasons: tuple[str, ...] = ()
    command: str = ""
    countdown_s: float = 0.0
    mark: str = ""  # by which whoever began it knows it as its own
    boot_id: str = ""  # in which boot that was; "": an older log


@dataclass(frozen=True, slots=True)
class FinishRecord:
    steps: Mapping[str, StepRecord] = field(default_factory=dict)
    wish: Wish | None = None
    cancelled: str = ""  # who took the shutdown back: none comes by itself until somebody wishes for one again
    cancels: int = 0  # how often one was taken back: what began before the last time does not go on
    stage: Stage | None = None
    begun: str = ""  # the state of the matrix for which the command was recorded: it is not run again by itself
