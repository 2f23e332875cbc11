"""The binary framing of TensorBoard's event files and of `.wandb` files, with their checksums (crc32c), and as much
of the protobuf wire format as both need.

An event is framed by its length, a checksum of that, and a checksum of the event. A `.wandb` file has blocks of 32
KiB, in them chunks with a checksum; a record has one or more chunks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any
from zlib import crc32

_POLYNOMIAL = 0x82F63B78
_ALL_BITS = 0xFFFFFFFF
_MASK_SHIFT = 0xA282EAD8


def _make_crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


_CRC_TABLE = _make_crc_table()


def crc32c_of(data: bytes) -> int:
    value = _ALL_BITS
    for byte in data:
        value = value >> 8 ^ _CRC_TABLE[(value ^ byte) & 0xFF]
    return value ^ _ALL_BITS


def masked_crc(data: bytes) -> int:
    value = crc32c_of(data)
    return ((value >> 15 | value << 17) + _MASK_SHIFT) & _ALL_BITS


class CrcOfManyPieces:
    """Checksums of many pieces of one buffer: all pieces of the same length go through the table side by side."""

    def __init__(self) -> None:
        import numpy as np

        table = np.array(_CRC_TABLE, np.uint32)
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
        return turned + np.uint32(_MASK_SHIFT)

    def _alike(self, every: Any, starts: Any, size: int) -> Any:
        import numpy as np

        value = np.full(len(starts), _ALL_BITS, np.uint32)
        for place in range(0, size - 1, 2):
            pair = every[starts + place].astype(np.uint32) | every[starts + (place + 1)].astype(np.uint32) << 8
            value = value >> 16 ^ self._pairs[(value ^ pair) & 0xFFFF]
        if size % 2:
            value = value >> 8 ^ self._single[(value ^ every[starts + (size - 1)]) & 0xFF]
        return value ^ np.uint32(_ALL_BITS)


HEAD, TAIL = 12, 4
_EVENT_LENGTH = Struct("<QI")
_LONGEST_EVENT = 1 << 30  # an event longer than this is none
_NO_NUMBER = 1 << 20  # events longer than this hold pictures: they are not read
_MOST_LENGTHS = 10_000
_MOST_TRIES = 100_000  # to find the next length: half a second
_HOLE_BYTES = bytes(64)
_LEADING_NULS = re.compile(rb"\0+")
_EMPTY_UPPER_HALF = b"\0\0\0\0"  # the upper half of every length


_SMALL_EVENT = 512  # bytes; pictures and histograms have more, and each has another length: to check them takes seconds
_EVENT_SUMMARY, _VALUE, _SIMPLE_VALUE, _TENSOR = 5, 1, 2, 8


def _may_hold_number(data: bytes, at: int, end: int) -> bool:
    """Whether a summary in an event has a number or a tensor in it; what can't be told is checked."""
    try:
        for field, kind, start, stop in message_fields(data, at, end):
            if field != _EVENT_SUMMARY:
                if kind == BYTES and stop - start < _SMALL_EVENT:
                    return True  # the start of a session, a version
                continue
            for part, form, begin, close in message_fields(data, start, stop):
                inner = message_fields(data, begin, close) if part == _VALUE and form == BYTES else ()
                if any(each in (_SIMPLE_VALUE, _TENSOR) for each, *_ in inner):
                    return True
    except NotProtobuf:
        return True
    return False


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
        self._many: CrcOfManyPieces | None = None
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
        length, checksum = _EVENT_LENGTH.unpack(head)
        if length > _LONGEST_EVENT or masked_crc(head[:8]) != checksum:
            return None
        if len(self._lengths) < _MOST_LENGTHS:
            self._lengths[head] = length
        return int(length)

    def _pass_over(self, data: bytes, at: int) -> int:
        """To the next length that is one; where there is none yet, to where one may begin."""
        self.damaged += not self._lost
        self._lost = True
        while True:
            at = data.find(_EMPTY_UPPER_HALF, at + 5) - 4
            self._tried += 1
            if at < 0 or self._tried > _MOST_TRIES:
                return max(0, len(data) - 7)
            if data.startswith(_HOLE_BYTES, at + 4):  # a power cut leaves many; only their end may belong to a length
                at += _LEADING_NULS.match(data, at + 4).end() - at - 4 - 8  # type: ignore[union-attr]
            if at + HEAD > len(data) or self._checked(data[at : at + HEAD]) is not None:
                return at

    def _whole(self, data: bytes, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Those whose checksum is right."""
        if not self._checks:
            return found
        found = [each for each in found if each[1] - each[0] < _SMALL_EVENT or _may_hold_number(data, *each)]
        if not found:
            return found
        import numpy as np

        self._many = self._many or CrcOfManyPieces()
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


WANDB_IDENT = b":W&B"
WANDB_HEADER_BYTES = 7
WANDB_BLOCK_BYTES = 32768
_CHUNK = Struct("<IHB")  # checksum of the type and the data, length, type
_CHUNK_HEAD_BYTES = _CHUNK.size
_NUM, _SUMMARY = 0x08, 0x1A  # how a record begins, and the kind of which nothing is wanted
_LONGEST_RECORD = 64 << 20  # bytes of a record: a configuration has kilobytes
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
FramedRecord = tuple[bytes, int, int]  # bytes, and where in them the record begins and ends


class WandbFrames:
    """Takes in the file piece by piece and hands out whole records, but for summaries: there are two for each row.

    A chunk that is not right yet at the end of the file is waited for: it may still be on its way. One that is not
    right in a block that others follow is damaged: reading goes on with the next block.
    """

    def __init__(self, at: int = WANDB_HEADER_BYTES) -> None:
        self.whole = at  # file offset behind the last whole record: where another reader would go on
        self.at = at  # file offset of the next chunk
        self.damaged = 0  # blocks of which something was passed over
        self.torn = False  # whether the last look ended within a chunk or a record
        self._pieces: list[bytes] = []
        self._length = 0  # of them

    def records(self, data: bytes, size: int) -> Iterator[FramedRecord]:
        """`data`: what the file has from `at` on; `size`: of the file now."""
        base, at, length_all = self.at, 0, len(data)
        view = memoryview(data)
        stop = WANDB_BLOCK_BYTES - base % WANDB_BLOCK_BYTES  # where the block ends
        self.torn = False
        while at < length_all:
            chunks, at = _good_chunks(data, view, at, min(stop, length_all))
            for start, end, kind in chunks:
                if kind != FULL:
                    record = self._piece(data[start:end], kind, base + end)
                    if record is not None:
                        yield record, 0, len(record)
                    continue
                if self._pieces:
                    self._pieces.clear()
                self.whole = base + end
                if not _is_summary_record(data, start, end):
                    yield data, start, end
            if (
                stop - at >= _CHUNK_HEAD_BYTES
            ):  # the block has room for another chunk, and there is none, or no good one
                if stop > length_all or base + stop >= size:  # it may be on its way
                    self.torn = at < length_all
                    break
                self._pass_over(base + stop)
            at, stop = min(stop, length_all), stop + WANDB_BLOCK_BYTES
        self.at = base + at
        self.torn |= bool(self._pieces)

    def _pass_over(self, offset: int) -> None:
        """The rest of a damaged block."""
        self.damaged += 1
        self._pieces.clear()
        self.whole = offset

    def _piece(self, piece: bytes, kind: int, offset: int) -> bytes | None:
        """The record, where this is the last piece of it."""
        if kind == FIRST:
            self._pieces, self._length = [piece], len(piece)
            return None
        if not self._pieces:
            self.whole = offset  # the rest of a record whose beginning was lost
            return None
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length > _LONGEST_RECORD:
            self._pass_over(offset)
            return None
        if kind == MIDDLE:
            return None
        record, self._pieces, self.whole = b"".join(self._pieces), [], offset
        return record


def _good_chunks(data: bytes, view: memoryview, at: int, stop: int) -> tuple[list[tuple[int, int, int]], int]:
    """(start, end, type) of the good chunks from here on, and where the first one begins that is not."""
    found: list[tuple[int, int, int]] = []
    unpack, add = _CHUNK.unpack_from, found.append
    last = stop - _CHUNK_HEAD_BYTES
    while at <= last:
        checksum, length, kind = unpack(data, at)
        end = at + _CHUNK_HEAD_BYTES + length
        if end > stop or not FULL <= kind <= LAST or crc32(view[at + 6 : end]) != checksum:
            break
        add((at + _CHUNK_HEAD_BYTES, end, kind))
        at = end
    return found, at


def _is_summary_record(data: bytes, at: int, end: int) -> bool:
    """Numbers of records have one to four bytes, mostly."""
    if end - at < 6 or data[at] != _NUM:
        return False
    if data[at + 1] < 0x80:
        return data[at + 2] == _SUMMARY
    if data[at + 2] < 0x80:
        return data[at + 3] == _SUMMARY
    return data[at + 3] < 0x80 and data[at + 4] == _SUMMARY


VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10  # bytes of a varint


class NotProtobuf(ValueError):
    """Bytes that are no message."""


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """(the number, where it ends)."""
    value = shift = 0
    while at < end and shift < 7 * _LONGEST_VARINT:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise NotProtobuf("a number does not end")


def signed_int64(value: int) -> int:
    """An int64 as protobuf writes it."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def message_fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(field, wire type, start, end) of each; of a varint `start` is its value. Raises NotProtobuf."""
    while at < end:
        tag, at = read_varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise NotProtobuf("there is no field 0")
        if kind == VARINT:
            value, at = read_varint(data, at, end)
            yield number, kind, value, at
            continue
        if kind == BYTES:
            length, at = read_varint(data, at, end)
        elif kind in _FIXED:
            length = _FIXED[kind]
        else:
            raise NotProtobuf(f"there is no wire type {kind}")
        if at + length > end:
            raise NotProtobuf("a field goes beyond its message")
        yield number, kind, at, at + length
        at += length
