"""The bytes of a file from where the last look ended, and whether it is still the same file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from muster.ports.regular_files import open_fd

BLOCK = 2 << 20  # of one read
_PRINT = 64


class Growing:
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
            self._fd = open_fd(self.path)
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
        self._before = self.at(max(0, offset - _PRINT), min(_PRINT, offset))
        if len(self._head) < _PRINT:
            self._head = self.at(0, min(_PRINT, offset))

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
