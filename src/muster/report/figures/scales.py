"""Limits and tick labels of axes: short, and never twice the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from matplotlib.axis import Axis
from matplotlib.ticker import Formatter, MaxNLocator

Bounds = tuple[tuple[float, float], tuple[float, float]]  # of the two axes
_UNITS = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))  # from here on, unit, letter
_SAME = 1e-9  # of the size of the values: a span below it is rounding


class Short(Formatter):
    """250k for 250000; as many decimals as the ticks need to differ."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002
        return number(x)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return tick_labels(values)


def tick_labels(ticks: Sequence[float]) -> list[str]:
    known = sorted(set(ticks))
    largest = max((abs(tick) for tick in known), default=0.0)
    step = min((b - a for a, b in pairwise(known)), default=largest)
    if largest < 1e-3 or largest >= 1e15:
        digits = 2 + math.ceil(math.log10(largest / step)) if step else 1
        return [f"{tick:.{digits}g}" if abs(tick) > step / 100 else "0" for tick in ticks]
    unit, letter = _unit(largest)
    if step < unit / 1000:  # the unit would hide the difference
        unit, letter = 1.0, ""
    decimals = next((n for n in range(9) if all(abs(round(t / unit, n) * unit - t) < step / 100 for t in known)), 9)
    return [f"{tick / unit:.{decimals}f}{letter}" if abs(tick) > step / 100 else "0" for tick in ticks]


def number(value: float, digits: int = 6) -> str:
    """A value as it was declared: 25, 1.625, 2.5M."""
    unit, letter = _unit(abs(value)) if abs(value) < 1e15 else (1.0, "")
    return f"{value / unit:.{digits}g}{letter}"


def _unit(size: float) -> tuple[float, str]:
    return next(((unit, letter) for least, unit, letter in _UNITS if size >= least), (1.0, ""))


def rounded(value: float) -> str:
    """A measured value: three digits that count, so that 17.0 stands below 9.90."""
    if not value:
        return "0"
    if not 1e-3 <= abs(value) < 1e15:
        return f"{value:.3g}"
    if abs(value) < 1:
        return f"{value:#.3g}"
    unit, letter = _unit(abs(value))
    size = abs(value / unit)
    decimals = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{value / unit:.{decimals}f}{letter}"


def padded(values: Iterable[float], share: float = 0.06) -> tuple[float, float]:
    """Limits with some air; also where all values are the same."""
    known = list(values)
    low, high = min(known, default=0.0), max(known, default=1.0)
    size = max(abs(low), abs(high))
    if high - low <= _SAME * size:
        return low - (0.1 * size or 1.0), high + (0.1 * size or 1.0)
    air = share * (high - low)
    return low - air, high + air


def tidy(axis: Axis, most: int = 5) -> None:
    axis.set_major_locator(_ticks(most))
    axis.set_major_formatter(Short())


def longest_label(bounds: tuple[float, float], most: int = 5) -> str:
    """Of the ticks that `tidy` makes there."""
    low, high = bounds
    return max(tick_labels([tick for tick in _ticks(most).tick_values(low, high) if low <= tick <= high]), key=len)


def _ticks(most: int) -> MaxNLocator:
    return MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10])
