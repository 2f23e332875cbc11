"""The rows of a CSV file that somebody else wrote: a line or a row that never ends is refused, not read into memory."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO

LONGEST = 4 << 20  # bytes of a row: of thousands of columns
_MARK = b"\xef\xbb\xbf"  # of byte order


def table_rows(file: BinaryIO) -> Iterator[list[str]]:
    """Raises csv.Error where a row is longer than any table's."""
    lines = _Lines(file)
    for row in csv.reader(lines):
        lines.left = LONGEST
        yield row


class _Lines:
    def __init__(self, file: BinaryIO) -> None:
        self.left = LONGEST  # of the row that is being read
        self._file = file
        self._begun = False

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._file.readline(self.left + 1)
        if not line:
            raise StopIteration
        self.left -= len(line)
        if self.left < 0:
            raise csv.Error(f"a row in it has more than {LONGEST >> 20} MiB")
        if not self._begun:
            self._begun, line = True, line.removeprefix(_MARK)
        return line.replace(b"\0", b"").decode("utf-8", "replace")
