"""What is found about a training that Muster did not start: its progress files, its process, the end of its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from muster.model.campaign import DeclaredProgress

# how we know that a process writes somewhere: the least sure one first
ProcessCertainty = Literal[
    "not seen there", "names the folder above", "works there", "names it", "has it open", "was given"
]


@dataclass(frozen=True, slots=True)
class ProgressDates:
    """When a progress signal advanced, as its files tell. Wall times: they may be wrong, so they never prove."""

    last: float | None = None  # seconds since 1970; None: can't be told
    gaps: tuple[float, ...] = ()  # between earlier advances, oldest first
    why: str = ""  # why its last advance can't be dated although there was one


@dataclass(frozen=True, slots=True)
class ProgressTrace:
    """One progress file, or many of one pattern."""

    progress: DeclaredProgress  # `path` as it is shown; `step`: the column, or for a log the regex
    pattern: str  # absolute, a glob; of a log its plain path
    dated: ProgressDates = ProgressDates()
    mute: str = ""  # why it is named only, and not read
    stands: bool = False  # a log in which one number was seen, and no other: perhaps no step at all


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last lines of a log, which may tell how the run ended."""

    path: str
    name: str  # as it is shown
    at: float  # its file time
    text: str


@dataclass(frozen=True, slots=True)
class RunFolderFacts:
    """What a folder holds."""

    folder: str = ""
    traces: tuple[ProgressTrace, ...] = ()
    logs: tuple[LogTail, ...] = ()  # the newest first
    newest: float | None = None  # the newest file time of all progress files and logs
    touched: float | None = None  # the newest file time of all
    notes: tuple[str, ...] = ()  # what a reader should know: the looking was cut short, several runs lie here
    troubles: tuple[str, ...] = ()  # what could not be read


@dataclass(frozen=True, slots=True)
class RunProcess:
    """A living process, and how we know that it is the training."""

    pid: int
    ticks: int  # its start, which tells it from others of that pid
    began: float  # the same in boot time
    argv: tuple[str, ...] = ()
    cwd: str | None = None  # None: may not be read
    user: str = ""
    foreign: bool = False  # another user's, of which little can be read
    sure: ProcessCertainty = "was given"
    because: tuple[str, ...] = ()  # in words, for the evidence
    cell: str = ""  # Muster started it for this cell


@dataclass(frozen=True, slots=True)
class TargetStep:
    """The last step that the run is to reach, as its command or config names it."""

    step: float
    where: str  # "--steps", "run.steps in config.yaml"
    repeat: ActionRepeat | None = None  # by which logged steps are more than those that it counts


@dataclass(frozen=True, slots=True)
class ActionRepeat:
    """How often the environment repeats each action: Dreamer logs the product, and is told the steps of the agent."""

    times: float
    where: str  # "env.dmc.repeat in config.yaml"


@dataclass(frozen=True, slots=True)
class SupervisedFolder:
    """A folder that belongs to a campaign: Muster itself knows more about it."""

    root: str
    cell: str = ""  # empty: the campaign's own folder
    attempt: int | None = None


@dataclass(frozen=True, slots=True)
class RunQuery:
    """One run that somebody asks about: a process, a folder, or both."""

    text: str  # as it was asked
    pid: int | None = None
    folder: str | None = None
