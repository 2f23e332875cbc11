"""Which stretches of time are covered, and which part of another one is not: what is paid twice is paid once."""

from __future__ import annotations

from bisect import bisect_left


class Cover:
    """Stretches that do not touch, in order."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._ends: list[float] = []

    def gaps(self, start: float, end: float) -> list[tuple[float, float]]:
        """The parts from start to end that are not covered."""
        found: list[tuple[float, float]] = []
        at = bisect_left(self._ends, start)
        while start < end:
            if at == len(self._starts) or self._starts[at] >= end:
                found.append((start, end))
                break
            if self._starts[at] > start:
                found.append((start, self._starts[at]))
            start = max(start, self._ends[at])
            at += 1
        return found

    def add(self, start: float, end: float) -> list[tuple[float, float]]:
        """Covers it; returns what was not covered before."""
        new = self.gaps(start, end)
        if not new:
            return new
        first = bisect_left(self._ends, start)
        last = first
        while last < len(self._starts) and self._starts[last] <= end:
            last += 1
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last], self._ends[first:last] = [start], [end]
        return new
