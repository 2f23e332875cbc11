"""What a run's metric did, in constant memory: first, last, min, max, mean, slope, and the last few hundred values."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

KEPT_VALUES = 512  # last values: a window can't be longer
_LAST = KEPT_VALUES - 1  # as a mask: KEPT is a power of two
_FEW = 32  # below, a loop is faster than numpy

LOWER_IS_BETTER_WORDS = frozenset(
    {
        "loss",
        "error",
        "err",
        "mse",
        "mae",
        "rmse",
        "l1",
        "l2",
        "nll",
        "ppl",
        "perplexity",
        "fid",
        "wer",
        "cer",
        "regret",
        "cost",
        "costs",
        "violation",
    }
)
HIGHER_IS_BETTER_WORDS = frozenset(
    {
        "success",
        "accuracy",
        "acc",
        "reward",
        "rewards",
        "return",
        "returns",
        "score",
        "auc",
        "f1",
        "iou",
        "psnr",
        "ssim",
        "bleu",
        "r2",
    }
)


@dataclass(frozen=True, slots=True)
class Summary:
    """`first` and `last` may be NaN or infinite, if that is what the run wrote; the others are of the finite values."""

    key: str
    count: int = 0  # all values
    nan: int = 0  # those that are no finite number
    first: float | None = None
    last: float | None = None
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    slope: float | None = None  # per step, by least squares
    first_step: float | None = None
    last_step: float | None = None
    # of the last values, KEPT at most; whatever they are given as, they are kept with 8 bytes each: there may be
    # hundreds of runs with hundreds of keys
    tail_steps: Sequence[float] = field(default=(), hash=False)
    tail: Sequence[float] = field(default=(), hash=False)

    def __post_init__(self) -> None:
        for name in ("tail_steps", "tail"):
            object.__setattr__(self, name, array("d", getattr(self, name)))

    @property
    def delta(self) -> float | None:
        if self.first is None or self.last is None:
            return None
        return _finite_summary_number(self.last - self.first)

    @property
    def pct(self) -> float | None:
        """The change in percent of the first value."""
        delta = self.delta
        return None if delta is None or not self.first else _finite_summary_number(100.0 * delta / abs(self.first))

    def best(self, better: str | None = None) -> float | None:
        """`better`: higher or lower; else the key's name tells. None where nothing does."""
        better = better or better_direction_of_key(self.key)
        return {"higher": self.max, "lower": self.min}.get(better or "")

    def window(self, length: int) -> Summary:
        """Of the last so many values, or of all, where there are fewer."""
        found = Summarizer(self.key)
        found.add_many(self.tail_steps[-length:], self.tail[-length:])
        return found.summary()


