"""The newest step in a text file as it grows: JSON lines, CSV, or lines found by a regex. Only the newest row that
holds the key is decoded.

The header of a CSV may come again or change on the way. Progress bars draw over their line with carriage returns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Any

from muster.readers.records.growing_file import FAR_BEHIND, MOST_BYTES, FileTail, lines_with_needle
from muster.readers.records.metric_reader import RecordedRunEnd
from muster.readers.records.row_steps import (
    LogPattern,
    LogStep,
    decode_json_row,
    finite_number_of,
    look_up_key,
    needle_of_key,
)
from muster.readers.records.table_rows import TableHeader

_MOST_READS = FAR_BEHIND // MOST_BYTES + 1
_SIZE_UNITS = ("bytes", "kB", "MB", "GB", "TB")


class StepReader(ABC):
    """One file that a run writes its steps into. What was found last stands until something newer is found."""

    def __init__(self, tail: FileTail, key: str, scale: float = 1.0, stage_key: str | None = None) -> None:
        self.tail = tail
        self.key = key
        self.scale = scale
        self.stage_key = stage_key
        self.ended: RecordedRunEnd | None = None  # what the file says of the run's end
        self.logged: float | None = None  # the newest step as the run wrote it
        self.unfit = 0  # lines of this file so far, if none of them held a step
        self.non_finite = ""  # a metric that is NaN or inf in the newest row
        self.stage = ""
        self.fitted = False  # whether this file has held a step
        self._generation = 0
        self._peeked = 0

    @property
    def step(self) -> float | None:
        """The newest step, as the job counts."""
        return None if self.logged is None else self.logged * self.scale

    def look(self) -> None:
        """Takes in what is new. Raises OSError where the file is there and can't be read."""
        for _ in range(_MOST_READS):
            chunk = self.tail.read()
            if self.tail.generation != self._generation:
                self._generation = self.tail.generation
                self.fitted, self.unfit, self._peeked = False, 0, 0
                self._restart()
            if chunk.text:
                self._take(chunk.text)
            if not chunk.more:
                break
        if self.tail.offset != self._peeked:
            self._peeked = self.tail.offset
            if rest := self.tail.rest:
                self._peek(rest)

    def nothing(self, name: str) -> str:
        """Why there is no step, in words."""
        if not self.tail.exists:
            return f"nothing yet: {name} does not exist"
        if self.tail.overlong:
            return f"no newline in the last {size_in_bytes_text(self.tail.unended)} of {name}"
        if self.unfit:
            return self._unfit_told(name)
        return f"nothing yet: {name} is empty" if self.tail.size == 0 else f"nothing yet: no whole line in {name}"

    def _found(self, step: float) -> None:
        self.logged, self.fitted, self.unfit = step, True, 0

    def _not_found(self, lines: int) -> None:
        if not self.fitted:
            self.unfit += lines

    @abstractmethod
    def _take(self, text: bytes) -> None:
        """Takes in whole lines, older ones first."""

    @abstractmethod
    def _unfit_told(self, name: str) -> str: ...

    def _peek(self, rest: bytes) -> None:  # noqa: B027 - most kinds can't tell a half line from a whole one
        """Takes in the line that has not ended, where it is sure what it will say."""

    def finish(self) -> None:  # noqa: B027 - what can tell a half line from a whole one has taken it
        """The run has ended: the line that has not is as whole as it will ever be."""

    def _restart(self) -> None:  # noqa: B027 - most kinds keep nothing of the file
        """Another file begins."""


def size_in_bytes_text(count: float) -> str:
    for unit in _SIZE_UNITS:
        if count < 1000 or unit == _SIZE_UNITS[-1]:
            break
        count /= 1000
    return f"{count:.3g} {unit}"


_MOST_DAMAGED_LINES = 16  # lines at the end that may not parse before the newest row is given up
_DEEPEST = 8
_AFTER_KEY = b": \t"  # a text with the key's name in it is followed by something else


class JsonlStepReader(StepReader):
    def __init__(self, path: str, key: str, scale: float = 1.0, stage_key: str | None = None) -> None:
        super().__init__(FileTail(path), key, scale, stage_key)
        self._needle = needle_of_key(key)
        self._stage_needle = needle_of_key(stage_key or "")

    def _take(self, text: bytes) -> None:
        self._look_for_step(text)
        self._look_for_stage(text)
        self._look_at_newest(text)

    def _peek(self, rest: bytes) -> None:
        if rest.rstrip().endswith(b"}"):  # an object that ends is whole, newline or not
            self._take(rest)

    def _look_for_step(self, text: bytes) -> None:
        for line in lines_with_needle(text, self._needle, _AFTER_KEY):
            value = finite_number_of(look_up_key(decode_json_row(line), self.key))
            if value is not None:
                self._found(value)
                return
        if not self.fitted:
            self._not_found(text.count(b"\n"))

    def _look_for_stage(self, text: bytes) -> None:
        if self.stage_key is None:
            return
        for line in lines_with_needle(text, self._stage_needle, _AFTER_KEY):
            value = look_up_key(decode_json_row(line), self.stage_key)
            if isinstance(value, str | int | float):
                self.stage = str(value)
                return

    def _look_at_newest(self, text: bytes) -> None:
        for line in islice(lines_with_needle(text), _MOST_DAMAGED_LINES):
            row = decode_json_row(line)
            if isinstance(row, dict):
                self.non_finite = first_non_finite_key(row)
                return

    def _unfit_told(self, name: str) -> str:
        return f"0 of {self.unfit} rows of {name} hold a number at '{self.key}'"


def first_non_finite_key(row: Any, depth: int = 0) -> str:
    """The first key whose value is NaN or inf, nested ones joined by dots."""
    if not isinstance(row, dict) or depth > _DEEPEST:
        return ""
    for key, value in row.items():
        if isinstance(value, float) and not math.isfinite(value):
            return str(key)
        if inner := first_non_finite_key(value, depth + 1):
            return f"{key}.{inner}"
    return ""


_LONGEST_LOG_LINE = 8 << 10  # of a line, from its end: a regex may take quadratic time


class PrintedStepReader(StepReader):
    """`stage_key` is the name of a group of the regex."""

    def __init__(self, path: str, pattern: LogPattern, scale: float = 1.0, stage_key: str | None = None) -> None:
        super().__init__(FileTail(path, bars=True), pattern.pattern.regex.pattern, scale, stage_key)
        self._pattern = pattern

    def look(self) -> None:
        self._pattern.pattern.refuse_slow()  # what it was too slow for was passed over, and is still to be told
        super().look()

    def _take(self, text: bytes) -> None:
        found, without = self._pattern.first_of(map(_end_of_long_line, lines_with_needle(text.replace(b"\r", b"\n"))))
        if found:
            self._found_in(found)
        else:
            self._not_found(without)

    def _peek(self, rest: bytes) -> None:
        if found := self._pattern.last(_end_of_long_line(rest), unended=True):
            self._found_in(found)

    def finish(self) -> None:
        if found := self._pattern.last(_end_of_long_line(self.tail.rest)):
            self._found_in(found)

    def _found_in(self, found: LogStep) -> None:
        self._found(found.step)
        self.stage = found.named.get(self.stage_key or "") or self.stage

    def _unfit_told(self, name: str) -> str:  # noqa: ARG002 - several logs are told as one
        return f"0 of {self.unfit} lines fit its pattern"


def _end_of_long_line(line: bytes) -> bytes:
    if len(line) <= _LONGEST_LOG_LINE:
        return line
    return line[-_LONGEST_LOG_LINE:].partition(b" ")[2]  # not from the middle of a number


_MOST_DOUBTS = 1000  # lines with the column's name in them that turn out to be no header
_BESIDE_NAME = b',;\t" \r\n\xbf'  # what may stand beside a name in a header; \xbf ends a byte order mark
_NON_FINITE = frozenset({"nan", "inf", "infinity"})


