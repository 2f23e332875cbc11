"""Whether one metric was written in two units: a rate as 0.87 in some cells and as 87 in others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from muster.stats.groups import grouped

NEAR = 1.25  # largest over smallest, once all are in percent: seeds of one config lie closer than a factor of 100
_RATES = frozenset({
    "acc", "accuracy", "auc", "auroc", "coverage", "f1", "fraction", "iou", "miou", "pct", "percent", "percentage",
    "precision", "prob", "probability", "ratio", "recall", "share", "success", "win",
})  # fmt: skip
_WORDS = re.compile(r"[a-z]+[0-9]*")


@dataclass(frozen=True, slots=True)
class Value:
    cell: str
    config: str
    value: float
    episodes: int = 1  # that it is the mean of; 1: not known


@dataclass(frozen=True, slots=True)
class Mixed:
    parts: tuple[Value, ...]  # of 1
    percents: tuple[Value, ...]
    certain: bool  # False: no config has both, so that it may be a difference between configs

    @property
    def rarer(self) -> tuple[Value, ...]:
        """Those that are probably wrong; all, where nothing says which."""
        if len(self.parts) == len(self.percents):
            return (*self.parts, *self.percents)
        return min(self.parts, self.percents, key=len)


def mixed_units(metric: str, values: Sequence[Value]) -> Mixed | None:
    """Of one metric on one split. None: nothing that could not be so by nature.

    Seeds of one config that differ by a factor of 100 and agree once it is taken out: no chance where the metric is
    called a rate, or where two cells stand on either side. Between configs it may be a real difference.
    """
    if not all(0 <= each.value <= 100 for each in values):
        return None
    rate = is_rate(metric)
    least = 1 if rate else 2
    sides = [_sides(group) for _, group in grouped(values, lambda each: each.config)]
    within = [each for each in sides if min(map(len, each)) >= least and _agree(*each)]
    if within:
        return Mixed(tuple(v for a, _ in within for v in a), tuple(v for _, b in within for v in b), certain=True)
    parts, percents = _sides(values)
    if rate and min(len(parts), len(percents)) >= 2 and _agree(parts, percents):
        return Mixed(tuple(parts), tuple(percents), certain=False)
    return None


def is_rate(metric: str) -> bool:
    """By its name: success_rate, eval/accuracy, 成功率."""
    words = _WORDS.findall(metric.lower())
    return "率" in metric or any(word in _RATES or word.endswith(("rate", "rates")) for word in words)


def _sides(values: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """0 and 1 may be either, and so may what so many episodes make in percent, too."""
    parts = [each for each in values if 0 < each.value < 1 and not _may_be_percent(each)]
    return parts, [each for each in values if each.value > 1]


def _may_be_percent(each: Value) -> bool:
    hits = each.value * each.episodes / 100
    return each.episodes > 1 and abs(hits - round(hits)) < 1e-6 * max(1.0, hits)


def _agree(parts: Sequence[Value], percents: Sequence[Value]) -> bool:
    scaled = [*(100 * each.value for each in parts), *(each.value for each in percents)]
    return max(scaled) <= NEAR * min(scaled)
