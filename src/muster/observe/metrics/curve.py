"""A curve for plots, in constant memory: of each stretch of it the lowest and the highest point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

POINTS = 1000


class Curve:
    """Takes columns of any length; what is no finite number can't be drawn and is left out."""

    def __init__(self, points: int = POINTS) -> None:
        self._most = points
        self._x: Any = None
        self._y: Any = None

    def add_many(self, steps: Sequence[float], values: Sequence[float]) -> None:
        import numpy as np

        x, y = np.asarray(steps, np.float64), np.asarray(values, np.float64)
        drawn = np.isfinite(x) & np.isfinite(y)
        x, y = _thinned(x[drawn], y[drawn], self._most)
        if self._x is not None:
            x, y = np.concatenate([self._x, x]), np.concatenate([self._y, y])
        self._x, self._y = _thinned(x, y, self._most) if len(x) > 2 * self._most else (x, y)

    @property
    def points(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Steps and values, in the order of writing; the first and the last value are always among them."""
        if self._x is None:
            return (), ()
        x, y = _thinned(self._x, self._y, self._most)
        return tuple(x.tolist()), tuple(y.tolist())


def _thinned(x: Any, y: Any, most: int) -> tuple[Any, Any]:
    import numpy as np

    count = len(y)
    if count <= most:
        return x, y
    stretches = most // 2 - 1
    length = -(-count // stretches)
    padded = np.concatenate([y, np.full(stretches * length - count, y[-1])]).reshape(stretches, length)
    starts = np.arange(stretches) * length
    kept = [starts + padded.argmin(1), starts + padded.argmax(1), [0, count - 1]]
    places = np.unique(np.minimum(np.concatenate(kept), count - 1))
    return x[places], y[places]
