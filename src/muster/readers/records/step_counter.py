"""What counts the steps of a history: the names of counters, which of them are none (timers, counters within an epoch),
and the step of each row.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from muster.readers.records.metric_reader import MetricColumn, ReaderState

# names of counters without their separators, the best first; of "train/global_step" the last part counts
STEP_COLUMN_NAMES = (
    "step",
    "globalstep",
    "steps",
    "envstep",
    "envsteps",
    "totalenvsteps",
    "totalsteps",
    "numsteps",
    "trainstep",
    "agentstep",
    "totaltimesteps",
    "numtimesteps",
    "timestepstotal",
    "timesteps",
    "timestep",
    "numenvstepssampled",
    "numenvstepssampledlifetime",
    "numagentstepssampled",
    "trainingiteration",
    "iteration",
    "iterations",
    "iter",
    "iters",
    "it",
    "update",
    "updates",
    "nupdates",
    "numupdates",
    "frame",
    "frames",
    "numframes",
    "batch",
    "epoch",
    "epochs",
    "episode",
    "episodes",
    "round",
    "generation",
)
BAR_COUNTER, BRACKET_COUNTER = "N/M", "[N]"  # in printed lines: a step without a name
EPOCH_NAMES = frozenset({"epoch", "epochs"})
NO_COUNTER = "row"  # where nothing counts, rows are numbered
_RANK = {name: rank for rank, name in enumerate(STEP_COLUMN_NAMES)}
_NAMELESS = {BRACKET_COUNTER: _RANK["batch"] - 0.5, BAR_COUNTER: _RANK["batch"] - 0.25}
_TIMERS = re.compile(r"(?:timing|timer|perf)[a-z_]*s?\Z|times?\Z|durations?\Z")
_COUNTS_BESIDE_TIMERS = re.compile(r"total|num|iteration|episodes|epochs")  # `time/total_timesteps`, as SB3 writes it


def normalize_key_name(key: str) -> str:
    """`trainer/Global_Step` -> globalstep"""
    return re.sub(r"[^a-z0-9]", "", re.split(r"[/.]", key)[-1].lower())


@lru_cache(maxsize=4096)
def rank_of_counter(key: str) -> float | None:
    """The best counter has the least rank. None: by its name it counts no steps; `timing_s/step` is a time."""
    if key in _NAMELESS:
        return _NAMELESS[key]
    name = normalize_key_name(key)
    rank = _RANK.get(name)
    timers = [part for part in re.split(r"[/.]", key.lower())[:-1] if _TIMERS.match(part)]
    plain = all(part == "time" for part in timers) and _COUNTS_BESIDE_TIMERS.match(name)
    return rank if rank is None or not timers or plain else None


def counting_key(keys: Iterable[str]) -> str | None:
    """The key that counts the steps, if one does."""
    ranked = [(rank, key) for key in keys if (rank := rank_of_counter(key)) is not None]
    return min(ranked, key=lambda each: each[0])[1] if ranked else None


class GatheredColumns:
    """Columns of numbers, row by row: for rows that no faster way fits."""

    def __init__(self) -> None:
        self.columns: dict[str, MetricColumn] = {}
        self.count = 0

    def add(self, key: str, step: float, value: float) -> None:
        column = self.columns.get(key)
        if column is None:
            column = self.columns[key] = (array("d"), array("d"))
        column[0].append(step)
        column[1].append(value)


CounterColumn = Sequence[float | None]  # an array, numpy's or Python's: each row has one; else a list


class StepCounter:
    """The step of each row: what its counter says; where it is silent, that of the row before, or the row's number.

    The best counter so far counts: `epoch` until a row has a `step`, too. A counter that turns out to be none is
    barred: steps that were handed out by it are wrong then, and `misled` says so.
    """

    def __init__(self, barred: Iterable[str] = ()) -> None:
        self.key: str | None = None
        self.rows = 0
        self.last: float | None = None
        self.barred = list(barred)
        self.misled = False
        self._before: dict[str, float] = {}  # the last value of each, where there are several

    @property
    def name(self) -> str:
        """As it is told; empty: there is no row yet."""
        return self.key or (NO_COUNTER if self.rows else "")

    def steps(self, count: int, columns: Mapping[str, Any]) -> Sequence[float]:
        """Of so many rows. `columns`: of the keys that may count."""
        ranked = sorted((key for key in columns if key not in self.barred), key=lambda key: rank_of_counter(key) or 0.0)
        for key in [key for key in ranked if self._counts_nothing(key, columns)]:
            self._bar(key)
            ranked.remove(key)
        if len(ranked) > 1:
            self._note_last(ranked, columns)
        worst = float("inf") if self.key is None else rank_of_counter(self.key) or 0.0
        ranked = [key for key in ranked if (rank_of_counter(key) or 0.0) <= worst]
        if ranked and not isinstance(columns[ranked[0]], list) and self._may_count(ranked[0], columns[ranked[0]][0]):
            self.key, self.rows = ranked[0], self.rows + count
            found: Sequence[float] = columns[self.key]
            self.last = float(found[-1])
            return found
        return array("d", [self._step_of_row([(key, columns[key][row]) for key in ranked]) for row in range(count)])

    def _step_of_row(self, told: Sequence[tuple[str, float | None]]) -> float:
        for key, value in told:
            if value is not None and self._may_count(key, value):
                self.key, self.last = key, value
                break
        self.rows += 1
        return float(self.rows - 1) if self.last is None else self.last

    def _may_count(self, key: str, value: float) -> bool:
        """A better counter takes over where steps do not go back by it."""
        return self.last is None or key == self.key or value >= self.last

    def _counts_nothing(self, key: str, columns: Mapping[str, Any]) -> bool:
        if normalize_key_name(key) not in EPOCH_NAMES and not _are_whole(columns[key]):
            return True
        return len(columns) > 1 and self._begins_again_within_another(key, columns)

    def _begins_again_within_another(self, key: str, columns: Mapping[str, Any]) -> bool:
        """`batch` goes back where `epoch` rises. Where a run was started again, no counter rises."""
        mine = [self._before.get(key), *_plain_list(columns[key])]
        if _never_falls(mine):
            return False
        others = [[self._before.get(other), *_plain_list(columns[other])] for other in columns if other != key]
        last: float | None = None
        highest: list[float | None] = [None] * len(others)
        for row, value in enumerate(mine):
            rises = False
            for at, other in enumerate(others):
                one = other[row]
                if one is not None:
                    rises |= highest[at] is not None and one > highest[at]  # type: ignore[operator]
                    highest[at] = one
            if value is not None:
                if last is not None and value < last and rises:
                    return True
                last = value
        return False

    def _bar(self, key: str) -> None:
        self.barred.append(key)
        if self.key == key:
            self.key, self.last, self.misled = None, None, True

    def _note_last(self, keys: Iterable[str], columns: Mapping[str, Any]) -> None:
        for key in keys:
            last = next((value for value in reversed(columns[key]) if value is not None), None)
            if last is not None:
                self._before[key] = float(last)

    def row(
        self, values: Sequence[tuple[str, float]], into: GatheredColumns, at: Sequence[tuple[str, float]] = ()
    ) -> None:
        """One row that was read slowly. `at`: what counts beside its values."""
        counters = [each for each in (*at, *values) if rank_of_counter(each[0]) is not None]
        if len(counters) == 1 and counters[0][0] == self.key and counters[0][1].is_integer():  # nearly always
            step = self.last = counters[0][1]
            self.rows += 1
        else:
            (step,) = self.steps(1, {key: [value] for key, value in counters if value == value})  # noqa: PLR0124 - NaN
        for key, value in values:
            into.add(key, step, value)
        into.count += 1

    def state(self) -> ReaderState:
        told = {"barred": self.barred, "before": self._before, "misled": self.misled}
        return {"key": self.key, "rows": self.rows, "last": self.last, **told}

    def restore(self, state: ReaderState) -> None:
        self.key, self.rows, self.last = state["key"], int(state["rows"]), state["last"]
        self.barred, self._before = list(state["barred"]), dict(state["before"])
        self.misled = bool(state["misled"])


def _plain_list(column: Any) -> list[float | None]:
    return column.tolist() if hasattr(column, "tolist") else list(column)


def _are_whole(column: Any) -> bool:
    if hasattr(column, "dtype"):
        import numpy as np

        with np.errstate(invalid="ignore"):  # infinity is no whole number, and no reason for a warning
            return bool((column % 1 == 0).all())
    return all(value is None or float(value).is_integer() for value in column)


def _never_falls(values: Iterable[float | None]) -> bool:
    return all(before <= after for before, after in pairwise([value for value in values if value is not None]))
