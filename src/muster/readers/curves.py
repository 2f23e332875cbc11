"""What a training logged on its way: metrics over steps, thinned out so that a picture can be drawn of them."""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from muster.model.attempt import Order
from muster.model.campaign import DeclaredResult, Job
from muster.model.cell import Cell
from muster.model.provenance import CurvePoints, MetricRange, Resumption
from muster.readers.log_rows import (
    LogPiece,
    is_joined_log,
    join_log_columns,
    pieces_of_log,
    step_in_checkpoint_name,
    sweep_log_rows,
)
from muster.readers.output_files import newest_paths_first
from muster.readers.proof import absolute_pattern
from muster.readers.records.metric_reader import MetricColumn
from muster.readers.records.row_steps import finite_number_of, look_up_key
from muster.readers.records.step_counter import counting_key
from muster.readers.records.wandb_records import WANDB_STEP_KEY

RECORD_KINDS = ("wandb", "tensorboard")
CURVE_KINDS = ("jsonl", "csv")  # kinds of results that hold a curve
MOST_ROW_SHAPES = 256  # of rows that are remembered
MOST_REMEMBERED_KEYS = 100_000  # of all of them
MOST_CURVE_POINTS = 400  # of a curve: more can't be told apart on a slide
_LONG = 400  # letters of a text: none that long is a number
_PREFIXES = ("eval_episode/", "eval/episode/", "episode/", "Metrics/Ep", "eval/", "test/", "train/", "rollout/ep_")
_EVALUATION = re.compile(r"(?:^|[/_.])(?:eval|test|val)(?![a-z])", re.IGNORECASE)
_TIMES = re.compile(
    r"time|wall|duration|elapsed|runtime|fps|sps|per_?sec|_s$|seconds|speed|throughput|memory|[cg]pu|^_", re.IGNORECASE
)
_ENDINGS = {"score": ("score", "return", "reward", "Ret", "rew_mean"), "cost": ("cost", "Cost", "cost_mean")}


def curve_logs_of_attempt(
    job: Job, cell: Cell, order: Order, metrics: Sequence[str], before: Sequence[Order] = ()
) -> list[CurveLog]:
    """Where the curves may lie, not read yet: for a result that is read from a log that log, under its key.

    For the other metrics the newest file of each source of steps, under a key that is called so. `before`: the
    orders of the attempts that this one goes on from.
    """
    orders = [*before, order]
    declared = [each for each in job.results if each.name in metrics and each.kind in CURVE_KINDS]
    found = []
    for result in declared:
        if pieces := _log_pieces_of_attempts(job, cell, orders, result.path):
            step, scale = _step_counter_of_result(job, result)
            wanted = {result.name: [result.key or ""]}
            found.append(CurveLog(result.kind, pieces, step, scale, wanted, declared=True))
    others = {name: keys_logged_for(name) for name in metrics if name not in {each.name for each in declared}}
    for source in job.progress if others else ():
        if source.kind not in RECORD_KINDS and (source.kind not in ("jsonl", "csv") or not source.step):
            continue
        if pieces := _log_pieces_of_attempts(job, cell, orders, source.path):
            found.append(CurveLog(source.kind, pieces, source.step or WANDB_STEP_KEY, source.scale, others))
    return found


def _log_pieces_of_attempts(job: Job, cell: Cell, orders: Sequence[Order], path: str) -> tuple[LogPiece, ...]:
    """The newest file of each attempt; none where the last one has none."""
    files: list[tuple[int, str | None, float | None]] = []
    for order in orders:
        pattern = absolute_pattern(job, cell, order, path)
        newest = next(iter(newest_paths_first(pattern)), None) if pattern else None
        files.append((order.n, newest, step_in_checkpoint_name(order.resumed_from)))
    return pieces_of_log(files) if files[-1][1] else ()


def _step_counter_of_result(job: Job, result: DeclaredResult) -> tuple[str | None, float]:
    """What counts the steps in the file of a result; None: its name tells."""
    same = [each for each in job.progress if (each.kind, each.path) == (result.kind, result.path) and each.step]
    return (same[0].step, same[0].scale) if same else (None, 1.0)


