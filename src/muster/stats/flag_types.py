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
class Flag:
    level: Level
    code: str
    cells: tuple[str, ...]  # or configs, where the flag is about those
    message: str
    parts: Mapping[str, str] = field(default_factory=dict)  # what the message is made of, for other languages
    place: Place | None = None  # None: `cells` are cells


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


@dataclass(frozen=True, slots=True)
class Made:
    """How one cell came about. None: not known, which raises no flag."""

    cell: str
    config: str
    seed: str
    job: str = ""
    trained: bool = True  # False: it evaluates what others trained
    checkpoint: str | None = None  # hash of the one that was evaluated
    saved_share: float | None = None  # of the training, when it was saved
    saved_early: bool = False  # by the declared proof: at the start, or before the end of the training
    curve: str | None = None  # hash of the learning curve
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
    withdrawn: tuple[str, ...] = ()  # cells that were done and are no longer declared
    changed_at: int = 0  # cells that were done when the decision was last changed; 0: it was declared before
