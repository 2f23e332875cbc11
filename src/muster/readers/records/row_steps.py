"""Numbers and steps in the rows of text logs: lines of JSON, values under a key, numbers as texts, regexes of logs.

Bare NaN and rows without the key are normal.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from muster.files.json_codec import HONEST_FACTOR, SMALL_TEXT, TooManyJsonValues, check_json_values
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


BLANK_BYTES = b"\0\r \t"
_NUMBER_WITH_SUFFIX = re.compile(r"([-+]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([KMB]?)", re.IGNORECASE)
_GROUPED_THOUSANDS = re.compile(r"^\s*[-+]?\d{1,3}(?:,\d{3})+(?![\d,])")
_PLAIN_END = re.compile(r"[A-Za-z0-9_-]*\Z")
_SUFFIX_FACTORS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9}
_decode_json_line = msgspec.json.Decoder().decode
_LONGEST_NUMBER = 400  # letters: fitting takes quadratic time
_MOST_LINES = 512  # that a pattern is tried on at once


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
        if "," in value and not _GROUPED_THOUSANDS.search(value):  # 0,5 is not 5
            return None
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