def read_missing_curves(logs: Sequence[CurveLog]) -> None:
    """Those that were not read with the results; of those that are searched by name the first with a curve counts."""
    for log in logs:
        if not log.taken:
            log.read()
        if log.curves() and not log.declared:
            return


def curves_in_logs(logs: Sequence[CurveLog]) -> tuple[dict[str, tuple[str, CurvePoints]], dict[str, MetricRange]]:
    """metric -> (the key it was found under, its points), and metric -> its evaluations."""
    curves: dict[str, tuple[str, CurvePoints]] = {}
    tested: dict[str, MetricRange] = {}
    for log in logs:
        found = log.curves()
        curves |= found
        tested |= log.tested()
        if found and not log.declared:
            break
    return curves, tested


class CurveLog:
    """The curves of one log, taken row by row; where several attempts wrote it, joined at the end."""

    def __init__(
        self,
        kind: str,
        pieces: Sequence[LogPiece],
        step_key: str | None,
        scale: float,
        candidates: Mapping[str, Sequence[str]],
        *,
        declared: bool = False,
    ) -> None:
        self.kind, self.pieces, self.path = kind, pieces, pieces[-1].path
        self.declared = declared  # its key is; else it is searched by name
        self.taken = False
        self._step, self._scale = step_key, scale
        self.needles: Sequence[bytes] = ()
        self._shapes: dict[tuple[str, ...], list[str]] = {}  # the keys of a row -> those that are asked for
        self._known = 0  # keys of all shapes
        self._candidates = candidates
        self._keys = frozenset(key for each in self._candidates.values() for key in each)
        self._thinned: dict[str, ThinnedCurve] = {}
        self.resumption: Resumption | None = None
        self._raw: dict[str, tuple[list[float], list[float]]] | None = None  # of one attempt of several
        self._rows: dict[tuple[str, ...], Mapping[str, Any]] = {}  # the last of each shape
        self._last: dict[str, float] = {}  # of columns

    @property
    def joined(self) -> bool:
        return is_joined_log(self.pieces)

    def read(self) -> None:
        """In a pass of its own; of what can't be read nothing is known."""
        self.taken = True
        if not self.joined:
            self._read_one(self.path)
            return
        parts = []
        for piece in self.pieces:
            self._raw = {}
            if piece.path:
                self._read_one(piece.path)
            parts.append(self._raw)
        self._raw = None
        columns, self.resumption = join_log_columns(self.pieces, parts)
        for key, (steps, values) in columns.items():
            thinned = self._thinned[key] = ThinnedCurve()
            for step, value in zip(steps, values, strict=True):
                thinned.add(step * self._scale, value)

    def _read_one(self, path: str) -> None:
        try:
            if self.kind in RECORD_KINDS:
                self._read_records(path)
            else:
                sweep_log_rows(path, self.kind, [self])
        except (OSError, csv.Error):
            self.forget()

    def _read_records(self, path: str) -> None:
        from muster.readers.records.logged_runs import record_readers

        for reader, prefix in record_readers(path, self.kind):
            for rows in reader.read():
                self._take_columns(rows.columns, prefix)

    def _take_columns(self, columns: Mapping[str, MetricColumn], prefix: str) -> None:
        """Their steps are the writer's own; another counter stands in the same rows."""
        own = self.kind != "wandb" or self._step in (None, WANDB_STEP_KEY)
        counted = None if own else dict(zip(*columns.get(self._step or "", ((), ())), strict=True))
        last = {prefix + key: values[-1] for key, (_, values) in columns.items() if len(values)}
        if len(self._last) + len(last) <= MOST_REMEMBERED_KEYS or last.keys() <= self._last.keys():
            self._last |= last
        for key in self._keys & {prefix + each for each in columns}:
            for at, value in zip(*columns[key.removeprefix(prefix)], strict=True):
                step = at if counted is None else counted.get(at)
                if step is not None and math.isfinite(step) and math.isfinite(value):
                    self._add(key, step, value)

    def forget(self) -> None:
        if self._raw is not None:
            self._raw.clear()
        self._thinned.clear()
        self._rows.clear()
        self._last.clear()

    def logged(self) -> str | None:
        """Hash of the last value of every key, but for times and speeds: whether two runs logged the same."""
        last = dict(self._last)
        for row in self._rows.values():
            last.update({key: value for key in row if (value := finite_number_of(row[key])) is not None})
        told = {key: value for key, value in last.items() if not _TIMES.search(key)}
        return hashlib.sha256(repr(sorted(told.items())).encode()).hexdigest() if told else None

    def take_row(self, row: Mapping[str, Any]) -> None:
        keys = self._asked(row)
        shape = tuple(row)
        if shape in self._shapes:
            self._rows[shape] = _without_long_values(row)
        if keys and self._step is None:
            self._step = counting_key(row)
        step = _logged_number(look_up_key(row, self._step), self.kind) if keys and self._step else None
        if step is None:
            return
        for key in keys:
            value = _logged_number(look_up_key(row, key), self.kind)
            if value is not None:
                self._add(key, step, value)

    def _add(self, key: str, step: float, value: float) -> None:
        if self._raw is not None:
            column = self._raw.setdefault(key, ([], []))
            column[0].append(step)
            column[1].append(value)
            return
        thinned = self._thinned.get(key)
        if thinned is None:
            thinned = self._thinned[key] = ThinnedCurve()
        thinned.add(step * self._scale, value)

    def _asked(self, row: Mapping[str, Any]) -> list[str]:
        """Rows have few shapes: looked up, where it is known."""
        shape = tuple(row)
        found = self._shapes.get(shape)
        if found is None:
            found = [key for key in shape if key in self._keys]
            found += [key for key in self._keys.difference(shape) if "." in key and look_up_key(row, key) is not None]
            if len(self._shapes) < MOST_ROW_SHAPES and self._known + len(shape) <= MOST_REMEMBERED_KEYS:
                self._shapes[shape] = found
                self._known += len(shape)
        return found

    def curves(self) -> dict[str, tuple[str, CurvePoints]]:
        """metric -> (the key it was found under, its points)."""
        found = {}
        for metric, likely in self._candidates.items():
            logged = self._logged(likely)
            if logged:
                found[metric] = (logged[0], self._thinned[logged[0]].points)
        return found

    def tested(self) -> dict[str, MetricRange]:
        """metric -> the evaluations of it. What is logged of training episodes is none."""
        found = {}
        for metric, likely in self._candidates.items():
            logged = self._logged([key for key in likely if key == metric or _EVALUATION.search(key)])
            if logged:
                found[metric] = self._thinned[logged[0]].tested
        return found

    def _logged(self, keys: Sequence[str]) -> list[str]:
        return [key for key in keys if key in self._thinned and len(self._thinned[key].steps) > 1]


def _logged_number(value: Any, kind: str) -> float | None:
    """A comma that is left in the cell of a table has no meaning that anybody knows."""
    return None if kind == "csv" and type(value) is str and "," in value else finite_number_of(value)


def _without_long_values(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without what holds no number and may be large."""
    if any(type(each) in (list, dict) or (type(each) is str and len(each) > _LONG) for each in row.values()):
        return {key: value for key, each in row.items() if (value := finite_number_of(each)) is not None}
    return row


def keys_logged_for(metric: str) -> list[str]:
    """Keys under which trainers log what the evaluation calls `metric`, the likeliest first."""
    endings = _ENDINGS.get(metric, (metric,))
    return [metric, *(f"{prefix}{ending}" for prefix in _PREFIXES for ending in endings), *endings]


class ThinnedCurve:
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
        if len(self.steps) >= 2 * MOST_CURVE_POINTS:
            self._last = self._last or (self.steps[-1], self.values[-1])
            self.steps, self.values = self.steps[::2], self.values[::2]
            self._every *= 2

    @property
    def points(self) -> CurvePoints:
        """The last one is always among them."""
        last = [self._last] if self._last and (not self.steps or self._last[0] != self.steps[-1]) else []
        return (*self.steps, *(step for step, _ in last)), (*self.values, *(value for _, value in last))

    @property
    def tested(self) -> MetricRange:
        steps, _ = self.points
        return MetricRange(steps[0], steps[-1], self._lowest, self._highest)
