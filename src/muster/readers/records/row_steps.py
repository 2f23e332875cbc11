"""Numbers and steps in the rows of text logs, and the last step of a file, read from its end: a log may have
gigabytes, the answer is in its tail.

A half-written last line, a tail of NULs after a power cut, bare NaN, and rows without the key are all normal.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from itertools import islice
from typing import Any, BinaryIO

import msgspec

from muster.files.json_codec import HONEST_FACTOR, SMALL_TEXT, TooManyJsonValues, check_json_values
from muster.files.safe_open import open_regular_file
from muster.readers.pattern_child import PatternHit
from muster.readers.user_patterns import UserPattern

_decode_number_list = msgspec.json.Decoder(list[float]).decode
_NUMBER_BYTES = re.compile(
    rb"\s*[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf|infinity)\s*", re.IGNORECASE
)
_DEEPEST = 16
MEDIA_TYPE_KEY = "_type"  # of an object that stands for a table, a picture, ...: W&B writes them among the numbers
_LONGEST_NUMBER_TEXT = 400  # letters of a number: fitting takes quadratic time


def numbers_of_texts(texts: Sequence[bytes]) -> array[float] | None:
    """All of them as numbers; None where one is no plain number of JSON. Fast: one call for all."""
    try:
        found = _decode_number_list(b"[%b]" % b",".join(texts))
    except (msgspec.MsgspecError, ValueError):
        return None
    return array("d", found) if len(found) == len(texts) else None  # one text may hold a comma


def parse_number(text: bytes) -> float | None:
    """NaN and inf are numbers here, as Python and JavaScript write them."""
    return float(text) if len(text) <= _LONGEST_NUMBER_TEXT and _NUMBER_BYTES.fullmatch(text) else None


def plain_number(value: Any) -> float | None:
    """A number of a decoded row; true and false are none."""
    kind = type(value)
    if kind is float:
        return float(value)
    if kind is int:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return None


# what json reads and msgspec does not: such names, numbers beyond a float, half of a pair, other encodings
_OF_JSON_ALONE = re.compile(rb"NaN|Infinity|[eE][+-]?[0-9]|[0-9]{18}|\\u[dD]|[\x00\x80-\xff]")


def numeric_leaves(row: dict[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, float]]:
    """The numbers of a row; nested keys are joined by dots. The size of a picture is none of them."""
    for key, value in row.items():
        number = plain_number(value)
        if number is not None:
            yield f"{before}{key}", number
        elif type(value) is dict and depth < _DEEPEST and MEDIA_TYPE_KEY not in value:
            yield from numeric_leaves(value, f"{before}{key}.", depth + 1)


def decode_json_value(
    text: bytes, fast: Callable[[bytes], Any] = msgspec.json.decode, times: int = HONEST_FACTOR
) -> Any:
    """One JSON value; None where it is none. msgspec is fast, json knows bare NaN and Infinity, and huge numbers."""
    try:
        if len(text) > SMALL_TEXT:
            check_json_values(text, times=times)
        return fast(text)
    except TooManyJsonValues:
        return None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        if not _OF_JSON_ALONE.search(text):  # most of what is none, told sooner
            return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


TAIL_BYTES = 16 << 20  # text looked at before giving up: rows without the key, or one endless line
HEADER_BYTES = 1 << 20
BLANK_BYTES = b"\0\r \t"
_NUL_BYTES = 256 << 20  # NULs skipped at the end: a power cut can leave many
_FIRST_BLOCK, _LARGEST_BLOCK = 64 << 10, 4 << 20
_NUMBER_WITH_SUFFIX = re.compile(r"([-+]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([KMB]?)", re.IGNORECASE)
_PLAIN_END = re.compile(r"[A-Za-z0-9_-]*\Z")
_SUFFIX_FACTORS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9}
_decode_json_line = msgspec.json.Decoder().decode
_LONGEST_NUMBER = 400  # letters: fitting takes quadratic time
_MOST_LINES = 512  # that a pattern is tried on at once


def read_last_step(path: str, kind: str, key: str | None) -> float | None:
    """The newest step in a jsonl or csv file (`key`: its key or column), or in a log (`key`: a regex with a group).

    None: there is none, the file is missing, or the kind is not read (wandb, tensorboard). Raises OSError where the
    file is there and can't be read.
    """
    if key is None or kind not in ("jsonl", "csv", "stdout"):
        return None
    try:
        with open_regular_file(path) as file:
            if kind == "jsonl":
                return _last_step_in_jsonl(file, key)
            if kind == "csv":
                return _last_step_in_csv(file, key)
            return _last_step_in_log(file, key)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


# -- files, from their end


def lines_from_end(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Lines, the last one first, each with whether a newline ended it; NULs and empty lines left out, bounded."""
    ended = False
    rest = b""
    for block in _blocks_from_end(file):
        text = block + rest
        parts = text.split(b"\n")
        for part in reversed(parts[1:]):
            line = part.strip(BLANK_BYTES)
            if line:
                yield line, ended
            ended = True
        rest = parts[0]
    line = rest.strip(BLANK_BYTES)
    if line and file.tell() == 0:  # the file's first line; otherwise a piece of one
        yield line, ended


