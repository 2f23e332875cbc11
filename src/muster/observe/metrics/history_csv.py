"""A table with a header, all columns: CSV as most write it, and as Lightning does, with empty fields."""

from __future__ import annotations

import csv
from array import array
from typing import Any

from muster.observe.metrics.chain import Batch, Gathered
from muster.observe.metrics.lines import LinesPart, counter_in
from muster.observe.metrics.numbers import column_of, number_of
from muster.ports.metrics import Column, State

_DELIMITERS = (",", "\t", ";")
_MARK = b"\xef\xbb\xbf"  # of byte order


class CsvPart(LinesPart):
    """The header may come again, or change on the way."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._names: list[str] = []
        self._delimiter = ","

    def restart(self) -> None:
        super().restart()
        self._names = []

    def state(self) -> State:
        return {**super().state(), "names": self._names, "delimiter": self._delimiter}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._names, self._delimiter = list(state["names"]), state["delimiter"]

    def take(self, text: bytes) -> Batch | None:
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").rstrip(b"\r")
        while not self._names and text:
            line, _, text = text.partition(b"\n")
            self._take_header(line)
        if not text:
            return None
        return self._at_once(text) or self._slowly(text)

    def _take_header(self, line: bytes) -> None:
        told = line.removeprefix(_MARK).decode("utf-8", "replace").strip()
        if not told or told.startswith("#"):  # a remark, as the monitor files of Gym have it
            return
        self._delimiter = max(_DELIMITERS, key=told.count)
        names = [name.strip() for name in _fields(told, self._delimiter)]
        if _is_header(names):
            self._names = names
        else:
            self.unfit += 1

    def _at_once(self, text: bytes) -> Batch | None:
        """None where there is more to it than numbers between delimiters."""
        if b'"' in text or b"_" in text or b"\0" in text:
            return None
        delimiter = self._delimiter.encode()
        rows = [line.split(delimiter) for line in text.split(b"\n")]
        if set(map(len, rows)) != {len(self._names)}:
            return None
        found: dict[str, Any] = {}
        for name, texts in zip(self._names, zip(*rows, strict=True), strict=True):
            values = column_of(texts)
            if values is None:
                numbers = [number_of(each) for each in texts]
                if any(number is None and each.strip() for number, each in zip(numbers, texts, strict=True)):
                    return None
                found[name] = numbers
            else:
                found[name] = values
        return self._columns(found, len(rows)), len(rows)

    def _columns(self, found: dict[str, Any], count: int) -> dict[str, Column]:
        if self.steps.key is None:
            self.steps.key = self._first_counter(found, count)
        told = found.get(self.steps.key or "")
        if isinstance(told, array):
            steps = told
            self.steps.all(told)
        else:
            steps = array("d", [self.steps.next(step) for step in told or [None] * count])
        columns: dict[str, Column] = {}
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
        counters = [key for key in found if counter_in([key])]
        for row in range(count if counters else 0):
            if there := [key for key in counters if found[key][row] is not None]:
                return counter_in(there)
        return None

    def _slowly(self, text: bytes) -> Batch:
        gathered = Gathered()
        for line in text.split(b"\n"):
            told = line.rpartition(b"\0")[2].decode("utf-8", "replace").strip("\r")
            if not told.strip():
                continue
            fields = _fields(told, self._delimiter)
            if self._is_another_header(fields):
                self._names = [name.strip() for name in fields]
            elif len(fields) < len(self._names):  # a piece of a cut row, or of a text with a newline in it
                self.unfit += 1
            else:
                numbers = [(name, number_of(each.encode())) for name, each in zip(self._names, fields, strict=False)]
                self.steps.row([(name, number) for name, number in numbers if number is not None], gathered)
        return gathered.columns, gathered.count

    def _is_another_header(self, fields: list[str]) -> bool:
        names = [name.strip() for name in fields]
        return _is_header(names) and bool(set(names) & set(self._names))


def _is_header(names: list[str]) -> bool:
    return all(names) and len(set(names)) == len(names) and all(number_of(name.encode()) is None for name in names)


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []
