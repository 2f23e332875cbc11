"""The numbers that a finished cell is judged by: read from what it wrote and reduced to one, or why there is none."""

from __future__ import annotations

import contextlib
import csv
import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, cast

from muster.files.json_codec import TooManyJsonValues, load_bounded_json
from muster.files.safe_open import FileTooLarge, open_log_file, read_regular_file
from muster.model.campaign import DeclaredResult, TakenAt
from muster.model.provenance import MetricRange, Resumption
from muster.readers.log_rows import (
    LONGEST_LOG_LINE,
    LogPiece,
    is_joined_log,
    masks_of_pieces,
    sweep_log_rows,
)
from muster.readers.pattern_child import PatternHit
from muster.readers.records.row_steps import finite_number_of, look_up_key, needle_of_key
from muster.readers.records.step_counter import counting_key
from muster.readers.records.table_rows import read_table_rows
from muster.readers.user_patterns import LONGEST_SEARCHED_LINE, UserPattern

MOST_BYTES = 32 << 20  # of a JSON file, which is read whole
MOST_NUMBERS = 10_000_000  # of an array
_ARRAY_PART = 65_536
_BATCH = 1024  # lines
_MOST_PIECES = 64
ResultRow = Sequence[Any]  # a value for each key that was asked for; MISSING where the row has none
MISSING = object()
LOG_KINDS = ("jsonl", "csv", "stdout")  # kinds that hold a row after another


class NoResult(Exception):
    """There is no such number; the message says what is there instead."""


@dataclass(frozen=True, slots=True)
class FoundResult:
    value: float
    text: str  # where it is from, in words
    tested: MetricRange | None = None  # where it is the least, the largest, or that of the best of many
    rows: int = 1  # that it is the mean of


def read_cell_result(
    result: DeclaredResult,
    path: str,
    name: str,
    others: Mapping[str, DeclaredResult],
    pieces: Sequence[LogPiece] = (),
    step: str | None = None,
) -> FoundResult:
    """`path`: the file; `name`: as people call it; `others`: the results of the same job, for `at: {best: ...}`.

    `pieces`: the same log of all attempts that make one run, `path` the last; `step`: the key that counts in it.
    Raises NoResult where it is missing or no finite number, OSError where the file can't be read.
    """
    values = ResultValues(result, name, others, pieces, step)
    values.read(path)
    return values.found()


