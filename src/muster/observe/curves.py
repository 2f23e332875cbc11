"""What a training logged on its way: metrics over steps, thinned out so that a picture can be drawn of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.domain.campaign import Job
from muster.domain.cell import Cell
from muster.domain.order import Order
from muster.observe.matches import newest_first
from muster.observe.proof import pattern_of
from muster.observe.results import LONGEST_LINE
from muster.observe.steps import decode_row, look_up, number

POINTS = 400  # of a curve: more can't be told apart on a slide
_PREFIXES = ("eval_episode/", "eval/episode/", "episode/", "Metrics/Ep", "eval/", "test/", "train/", "rollout/ep_")
_ENDINGS = {"score": ("score", "return", "reward", "Ret", "rew_mean"), "cost": ("cost", "Cost", "cost_mean")}
Points = tuple[tuple[float, ...], tuple[float, ...]]  # steps, values


def read_curves(job: Job, cell: Cell, order: Order, metrics: Sequence[str]) -> dict[str, tuple[str, Points]]:
    """metric -> (the key it was found under, its points). A file that can't be read has no curve."""
    for source in job.progress:
        if source.kind not in ("jsonl", "csv") or not source.step:
            continue
        pattern = pattern_of(job, cell, order, source.path)
        for path in newest_first(pattern)[:1] if pattern else ():
            try:
                found = _collect(_rows(source.kind, path), source.step, source.scale, metrics)
            except (OSError, csv.Error):
                continue
            if found:
                return found
    return {}


def _collect(
    rows: Iterator[Mapping[str, Any]], step_key: str, scale: float, metrics: Sequence[str]
) -> dict[str, tuple[str, Points]]:
    thinned: dict[str, Thinned] = {}
    candidates = {metric: candidates_for(metric) for metric in metrics}
    keys = frozenset(key for each in candidates.values() for key in each)
    for row in rows:
        step = number(look_up(row, step_key))
        if step is None:
            continue
        for key in keys & row.keys():
            value = number(row[key])
            if value is not None:
                thinned.setdefault(key, Thinned()).add(step * scale, value)
    found = {}
    for metric, likely in candidates.items():
        logged = [key for key in likely if key in thinned and len(thinned[key].steps) > 1]
        if logged:
            found[metric] = (logged[0], thinned[logged[0]].points)
    return found


def candidates_for(metric: str) -> list[str]:
    """Keys under which trainers log what the evaluation calls `metric`, the likeliest first."""
    endings = _ENDINGS.get(metric, (metric,))
    return [metric, *(f"{prefix}{ending}" for prefix in _PREFIXES for ending in endings), *endings]


class Thinned:
    """At most twice POINTS, evenly spread, whatever the length of the file: every second is dropped when it is full."""

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.values: list[float] = []
        self._every, self._seen = 1, 0
        self._last: tuple[float, float] | None = None

    def add(self, step: float, value: float) -> None:
        if self._seen % self._every == 0:
            self.steps.append(step)
            self.values.append(value)
            self._last = None
        else:
            self._last = (step, value)
        self._seen += 1
        if len(self.steps) >= 2 * POINTS:
            self._last = self._last or (self.steps[-1], self.values[-1])
            self.steps, self.values = self.steps[::2], self.values[::2]
            self._every *= 2

    @property
    def points(self) -> Points:
        """The last one is always among them."""
        last = [self._last] if self._last and (not self.steps or self._last[0] != self.steps[-1]) else []
        return (*self.steps, *(step for step, _ in last)), (*self.values, *(value for _, value in last))


def _rows(kind: str, path: str) -> Iterator[Mapping[str, Any]]:
    if kind == "csv":
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as table:
            yield from csv.DictReader(line.replace("\0", "") for line in table)
        return
    with open(path, "rb") as file:
        while line := file.readline(LONGEST_LINE):
            row = decode_row(line)
            if isinstance(row, dict):
                yield row
