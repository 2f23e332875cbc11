"""The framing of a `.wandb` file: blocks of 32 KiB, chunks with a checksum, records of one or more chunks."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from zlib import crc32

IDENT = b":W&B"
HEADER_BYTES = 7
BLOCK_BYTES = 32768
_CHUNK = Struct("<IHB")  # checksum of the type and the data, length, type
_HEAD = _CHUNK.size
_NUM, _SUMMARY = 0x08, 0x1A  # how a record begins, and the kind of which nothing is wanted
_LONGEST = 64 << 20  # bytes of a record: a configuration has kilobytes
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
Record = tuple[bytes, int, int]  # bytes, and where in them the record begins and ends


class Frames:
    """Takes in the file piece by piece and hands out whole records, but for summaries: there are two for each row.

    A chunk that is not right yet at the end of the file is waited for: it may still be on its way. One that is not
    right in a block that others follow is damaged: reading goes on with the next block.
    """

    def __init__(self, at: int = HEADER_BYTES) -> None:
        self.whole = at  # file offset behind the last whole record: where another reader would go on
        self.at = at  # file offset of the next chunk
        self.damaged = 0  # blocks of which something was passed over
        self.torn = False  # whether the last look ended within a chunk or a record
        self._pieces: list[bytes] = []
        self._length = 0  # of them

    def records(self, data: bytes, size: int) -> Iterator[Record]:
        """`data`: what the file has from `at` on; `size`: of the file now."""
        base, at, length_all = self.at, 0, len(data)
        view = memoryview(data)
        stop = BLOCK_BYTES - base % BLOCK_BYTES  # where the block ends
        self.torn = False
        while at < length_all:
            chunks, at = _chunks(data, view, at, min(stop, length_all))
            for start, end, kind in chunks:
                if kind != FULL:
                    record = self._piece(data[start:end], kind, base + end)
                    if record is not None:
                        yield record, 0, len(record)
                    continue
                if self._pieces:
                    self._pieces.clear()
                self.whole = base + end
                if not _is_summary(data, start, end):
                    yield data, start, end
            if stop - at >= _HEAD:  # the block has room for another chunk, and there is none, or no good one
                if stop > length_all or base + stop >= size:  # it may be on its way
                    self.torn = at < length_all
                    break
                self._pass_over(base + stop)
            at, stop = min(stop, length_all), stop + BLOCK_BYTES
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
        if self._length > _LONGEST:
            self._pass_over(offset)
            return None
        if kind == MIDDLE:
            return None
        record, self._pieces, self.whole = b"".join(self._pieces), [], offset
        return record


def _chunks(data: bytes, view: memoryview, at: int, stop: int) -> tuple[list[tuple[int, int, int]], int]:
    """(start, end, type) of the good chunks from here on, and where the first one begins that is not."""
    found: list[tuple[int, int, int]] = []
    unpack, add = _CHUNK.unpack_from, found.append
    last = stop - _HEAD
    while at <= last:
        checksum, length, kind = unpack(data, at)
        end = at + _HEAD + length
        if end > stop or not FULL <= kind <= LAST or crc32(view[at + 6 : end]) != checksum:
            break
        add((at + _HEAD, end, kind))
        at = end
    return found, at


def _is_summary(data: bytes, at: int, end: int) -> bool:
    """Numbers of records have one to four bytes, mostly."""
    if end - at < 6 or data[at] != _NUM:
        return False
    if data[at + 1] < 0x80:
        return data[at + 2] == _SUMMARY
    if data[at + 2] < 0x80:
        return data[at + 3] == _SUMMARY
    return data[at + 3] < 0x80 and data[at + 4] == _SUMMARY
