"""Columns out of many rows at once, by numpy: numbers for keys, and the values of each key in the order of rows."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from muster.ports.metrics import Column

Ints = np.ndarray[Any, np.dtype[np.int64]]
Cells = tuple[Any, Any]  # the rows in which a key has a number, and the numbers
_SLACK = 16  # bytes behind the end that may be looked at
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], np.uint64)


class Bytes:
    """A buffer with some slack behind it, as single bytes and as words of eight."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        padded = data + bytes(_SLACK)
        self._bytes = np.frombuffer(padded, np.uint8)
        self._words = np.ndarray((len(data) + _SLACK - 7,), "<u8", padded, strides=(1,))

    def copy(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        return self._bytes.copy()

    def at(self, places: Ints) -> Ints:
        return self._bytes[places].astype(np.int64)

    def floats(self, places: Ints) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Four bytes each."""
        whole = np.zeros(len(places), np.uint32)
        for byte in range(4):
            whole |= self._bytes[places + byte].astype(np.uint32) << np.uint32(8 * byte)
        return whole.view(np.float32).astype(np.float64)

    def double(self, place: int) -> float:
        return float(np.frombuffer(self.data[place : place + 8], "<f8")[0])

    def words(self, places: Ints) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return self._words[places]


def stable_order(numbers: Ints, most: int) -> Ints:
    """Sorting by 16 bits is fast."""
    return np.argsort(numbers.astype(np.uint16) if most < 1 << 16 else numbers, kind="stable")


class KeyNumbers:
    """Numbers for keys, by their bytes: as words of eight, mixed, and compared word by word."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []  # by number
        self._mixed = np.zeros(0, np.uint64)  # sorted
        self._numbers = np.zeros(0, np.int64)

    def of(self, buffer: Bytes, starts: Ints, ends: Ints) -> Ints | None:
        """None where two keys can't be told apart: 64 bits of them are the same by chance."""
        sizes = ends - starts
        mixed, words = _mix(buffer, starts, sizes)
        places = np.minimum(np.searchsorted(self._mixed, mixed), max(len(self._mixed) - 1, 0))
        known = self._mixed[places] == mixed if len(self._mixed) else np.zeros(len(mixed), bool)
        if not known.all():
            self._learn(buffer, mixed, starts, ends, np.flatnonzero(~known))
            places = np.searchsorted(self._mixed, mixed)
        numbers: Ints = self._numbers[places]
        return numbers if self._are(words, sizes, numbers) else None

    def _learn(self, buffer: Bytes, mixed: Any, starts: Ints, ends: Ints, unknown: Ints) -> None:
        _, first = np.unique(mixed[unknown], return_index=True)
        items = unknown[np.sort(first)]
        numbers = np.arange(len(self.keys), len(self.keys) + len(items))
        self.keys += [buffer.data[starts[item] : ends[item]] for item in items]
        known = np.concatenate([self._mixed, mixed[items]])
        order = np.argsort(known)
        self._mixed, self._numbers = known[order], np.concatenate([self._numbers, numbers])[order]

    def _are(self, words: list[Any], sizes: Ints, numbers: Ints) -> bool:
        width = 8 * len(words)
        padded = np.frombuffer(b"".join(key[:width].ljust(width, b"\0") for key in self.keys), "<u8")
        known = padded.reshape(len(self.keys), len(words))
        lengths = np.array([len(key) for key in self.keys])
        same = lengths[numbers] == sizes
        for place, word in enumerate(words):
            same &= known[numbers, place] == word
        return bool(same.all())


def _mix(buffer: Bytes, starts: Ints, sizes: Ints) -> tuple[Any, list[Any]]:
    mixed = sizes.astype(np.uint64) * _MULTIPLIER
    words = []
    for place in range(0, int(sizes.max(initial=0)), 8):
        mask = _MASKS[np.clip(sizes - place, 0, 8)]
        within = sizes > place
        word = buffer.words(np.where(within, starts + place, 0)) & mask
        more = (mixed ^ word) * _MULTIPLIER
        mixed = np.where(within, more ^ more >> np.uint64(29), mixed)
        words.append(word)
    return mixed, words


def columns_of(cells: dict[str, Cells], odd: dict[str, Cells], steps: array[float]) -> dict[str, Column]:
    for key, more in odd.items():
        cells[key] = joined(cells.get(key), more)
    every = np.arange(len(steps))
    of_rows = np.frombuffer(steps, np.float64)
    columns: dict[str, Column] = {}
    for key, (rows, values) in cells.items():
        dense = len(rows) == len(steps) and bool((rows == every).all())
        columns[key] = (steps if dense else array("d", of_rows[rows].tobytes()), array("d", values.tobytes()))
    return columns


def joined(one: Cells | None, two: Cells) -> Cells:
    """In the order of rows."""
    if one is None:
        return two
    rows, values = np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]])
    order = np.argsort(rows, kind="stable")
    return rows[order], values[order]
