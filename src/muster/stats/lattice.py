"""How coarse a metric is: the lattice that all its values lie on, as they were written.

Accuracies are multiples of 1/N, costs are counts, papers round to a decimal or two. Two runs meet on a coarse lattice
by chance, and never on a fine one. Every estimate errs on the coarse side, where meeting is no surprise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

SINGLE = 2.0**-23  # as trainers compute
DOUBLE = 1e-12
ROUNDED = 1e-9  # sums of decimals
DECIMALS = range(-6, 8)
MOST_PARTS = 60_000
UNITS = (1.0, 100.0)  # a rate, and one in percent
ENOUGH = 6  # distinct values, before their common divisor says anything
SPURIOUS = 1e-3  # the chance that a lattice of parts fits numbers that have none

Numbers = npt.NDArray[np.float64]


def grain_of(values: Iterable[float]) -> float:
    """The step of the coarsest lattice through 0 that fits, in the metric's unit; at least what a number resolves."""
    known = np.unique(np.abs(np.fromiter(values, dtype=float)))
    known = known[known > 0]
    if not known.size:
        return 1.0
    with np.errstate(over="ignore"):
        single = bool(np.all(known == known.astype(np.float32)))
    relative = SINGLE if single else ROUNDED
    decimals, slack = _decimals(known, relative), float(known[-1]) * relative
    finest = float(known[-1]) * (SINGLE if single else DOUBLE)
    if decimals is None:
        return max(finest, _parts(known, slack))
    step = 10.0**-decimals
    shared = int(np.gcd.reduce(np.rint(known / step).astype(np.int64))) if known.size >= ENOUGH else 1
    return max(step * shared, _parts(known, max(slack, step / 2)))


def _decimals(known: Numbers, relative: float) -> int | None:
    """The fewest with which all can be written; negative: tens and hundreds. None: none tells anything."""
    for decimals in DECIMALS:
        scaled = known * 10.0**decimals
        off = np.maximum(scaled * relative, ROUNDED)
        if off[-1] > 0.01 or scaled[-1] > 2.0**53:
            return None
        if np.all(np.abs(scaled - np.rint(scaled)) <= off):
            return decimals
    return None


def _parts(known: Numbers, slack: float) -> float:
    """The step of k/N, of 1 or of 100, from which no value is further than the slack; 0: there is none."""
    return max(_parts_of(unit, known, slack) for unit in UNITS)


def _parts_of(unit: float, known: Numbers, slack: float) -> float:
    last = _most_parts(known.size, slack / unit)
    counts = np.arange(1, last + 1, dtype=float)
    for value in known:  # the first leaves few of them
        scaled = counts * (value / unit)
        counts = counts[np.abs(scaled - np.rint(scaled)) <= slack / unit * (1 + 1e-9) * counts + 1e-12]
        if not counts.size:
            return 0.0
    return unit / float(counts[0])


def _most_parts(values: int, slack: float) -> int:
    """Up to so many parts it is no chance that they fit: the sum of (2 slack N)^values stays below SPURIOUS."""
    logarithm = (math.log((values + 1) * SPURIOUS) - values * math.log(2 * slack)) / (values + 1)
    return int(min(MOST_PARTS, 0.25 / slack, math.exp(min(logarithm, 50.0))))
