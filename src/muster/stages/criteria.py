"""A criterion of a gate: bounds, which may differ by stage, on what a window makes of a key's last values: `last`,
`mean 3`, `median 4`, `min 3`, `max 3`, `all 3`, `p10 20`.

A window is judged once it is full. One that holds a value that is no number can't be judged until that has left it.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from math import inf, nextafter
from typing import Any, NamedTuple

from muster.stages.notation import SettingsForm, show_found_value

_WRITTEN = re.compile(r"(?P<kind>mean|median|min|max|all|p\d{1,2}(?:\.\d+)?)\s+(?P<size>[1-9]\d{0,6})", re.ASCII)
WINDOW_FORM = "`median 4` (mean, median, min, max, all or p10, and how many) or `last`"
NAN = math.nan


class Window(NamedTuple):
    kind: str = "last"  # last | mean | median | min | max | all | p10 ...
    size: int = 1

    @classmethod
    def parse(cls, text: str) -> Window:
        """Raises ValueError."""
        if text.strip() == "last":
            return LAST
        found = _WRITTEN.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"expected {WINDOW_FORM}, found {text!r}")
        return cls(found["kind"], int(found["size"]))

    def __str__(self) -> str:
        return self.kind if self == LAST else f"{self.kind} {self.size}"

    @property
    def exact(self) -> bool:
        """Whether it is one of the values; the others are computed from several, and so rounded."""
        return self.kind in _RINGS_BY_KIND and self.kind != "mean"

    @property
    def place(self) -> float:
        """Where a quantile lies among the values in order; divided last, so that p29 of 101 is the 29th exactly."""
        percent = 50.0 if self.kind == "median" else float(self.kind[1:])
        return percent * (self.size - 1) / 100


LAST = Window()


class ValueRing:
    """The last values of one key, the oldest first. What is not there yet is NaN, and so is what is no number."""

    __slots__ = ("_clean", "_values", "key", "size")

    def __init__(self, key: str, window: Window) -> None:
        self.key = key
        self.size = window.size
        self.clear()

    def clear(self) -> None:
        self._values = deque([NAN] * self.size, self.size)
        self._clean = 0  # numbers since the last value that was none

    def push(self, value: float) -> None:
        self._values.append(value)
        self._clean = self._clean + 1 if value == value else 0  # noqa: PLR0124  NaN is the one number that is not itself

    def low(self) -> float:
        """What a least value is compared with; NaN: it can't be judged."""
        return self._values[-1]

    def high(self) -> float:
        """What a greatest value is compared with."""
        return self.low()

    def values(self) -> list[float]:
        return list(self._values)

    def lacks(self) -> int:
        """How many numbers must come until the last value that is none has left."""
        return max(0, self.size - self._clean)

    def load(self, values: Iterable[float]) -> None:
        self.clear()
        for each in values:
            self.push(each)


class MeanRing(ValueRing):
    """Summed anew each time: a running sum would drift, and a resumed run would see another one."""

    __slots__ = ()

    def low(self) -> float:
        return sum(self._values) / self.size

    high = low


class SortedRing(ValueRing):
    """The values in order as well: medians, quantiles and extremes cost one look."""

    __slots__ = ("_order",)

    def clear(self) -> None:
        super().clear()
        self._order: list[float] = []

    def push(self, value: float) -> None:
        values, order = self._values, self._order
        old = values[0]
        values.append(value)
        if old == old:  # noqa: PLR0124
            del order[bisect_left(order, old)]
        if value == value:  # noqa: PLR0124
            insort(order, value)
            self._clean += 1
        else:
            self._clean = 0

    def low(self) -> float:
        order = self._order
        return order[0] if len(order) == self.size else NAN

    high = low


class MaxRing(SortedRing):
    __slots__ = ()

    def low(self) -> float:
        order = self._order
        return order[-1] if len(order) == self.size else NAN

    high = low


class AllRing(SortedRing):
    """Every one of the values: the least of them must not be too low, the greatest not too high."""

    __slots__ = ()
    high = MaxRing.low


class QuantileRing(SortedRing):
    """Between two values in proportion, as numpy has it."""

    __slots__ = ("_below", "_part")

    def __init__(self, key: str, window: Window) -> None:
        self._below = math.floor(window.place)
        self._part = window.place - self._below
        super().__init__(key, window)

    def low(self) -> float:
        order = self._order
        if len(order) != self.size:
            return NAN
        lower = order[self._below]
        if not self._part or lower == (upper := order[self._below + 1]):  # infinity less infinity is no number
            return lower
        return lower + self._part * (upper - lower)

    high = low


_RINGS_BY_KIND = {"last": ValueRing, "mean": MeanRing, "min": SortedRing, "max": MaxRing, "all": AllRing}


