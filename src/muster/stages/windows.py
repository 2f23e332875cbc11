"""What is made of the last values of a key: `last`, `mean 3`, `median 4`, `min 3`, `max 3`, `all 3`, `p10 20`.

A window is judged once it is full. One that holds a value that is no number can't be judged until that has left it.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

_WRITTEN = re.compile(r"(?P<kind>mean|median|min|max|all|p\d{1,2}(?:\.\d+)?)\s+(?P<size>[1-9]\d{0,6})", re.ASCII)
FORM = "`median 4` (mean, median, min, max, all or p10, and how many) or `last`"
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
            raise ValueError(f"expected {FORM}, found {text!r}")
        return cls(found["kind"], int(found["size"]))

    def __str__(self) -> str:
        return self.kind if self == LAST else f"{self.kind} {self.size}"

    @property
    def exact(self) -> bool:
        """Whether it is one of the values; the others are computed from several, and so rounded."""
        return self.kind in _KINDS and self.kind != "mean"

    @property
    def place(self) -> float:
        """Where a quantile lies among the values in order; divided last, so that p29 of 101 is the 29th exactly."""
        percent = 50.0 if self.kind == "median" else float(self.kind[1:])
        return percent * (self.size - 1) / 100


LAST = Window()


class Ring:
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


class MeanRing(Ring):
    """Summed anew each time: a running sum would drift, and a resumed run would see another one."""

    __slots__ = ()

    def low(self) -> float:
        return sum(self._values) / self.size

    high = low


class SortedRing(Ring):
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


_KINDS = {"last": Ring, "mean": MeanRing, "min": SortedRing, "max": MaxRing, "all": AllRing}


def ring_of(key: str, window: Window) -> Ring:
    return _KINDS.get(window.kind, QuantileRing)(key, window)
