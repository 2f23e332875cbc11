"""Steps in a table: CSV with a header, which may come again or change on the way."""

from __future__ import annotations

from collections.abc import Iterator

from muster.observe.metrics.reader import StepReader
from muster.observe.metrics.tailing import Tail, lines_back
from muster.observe.steps import Column, number

_MOST_DOUBTS = 1000  # lines with the column's name in them that turn out to be no header
_AROUND = b',;\t" \r\n\xbf'  # what may stand beside a name in a header; \xbf ends a byte order mark
_NON_FINITE = frozenset({"nan", "inf", "infinity"})


class TableReader(StepReader):
    def __init__(self, path: str, key: str, scale: float = 1.0, stage_key: str | None = None) -> None:
        super().__init__(Tail(path), key, scale, stage_key)
        self._name = key.encode()
        self._column: Column | None = None

    def _restart(self) -> None:
        self._column = None

    def _take(self, text: bytes) -> None:
        if self._column is None:
            self._column = Column.of(self.tail.first, self.key) or self._first_header(text)
        sections = list(self._sections(text))
        for column, rows in sections:
            if column is not None and self._look_for_step(column, rows):
                break
        else:
            self._not_found(max(0, text.count(b"\n") - len(sections) + 1))
        self._column, newest = sections[0]
        if self._column is not None:
            self._look_at_newest(self._column, newest)

    def _first_header(self, text: bytes) -> Column | None:
        at = -1
        for _ in range(_MOST_DOUBTS):
            at = text.find(self._name, at + 1)
            if at < 0:
                return None
            column = Column.of(_line_at(text, at)[2], self.key)
            if column is not None:
                return column
        return None

    def _sections(self, text: bytes) -> Iterator[tuple[Column | None, bytes]]:
        """Rows with the header that holds for them, the newest ones first."""
        end = len(text)
        while self._column and (found := self._last_header(text, end, self._column)):
            start, stop, column = found
            yield column, text[stop:end]
            end = start
        yield self._column, text[:end]

    def _last_header(self, text: bytes, end: int, known: Column) -> tuple[int, int, Column] | None:
        at = end
        for _ in range(_MOST_DOUBTS):
            at = text.rfind(self._name, 0, at)
            if at < 0:
                return None
            if not _stands_alone(text, at, at + len(self._name)):
                continue
            start, stop, line = _line_at(text, at)
            column = Column.of(line, self.key)
            # a row may hold the column's name as a text; it has a number where its own header says so
            if column and number(dict(enumerate(column.names)).get(known.index)) is None:
                return start, stop, column
        return None

    def _look_for_step(self, column: Column, rows: bytes) -> bool:
        for fields in _rows_back(column, rows):
            value = number(fields[column.index])
            if value is not None:
                self._found(value)
                return True
        return False

    def _look_at_newest(self, column: Column, rows: bytes) -> None:
        fields = next(_rows_back(column, rows), None)
        if fields is None:
            return
        row = dict(zip(column.names, fields, strict=False))
        self.non_finite = next((name for name, field in row.items() if _is_non_finite(field)), "")
        if self.stage_key is not None:
            self.stage = row.get(self.stage_key, "").strip() or self.stage

    def _unfit_told(self, name: str) -> str:
        if self._column is None:
            return f"{name} has no column '{self.key}'"
        return f"0 of {self.unfit} rows of {name} hold a number in '{self.key}'"


def _rows_back(column: Column, rows: bytes) -> Iterator[list[str]]:
    for line in lines_back(rows):
        fields = column.fields(line)
        if len(fields) >= len(column.names):  # fewer: a piece of a quoted field with a newline in it
            yield fields


def _is_non_finite(field: str) -> bool:
    return field.strip().lstrip("+-").lower() in _NON_FINITE


def _line_at(text: bytes, at: int) -> tuple[int, int, bytes]:
    start = text.rfind(b"\n", 0, at) + 1
    stop = text.find(b"\n", at) + 1 or len(text)
    return start, stop, text[start:stop]


def _stands_alone(text: bytes, start: int, stop: int) -> bool:
    return (start == 0 or text[start - 1] in _AROUND) and (stop == len(text) or text[stop] in _AROUND)
