"""A file that grows: the bytes or whole lines that were added since the last look, and whether it is still the same
file.

Files are truncated, rotated, replaced and cut by power cuts while they are read. None of it may raise, cost more than
what is new, or pass on a line that the run did not write.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from typing import Any

from muster.files.safe_open import open_regular_fd, regular_opener
from muster.readers.records.row_steps import BLANK_BYTES, HEADER_BYTES, TAIL_BYTES, find_text_end

READ_BLOCK = 2 << 20  # of one read
_FINGERPRINT_BYTES = 64


class GrowingFile:
    """One file. `offset` is where reading goes on: everything before it was taken in and is never read again."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.offset = 0
        self.size = 0
        self.exists = False
        self.written = 0.0  # the file's time
        self._fd = -1
        self._file: list[int] | None = None
        self._head = b""  # the first bytes, and those just before the offset: other ones are another file's
        self._before = b""

    @contextmanager
    def opened(self) -> Iterator[bool]:
        """For one look. Gives True where it is another file than at the last look; reading begins anew then.

        Raises OSError where it is there and can't be read.
        """
        try:
            self._fd = open_regular_fd(self.path)
        except (FileNotFoundError, NotADirectoryError):
            self.exists, self.size = False, 0
            yield False
            return
        try:
            yield self._find_place()
        finally:
            os.close(self._fd)
            self._fd = -1

    def _find_place(self) -> bool:
        facts = os.fstat(self._fd)
        self.exists, self.size, self.written = True, facts.st_size, facts.st_mtime
        identity = [facts.st_dev, facts.st_ino]
        replaced = self._file is not None and (
            identity != self._file or self.size < self.offset or self._was_rewritten()
        )
        if replaced:
            self.offset, self._head, self._before = 0, b"", b""
        self._file = identity
        return replaced

    def _was_rewritten(self) -> bool:
        before, head = self._before, self._head
        return self.at(self.offset - len(before), len(before)) != before or self.at(0, len(head)) != head

    def at(self, offset: int, count: int) -> bytes:
        """While it is opened; fewer bytes at its end. Several reads where one does not bring all."""
        if self._fd < 0 or count <= 0:
            return b""
        pieces = [os.pread(self._fd, count, offset)]
        while pieces[-1] and (missing := count - sum(map(len, pieces))) > 0:
            pieces.append(os.pread(self._fd, missing, offset + count - missing))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def go_on(self, offset: int) -> None:
        """All before this was taken in."""
        self.offset = offset
        self._before = self.at(max(0, offset - _FINGERPRINT_BYTES), min(_FINGERPRINT_BYTES, offset))
        if len(self._head) < _FINGERPRINT_BYTES:
            self._head = self.at(0, min(_FINGERPRINT_BYTES, offset))

    def state(self) -> dict[str, Any]:
        return {
            "file": self._file,
            "offset": self.offset,
            "head": self._head.hex(),
            "before": self._before.hex(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._file, self.offset = state["file"], int(state["offset"])
        self._head, self._before = bytes.fromhex(state["head"]), bytes.fromhex(state["before"])


MOST_BYTES = 2 << 20  # of one read
LONGEST_LINE = 1 << 20  # an unfinished one that grows beyond this is dropped
FAR_BEHIND = 256 << 20  # more than this since the last look is not worth reading: the newest is at its end
_TAIL_FINGERPRINT_BYTES = 64


@dataclass(frozen=True, slots=True)
class TailChunk:
    text: bytes  # whole lines, each with what ends it
    more: bool = False  # there is more to read at once


def lines_with_needle(text: bytes, needle: bytes = b"", then: bytes = b"") -> Iterator[bytes]:
    """The lines that hold the needle, the last one first, without blanks around them; empty ones are left out.

    `then`: what may follow the needle.
    """
    end = len(text)
    while end >= 0:
        at = text.rfind(needle, 0, end)
        if at < 0:
            return
        after = at + len(needle)
        if then and (after == len(text) or text[after] not in then):
            end = at
            continue
        start = text.rfind(b"\n", 0, at) + 1
        stop = text.find(b"\n", at)
        line = text[start : len(text) if stop < 0 else stop].strip(BLANK_BYTES)
        if line:
            yield line
        end = start - 1


class FileTail:
    """Reads one file as it grows. The first read of a large one begins near its end.

    With `bars`, a carriage return ends a line too, and a line that never ends is handed out in pieces, cut at spaces:
    that is how progress bars and `print(end=" ")` write.
    """

    def __init__(self, path: str, *, bars: bool = False) -> None:
        self.path = path
        self.exists = False
        self.size = 0
        self.generation = 0  # rises when the file was truncated or replaced: what follows is another file's
        self.offset = 0  # read so far
        self.unended = 0  # bytes since the last newline that was seen
        self.first = b""  # the first line, where reading did not begin with it: a table's header
        self._bars = bars
        self._file: tuple[int, int] | None = None
        self._rest = bytearray()  # the unfinished line
        self._skipping = False  # up to the next newline: the line was too long, or its beginning was not read
        self._before = b""  # the bytes just before the offset, and the first ones: other bytes are another file
        self._head = b""

    @property
    def rest(self) -> bytes:
        """The line that has not ended yet."""
        return bytes(self._rest)

    @property
    def overlong(self) -> bool:
        return self.unended > LONGEST_LINE

    def read(self) -> TailChunk:
        """Raises OSError where the file is there and can't be read."""
        try:
            file = FileIO(self.path, opener=regular_opener)
        except (FileNotFoundError, NotADirectoryError):
            self.exists = False
            return TailChunk(b"")
        with file:
            self._find_place(file)
            text = self._next_lines(file)
            if len(self._head) < _TAIL_FINGERPRINT_BYTES:
                self._head = _read_bytes_at(file, 0, min(_TAIL_FINGERPRINT_BYTES, self.offset))
        return TailChunk(text, self.offset < self.size)

    # -- where to go on

    def _find_place(self, file: FileIO) -> None:
        stat = os.fstat(file.fileno())
        self.exists, self.size = True, stat.st_size
        identity = (stat.st_dev, stat.st_ino)
        if self._file is None:
            self._begin(file)
        elif identity != self._file or self.size < self.offset or self._was_rewritten(file):
            self.generation += 1
            self._begin(file)
        elif self.size - self.offset > FAR_BEHIND:
            self._begin_near_end(file)
        self._file = identity

    def _was_rewritten(self, file: FileIO) -> bool:
        before, head = self._before, self._head
        return _read_bytes_at(file, self.offset - len(before), len(before)) != before or (
            _read_bytes_at(file, 0, len(head)) != head
        )

    def _begin(self, file: FileIO) -> None:
        self._go_to(0, b"", skipping=False)
        self._head = self.first = b""
        if self.size > TAIL_BYTES:
            self._begin_near_end(file)

    def _begin_near_end(self, file: FileIO) -> None:
        start = find_text_end(file) - TAIL_BYTES
        if start <= self.offset:
            return
        if not self.first:
            line, newline, _ = _read_bytes_at(file, 0, HEADER_BYTES).partition(b"\n")
            self.first = line if newline else b""
        self._go_to(
            start,
            _read_bytes_at(file, max(0, start - _TAIL_FINGERPRINT_BYTES), min(_TAIL_FINGERPRINT_BYTES, start)),
            skipping=True,
        )

    def _go_to(self, offset: int, before: bytes, *, skipping: bool) -> None:
        self.offset, self._before, self._skipping = offset, before, skipping
        self.unended = 0
        self._rest.clear()

    # -- what is new

    def _next_lines(self, file: FileIO) -> bytes:
        block = _read_bytes_at(file, self.offset, min(MOST_BYTES, self.size - self.offset))
        if not block:
            return b""
        self._before = (self._before + block[-_TAIL_FINGERPRINT_BYTES:])[-_TAIL_FINGERPRINT_BYTES:]
        self.offset += len(block)
        newline = block.rfind(b"\n")
        self.unended = self.unended + len(block) if newline < 0 else len(block) - newline - 1
        if b"\0" in block:
            if block == bytes(len(block)):
                self._pass_hole(file)
            block = self._without_nuls(block)
        return self._whole_lines(block)

    def _pass_hole(self, file: FileIO) -> None:
        """Gigabytes that were never written cost nothing to pass."""
        end = min(_next_data_offset(file, self.offset), self.size)
        if end > self.offset:
            self.unended += end - self.offset
            self.offset, self._before = end, bytes(_TAIL_FINGERPRINT_BYTES)

    def _without_nuls(self, block: bytes) -> bytes:
        """A power cut leaves NULs where the end of a line was: that line is lost, what follows is a new one."""
        lines = block.split(b"\n")
        if b"\0" in lines[0]:
            self._rest.clear()
            self._skipping = False
        return b"\n".join(line.rpartition(b"\0")[2] for line in lines)

    def _whole_lines(self, block: bytes) -> bytes:
        cut = self._last_break(block) + 1
        if cut == 0:
            return self._keep(block)
        text, rest = block[:cut], block[cut:]
        if self._skipping:
            text = text[self._first_break(text) + 1 :]
            self._skipping = False
        elif self._rest:
            text = bytes(self._rest) + text
        self._rest.clear()
        return text + self._keep(rest)

    def _keep(self, piece: bytes) -> bytes:
        """Keeps an unfinished line; hands out what of it can't wait."""
        if self._skipping:
            return b""
        self._rest += piece
        if len(self._rest) <= LONGEST_LINE:
            return b""
        space = self._rest.rfind(b" ") if self._bars else -1
        text = bytes(self._rest[:space]) + b"\n" if space > 0 else b""
        if text:
            del self._rest[:space]
        if not text or len(self._rest) > LONGEST_LINE:
            self._rest.clear()
            self._skipping = True
        return text

    def _last_break(self, block: bytes) -> int:
        newline = block.rfind(b"\n")
        return max(newline, block.rfind(b"\r", newline + 1)) if self._bars else newline

    def _first_break(self, block: bytes) -> int:
        newline = block.find(b"\n")
        if not self._bars:
            return newline
        bar = block.find(b"\r", 0, newline if newline >= 0 else len(block))
        return bar if bar >= 0 else newline


def _read_bytes_at(file: FileIO, offset: int, count: int) -> bytes:
    return os.pread(file.fileno(), count, offset) if count > 0 else b""


def _next_data_offset(file: FileIO, offset: int) -> int:
    """Where the hole ends that the offset is in."""
    try:
        return os.lseek(file.fileno(), offset, os.SEEK_DATA)
    except OSError as error:
        return os.fstat(file.fileno()).st_size if error.errno == errno.ENXIO else offset
