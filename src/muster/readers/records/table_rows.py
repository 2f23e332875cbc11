"""What the lines of a table say, decided once for all who read one: delimiter, remarks, header, index, numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from muster.readers.records.row_steps import number_with_suffix, parse_number
from muster.stages.traces import choose_delimiter

LONGEST_TABLE_ROW = 4 << 20  # bytes of a row: of thousands of columns
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")  # 1,000
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class TableHeader:
    names: tuple[str, ...]  # empty: the column of an index, which pandas leaves without a name
    delimiter: str

    @classmethod
    def of_line(cls, line: bytes) -> TableHeader | None:
        """None: it is empty, no line of any table, or a remark, as the monitor files of Gym begin with."""
        text = line.removeprefix(BYTE_ORDER_MARK).replace(b"\0", b"").decode("utf-8", "replace").strip("\r\n")
        if not text.strip() or text.lstrip().startswith("#"):
            return None
        delimiter = choose_delimiter(text)
        names = tuple(name.strip() for name in split_table_line(text, delimiter))
        return cls(names, delimiter) if names else None

    @property
    def sound(self) -> bool:
        """Whether it is one, and no row: names that differ, and no number. Only the first column may lack its name."""
        some = self.names[1:] if self.names and not self.names[0] else self.names
        return (
            bool(some)
            and all(some)
            and len(set(self.names)) == len(self.names)
            and all(parse_number(name.encode()) is None for name in some)
        )

    def fields(self, line: bytes) -> list[str]:
        return split_table_line(line.replace(b"\0", b"").decode("utf-8", "replace").strip("\r\n"), self.delimiter)

    def is_followed_by(self, fields: list[str]) -> bool:
        """Whether a row is another header, of which at least one name is known."""
        if not fields or not {field.strip() for field in fields}.intersection(filter(None, self.names)):
            return False
        return TableHeader(tuple(field.strip() for field in fields), self.delimiter).sound

    def number(self, field: str) -> float | None:
        """NaN and infinite ones, too. None: it is empty, a text, or has a comma of which nobody knows what it means."""
        text = field.strip()
        if "," not in text:
            return number_with_suffix(text) if "_" not in text else None
        grouped = self.delimiter == "," and _GROUPED.fullmatch(text)
        return float(text.replace(",", "")) if grouped else None

    def has_decimal_comma(self, field: str) -> bool:
        return "," in field and self.number(field) is None and _DECIMAL_COMMA.fullmatch(field.strip()) is not None


def holds_table(lines: Sequence[bytes]) -> bool:
    """Whether these lines begin with a header of some columns, and every row below it has a number in some of them."""
    headers = ((at, header) for at, line in enumerate(lines) if (header := TableHeader.of_line(line)) is not None)
    at, header = next(headers, (0, None))
    if header is None or not header.sound or len(header.names) < 2:
        return False
    rows = [header.fields(line) for line in lines[at + 1 :]]
    return bool(rows) and all(
        len(row) == len(header.names) and any(header.number(field) is not None for field in row) for row in rows
    )


def split_table_line(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def read_table_rows(file: BinaryIO) -> Iterator[tuple[TableHeader, list[str]]]:
    """Rows with the header that holds for them; each header comes by itself first, with no fields.

    Raises csv.Error where a row is longer than any table's.
    """
    lines = _BoundedLines(file)
    header: TableHeader | None = None
    while header is None:
        line = next(lines, None)
        if line is None:
            return
        header = TableHeader.of_line(line.encode())
        lines.left = LONGEST_TABLE_ROW
    yield header, []
    for fields in csv.reader(lines, delimiter=header.delimiter):
        lines.left = LONGEST_TABLE_ROW
        if header.is_followed_by(fields):
            header = TableHeader(tuple(field.strip() for field in fields), header.delimiter)
            yield header, []
        elif fields:
            yield header, fields


class _BoundedLines:
    def __init__(self, file: BinaryIO) -> None:
        self.left = LONGEST_TABLE_ROW  # of the row that is being read
        self._file = file
        self._begun = False

    def __iter__(self) -> _BoundedLines:
        return self

    def __next__(self) -> str:
        line = self._file.readline(self.left + 1)
        if not line:
            raise StopIteration
        self.left -= len(line)
        if self.left < 0:
            raise csv.Error(f"a row in it has more than {LONGEST_TABLE_ROW >> 20} MiB")
        if not self._begun:
            self._begun, line = True, line.removeprefix(BYTE_ORDER_MARK)
        return line.replace(b"\0", b"").decode("utf-8", "replace")