class TableStepReader(StepReader):
    def __init__(self, path: str, key: str, scale: float = 1.0, stage_key: str | None = None) -> None:
        super().__init__(FileTail(path), key, scale, stage_key)
        self._name = key.encode()
        self._header: TableHeader | None = None  # of those with the key in them

    def _restart(self) -> None:
        self._header = None

    def _take(self, text: bytes) -> None:
        if self._header is None:
            self._header = self._header_of(self.tail.first) or self._first_header(text)
        sections = list(self._sections(text))
        for header, rows in sections:
            if header is not None and self._look_for_step(header, rows):
                break
        else:
            self._not_found(max(0, text.count(b"\n") - len(sections) + 1))
        self._header, newest = sections[0]
        if self._header is not None:
            self._look_at_newest(self._header, newest)

    def _header_of(self, line: bytes) -> TableHeader | None:
        header = TableHeader.of_line(line)
        return header if header is not None and self.key in header.names else None

    def _first_header(self, text: bytes) -> TableHeader | None:
        at = -1
        for _ in range(_MOST_DOUBTS):
            at = text.find(self._name, at + 1)
            if at < 0:
                return None
            _, stop, line = _line_around(text, at)
            if header := self._header_of(line):
                return header
            at = stop - 1  # a line that names it many times is looked at once
        return None

    def _sections(self, text: bytes) -> Iterator[tuple[TableHeader | None, bytes]]:
        """Rows with the header that holds for them, the newest ones first."""
        end = len(text)
        while self._header and (found := self._last_header(text, end, self._header)):
            start, stop, header = found
            yield header, text[stop:end]
            end = start
        yield self._header, text[:end]

    def _last_header(self, text: bytes, end: int, known: TableHeader) -> tuple[int, int, TableHeader] | None:
        place, at = known.names.index(self.key), end
        for _ in range(_MOST_DOUBTS):
            at = text.rfind(self._name, 0, at)
            if at < 0:
                return None
            if not _is_whole_name(text, at, at + len(self._name)):
                continue
            start, stop, line = _line_around(text, at)
            header = self._header_of(line)
            # a row may hold the column's name as a text; it has a number where its own header says so
            if header and finite_number_of(dict(enumerate(header.names)).get(place)) is None:
                return start, stop, header
            at = start
        return None

    def _look_for_step(self, header: TableHeader, rows: bytes) -> bool:
        place = header.names.index(self.key)
        for fields in _table_rows_back(header, rows):
            value = header.number(fields[place])
            if value is not None and math.isfinite(value):
                self._found(value)
                return True
        return False

    def finish(self) -> None:
        if self._header is None:
            return
        place, fields = self._header.names.index(self.key), self._header.fields(self.tail.rest)
        value = self._header.number(fields[place]) if place < len(fields) else None
        if value is None or not math.isfinite(value):
            return
        cut = place == len(fields) - 1  # perhaps 12 of 120000: never more than the truth, so it may only raise
        self._found(max(value, self.logged) if cut and self.logged is not None else value)

    def _look_at_newest(self, header: TableHeader, rows: bytes) -> None:
        fields = next(_table_rows_back(header, rows), None)
        if fields is None:
            return
        row = dict(zip(header.names, fields, strict=False))
        self.non_finite = next((name for name, field in row.items() if _is_non_finite_text(field)), "")
        if self.stage_key is not None:
            self.stage = row.get(self.stage_key, "").strip() or self.stage

    def _unfit_told(self, name: str) -> str:
        if self._header is None:
            return f"{name} has no column '{self.key}'"
        return f"0 of {self.unfit} rows of {name} hold a number in '{self.key}'"


def _table_rows_back(header: TableHeader, rows: bytes) -> Iterator[list[str]]:
    for line in lines_with_needle(rows):
        fields = header.fields(line)
        if len(fields) >= len(header.names):  # fewer: a piece of a quoted field with a newline in it
            yield fields


def _is_non_finite_text(field: str) -> bool:
    return field.strip().lstrip("+-").lower() in _NON_FINITE


def _line_around(text: bytes, at: int) -> tuple[int, int, bytes]:
    start = text.rfind(b"\n", 0, at) + 1
    stop = text.find(b"\n", at) + 1 or len(text)
    return start, stop, text[start:stop]


def _is_whole_name(text: bytes, start: int, stop: int) -> bool:
    return (start == 0 or text[start - 1] in _BESIDE_NAME) and (stop == len(text) or text[stop] in _BESIDE_NAME)
