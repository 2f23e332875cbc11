"""What red flags are read from, and what they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["ERROR", "WARN"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a flag that is not about single cells was seen. Empty: anywhere."""

    splits: tuple[str, ...] = ()
    metric: str = ""
    seeds: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A person's word about a flag: `muster flag accept`."""

    who: str
    at: str  # ISO time, for display
    because: str


@dataclass(frozen=True, slots=True)
class Flag:
    level: Level
    code: str
    cells: tuple[str, ...]  # or configs, where the flag is about those
    message: str
    parts: Mapping[str, str] = field(default_factory=dict)  # what the message is made of, for other languages
    place: Place | None = None  # None: `cells` are cells
    metrics: tuple[str, ...] = ()  # of its cells, that it is about; empty: all, or the way the cells were made
    acceptable: bool = True  # False: nobody's word can clear it
    accepted: Acceptance | None = None
    aside: bool = False  # an ERROR where nothing is decided on: it was lowered to WARN

    @property
    def grave(self) -> bool:
        """An ERROR by itself that nobody has accepted, wherever it lies."""
        return (self.level == "ERROR" or self.aside) and self.accepted is None

    @property
    def voids(self) -> bool:
        """Whether the verdict is INVALID by it. Asked of flags that were weighed."""
        return self.level == "ERROR" and self.accepted is None


@dataclass(frozen=True, slots=True)
class Measured:
    """One cell's results as they were read, before anything is averaged; None: not finite."""

    cell: str
    config: str
    seed: str
    split: str
    values: Mapping[str, float | None]
    now: Mapping[str, float] | None = None  # what its files say today; None: nobody looked
    episodes: int = 1  # that its values are means of; 1: not known
    unread: str = ""  # why its files can't be read, in the reader's language


@dataclass(frozen=True, slots=True)
class Made:
    """How one cell came about. None: not known, which raises no flag."""

    cell: str
    config: str
    seed: str
    job: str = ""
    trained: bool = True  # False: it evaluates what others trained
    checkpoint: str | None = None  # hash of the one that was evaluated
    saved_share: float | None = None  # of the training's time, when it was saved
    saved_steps: float | None = None  # of its steps, that the checkpoint holds
    saved_early: bool = False  # by the declared proof: at the start, or before the end of the training
    curve: str | None = None  # hash of the learning curve, and of all that was logged beside it
    result: str | None = None  # hash of the result file, where it holds more than its results
    steps: float | None = None  # budget
    settings: str | None = None  # hash of the resolved config without names and places
    unlabelled: str | None = None  # and without values that are the config's own name
    label: str | None = None  # what the config file calls itself
    commit: str | None = None
    dirty: str | None = None  # hash of the diff
    called: str | None = None  # best | last: as the path of the checkpoint says that it evaluated
    best_step: float | None = None  # of its evaluations; None: not known, or several are as good
    eval_steps: tuple[float, ...] = ()  # the first and the last, at least
    episodes: int | None = None
    another: tuple[str, ...] = ()  # cells whose results name another checkpoint than this one
    written_after: tuple[str, ...] = ()  # cells that had been evaluated when it was last written
    used_by: tuple[str, ...] = ()  # cells that rest on it


Rows = tuple[tuple[str, tuple[str, ...]], ...]  # a row of a table, and seeds of it


@dataclass(frozen=True, slots=True)
class Mixture:
    """A part of a definition that is one text for some cells of a job and another for others."""

    job: str
    part: str  # "command", "env LR", "steps", "cwd", "edits"; "contents": of config files that the command names
    old: str
    new: str
    cells: tuple[str, ...]  # by the older text
    others: tuple[str, ...]  # by the newer one; none: only campaign.yaml has it
    rows: Rows = ()
    other_rows: Rows = ()
    as_run: bool = False  # each side changed in its own way: the texts are what was run, and no change


@dataclass(frozen=True, slots=True)
class Lost:
    """A cell without a result that no run will bring: taken out of the matrix, given up, or resting on one that was."""

    cell: str
    config: str
    seed: str
    head: str
    kind: str  # failed: the method lost it; unrelated: to its outcome; completed: it had a result; open: it still runs;
    # unread: it ended well, and nobody can read its result
    how: str  # excluded | withdrawn | given_up
    reason: str
    values: str = ""  # what it had measured: `score 0.61`


@dataclass(frozen=True, slots=True)
class Failures:
    """Of a config: on how many of its seeds the method failed."""

    config: str
    failed: int
    of: int
    cells: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Redone:
    """A cell that was done and was run again although nothing but its results spoke for it, or more than once."""

    cell: str
    why: str
    values: tuple[float | None, ...] = ()  # of the primary metric, the one that counts last; None: not known


@dataclass(frozen=True, slots=True)
class Declared:
    """What the campaign says about its own numbers."""

    checkpoint: str = "last"  # last | best
    best_by: str | None = None
    primary: str = ""
    cost: str | None = None
    splits: tuple[str, ...] = ()
    proxies: Mapping[str, str] = field(default_factory=dict)  # split -> what it stands for
    train_metrics: frozenset[str] = frozenset()  # results of jobs that train
    picked: Mapping[str, str] = field(default_factory=dict)  # metric -> best | last: the step that it is taken from
    redone: tuple[Redone, ...] = ()
    recovered: tuple[str, ...] = ()  # cells that diverged, and were run again until they were done
    changed_at: int = 0  # cells that were done when the decision was last changed; 0: it was declared before
