"""Learning curves over the seeds of a config. Pure numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.report.facts import Curve
from muster.stats.quantiles import t_quantile
from muster.stats.sample import LEAST_FOR_INTERVAL, LEVEL

COVERED = 0.9  # of the steps: a mean over fewer is told to be one
MOST_POINTS = 300  # of a mean: more than a slide has pixels for
Line = tuple[NDArray[np.float64], NDArray[np.float64]]  # steps, values


@dataclass(frozen=True, slots=True)
class Mean:
    """Over all seeds, where each of them has values: an end that some seeds do not reach would be another sample."""

    steps: NDArray[np.float64]
    mean: NDArray[np.float64]
    half: NDArray[np.float64] | None  # of the Student-t interval; None below three seeds


@dataclass(frozen=True, slots=True)
class Seeds:
    """The curves of one config: one for each seed."""

    config: str
    lines: tuple[Line, ...]
    mean: Mean | None  # None: the seeds have no step in common
    cells: tuple[str, ...]
    left_out: int  # further curves of seeds that have one already

    @property
    def n(self) -> int:
        return len(self.lines)

    @property
    def covered(self) -> float:
        """Which share of the steps that any seed has values for the mean is drawn over."""
        if self.mean is None:
            return 0.0
        whole = max(steps[-1] for steps, _ in self.lines) - min(steps[0] for steps, _ in self.lines)
        return float((self.mean.steps[-1] - self.mean.steps[0]) / whole) if whole > 0 else 1.0

    @property
    def patchy(self) -> bool:
        """Whether the mean leaves out so much that a reader has to be told."""
        return self.mean is not None and self.covered < COVERED


def seeds_of(config: str, curves: Iterable[Curve]) -> Seeds:
    mine = [curve for curve in curves if curve.config == config and curve.steps]
    by_seed: dict[str, Curve] = {}
    for curve in mine:
        by_seed.setdefault(curve.seed, curve)
    lines = tuple(line_of(curve) for curve in by_seed.values())
    cells = tuple(curve.cell for curve in by_seed.values())
    return Seeds(config, lines, mean_of(lines), cells, len(mine) - len(by_seed))


def line_of(curve: Curve) -> Line:
    """In the order of steps. A step that was logged twice, as after a resume, counts as it was last."""
    last = dict(sorted(zip(curve.steps, curve.values, strict=True), key=lambda pair: pair[0]))
    return np.fromiter(last.keys(), dtype=float), np.fromiter(last.values(), dtype=float)


def mean_of(lines: Sequence[Line]) -> Mean | None:
    """Interpolated between a seed's own steps and never beyond them."""
    if not lines:
        return None
    low, high = max(steps[0] for steps, _ in lines), min(steps[-1] for steps, _ in lines)
    if low > high:
        return None
    steps = _thinned(np.unique(np.concatenate([[low, high], *(steps for steps, _ in lines)])), low, high)
    values = np.array([np.interp(steps, *line) for line in lines])
    n = len(lines)
    if n < LEAST_FOR_INTERVAL:
        return Mean(steps, values.mean(axis=0), None)
    half = t_quantile((1 + LEVEL) / 2, n - 1) * values.std(axis=0, ddof=1) / math.sqrt(n)
    return Mean(steps, values.mean(axis=0), half)


def _thinned(steps: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    inside: NDArray[np.float64] = steps[(steps >= low) & (steps <= high)]
    if len(inside) <= MOST_POINTS:
        return inside
    chosen = np.unique(np.linspace(0, len(inside) - 1, MOST_POINTS).round().astype(int))
    return np.take(inside, chosen)
