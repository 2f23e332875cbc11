"""What a red flag means for the verdict: whether something is decided where it lies, whether a person cleared it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from muster.stats.flag_types import Acceptance, Flag, Made, Measured, Place

Column = tuple[str, str]  # split, metric
# parts of a flag that tell how many and which cells: fewer of them are covered
LISTING = frozenset({"count", "cells", "olds", "news", "groups", "runs", "least", "chance"})


@dataclass(frozen=True, slots=True)
class AcceptedFlag:
    """A flag as it was when a person accepted it. It covers that one, and none that came later on other cells."""

    code: str
    cells: tuple[str, ...]
    by: Acceptance
    place: Place | None = None
    parts: Mapping[str, str] = field(default_factory=dict)

    def covers(self, flag: Flag) -> bool:
        """Fewer cells are covered, too. The facts must be those that were accepted."""
        if not flag.acceptable or flag.code != self.code or flag.place != self.place:
            return False
        return set(flag.cells) <= set(self.cells) and (flag.place is not None or self._facts_of(flag.parts))

    def _facts_of(self, parts: Mapping[str, str]) -> bool:
        single = len(self.cells) <= 1
        names = {*parts, *self.parts} - (frozenset() if single else LISTING)
        return all(parts.get(name) == self.parts.get(name) for name in names)


@dataclass(frozen=True, slots=True)
class Deciding:
    """What the verdict rests on. Without columns nothing was declared, and every flag counts."""

    columns: frozenset[Column] = frozenset()  # the primary one and that of the limit
    heads: Mapping[str, str] = field(default_factory=dict)  # measured cell -> its split
    aside: frozenset[str] = frozenset()  # cells that no deciding column rests on


def deciding_of(columns: Iterable[Column], measured: Sequence[Measured], made: Sequence[Made]) -> Deciding:
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
    return Deciding(columns, {each.cell: each.split for each in measured}, aside)


def decides(flag: Flag, deciding: Deciding) -> bool:
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


def weighed(flags: Iterable[Flag], deciding: Deciding, accepted: Sequence[AcceptedFlag] = ()) -> tuple[Flag, ...]:
    """An ERROR where nothing is decided is a WARN; what a person accepted says so, the newest word first."""
    return tuple(_accepted(_lowered(flag, deciding), accepted) for flag in flags)


def _lowered(flag: Flag, deciding: Deciding) -> Flag:
    counts = flag.level != "ERROR" or decides(flag, deciding)
    return flag if counts else replace(flag, level="WARN", aside=True)


def _accepted(flag: Flag, accepted: Sequence[AcceptedFlag]) -> Flag:
    word = next((each.by for each in reversed(accepted) if each.covers(flag)), None)
    return flag if word is None else replace(flag, accepted=word)
