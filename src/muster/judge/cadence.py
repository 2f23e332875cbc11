"""How often a signal advances: learned from its own gaps.

Gaps have many modes (a log clock in seconds, evaluations, checkpoints): nothing is fitted, the empirical tail is used.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field

KEPT = 256
FADE = 0.5 ** (1 / 1024)  # per gap: a long pause that comes back every few hundred gaps must not be forgotten


@dataclass
class Cadence:
    gaps: list[float] = field(default_factory=list)  # the last ones, oldest first
    longest: float = 0.0  # fades
    count: int = 0  # all that were ever seen

    def __post_init__(self) -> None:
        self._ordered: list[float] | None = None  # not a field: it is not saved

    def learn(self, gap: float) -> None:
        self.count += 1
        self.longest = max(gap, self.longest * FADE)
        self.gaps.append(round(gap, 3))
        if len(self.gaps) > KEPT:
            del self.gaps[0]
        self._ordered = None

    @property
    def ordered(self) -> list[float]:
        if self._ordered is None:
            self._ordered = sorted(self.gaps)
        return self._ordered

    def quantile(self, share: float) -> float:
        """Of the kept gaps; 0 where there are none."""
        if not self.gaps:
            return 0.0
        return self.ordered[max(0, math.ceil(share * len(self.gaps)) - 1)]

    @property
    def usual(self) -> float:
        return self.quantile(0.5)

    def phi(self, silent_s: float) -> float:
        """How unusual this silence is, as a power of ten: for people."""
        longer = len(self.gaps) - bisect_left(self.ordered, silent_s)
        return -math.log10((1 + longer) / (len(self.gaps) + 1))