class Summarizer:
    """Takes values one by one or by columns. Means and slopes are summed up as Welford does: no digits are lost."""

    __slots__ = (
        "_finite",
        "_max",
        "_mean",
        "_mean_x",
        "_mean_y",
        "_min",
        "_pairs",
        "_steps",
        "_sxx",
        "_sxy",
        "_values",
        "count",
        "first",
        "first_step",
        "key",
        "last",
        "last_step",
        "nan",
    )

    def __init__(self, key: str) -> None:
        self.key = key
        self.count = self.nan = self._finite = self._pairs = 0
        self.first = self.last = self.first_step = self.last_step = math.nan
        self._min, self._max = math.inf, -math.inf
        self._mean = self._mean_x = self._mean_y = self._sxx = self._sxy = 0.0
        self._steps = array("d", bytes(8 * _FEW))  # grows to KEPT: a run may have many keys with few values
        self._values = array("d", bytes(8 * _FEW))

    def add(self, step: float, value: float) -> None:
        """A step that is no number counts for everything but the slope."""
        count = self.count
        if count == 0:
            self.first, self.first_step = value, step
        self.last, self.last_step = value, step
        if count < KEPT_VALUES and count >= len(self._steps):
            self._make_room(count + 1)
        self._steps[count & _LAST] = step
        self._values[count & _LAST] = value
        self.count = count + 1
        if value - value != 0.0:  # NaN or infinite
            self.nan += 1
            return
        if value < self._min:  # noqa: PLR1730  half the price of min()
            self._min = value
        if value > self._max:  # noqa: PLR1730
            self._max = value
        finite = self._finite = self._finite + 1
        self._mean += (value - self._mean) / finite
        if step - step == 0.0:
            pairs = self._pairs = self._pairs + 1
            away = step - self._mean_x
            mean_x = self._mean_x = self._mean_x + away / pairs
            mean_y = self._mean_y = self._mean_y + (value - self._mean_y) / pairs
            self._sxx += away * (step - mean_x)
            self._sxy += away * (value - mean_y)

    def add_many(self, steps: Sequence[float], values: Sequence[float]) -> None:
        """Columns of one length: lists, arrays or numpy arrays."""
        if len(steps) != len(values):
            raise ValueError(f"{len(steps)} steps for {len(values)} values")
        if len(values) < _FEW:
            for step, value in zip(steps, values, strict=True):
                self.add(step, value)
            return
        import numpy as np

        x, y = np.asarray(steps, np.float64), np.asarray(values, np.float64)
        with np.errstate(all="ignore"):
            self._add_columns(x, y, np)

    def _add_columns(self, x: Any, y: Any, np: Any) -> None:
        if self.count == 0:
            self.first, self.first_step = float(y[0]), float(x[0])
        self.last, self.last_step = float(y[-1]), float(x[-1])
        self._make_room(self.count + len(y))
        places = np.arange(self.count + max(0, len(y) - KEPT_VALUES), self.count + len(y)) & _LAST
        np.frombuffer(self._steps)[places] = x[-KEPT_VALUES:]
        np.frombuffer(self._values)[places] = y[-KEPT_VALUES:]
        self.count += len(y)
        finite = np.isfinite(y)
        if not finite.all():
            x, y = x[finite], y[finite]
            self.nan += len(finite) - len(y)
        if len(y):
            self._min, self._max = min(self._min, float(y.min())), max(self._max, float(y.max()))
            self._finite += len(y)
            self._mean += (float(y.mean()) - self._mean) * (len(y) / self._finite)
        stepped = np.isfinite(x)
        if not stepped.all():
            x, y = x[stepped], y[stepped]
        if len(x):
            self._add_pairs(x, y)

    def _make_room(self, count: int) -> None:
        """For so many values, KEPT at most."""
        size = len(self._steps)
        while size < min(count, KEPT_VALUES):
            size *= 2
        more = array("d", bytes(8 * (size - len(self._steps))))
        self._steps.extend(more)
        self._values.extend(more)

    def _add_pairs(self, x: Any, y: Any) -> None:
        """The sums of both parts, and what lies between their means."""
        mean_x, mean_y = float(x.mean()), float(y.mean())
        off = x - mean_x
        before, more = self._pairs, len(x)
        self._pairs = before + more
        away_x, away_y = mean_x - self._mean_x, mean_y - self._mean_y
        weight = before * more / self._pairs
        self._sxx += float(off @ off) + away_x * away_x * weight
        self._sxy += float(off @ (y - mean_y)) + away_x * away_y * weight
        self._mean_x += away_x * more / self._pairs
        self._mean_y += away_y * more / self._pairs

    def summary(self) -> Summary:
        some = self._finite > 0
        return Summary(
            self.key,
            self.count,
            self.nan,
            float(self.first) if self.count else None,
            float(self.last) if self.count else None,
            float(self._min) if some else None,
            float(self._max) if some else None,
            _finite_summary_number(self._mean) if some else None,
            _finite_summary_number(self._sxy / self._sxx) if self._sxx > 0 else None,
            _finite_summary_number(self.first_step),
            _finite_summary_number(self.last_step),
            self._in_order(self._steps),
            self._in_order(self._values),
        )

    def _in_order(self, ring: array[float]) -> array[float]:
        """The last values, the oldest first."""
        if self.count <= KEPT_VALUES:
            return ring[: self.count]
        start = self.count & _LAST
        return ring[start:] + ring[:start]


def _finite_summary_number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def better_direction_of_key(key: str) -> str | None:
    """What is better, by the words in a key: `eval/success`, `train.l1_loss`. None where they don't tell."""
    words = set(re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()))
    if "entropy" in words:
        return None  # a loss by its name only: neither end of it is what anybody wants
    lower, higher = bool(words & LOWER_IS_BETTER_WORDS), bool(words & HIGHER_IS_BETTER_WORDS)
    return None if lower == higher else "lower" if lower else "higher"


def metric_summary_as_json(summary: Summary, better: str | None = None) -> dict[str, float | int | None]:
    """As `muster metrics --json` tells it: what is no finite number is null."""
    numbers = {
        "first": summary.first,
        "last": summary.last,
        "min": summary.min,
        "max": summary.max,
        "best": summary.best(better),
        "delta": summary.delta,
        "pct": summary.pct,
        "mean": summary.mean,
        "slope": summary.slope,
        "first_step": summary.first_step,
        "last_step": summary.last_step,
    }
    told = {name: None if value is None else _finite_summary_number(value) for name, value in numbers.items()}
    return {**told, "count": summary.count, "nan": summary.nan}
