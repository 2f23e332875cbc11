"""Limits and tick labels of axes: short, and never twice the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from matplotlib.axis import Axis
from matplotlib.ticker import Formatter, MaxNLocator

Bounds = tuple[tuple[float, float], tuple[float, float]]  # of the two axes
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
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
        return [f"{tick:.3g}" if abs(tick) > step / 1000 else "0" for tick in ticks]
    unit, letter = next(((unit, letter) for unit, letter in _UNITS if largest >= 10 * unit), (1.0, ""))
    if step < unit / 1000:  # the unit would hide the difference
        unit, letter = 1.0, ""
    decimals = next((n for n in range(9) if all(abs(round(t / unit, n) * unit - t) < step / 100 for t in known)), 9)
    return [f"{tick / unit:.{decimals}f}{letter}" if abs(tick) > step / 100 else "0" for tick in ticks]


def number(value: float, digits: int = 6) -> str:
    """A value as it was declared: 25, 1.625, 2.5M."""
    if not 1e4 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    unit, letter = next((unit, letter) for unit, letter in _UNITS if abs(value) >= unit)
    return f"{value / unit:.{digits}g}{letter}"


def rounded(value: float) -> str:
    """A measured value: three digits that count, so that 17.0 stands below 9.90."""
    if not value:
        return "0"
    if abs(value) >= 1e4 or abs(value) < 1e-3:
        return number(value, 3)
    return f"{value:#.3g}".rstrip(".")


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
    axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(Short())
