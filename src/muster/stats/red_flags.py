"""What a red flag is, what it is found in, and what it means for the verdict: whether something is decided where it
lies, whether a person accepted it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

FlagLevel = Literal["ERROR", "WARN"]


@dataclass(frozen=True, slots=True)
class FlagPlace:
    """Where a flag that is not about single cells was seen. Empty: anywhere."""

    splits: tuple[str, ...] = ()
    metric: str = ""
    seeds: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FlagAcceptance:
    """A person's word about a flag: `muster flag accept`."""

    who: str
    at: str  # ISO time, for display
    because: str


@dataclass(frozen=True, slots=True)
class RedFlag:
    level: FlagLevel
    code: str
    cells: tuple[str, ...]  # or configs, where the flag is about those
    message: str
    parts: Mapping[str, str] = field(default_factory=dict)  # what the message is made of, for other languages
    place: FlagPlace | None = None  # None: `cells` are cells
    metrics: tuple[str, ...] = ()  # of its cells, that it is about; empty: all, or the way the cells were made
    acceptable: bool = True  # False: nobody's word can clear it
    accepted: FlagAcceptance | None = None
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
class MeasuredCell:
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
class CellMaking:
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


SeedRows = tuple[tuple[str, tuple[str, ...]], ...]  # a row of a table, and seeds of it


@dataclass(frozen=True, slots=True)
class DefinitionMixture:
    """A part of a definition that is one text for some cells of a job and another for others."""

    job: str
    part: str  # "command", "env LR", "steps", "cwd", "edits"; "contents": of config files that the command names
    old: str
    new: str
    cells: tuple[str, ...]  # by the older text
    others: tuple[str, ...]  # by the newer one; none: only campaign.yaml has it
    rows: SeedRows = ()
    other_rows: SeedRows = ()
    as_run: bool = False  # each side changed in its own way: the texts are what was run, and no change


@dataclass(frozen=True, slots=True)
class LostCell:
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
class ConfigFailures:
    """Of a config: on how many of its seeds the method failed."""

    config: str
    failed: int
    of: int
    cells: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RedoneCell:
    """A cell that was done and was run again although nothing but its results spoke for it, or more than once."""

    cell: str
    why: str
    values: tuple[float | None, ...] = ()  # of the primary metric, the one that counts last; None: not known


@dataclass(frozen=True, slots=True)
class DeclaredMetrics:
    """What the campaign says about its own numbers."""

    checkpoint: str = "last"  # last | best
    best_by: str | None = None
    primary: str = ""
    cost: str | None = None
    splits: tuple[str, ...] = ()
    proxies: Mapping[str, str] = field(default_factory=dict)  # split -> what it stands for
    train_metrics: frozenset[str] = frozenset()  # results of jobs that train
    picked: Mapping[str, str] = field(default_factory=dict)  # metric -> best | last: the step that it is taken from
    redone: tuple[RedoneCell, ...] = ()
    recovered: tuple[str, ...] = ()  # cells that diverged, and were run again until they were done
    changed_at: int = 0  # cells that were done when the decision was last changed; 0: it was declared before


SplitMetric = tuple[str, str]  # split, metric
# parts of a flag that tell how many and which cells: fewer of them are covered
LISTING_PARTS = frozenset({"count", "cells", "olds", "news", "groups", "runs", "least", "chance"})


@dataclass(frozen=True, slots=True)
class AcceptedFlag:
    """A flag as it was when a person accepted it. It covers that one, and none that came later on other cells."""

    code: str
    cells: tuple[str, ...]
    by: FlagAcceptance
    place: FlagPlace | None = None
    parts: Mapping[str, str] = field(default_factory=dict)

    def covers(self, flag: RedFlag) -> bool:
        """Fewer cells are covered, too. The facts must be those that were accepted."""
        if not flag.acceptable or flag.code != self.code or flag.place != self.place:
            return False
        return set(flag.cells) <= set(self.cells) and (flag.place is not None or self._facts_of(flag.parts))

    def _facts_of(self, parts: Mapping[str, str]) -> bool:
        single = len(self.cells) <= 1
        names = {*parts, *self.parts} - (frozenset() if single else LISTING_PARTS)
        return all(parts.get(name) == self.parts.get(name) for name in names)


@dataclass(frozen=True, slots=True)
class DecidingColumns:
    """What the verdict rests on. Without columns nothing was declared, and every flag counts."""

    columns: frozenset[SplitMetric] = frozenset()  # the primary one and that of the limit
    heads: Mapping[str, str] = field(default_factory=dict)  # measured cell -> its split
    aside: frozenset[str] = frozenset()  # cells that no deciding column rests on


def find_deciding_columns(
    columns: Iterable[SplitMetric], measured: Sequence[MeasuredCell], made: Sequence[CellMaking]
) -> DecidingColumns:
    """A cell is aside if it has no deciding result and all cells that rest on it are aside."""
    columns = frozenset(columns)
    carried = {each.cell: {(each.split, metric) for metric in each.values} for each in measured}
    users = {each.cell: each.used_by for each in made}
    known: dict[str, bool] = {}

    def is_aside(cell: str) -> bool:
        if cell not in known:
            known[cell] = False  # a ring of needs is none of ours to judge
            told = cell in carried or bool(users.get(cell))
            known[cell] = told and not columns & carried.get(cell, set()) and all(map(is_aside, users.get(cell, ())))
        return known[cell]

    aside = frozenset(filter(is_aside, {*carried, *users})) if columns else frozenset()
    return DecidingColumns(columns, {each.cell: each.split for each in measured}, aside)


def flag_is_deciding(flag: RedFlag, deciding: DecidingColumns) -> bool:
    """Whether it lies in a column or a cell that something is decided on, or in none at all."""
    if not deciding.columns:
        return True
    if flag.place is not None:
        place = flag.place
        return any(
            (not place.splits or split in place.splits) and place.metric in ("", metric)
            for split, metric in deciding.columns
        )
    if flag.metrics:
        heads = {deciding.heads.get(cell, "") for cell in flag.cells}
        return any((head, metric) in deciding.columns for head in heads for metric in flag.metrics)
    return not flag.cells or any(cell not in deciding.aside for cell in flag.cells)


def weigh_flags(
    flags: Iterable[RedFlag], deciding: DecidingColumns, accepted: Sequence[AcceptedFlag] = ()
) -> tuple[RedFlag, ...]:
    """An ERROR where nothing is decided is a WARN; what a person accepted says so, the newest word first."""
    return tuple(_mark_flag_accepted(_lower_flag_aside(flag, deciding), accepted) for flag in flags)


def _lower_flag_aside(flag: RedFlag, deciding: DecidingColumns) -> RedFlag:
    counts = flag.level != "ERROR" or flag_is_deciding(flag, deciding)
    return flag if counts else replace(flag, level="WARN", aside=True)


def _mark_flag_accepted(flag: RedFlag, accepted: Sequence[AcceptedFlag]) -> RedFlag:
    word = next((each.by for each in reversed(accepted) if each.covers(flag)), None)
    return flag if word is None else replace(flag, accepted=word)
