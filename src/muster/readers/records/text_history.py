"""Histories in text: CSV with a header (as Lightning writes it, with empty fields, too), and printed lines with
`key=value`, `key: value` or the named groups of a regex.
"""

from __future__ import annotations

import csv
import re
from array import array
from typing import Any

from muster.readers.records.history_parts import ColumnBatch, GatheredColumns, LineHistory, counting_key
from muster.readers.records.metric_reader import MetricColumn, ReaderState
from muster.readers.records.row_steps import finite_number_of, numbers_of_texts, parse_number

_DELIMITERS = (",", "\t", ";")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # of byte order


class CsvHistory(LineHistory):
    """The header may come again, or change on the way."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._names: list[str] = []
        self._delimiter = ","

    def restart(self) -> None:
        super().restart()
        self._names = []

    def state(self) -> ReaderState:
        return {**super().state(), "names": self._names, "delimiter": self._delimiter}

    def restore(self, state: ReaderState) -> None:
        super().restore(state)
        self._names, self._delimiter = list(state["names"]), state["delimiter"]

    def take(self, text: bytes) -> ColumnBatch | None:
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").rstrip(b"\r")
        while not self._names and text:
            line, _, text = text.partition(b"\n")
            self._take_header(line)
        if not text:
            return None
        return self._at_once(text) or self._slowly(text)

    def _take_header(self, line: bytes) -> None:
        told = line.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "replace").strip()
        if not told or told.startswith("#"):  # a remark, as the monitor files of Gym have it
            return
        self._delimiter = max(_DELIMITERS, key=told.count)
        names = [name.strip() for name in _split_table_line(told, self._delimiter)]
        if _is_table_header(names):
            self._names = names
        else:
            self.unfit += 1

    def _at_once(self, text: bytes) -> ColumnBatch | None:
        """None where there is more to it than numbers between delimiters."""
        if b'"' in text or b"_" in text or b"\0" in text:
            return None
        delimiter = self._delimiter.encode()
        rows = [line.split(delimiter) for line in text.split(b"\n")]
        if set(map(len, rows)) != {len(self._names)}:
            return None
        found: dict[str, Any] = {}
        for name, texts in zip(self._names, zip(*rows, strict=True), strict=True):
            values = numbers_of_texts(texts)
            if values is None:
                numbers = [parse_number(each) for each in texts]
                if any(number is None and each.strip() for number, each in zip(numbers, texts, strict=True)):
                    return None
                found[name] = numbers
            else:
                found[name] = values
        return self._columns(found, len(rows)), len(rows)

    def _columns(self, found: dict[str, Any], count: int) -> dict[str, MetricColumn]:
        if self.steps.key is None:
            self.steps.key = self._first_counter(found, count)
        told = found.get(self.steps.key or "")
        if isinstance(told, array):
            steps = told
            self.steps.all(told)
        else:
            steps = array("d", [self.steps.next(step) for step in told or [None] * count])
        columns: dict[str, MetricColumn] = {}
        for name, values in found.items():
            if isinstance(values, array):
                columns[name] = (steps, values)
            elif there := [at for at, value in enumerate(values) if value is not None]:
                columns[name] = (
                    array("d", map(steps.__getitem__, there)),
                    array("d", map(values.__getitem__, there)),
                )
        return columns

    def _first_counter(self, found: dict[str, Any], count: int) -> str | None:
        """That of the first row that has one."""
        counters = [key for key in found if counting_key([key])]
        for row in range(count if counters else 0):
            if there := [key for key in counters if found[key][row] is not None]:
                return counting_key(there)
        return None

    def _slowly(self, text: bytes) -> ColumnBatch:
        gathered = GatheredColumns()
        for line in text.split(b"\n"):
            told = line.rpartition(b"\0")[2].decode("utf-8", "replace").strip("\r")
            if not told.strip():
                continue
            fields = _split_table_line(told, self._delimiter)
            if self._is_another_header(fields):
                self._names = [name.strip() for name in fields]
            elif len(fields) < len(self._names):  # a piece of a cut row, or of a text with a newline in it
                self.unfit += 1
            else:
                numbers = [(name, parse_number(each.encode())) for name, each in zip(self._names, fields, strict=False)]
                self.steps.row([(name, number) for name, number in numbers if number is not None], gathered)
        return gathered.columns, gathered.count

    def _is_another_header(self, fields: list[str]) -> bool:
        names = [name.strip() for name in fields]
        return _is_table_header(names) and bool(set(names) & set(self._names))


def _is_table_header(names: list[str]) -> bool:
    return all(names) and len(set(names)) == len(names) and all(parse_number(name.encode()) is None for name in names)


def _split_table_line(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


_LONGEST = 8 << 10  # of a line: a regex may take quadratic time
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_NUMBER = rf"[-+]?(?:{_DIGITS}\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[KMB]?(?![\w:]|[.,]\w)|[-+]?(?:nan|inf(?:inity)?)(?!\w)"
KEY_VALUE_PAIRS = re.compile(
    rf"(?<![\w./@:-])['\"]?([A-Za-z_][\w./@-]*)['\"]?(?:\s?[=:]\s{{0,8}})['\"]?({_NUMBER})", re.I
)
_CODE_FILES = re.compile(r"\.(?:py|cpp|cc|c|h|cu|rs|go|sh|yaml|json)\Z")  # train.py:123 is a place in the code


class PrintedHistory(LineHistory):
    breaks = (b"\n", b"\r")

    def __init__(self, path: str, pattern: re.Pattern[str] | None = None) -> None:
        super().__init__(path)
        self._pattern = pattern

    def take(self, text: bytes) -> ColumnBatch:
        gathered = GatheredColumns()
        for line in text.replace(b"\r", b"\n").split(b"\n"):
            told = line[-_LONGEST:].decode("utf-8", "replace") if line else ""
            values = self._groups(told) if self._pattern else key_value_pairs(told)
            if values:
                self.steps.row(values, gathered)
        return gathered.columns, gathered.count

    def _groups(self, line: str) -> list[tuple[str, float]]:
        found = self._pattern.search(line) if self._pattern else None
        groups = found.groupdict() if found else {}
        return [(key, value) for key, text in groups.items() if text and (value := _printed_number(text)) is not None]


def key_value_pairs(line: str) -> list[tuple[str, float]]:
    if "=" not in line and ":" not in line:
        return []
    found = [(match[1], _printed_number(match[2])) for match in KEY_VALUE_PAIRS.finditer(line)]
    return [(key, value) for key, value in found if value is not None and not _CODE_FILES.search(key)]


def _printed_number(text: str) -> float | None:
    """Also `2K` and `1,000`, as LeRobot and others print them."""
    found = parse_number(text.encode())
    return finite_number_of(text.rstrip(",")) if found is None else found
