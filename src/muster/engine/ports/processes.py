"""The living processes of the machine: whose they are, what they left behind, and where they write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from muster.model.foreign_run import ProgressDates, RunFolderFacts

if TYPE_CHECKING:  # most who use the types below inspect nothing
    from muster.engine.judge.unwatched_run import UnwatchedRunWatch
    from muster.engine.ports.clock import Clock
    from muster.model.attempt_snapshot import ExitRecord
    from muster.model.foreign_run import RunProcess, RunQuery, SupervisedFolder, TargetStep


@dataclass(frozen=True, slots=True)
class LeftRun:
    pid: int
    cell: str
    n: int
    token: str  # "": it carries none


@dataclass(frozen=True, slots=True)
class LivingRemains:
    """What lives of one execution: of an attempt, or of a step of the finish."""

    name: str
    tree_held: bool = False  # its tree.lock: a process of it has inherited that
    shim_held: bool = False  # its shim.lock: a shim lives until all that the run left behind is gone
    orphans: tuple[int, ...] = ()  # of those that exit.json names, who lives
    unread: str = ""  # why it can't be told

    @property
    def any(self) -> bool:
        return bool(self.tree_held or self.shim_held or self.orphans or self.unread)


@dataclass(frozen=True, slots=True)
class OutputWriter:
    """A process that has a file below an output folder open for writing."""

    pid: int
    command: str
    path: str


class RunInspection(Protocol):
    """Looks at one run that Muster did not start, again and again."""

    @property
    def watchable(self) -> bool:
        """Whether another look may bring something."""

    def look(self) -> None: ...

    def settle(self) -> None:
        """Waits a little for files that have not answered at all yet, then looks once more."""

    def sight(self) -> RunSnapshot:
        """All that the looks brought."""


class Processes(Protocol):
    def left_runs(self, state: Path, known: Collection[str]) -> list[LeftRun]:
        """Living runs of the campaign with this .muster, but those whose tokens are known."""

    def strange_writers(self, folders: Collection[str], state: Path, known: Collection[str]) -> Mapping[str, int]:
        """Of these folders (without links) each in which a process writes that is neither Muster nor a run of the
        campaign with this .muster, nor carries a known token: and its pid.
        """

    def remains(self, name: str, folder: str) -> LivingRemains:
        """What lives of the execution with this folder, by the facts in it."""

    def writers_and_strays(
        self, outputs: Collection[str], states: Collection[str]
    ) -> tuple[Sequence[OutputWriter], Sequence[int]]:
        """Who writes below these folders; and shims of campaigns whose .muster is none of these. Both without links.

        Raises OSError where /proc can't be read.
        """

    def writer_check(self) -> Callable[[str], str]:
        """Asks why the run of a folder is not over, in words; empty: nobody writes there."""

    def may_miss_other_users(self) -> bool:
        """Whether another person's processes are there, or may be, into which we may not look."""

    def inspect(self, asked: RunQuery, clock: Clock) -> RunInspection: ...


# -- what looks at a run without a campaign have shown: the host's inspector fills it, the app judges it

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