def make_ring(key: str, window: Window) -> ValueRing:
    return _RINGS_BY_KIND.get(window.kind, QuantileRing)(key, window)


BOUNDS = ("min", "max", "above", "below")
_ROUNDING = 1e-12  # relative: the mean of three times 0.1 is 0.1, whatever the sum says
BOUND_WORDS = {"min": "at least", "max": "at most", "above": "above", "below": "below"}
UNMET_BOUND_WORDS = {"min": "below", "max": "above", "above": "not above", "below": "not below"}


class CriterionLimits(NamedTuple):
    """What a stage may set otherwise. None: as the criterion has it."""

    min: float | None = None
    max: float | None = None
    above: float | None = None
    below: float | None = None
    window: Window | None = None

    def bounds(self) -> dict[str, float]:
        return {name: value for name in BOUNDS if (value := getattr(self, name)) is not None}

    def bound(self, *names: str) -> tuple[str, float] | None:
        """That of one side: `min` or `above`, `max` or `below`."""
        return next(((name, value) for name, value in self.bounds().items() if name in names), None)

    def mapping(self) -> dict[str, Any]:
        return dict(self.bounds()) | ({"window": str(self.window)} if self.window else {})


NO_STAGE_LIMITS: Mapping[str, CriterionLimits] = {}


class Criterion(NamedTuple):
    key: str
    limits: CriterionLimits
    by_stage: Mapping[str, CriterionLimits] = NO_STAGE_LIMITS

    def at(self, stage: str) -> CriterionLimits:
        """What holds in this stage. A bound of a stage takes the place of the same side's: `min` that of `above`."""
        own, other = self.limits, self.by_stage.get(stage)
        if other is None:
            return own if own.window else CriterionLimits(**own.bounds(), window=LAST)
        given = other.bounds()
        kept = {name: value for name, value in own.bounds().items() if not given.keys() & _BOUNDS_OF_SIDE[name]}
        return CriterionLimits(**(kept | given), window=other.window or own.window or LAST)

    def mapping(self) -> dict[str, Any]:
        stages = {stage: limits.mapping() for stage, limits in self.by_stage.items()}
        return {"key": self.key} | self.limits.mapping() | ({"by_stage": stages} if stages else {})


_BOUNDS_OF_SIDE = {
    "min": {"min", "above"},
    "above": {"min", "above"},
    "max": {"max", "below"},
    "below": {"max", "below"},
}


def read_criteria(form: SettingsForm, where: str, written: object) -> Iterator[Criterion]:
    if not isinstance(written, list | tuple):
        form.wrong(where, f"expected a list of criteria, found {show_found_value(written)}")
        return
    for at, each in enumerate(written):
        name = f"{where}[{at}]"
        entry = form.mapping(name, each)
        if entry is not None:
            yield _read_criterion(form, name, entry)


def _read_criterion(form: SettingsForm, name: str, entry: Mapping[str, Any]) -> Criterion:
    form.known(name, entry, ("key", *BOUNDS, "window", "by_stage"))
    key = form.text(name, entry, "key")
    limits = _read_limits(form, name, entry)
    by_stage, written = {}, [entry]
    for stage, other in (form.mapping(f"{name}.by_stage", entry.get("by_stage") or {}) or {}).items():
        own = form.mapping(f"{name}.by_stage.{stage}", other)
        if own is not None:
            written.append(own)
            form.known(f"{name}.by_stage.{stage}", own, (*BOUNDS, "window"))
            by_stage[str(stage)] = _read_limits(form, f"{name}.by_stage.{stage}", own)
    if not any(each.get(bound) is not None for each in written for bound in BOUNDS):
        form.wrong(name, "a criterion needs a bound", "add min, max, above or below")
    return Criterion(key, limits, by_stage)


def _read_limits(form: SettingsForm, name: str, entry: Mapping[str, Any]) -> CriterionLimits:
    bounds = {each: form.number(name, entry, each, needed=False) for each in BOUNDS}
    for strict, other in (("above", "min"), ("below", "max")):
        if bounds[strict] is not None and bounds[other] is not None:
            form.wrong(name, f"{other} and {strict} bound the same side", "leave one out")
    window = None
    if entry.get("window") is not None:
        try:
            window = Window.parse(str(entry["window"]))
        except ValueError as error:
            form.wrong(name, f"window: {error}")
    return CriterionLimits(**bounds, window=window)


def closest_passing_value(window: Window, bound: str, threshold: float) -> float:
    """The least (min, above) or the greatest (max, below) number that meets a bound."""
    slack = 0.0 if window.exact else _ROUNDING * (abs(threshold) or 1.0)
    if bound == "min":
        return threshold - slack
    if bound == "max":
        return threshold + slack
    return nextafter(threshold + slack, inf) if bound == "above" else nextafter(threshold - slack, -inf)
