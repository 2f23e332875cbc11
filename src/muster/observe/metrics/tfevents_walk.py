"""Many events at once: numpy finds step and summary of all of them side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muster.observe.metrics.keys import Bytes, Ints

_WALL, _STEP, _SUMMARY, _SIMPLE = 0x09, 0x10, 0x2A, 0x15
_LONG = 0x80
_LONGEST_STEP = 9
_SHORTEST = 22  # wall time, step, and a summary of one number with an empty tag


@dataclass(frozen=True, slots=True)
class Walked:
    steps: np.ndarray[Any, np.dtype[np.float64]]
    heads: Ints  # where the summary begins
    plain: Any  # which events look like one number: wall time, step, summary


def walk(buffer: Bytes, starts: Ints, ends: Ints) -> Walked:
    plain = ends - starts >= _SHORTEST
    first = np.where(plain, starts, 0)
    plain &= (buffer.at(first) == _WALL) & (buffer.at(first + 9) == _STEP)
    at, steps = first + 10, np.zeros(len(starts), np.int64)
    going = np.flatnonzero(plain)
    for place in range(_LONGEST_STEP):
        byte = buffer.at(at[going])
        steps[going] |= (byte & 0x7F) << (7 * place)
        at[going] += 1
        going = going[(byte >= _LONG) & (at[going] < ends[going])]
        if not len(going):
            break
    plain[going] = False
    plain &= at + 12 <= ends
    at = np.where(plain, at, 0)
    plain &= (buffer.at(at) == _SUMMARY) & (buffer.at(np.where(plain, ends - 5, 0)) == _SIMPLE)
    return Walked(steps.astype(np.float64), at, plain)
