"""What looks at a run without a campaign have shown, for `muster look`: the host's inspector fills it, the app judges
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from muster.engine.judge.unwatched_run import UnwatchedRunWatch
from muster.model.attempt_snapshot import ExitRecord
from muster.model.foreign_run import ProgressDates, RunFolderFacts, RunProcess, RunQuery, SupervisedFolder, TargetStep

ProcessFate = Literal["alive", "ended", "zombie", "never", "nobody", "hidden"]
INSPECTION_PERIOD_S = 1.0
NOTHING, UNDATED = RunFolderFacts(), ProgressDates()


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """All that the looks at one run brought."""

    asked: RunQuery
    boot: float
    wall: float
    watch: UnwatchedRunWatch  # without a process it watches the files alone
    fate: ProcessFate
    found: RunFolderFacts = NOTHING
    dated: Mapping[str, ProgressDates] | None = None
    who: RunProcess | None = None
    state: str = ""  # the letter of its main process
    exit: ExitRecord | None = None  # of one that has ended and was not waited for
    others: tuple[RunProcess, ...] = ()
    doubtful: tuple[RunProcess, ...] = ()
    hidden: int = 0  # processes that may not be looked into
    orphans: tuple[int, ...] = ()  # of its tree, when the main process has gone
    target: TargetStep | None = None
    supervised: SupervisedFolder | None = None
    notes: tuple[str, ...] = ()
    sought: str = ""  # what was looked for, where nothing was found
    rival: int | None = None  # another process that writes where this one was said to