class ResultValues:
    """The values of one result, taken row by row: 8 bytes for each, however long the file is."""

    def __init__(
        self,
        result: DeclaredResult,
        name: str,
        others: Mapping[str, DeclaredResult],
        pieces: Sequence[LogPiece] = (),
        step: str | None = None,
    ) -> None:
        self._result, self._name = result, name
        self.pieces = pieces if is_joined_log(pieces) and result.kind in LOG_KINDS else ()
        self._step = step
        self._steps = array("d")  # of each row, where attempts are joined; NaN: it has none
        self._begins: list[int] = []  # the first row of each piece
        self._wrongs: list[tuple[int, NoResult]] = []  # rows that hold no number: a lost one is no mistake
        self.resumption: Resumption | None = None
        self._best = _result_deciding_best(result, others)
        self.keys = [result.key or result.path] + ([self._best.key or self._best.path] if self._best else [])
        self.needles: Sequence[bytes] = [needle_of_key(key) for key in self.keys]
        self._columns = [array("d") for _ in self.keys]
        self._wrong: NoResult | None = None

    def read(self, path: str) -> None:
        """Of any kind of file; jsonl in a pass of its own."""
        for piece in self.pieces[:-1]:
            self._begins.append(len(self._steps))
            with contextlib.suppress(OSError, NoResult):  # what is gone is told, and the rest counts
                self._read_one(piece.path)
        self._begins.append(len(self._steps))
        self._read_one(path)

    def _read_one(self, path: str) -> None:
        if not path:
            return
        if self._result.kind == "csv":
            self._read_table(path)
        elif self._result.kind == "jsonl":
            sweep_log_rows(path, "jsonl", [self])
        else:
            for row in _result_rows(self._result.kind, path, self.keys):
                if self.pieces:
                    self._take_step(row, None)
                else:
                    self._take(row)

    def _read_table(self, path: str) -> None:
        try:
            with open_log_file(path) as file:
                header, _ = next(read_table_rows(file), (None, []))
            names = header.names if header else ()
            if unknown := [key for key in self.keys if key not in names]:
                raise NoResult(f"it has no column '{unknown[0]}'")
            self._step = self._step if self._step in names else counting_key(names)
            sweep_log_rows(path, "csv", [self])
        except csv.Error as error:
            raise NoResult(f"it can't be read as csv: {error}") from None

    def take_row(self, row: Mapping[str, Any]) -> None:
        values = [row[key] if key in row else _value_or_missing(row, key) for key in self.keys]
        if not self.pieces:
            self._take(values)
            return
        if self._step is None:
            self._step = counting_key(row)
        self._take_step(values, finite_number_of(look_up_key(row, self._step)) if self._step else None)

    def _take_step(self, row: ResultRow, step: float | None) -> None:
        """Of a run that was resumed: which rows count is known at the end."""
        if MISSING in row:
            return
        for column, value in zip(self._columns, row, strict=True):
            try:
                column.append(_finite_result_number(value, self._result, self._name))
            except NoResult as wrong:
                self._wrongs.append((len(self._steps), wrong))
                column.append(math.nan)
        self._steps.append(math.nan if step is None else step)

    def _join(self) -> None:
        import numpy as np

        ends = [*self._begins[1:], len(self._steps)]
        parts = [self._steps[begin:end] for begin, end in zip(self._begins, ends, strict=True)]
        masks, self.resumption = masks_of_pieces(self.pieces, parts)
        mask = np.concatenate(masks)
        self._wrong = next((wrong for at, wrong in self._wrongs if mask[at]), None)
        self._columns = [array("d", np.frombuffer(column)[mask].tobytes()) for column in self._columns if len(mask)]
        self._columns = self._columns or [array("d") for _ in self.keys]

    def _take(self, row: ResultRow) -> None:
        if self._wrong is not None or MISSING in row:
            return
        for column, value in zip(self._columns, row, strict=True):
            if type(value) is float and math.isfinite(value):  # nearly always
                column.append(value)
                continue
            try:
                column.append(_finite_result_number(value, self._result, self._name))
            except NoResult as wrong:
                self._wrong = wrong
                return

    def found(self) -> FoundResult:
        """Raises NoResult where there is none."""
        if self.pieces:
            self._join()
        if self._wrong is not None:
            raise self._wrong
        if not self._columns[0]:
            raise NoResult(_why_nothing_found(self._result, self._name))
        return self._at_best() if self._best else self._reduced()

    def _reduced(self) -> FoundResult:
        values, how = self._columns[0], str(self._result.reduce)
        reduced = _REDUCERS[how](values)
        many = f" ({how} of {len(values)})" if len(values) > 1 else ""
        text = f"{self._name}: {self._result.key or 'the match'} = {reduced:.6g}{many}{self._resumed()}"
        tested = _evaluation_series(values) if how in ("min", "max") else None
        return FoundResult(reduced, text, tested, len(values) if how == "mean" else 1)

    def _at_best(self) -> FoundResult:
        values, ranked = self._columns
        told = cast(TakenAt, self._result.reduce).at
        pick = min if told.better == "lower" else max
        value = values[ranked.index(pick(ranked))]
        text = f"{self._name}: {self._result.key} = {value:.6g} where {told.best} is best (of {len(values)})"
        text += self._resumed()
        return FoundResult(value, text, _evaluation_series(ranked))

    def _resumed(self) -> str:
        """What counts of each attempt, where several wrote it."""
        if self.resumption is None:
            return ""
        from muster.text.describe_run import describe_resumed_log

        if not any(map(math.isfinite, self._steps)):
            return f"; it was resumed {self.resumption.times} x; its rows have no steps: all of them count, in order"
        return f"; {describe_resumed_log(self.resumption)}"


def _evaluation_series(values: array[float]) -> MetricRange:
    def only(value: float) -> float | None:
        return values.index(value) + 1.0 if values.count(value) == 1 else None

    return MetricRange(1.0, float(len(values)), only(min(values)), only(max(values)))


def _result_deciding_best(result: DeclaredResult, others: Mapping[str, DeclaredResult]) -> DeclaredResult | None:
    if isinstance(result.reduce, str):
        return None
    best = others[result.reduce.at.best]
    if (best.kind, best.path) != (result.kind, result.path) or result.kind == "stdout":
        raise NoResult(f"'{result.name}' is taken where '{best.name}' is best: both must be in the same file")
    return best


_REDUCERS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "last": lambda values: values[-1],
    "mean": lambda values: math.fsum(values) / len(values),
    "min": min,
    "max": max,
}


def _why_nothing_found(result: DeclaredResult, name: str) -> str:
    if result.kind == "stdout":
        return f"no line of {name} matches '{result.path}'"
    return f"{name} has no '{result.key}'"


