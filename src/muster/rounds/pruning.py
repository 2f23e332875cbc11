"""Which runs are hopeless: by the median of the others, at the step that they have reached. Pure."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from muster.rounds.expressions import keys_of, parse
from muster.rounds.tokens import ExpressionError

MOST_POINTS = 1024
NEARLY_ALL = 0.9  # of its steps: from there on a run is left alone


@dataclass(frozen=True, slots=True)
class PruneRule:
    key: str
    better: str  # higher | lower
    after: int = 0  # a run is left alone until it has come that far
    least: int = 4  # others that must have come as far


@dataclass(slots=True)
class Trail:
    """The best value so far of one key, by step, in bounded memory: only where it became better."""

    better: str
    steps: list[float] = field(default_factory=list)
    bests: list[float] = field(default_factory=list)
    last: float = -math.inf  # the newest step

    def add_many(self, steps: Sequence[float], values: Sequence[float]) -> None:
        for step, value in zip(steps, values, strict=True):
            if not math.isfinite(step) or step < self.last:
                continue  # a run that was resumed says again what it said before
            self.last = step
            if math.isfinite(value) and (not self.bests or ahead(value, self.bests[-1], self.better)):
                self.steps.append(step)
                self.bests.append(value)
        while len(self.steps) > MOST_POINTS:
            keep = range(0, len(self.steps) - 1, 2)
            self.steps = [*(self.steps[at] for at in keep), self.steps[-1]]
            self.bests = [*(self.bests[at] for at in keep), self.bests[-1]]

    def at(self, step: float) -> float | None:
        """The best up to this step; None: it has not come that far, or had none yet."""
        found = bisect_right(self.steps, step)
        return self.bests[found - 1] if found and self.last >= step else None


def ahead(one: float, other: float, better: str) -> bool:
    return one > other if better == "higher" else one < other


def hopeless(rule: PruneRule, trail: Trail, others: Sequence[Trail], steps: float | None = None) -> str:
    """Why it is not worth going on, with the numbers; "": it is, or that can't be told.

    `steps`: what the run has to do. Near its end a stop saves next to nothing and costs a score that is nearly paid.
    """
    best = trail.at(trail.last)
    if best is None or trail.last < rule.after or (steps is not None and trail.last >= NEARLY_ALL * steps):
        return ""
    known = [value for each in others if (value := each.at(trail.last)) is not None]
    if len(known) < rule.least:
        return ""
    median = statistics.median(known)
    if not ahead(median, best, rule.better):
        return ""
    return (
        f"its best {rule.key} at step {trail.last:g} is {best:.6g}, the median of the {len(known)} others there is "
        f"{median:.6g}, and {rule.better} is better"
    )


def key_of(by: str) -> str | None:
    """The one key that an expression is about; None: none, or several."""
    try:
        keys = set(keys_of(parse(by, "number")))
    except ExpressionError:
        return None
    return keys.pop() if len(keys) == 1 else None
