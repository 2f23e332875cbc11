"""What a training logged on its way: metrics over steps, thinned out so that a picture can be drawn of them."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.domain.campaign import Job
from muster.domain.cell import Cell
from muster.domain.order import Order
from muster.domain.origins import Points, Series
from muster.observe.matches import newest_first
from muster.observe.metrics.record_steps import OWN_STEP
from muster.observe.proof import pattern_of
from muster.observe.steps import look_up, number
from muster.observe.sweep import sweep
from muster.ports.metrics import Column

RECORDED = ("wandb", "tensorboard")
SHAPES = 256  # of rows that are remembered
POINTS = 400  # of a curve: more can't be told apart on a slide
_PREFIXES = ("eval_episode/", "eval/episode/", "episode/", "Metrics/Ep", "eval/", "test/", "train/", "rollout/ep_")
_EVALUATION = re.compile(r"(?:^|[/_.])(?:eval|test|val)(?![a-z])", re.IGNORECASE)
_ENDINGS = {"score": ("score", "return", "reward", "Ret", "rew_mean"), "cost": ("cost", "Cost", "cost_mean")}


def read_curves(job: Job, cell: Cell, order: Order, metrics: Sequence[str]) -> dict[str, tuple[str, Points]]:
    """metric -> (the key it was found under, its points). A file that can't be read has no curve."""
    for log in logs_of(job, cell, order, metrics):
        log.read()
        if found := log.curves():
            return found
    return {}


def logs_of(job: Job, cell: Cell, order: Order, metrics: Sequence[str]) -> Iterator[Log]:
    """The newest file of each source of steps, not read yet."""
    for source in job.progress if metrics else ():
        if source.kind not in RECORDED and (source.kind not in ("jsonl", "csv") or not source.step):
            continue
        pattern = pattern_of(job, cell, order, source.path)
        for path in newest_first(pattern)[:1] if pattern else ():
            yield Log(source.kind, path, source.step or OWN_STEP, source.scale, metrics)


class Log:
    """The curves of one log, taken row by row."""

    def __init__(self, kind: str, path: str, step_key: str, scale: float, metrics: Sequence[str]) -> None:
        self.kind, self.path = kind, path
        self._step, self._scale = step_key, scale
        self.needles: Sequence[bytes] = ()
        self._shapes: dict[tuple[str, ...], list[str]] = {}  # the keys of a row -> those that are asked for
        self._candidates = {metric: candidates_for(metric) for metric in metrics}
        self._keys = frozenset(key for each in self._candidates.values() for key in each)
        self._thinned: dict[str, Thinned] = {}

    def read(self) -> None:
        """In a pass of its own; of what can't be read nothing is known."""
        try:
            if self.kind == "jsonl":
                sweep(self.path, [self])
            elif self.kind in RECORDED:
                self._read_records()
            else:
                self._read_table()
        except (OSError, csv.Error):
            self.forget()

    def _read_table(self) -> None:
        with open(self.path, encoding="utf-8-sig", errors="replace", newline="") as table:
            for row in csv.DictReader(line.replace("\0", "") for line in table):
                self.take_row(row)

    def _read_records(self) -> None:
        from muster.observe.metrics.discover import records_of

        for reader, prefix in records_of(self.path, self.kind):
            for rows in reader.read():
                self._take_columns(rows.columns, prefix)

    def _take_columns(self, columns: Mapping[str, Column], prefix: str) -> None:
        """Their steps are the writer's own; another counter stands in the same rows."""
        own = self.kind != "wandb" or self._step == OWN_STEP
        counted = None if own else dict(zip(*columns.get(self._step, ((), ())), strict=True))
        for key in self._keys & {prefix + each for each in columns}:
            for at, value in zip(*columns[key.removeprefix(prefix)], strict=True):
                step = at if counted is None else counted.get(at)
                if step is not None and math.isfinite(step) and math.isfinite(value):
                    self._add(key, step, value)

    def forget(self) -> None:
        self._thinned.clear()

    def take_row(self, row: Mapping[str, Any]) -> None:
        keys = self._asked(row)
        step = number(look_up(row, self._step)) if keys else None
        if step is None:
            return
        for key in keys:
            value = number(row[key])
            if value is not None:
                self._add(key, step, value)

    def _add(self, key: str, step: float, value: float) -> None:
        thinned = self._thinned.get(key)
        if thinned is None:
            thinned = self._thinned[key] = Thinned()
        thinned.add(step * self._scale, value)

    def _asked(self, row: Mapping[str, Any]) -> list[str]:
        """Rows have few shapes: looked up, where it is known."""
        shape = tuple(row)
        found = self._shapes.get(shape)
        if found is None:
            found = [key for key in shape if key in self._keys]
            if len(self._shapes) < SHAPES:
                self._shapes[shape] = found
        return found

    def curves(self) -> dict[str, tuple[str, Points]]:
        """metric -> (the key it was found under, its points)."""
        found = {}
        for metric, likely in self._candidates.items():
            logged = self._logged(likely)
            if logged:
                found[metric] = (logged[0], self._thinned[logged[0]].points)
        return found

    def tested(self) -> dict[str, Series]:
        """metric -> the evaluations of it. What is logged of training episodes is none."""
        found = {}
        for metric, likely in self._candidates.items():
            logged = self._logged([key for key in likely if key == metric or _EVALUATION.search(key)])
            if logged:
                found[metric] = self._thinned[logged[0]].tested
        return found

    def _logged(self, keys: Sequence[str]) -> list[str]:
        return [key for key in keys if key in self._thinned and len(self._thinned[key].steps) > 1]


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
        self._low, self._high = math.inf, -math.inf
        self._lowest: float | None = None  # the step; None: several are as low
        self._highest: float | None = None

    def add(self, step: float, value: float) -> None:
        if value <= self._low:
            self._lowest = step if value < self._low else None
            self._low = value
        if value >= self._high:
            self._highest = step if value > self._high else None
            self._high = value
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

    @property
    def tested(self) -> Series:
        steps, _ = self.points
        return Series(steps[0], steps[-1], self._lowest, self._highest)
