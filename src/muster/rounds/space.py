"""A search space: which values of a config may be which numbers or words, and the edits that set them."""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.rounds.applying import kind as kind_of_value
from muster.rounds.edits import EditError
from muster.rounds.names import digest_of
from muster.rounds.paths import PathError, Where, at_place, find, parse_path, told
from muster.rounds.texts import EditsRefused, edit_text, shown

DIGITS = 6  # of a number that is drawn: enough for any search, and people can read it
_NEAR = 1e-8  # of a step: floats are not exact
Point = dict[str, Any]  # path -> value


@dataclass(frozen=True, slots=True)
class Dimension:
    """One path: either a range or values."""

    path: str
    low: float = 0
    high: float = 0
    step: float | None = None
    log: bool = False
    values: tuple[Any, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether its bounds and its step are whole; what is drawn is so only where the config has an integer."""
        return not self.values and all(isinstance(each, int) for each in (self.low, self.high, self.step or 1))


@dataclass(frozen=True, slots=True)
class Search:
    space: tuple[Dimension, ...]
    sampler: str = "tpe"  # tpe | gp | random
    trials: int = 4  # of a round
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Knob:
    """A dimension as one config has it."""

    dimension: Dimension
    whole: bool  # an integer there stays one

    @property
    def path(self) -> str:
        return self.dimension.path

    @property
    def count(self) -> int | None:
        """How many values it may have; None: any number of them."""
        of = self.dimension
        if of.values:
            return len(of.values)
        step = of.step or (1 if self.whole else None)
        return None if step is None else math.floor((of.high - of.low) / step + _NEAR) + 1

    def all(self) -> Iterator[Any]:
        of = self.dimension
        if of.values:
            yield from of.values
            return
        step = of.step or 1
        for at in range(self.count or 0):
            yield self.tidy(of.low + at * step)

    def tidy(self, value: Any) -> Any:
        """A value as it was drawn, in few digits and within the bounds."""
        of = self.dimension
        if of.values:
            return value
        if self.whole:
            return round(value)
        short = float(f"{value:.12g}" if of.step else f"{value:.{DIGITS}g}")
        return min(max(short, float(of.low)), float(of.high))

    def edit(self, value: Any) -> str:
        return f"{self.path}@set={json.dumps(value, ensure_ascii=False)}"

    def read(self, value: Any) -> Any:
        """The value of the space that a config has; None: none of it."""
        of = self.dimension
        if of.values:
            alike = [each for each in of.values if isinstance(each, bool) == isinstance(value, bool) and each == value]
            return alike[0] if alike else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not of.low <= value <= of.high:
            return None
        steps = (value - of.low) / of.step if of.step else 0.0
        if abs(steps - round(steps)) > _NEAR or (self.whole and value != round(value)):
            return None
        return round(value) if self.whole else float(value)


class SpaceMisfit(ValueError):
    """A space that a config does not have: each path with what is wrong."""

    def __init__(self, mistakes: Mapping[str, str]) -> None:
        super().__init__("; ".join(mistakes.values()))
        self.mistakes = dict(mistakes)


def space_of(written: Mapping[str, Mapping[str, Any]]) -> tuple[Dimension, ...]:
    return tuple(
        Dimension(path, each.get("low") or 0, each.get("high") or 0, each.get("step"), bool(each.get("log")),
                  tuple(each.get("values") or ()))
        for path, each in written.items()
    )  # fmt: skip


def fitted(space: Sequence[Dimension], tree: Any, *more: Any) -> tuple[Knob, ...]:
    """As these configs have it. Raises SpaceMisfit with every path that leads nowhere, or where another leads, too."""
    wrong: dict[str, str] = {}
    found: list[Knob] = []
    taken: dict[Where, str] = {}
    for each in space:
        try:
            places = find(parse_path(each.path), tree)
        except PathError as error:
            wrong[each.path] = str(error)
            continue
        twice = [place for place in places if place in taken]
        if twice:
            wrong[each.path] = f"{taken[twice[0]]} sets {told(twice[0])}, too"
        taken.update(dict.fromkeys(places, each.path))
        integers = all(isinstance(old, int) and not isinstance(old, bool) for old in _values(each.path, tree, *more))
        found.append(Knob(each, each.whole and integers))
    if wrong:
        raise SpaceMisfit(wrong)
    return tuple(found)


def _values(path: str, *trees: Any) -> Iterator[Any]:
    pattern = parse_path(path)
    for tree in trees:
        try:
            yield from (at_place(tree, place) for place in find(pattern, tree))
        except PathError:
            continue


def checked(space: Sequence[Dimension], text: str, kind: str, tree: Any) -> tuple[Knob, ...]:
    """As `fitted`, and each end of each dimension can be written there and is read again as itself."""
    knobs = fitted(space, tree)
    wrong: dict[str, str] = {}
    for knob in knobs:
        ends = knob.dimension.values or (knob.dimension.low, knob.dimension.high)
        for value in ends:
            if why := _unwritable(knob, knob.tidy(value), text, kind, tree):
                wrong.setdefault(knob.path, why)
    if wrong:
        raise SpaceMisfit(wrong)
    return knobs


def _unwritable(knob: Knob, value: Any, text: str, kind: str, tree: Any) -> str:
    try:
        made = edit_text(text, kind, [knob.edit(value)])
    except (EditsRefused, EditError) as error:
        return str(error)
    held = value_at(made.tree, knob.path)
    if knob.read(held) == value:
        return ""
    return f"{knob.path} is {kind_of_value(value_at(tree, knob.path))}, and can't be {shown(value)}"


def value_at(tree: Any, path: str) -> Any:
    """What stands there; None where nothing does, or not everywhere the same."""
    values = list(_values(path, tree))
    return values[0] if values and all(each == values[0] for each in values) else None


def point_of(knobs: Sequence[Knob], tree: Any) -> tuple[Point, str]:
    """Where a config stands in the space, or why it stands outside."""
    point: Point = {}
    for knob in knobs:
        value = value_at(tree, knob.path)
        if (read := knob.read(value)) is None:
            return {}, f"{knob.path} is {shown(value)}, outside the space"
        point[knob.path] = read
    return point, ""


def edits_of(knobs: Sequence[Knob], point: Point) -> tuple[str, ...]:
    return tuple(knob.edit(point[knob.path]) for knob in knobs)


def rest_of(space: Sequence[Dimension], tree: Any) -> str:
    """A digest of all that the space does not touch: configs of which it is the same can be compared."""
    left = copy.deepcopy(tree)
    for each in space:
        try:
            places = find(parse_path(each.path), left)
        except PathError:
            continue
        for place in places:
            at_place(left, place[:-1])[place[-1]] = None
    return digest_of(left)


def points(knobs: Sequence[Knob]) -> int | None:
    """How many there are; None: any number."""
    counts = [knob.count for knob in knobs]
    return None if None in counts else math.prod(each for each in counts if each is not None)


def grid(knobs: Sequence[Knob]) -> Iterator[Point]:
    for values in itertools.product(*(list(knob.all()) for knob in knobs)):
        yield dict(zip((knob.path for knob in knobs), values, strict=True))
