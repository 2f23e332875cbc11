"""The checksum of TensorBoard's event files: crc32c, rotated and shifted. One by one, or for many pieces at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_POLYNOMIAL = 0x82F63B78
_ALL = 0xFFFFFFFF
_SHIFT = 0xA282EAD8


def _make_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE = _make_table()


def crc32c(data: bytes) -> int:
    value = _ALL
    for byte in data:
        value = value >> 8 ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ _ALL


def masked(data: bytes) -> int:
    value = crc32c(data)
    return ((value >> 15 | value << 17) + _SHIFT) & _ALL


class Many:
    """Checksums of many pieces of one buffer: all pieces of the same length go through the table side by side."""

    def __init__(self) -> None:
        import numpy as np

        table = np.array(_TABLE, np.uint32)
        low = np.arange(1 << 16, dtype=np.uint32)
        first = low >> 8 ^ table[low & 0xFF]
        self._pairs = first >> 8 ^ table[first & 0xFF]  # two bytes at a time
        self._single = table

    def masked(self, data: bytes, starts: Sequence[int], ends: Sequence[int]) -> Any:
        """Of each piece, as numpy's uint32."""
        import numpy as np

        every = np.frombuffer(data, np.uint8)
        starts_, sizes = np.array(starts), np.array(ends) - np.array(starts)
        found = np.zeros(len(starts_), np.uint32)
        for size in np.unique(sizes):
            mine = np.flatnonzero(sizes == size)
            found[mine] = self._alike(every, starts_[mine], int(size))
        turned = found >> 15 | found << 17
        return turned + np.uint32(_SHIFT)

    def _alike(self, every: Any, starts: Any, size: int) -> Any:
        import numpy as np

        value = np.full(len(starts), _ALL, np.uint32)
        for place in range(0, size - 1, 2):
            pair = every[starts + place].astype(np.uint32) | every[starts + (place + 1)].astype(np.uint32) << 8
            value = value >> 16 ^ self._pairs[(value ^ pair) & 0xFFFF]
        if size % 2:
            value = value >> 8 ^ self._single[(value ^ every[starts + (size - 1)]) & 0xFF]
        return value ^ np.uint32(_ALL)
