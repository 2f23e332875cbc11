"""The framing of TensorBoard's event files: length, its checksum, the event, its checksum."""

from __future__ import annotations

import re
from struct import Struct

from muster.observe.metrics.crc32c import Many, masked

HEAD, TAIL = 12, 4
_LENGTH = Struct("<QI")
_LONGEST = 1 << 30  # an event longer than this is none
_NO_NUMBER = 1 << 20  # events longer than this hold pictures: they are not read
_MOST_LENGTHS = 10_000
_MOST_TRIES = 100_000  # to find the next length: half a second
_HOLE = bytes(64)
_LEADING = re.compile(rb"\0+")
_EMPTY = b"\0\0\0\0"  # the upper half of every length


class EventFrames:
    """Takes in the file piece by piece and finds whole events.

    A length whose checksum is wrong is searched past, to the next one whose checksum is right; an event whose own
    checksum is wrong is left out.
    """

    def __init__(self, at: int = 0, *, checked: bool = True) -> None:
        self.at = at  # file offset of the next event
        self.damaged = 0  # events and places that were passed over
        self.torn = False
        self._lengths: dict[bytes, int] = {}  # the first 12 bytes -> length, where the checksum is right
        self._checks = checked  # whether events are checked here: it takes numpy
        self._many: Many | None = None
        self._lost = False  # the last length was none, and the next one was not found yet
        self._tried = 0  # places where no length was, one after the other

    def events(self, data: bytes, size: int) -> list[tuple[int, int]]:
        """Where in `data`, which begins at `at`, the events of whole frames lie. `size`: of the file now."""
        at, length_all, base = 0, len(data), self.at
        found: list[tuple[int, int]] = []
        lengths = self._lengths
        self.torn = False
        while at + HEAD <= length_all:
            length = lengths.get(data[at : at + HEAD])
            if length is None:
                length = self._checked(data[at : at + HEAD])
            if length is None:
                at = self._pass_over(data, at)
                continue
            self._lost, self._tried = False, 0
            end = at + HEAD + length
            if end + TAIL > length_all:
                if length > _NO_NUMBER and base + end + TAIL <= size:
                    at = end + TAIL
                break
            found.append((at + HEAD, end))
            at = end + TAIL
        self.torn = at < length_all
        self.at = base + at
        return self._whole(data, found)

    def _checked(self, head: bytes) -> int | None:
        length, checksum = _LENGTH.unpack(head)
        if length > _LONGEST or masked(head[:8]) != checksum:
            return None
        if len(self._lengths) < _MOST_LENGTHS:
            self._lengths[head] = length
        return int(length)

    def _pass_over(self, data: bytes, at: int) -> int:
        """To the next length that is one; where there is none yet, to where one may begin."""
        self.damaged += not self._lost
        self._lost = True
        while True:
            at = data.find(_EMPTY, at + 5) - 4
            self._tried += 1
            if at < 0 or self._tried > _MOST_TRIES:
                return max(0, len(data) - 7)
            if data.startswith(_HOLE, at + 4):  # a power cut leaves many; only their end may belong to a length
                at += _LEADING.match(data, at + 4).end() - at - 4 - 8  # type: ignore[union-attr]
            if at + HEAD > len(data) or self._checked(data[at : at + HEAD]) is not None:
                return at

    def _whole(self, data: bytes, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Those whose checksum is right."""
        if not found or not self._checks:
            return found
        import numpy as np

        self._many = self._many or Many()
        starts, ends = zip(*found, strict=True)
        places = np.array(ends)
        every = np.frombuffer(data, np.uint8)
        told = np.zeros(len(found), np.uint32)
        for byte in range(TAIL):
            told |= every[places + byte].astype(np.uint32) << np.uint32(8 * byte)
        good = self._many.masked(data, starts, ends) == told
        if good.all():
            return found
        self.damaged += int((~good).sum())
        return [each for each, whole in zip(found, good.tolist(), strict=True) if whole]