def find_text_end(file: BinaryIO | FileIO) -> int:
    """Where the text ends and nothing but NULs follows; where there are too many of them, where the looking ended."""
    position, size = file.seek(0, os.SEEK_END), _FIRST_BLOCK
    give_up = max(0, position - _NUL_BYTES)
    while position > give_up:
        size = min(size, position)
        file.seek(position - size)
        block = file.read(size)
        position -= size
        if block != bytes(len(block)):  # at once: stripping hundreds of megabytes byte by byte takes a second
            return position + len(block.rstrip(b"\0"))
        size = min(size * 2, _LARGEST_BLOCK)
    return position


def _blocks_from_end(file: BinaryIO) -> Iterator[bytes]:
    """Blocks of text, the last one first, growing. Leaves the file at what was not read."""
    position, text_left, size = find_text_end(file), TAIL_BYTES, _FIRST_BLOCK
    while position > 0 and text_left > 0:
        size = min(size, position)
        position -= size
        file.seek(position)
        block = file.read(size)
        file.seek(position)
        text_left -= size
        yield block
        size = min(size * 2, _LARGEST_BLOCK)


def _last_step_in_jsonl(file: BinaryIO, key: str) -> float | None:
    needle = needle_of_key(key)
    for line, _ in lines_from_end(file):
        if needle in line:
            value = finite_number_of(look_up_key(decode_json_row(line), key))
            if value is not None:
                return value
    return None


def _last_step_in_csv(file: BinaryIO, key: str) -> float | None:
    column = StepTableColumn.of(file.readline(HEADER_BYTES), key)
    if column is None:
        return None
    cut: float | None = None
    for line, ended in lines_from_end(file):
        fields = column.fields(line)
        if column.index >= len(fields) or (ended and len(fields) < len(column.names)):
            continue  # a piece of a quoted field with a newline in it, or of a cut row
        value = finite_number_of(fields[column.index])
        if value is None:
            continue
        if not ended and column.index == len(fields) - 1:
            cut = value  # perhaps 12 of 120000: never more than the truth, so it may only raise what is before it
            continue
        return value if cut is None else max(cut, value)
    return cut


def _last_step_in_log(file: BinaryIO, regex: str) -> float | None:
    # progress bars draw over one line with \r: the last match of the line is the newest
    found, _ = LogPattern.of(regex).first_of(line for line, _ in lines_from_end(file))
    return found.step if found else None


# -- one line


def decode_json_row(line: bytes) -> Any:
    """A line of JSON; None where it is none."""
    return decode_json_value(line, _decode_json_line, times=0)