def _finite_result_number(value: Any, result: DeclaredResult, name: str) -> float:
    """A text is a number only where all is text: in a CSV file and in a log."""
    shown = f"'{result.key or result.path}' in {name}"
    if isinstance(value, str) and result.kind in ("csv", "stdout"):
        try:
            value = float(value.replace(",", "") if result.kind == "stdout" else value)
        except ValueError:
            raise NoResult(f"{shown} is no number: {value[:40]!r}") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NoResult(f"{shown} is no number but {_kind_of_value(value)}")
    try:
        number = float(value)
    except OverflowError:  # an integer of hundreds of digits
        raise NoResult(f"{shown} is too large for a number") from None
    if not math.isfinite(number):
        raise NoResult(f"{shown} is {number}")
    return number


def _kind_of_value(value: Any) -> str:
    names = {str: "a text", bool: "true or false", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), f"a {type(value).__name__}")


# -- what each kind of file holds


def _result_rows(kind: str, path: str, keys: Sequence[str]) -> Iterator[ResultRow]:
    try:
        yield from _RESULT_READERS[kind](path, keys)
    except UnicodeDecodeError as error:
        raise NoResult(f"it can't be read as {kind}: {error}") from None


def _json_rows(path: str, keys: Sequence[str]) -> Iterator[ResultRow]:
    try:
        whole = load_bounded_json(read_regular_file(path, MOST_BYTES))
    except (FileTooLarge, TooManyJsonValues) as error:
        raise NoResult(f"it is too large: {error.strerror if isinstance(error, OSError) else error}") from None
    except ValueError as error:
        raise NoResult(f"it is no JSON: {error}") from None
    found = [_value_or_missing(whole, key) for key in keys]
    if all(isinstance(value, list) for value in found):
        if len({len(value) for value in found}) > 1:
            raise NoResult("the lists have different lengths")
        yield from zip(*found, strict=True)
    else:
        yield tuple(found)


def _npz_rows(path: str, keys: Sequence[str]) -> Iterator[ResultRow]:
    from muster.readers.checkpoints.arrays import UnreadableArrays, read_npz_arrays

    def choose(names: list[str]) -> list[str]:
        if missing := [key for key in keys if key not in names]:
            raise NoResult(f"it has no array '{missing[0]}'; it has {', '.join(names[:8])}")
        return list(dict.fromkeys(keys))

    try:
        found = read_npz_arrays(path, choose)
    except UnreadableArrays as error:
        raise NoResult(str(error)) from None
    arrays = [found[key].ravel() for key in keys]
    if len({len(array) for array in arrays}) > 1:
        raise NoResult("the arrays have different lengths")
    if len(arrays[0]) > MOST_NUMBERS:
        raise NoResult(f"it holds {len(arrays[0])} numbers, and up to {MOST_NUMBERS} are read")
    for at in range(0, len(arrays[0]), _ARRAY_PART):
        yield from zip(*(array[at : at + _ARRAY_PART].tolist() for array in arrays), strict=True)


def _printed_rows(path: str, keys: Sequence[str]) -> Iterator[ResultRow]:
    pattern = UserPattern(keys[0])
    with open_log_file(path) as file:
        texts = _redrawn_texts(file)
        while batch := list(islice(texts, _BATCH)):
            for text, hits in zip(batch, pattern.hits(batch, most=1), strict=True):
                first = hits if len(text) <= LONGEST_SEARCHED_LINE else _first_hit_in_long_line(pattern, text)
                yield from ((value,) for value, _, _ in first)


def _first_hit_in_long_line(pattern: UserPattern, text: str) -> Sequence[PatternHit]:
    """Of a line that is too long to be searched at once, and is cut at its spaces."""
    pieces: list[str] = []
    while text and len(pieces) < _MOST_PIECES:
        cut = (
            len(text)
            if len(text) <= LONGEST_SEARCHED_LINE
            else text.rfind(" ", 0, LONGEST_SEARCHED_LINE) + 1 or LONGEST_SEARCHED_LINE
        )
        pieces.append(text[:cut])
        text = text[cut:]
    return next((hits for hits in pattern.hits(pieces, most=1) if hits), ())


def _redrawn_texts(file: BinaryIO) -> Iterator[str]:
    """What a line holds from one redraw of it to the next."""
    while line := file.readline(LONGEST_LOG_LINE):
        yield from line.decode("utf-8", "replace").split("\r")


def has_printed_match(path: str, regex: str) -> bool:
    return next(_printed_rows(path, [regex]), None) is not None


def _value_or_missing(row: Any, key: str) -> Any:
    found = look_up_key(row, key)
    return MISSING if found is None and not _has_null_at_key(row, key) else found


def _has_null_at_key(row: Any, key: str) -> bool:
    return isinstance(row, dict) and key in row


_RESULT_READERS: Mapping[str, Callable[[str, Sequence[str]], Iterator[ResultRow]]] = {
    "json": _json_rows,
    "npz": _npz_rows,
    "stdout": _printed_rows,
}
