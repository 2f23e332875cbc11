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
from typing import Any

from muster.files.safe_open import open_log_fd
from muster.readers.records.row_steps import BLANK_BYTES

READ_BLOCK = 2 << 20  # of one read
TAIL_BYTES = 16 << 20  # text looked at before giving up: rows without the key, or one endless line
HEADER_BYTES = 1 << 20
_NUL_BYTES = 256 << 20  # NULs skipped at the end: a power cut can leave many
_FIRST_BLOCK, _LARGEST_BLOCK = 64 << 10, 4 << 20
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
            self._fd = open_log_fd(self.path)
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
        self.exists, self.size = True, facts.st_size
        if self.path.endswith(".gz"):  # it was unpacked
            facts = os.stat(self.path)  # noqa: PTH116
        self.written = facts.st_mtime
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

    def find_text_end(self) -> int:
        """Where the text ends and nothing but NULs follows; of too many of them where the looking ended."""
        position, size = self.size, _FIRST_BLOCK
        give_up = max(0, position - _NUL_BYTES)
        while position > give_up:
            size = min(size, position)
            block = self.at(position - size, size)
            position -= size
            if block != bytes(len(block)):  # at once: stripping hundreds of megabytes byte by byte takes a second
                return position + len(block.rstrip(b"\0"))
            size = min(size * 2, _LARGEST_BLOCK)
        return position

    def next_data(self, offset: int) -> int:
        """Where the hole ends that the offset is in."""
        try:
            return os.lseek(self._fd, offset, os.SEEK_DATA)
        except OSError as error:
            return self.size if error.errno == errno.ENXIO else offset

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
        self.unended = 0  # bytes since the last newline that was seen
        self.first = b""  # the first line, where reading did not begin with it: a table's header
        self._bars = bars
        self._growing = GrowingFile(path)
        self._begun = False
        self._rest = bytearray()  # the unfinished line
        self._skipping = False  # up to the next newline: the line was too long, or its beginning was not read

    @property
    def offset(self) -> int:
        """Read so far."""
        return self._growing.offset

    @property
    def rest(self) -> bytes:
        """The line that has not ended yet."""
        return bytes(self._rest)

    @property
    def overlong(self) -> bool:
        return self.unended > LONGEST_LINE

    def read(self) -> TailChunk:
        """Raises OSError where the file is there and can't be read."""
        with self._growing.opened() as replaced:
            self.exists = self._growing.exists
            if not self.exists:
                return TailChunk(b"")
            self.size = self._growing.size
            self._find_place(replaced)
            text = self._next_lines()
        return TailChunk(text, self.offset < self.size)

    # -- where to go on

    def _find_place(self, replaced: bool) -> None:
        self.generation += replaced
        if replaced or not self._begun:
            self._begun, self.first = True, b""
            self._go_to(0, skipping=False)
            if self.size > TAIL_BYTES:
                self._begin_near_end()
        elif self.size - self.offset > FAR_BEHIND:
            self._begin_near_end()

    def _begin_near_end(self) -> None:
        start = self._growing.find_text_end() - TAIL_BYTES
        if start <= self.offset:
            return
        if not self.first:
            line, newline, _ = self._growing.at(0, HEADER_BYTES).partition(b"\n")
            self.first = line if newline else b""
        self._go_to(start, skipping=True)

    def _go_to(self, offset: int, *, skipping: bool) -> None:
        self._growing.go_on(offset)
        self._skipping, self.unended = skipping, 0
        self._rest.clear()

    # -- what is new

    def _next_lines(self) -> bytes:
        block = self._growing.at(self.offset, min(MOST_BYTES, self.size - self.offset))
        if not block:
            return b""
        self._growing.go_on(self.offset + len(block))
        newline = block.rfind(b"\n")
        self.unended = self.unended + len(block) if newline < 0 else len(block) - newline - 1
        if b"\0" in block:
            if block == bytes(len(block)):
                self._pass_hole()
            block = self._without_nuls(block)
        return self._whole_lines(block)

    def _pass_hole(self) -> None:
        """Gigabytes that were never written cost nothing to pass."""
        end = min(self._growing.next_data(self.offset), self.size)
        if end > self.offset:
            self.unended += end - self.offset
            self._growing.go_on(end)

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