def needle_of_key(key: str) -> bytes:
    """What a line that holds the key must hold: rows of a wide log lack a rare key, and need no parsing then.

    However the key is nested, its last part is followed by a quote. Escapes may hide letters, but not plain ones.
    """
    plain = _PLAIN_END.search(key)
    return (plain.group() if plain else "").encode() + b'"'


def look_up_key(row: Any, key: str) -> Any:
    """A literal key first, then nested ones joined by dots; a nested key may itself hold dots."""
    if not isinstance(row, dict):
        return None
    if key in row:
        return row[key]
    for at, letter in enumerate(key):
        if letter == "." and key[:at] in row:
            found = look_up_key(row[key[:at]], key[at + 1 :])
            if found is not None:
                return found
    return None


def number_with_suffix(text: str) -> float | None:
    """Also NaN, inf and `2K`."""
    found = parse_number(text.encode())
    match = _NUMBER_WITH_SUFFIX.fullmatch(text) if found is None and len(text) <= _LONGEST_NUMBER else None
    return _number_of_match(match) if match else found


def _number_of_match(match: re.Match[str]) -> float:
    return float(match.group(1).replace(",", "").replace("_", "")) * _SUFFIX_FACTORS[match.group(2).lower()]


def finite_number_of(value: Any) -> float | None:
    """A finite number, also as a text; None for everything else."""
    if type(value) is float:  # nearly always
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        match = _NUMBER_WITH_SUFFIX.fullmatch(value.strip()) if len(value) <= _LONGEST_NUMBER else None
        if match is None:
            return None
        value = _number_of_match(match)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


@dataclass(frozen=True, slots=True)
class StepTableColumn:
    """Where in the rows of a table the step is."""

    names: tuple[str, ...]
    index: int
    delimiter: str

    @classmethod
    def of(cls, header: bytes, key: str) -> StepTableColumn | None:
        text = header.decode("utf-8-sig", "replace")
        for delimiter in (",", "\t", ";"):
            names = tuple(name.strip() for name in _split_csv_line(text, delimiter))
            if key in names:
                return cls(names, names.index(key), delimiter)
        return None

    def fields(self, line: bytes) -> list[str]:
        return _split_csv_line(line.decode("utf-8", "replace"), self.delimiter)


def _split_csv_line(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line.strip("\r\n")], delimiter=delimiter), [])
    except csv.Error:
        return []


@dataclass(frozen=True, slots=True)
class LogStep:
    step: float
    named: Mapping[str, Any]  # what the groups with a name hold


@dataclass(frozen=True, slots=True)
class LogPattern:
    """A regex for lines of a log. Its group `step` is the step, or else its first one. A search may raise TooSlow."""

    pattern: UserPattern

    @classmethod
    def of(cls, regex: str) -> LogPattern:
        return cls(UserPattern(regex))

    def last(self, line: bytes, *, unended: bool = False) -> LogStep | None:
        """The last step in the line; of an unended one only what can't grow any more: 12 may be 12 of 120000."""
        return _last_step_hit(self.pattern.hits([line.decode("utf-8", "replace")])[0], unended)

    def all_last(self, lines: Iterable[bytes]) -> list[LogStep | None]:
        """The last step of each line."""
        return [_last_step_hit(hits) for hits in self.pattern.hits([line.decode("utf-8", "replace") for line in lines])]

    def first_of(self, lines: Iterable[bytes]) -> tuple[LogStep | None, int]:
        """The last step of the first line that has one, and how many lines before it have none."""
        rest, passed, count = iter(lines), 0, 1
        while batch := list(islice(rest, count)):
            found = self.all_last(batch)
            at = next((at for at, step in enumerate(found) if step), None)
            if at is not None:
                return found[at], passed + at
            passed, count = passed + len(batch), min(count * 8, _MOST_LINES)
        return None, passed


def _last_step_hit(hits: Sequence[PatternHit], unended: bool = False) -> LogStep | None:
    for text, ends, named in reversed(hits):
        value = finite_number_of(text)
        if value is not None and not (unended and ends):
            return LogStep(value, named)
    return None
