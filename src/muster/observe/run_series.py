"""Series of numbers that a script kept for itself: `training_stats.pkl` and its like. Nothing in them is executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from muster.observe.metrics.numbers import leaves, plain
from muster.observe.npz import MOST_BYTES, NoArrays, read_arrays
from muster.observe.pickle_arrays import is_array
from muster.observe.pickles import NotPlain, read_pickle

MOST_SERIES = 500
MOST_CELLS = 1_500_000  # of a list of records
MOST_NUMBERS = 4_000_000  # of all series: 128 MB as Python keeps them
_DEEPEST = 3


def series_of(path: str) -> tuple[dict[str, list[float]], str]:
    """Name -> a number for each iteration; or none, and why."""
    try:
        found = _npz(path) if path.endswith(".npz") else read_pickle(path)
    except NotPlain as error:
        return {}, str(error)
    except OSError as error:
        return {}, error.strerror or str(error)
    series: dict[str, list[float]] = {}
    left = MOST_NUMBERS
    for name, values in _series(found, ""):
        left -= len(values)
        if len(series) >= MOST_SERIES or left < 0:
            break
        series[name] = values
    return series, "" if series else "it holds no series of numbers"


def _series(found: Any, name: str, depth: int = 0) -> Iterator[tuple[str, list[float]]]:
    if isinstance(found, Mapping) and depth < _DEEPEST:
        for key, value in found.items():
            yield from _series(value, f"{name}.{key}" if name else str(key), depth + 1)
    elif _rows(found):
        yield from _columns(found, name)
    elif values := _numbers(found):
        yield name or "values", values


def _rows(found: Any) -> bool:
    return isinstance(found, list | tuple) and bool(found) and all(isinstance(row, Mapping) for row in found)


def _columns(rows: Any, name: str) -> Iterator[tuple[str, list[float]]]:
    """Of a list of records, one for each iteration; keys that some of them lack are left out."""
    columns: dict[str, list[float]] = {}
    left = MOST_CELLS
    for at, row in enumerate(rows):
        numbers = dict(leaves({str(key): _plain(value) for key, value in row.items()}))
        left -= max(1, len(row))
        if left < 0:
            return
        if at == 0:
            columns = {key: [] for key in numbers}
        columns = {key: values for key, values in columns.items() if key in numbers}
        for key, values in columns.items():
            values.append(numbers[key])
    for key, values in columns.items():
        yield f"{name}.{key}" if name else key, values


def _numbers(found: Any) -> list[float]:
    if is_array(found):
        if found.ndim != 1 or found.dtype.kind not in "biuf":
            return []
        return list(map(float, found.tolist())) if found.size <= MOST_NUMBERS else []
    if not isinstance(found, list | tuple) or not found:
        return []
    values = [plain(_plain(value)) for value in found]
    return [value for value in values if value is not None] if None not in values else []


def _plain(value: Any) -> Any:
    """An array of one number is a number."""
    return value.item() if is_array(value) and value.size == 1 and value.dtype.kind in "iuf" else value


def _npz(path: str) -> dict[str, Any]:
    try:
        return read_arrays(path, lambda names: names[:MOST_SERIES], MOST_BYTES)
    except NoArrays as error:
        raise NotPlain(str(error)) from None
