"""A search space: which values of a config may be which numbers or words, and the edits that set them."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.model.campaign import LoopSearch
from muster.rules.config_paths import (
    ConfigPlace,
    PathError,
    find_config_places,
    format_config_path,
    parse_config_path,
    value_at_place,
)
from muster.rules.edit_config import EditsRefused, digest_config, edit_config_text, show_config_value
from muster.rules.edits import EditError, describe_value_kind

DIGITS_OF_DRAWN_NUMBER = 6  # of a number that is drawn: enough for any search, and people can read it
_NEAR = 1e-8  # of a step: floats are not exact
SpacePoint = dict[str, Any]  # path -> value


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
class SearchSettings:
    space: tuple[Dimension, ...]
    sampler: str = "tpe"  # tpe | gp | random
    trials: int = 4  # of a round
    seed: int = 0


@dataclass(frozen=True, slots=True)
class FittedDimension:
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
        short = float(f"{value:.12g}" if of.step else f"{value:.{DIGITS_OF_DRAWN_NUMBER}g}")
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


def resolve_search_settings(search: LoopSearch) -> SearchSettings:
    space = (
        Dimension(path, each.low or 0, each.high or 0, each.step, each.log, each.values or ())
        for path, each in search.space.items()
    )
    return SearchSettings(tuple(space), search.sampler, search.trials_per_round, search.seed)


def fit_space_to_configs(space: Sequence[Dimension], tree: Any, *more: Any) -> tuple[FittedDimension, ...]:
    """As these configs have it. Raises SpaceMisfit with every path that leads nowhere, or where another leads, too."""
    wrong: dict[str, str] = {}
    found: list[FittedDimension] = []
    taken: dict[ConfigPlace, str] = {}
    for each in space:
        try:
            places = find_config_places(parse_config_path(each.path), tree)
        except PathError as error:
            wrong[each.path] = str(error)
            continue
        twice = [place for place in places if place in taken]
        if twice:
            wrong[each.path] = f"{taken[twice[0]]} sets {format_config_path(twice[0])}, too"
        taken.update(dict.fromkeys(places, each.path))
        integers = all(
            isinstance(old, int) and not isinstance(old, bool) for old in _values_at_path(each.path, tree, *more)
        )
        found.append(FittedDimension(each, each.whole and integers))
    if wrong:
        raise SpaceMisfit(wrong)
    return tuple(found)


def _values_at_path(path: str, *trees: Any) -> Iterator[Any]:
    pattern = parse_config_path(path)
    for tree in trees:
        try:
            yield from (value_at_place(tree, place) for place in find_config_places(pattern, tree))
        except PathError:
            continue


def fit_writable_space(space: Sequence[Dimension], text: str, kind: str, tree: Any) -> tuple[FittedDimension, ...]:
    """As `fitted`, and each end of each dimension can be written there and is read again as itself."""
    knobs = fit_space_to_configs(space, tree)
    wrong: dict[str, str] = {}
    for knob in knobs:
        ends = knob.dimension.values or (knob.dimension.low, knob.dimension.high)
        for value in ends:
            if why := _explain_unwritable_value(knob, knob.tidy(value), text, kind, tree):
                wrong.setdefault(knob.path, why)
    if wrong:
        raise SpaceMisfit(wrong)
    return knobs


def _explain_unwritable_value(knob: FittedDimension, value: Any, text: str, kind: str, tree: Any) -> str:
    try:
        made = edit_config_text(text, kind, [knob.edit(value)])
    except (EditsRefused, EditError) as error:
        return str(error)
    held = common_value_at_path(made.tree, knob.path)
    if knob.read(held) == value:
        return ""
    return (
        f"{knob.path} is {describe_value_kind(common_value_at_path(tree, knob.path))}, and can't be "
        f"{show_config_value(value)}"
    )


def common_value_at_path(tree: Any, path: str) -> Any:
    """What stands there; None where nothing does, or not everywhere the same."""
    values = list(_values_at_path(path, tree))
    return values[0] if values and all(each == values[0] for each in values) else None


def locate_config_in_space(knobs: Sequence[FittedDimension], tree: Any) -> tuple[SpacePoint, str]:
    """Where a config stands in the space, or why it stands outside."""
    point: SpacePoint = {}
    for knob in knobs:
        value = common_value_at_path(tree, knob.path)
        if (read := knob.read(value)) is None:
            return {}, f"{knob.path} is {show_config_value(value)}, outside the space"
        point[knob.path] = read
    return point, ""


def edits_for_point(knobs: Sequence[FittedDimension], point: SpacePoint) -> tuple[str, ...]:
    return tuple(knob.edit(point[knob.path]) for knob in knobs)


def digest_outside_space(space: Sequence[Dimension], tree: Any) -> str:
    """A digest of all that the space does not touch: configs of which it is the same can be compared."""
    left = copy.deepcopy(tree)
    for each in space:
        try:
            places = find_config_places(parse_config_path(each.path), left)
        except PathError:
            continue
        for place in places:
            value_at_place(left, place[:-1])[place[-1]] = None
    return digest_config(left)


def count_space_points(knobs: Sequence[FittedDimension]) -> int | None:
    """How many there are; None: any number."""
    counts = [knob.count for knob in knobs]
    return None if None in counts else math.prod(each for each in counts if each is not None)


def iterate_grid_points(knobs: Sequence[FittedDimension]) -> Iterator[SpacePoint]:
    for values in itertools.product(*(list(knob.all()) for knob in knobs)):
        yield dict(zip((knob.path for knob in knobs), values, strict=True))


PACKAGES_OF_SAMPLER = {"tpe": ("optuna",), "gp": ("optuna", "torch", "scipy"), "random": ("optuna",)}
INSTALL_COMMANDS = {
    "optuna": "pip install 'optuna>=4.2,<6'",
    "torch": "pip install torch",
    "scipy": "pip install scipy",
}


def find_missing_package(sampler: str) -> tuple[str, str]:
    """The first package that a sampler lacks and how to install it. Nothing is imported."""
    lacks = next((name for name in PACKAGES_OF_SAMPLER[sampler] if importlib.util.find_spec(name) is None), "")
    return lacks, INSTALL_COMMANDS.get(lacks, "")
