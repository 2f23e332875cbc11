"""Texts into numbers, a whole column at once."""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from muster.ports.bounded_json import HONEST, SMALL, TooManyValues, check_values

_many = msgspec.json.Decoder(list[float]).decode
_NUMBER = re.compile(
    rb"\s*[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf|infinity)\s*", re.IGNORECASE
)
_DEEPEST = 16
_LONGEST = 400  # letters of a number: fitting takes quadratic time


def column_of(texts: Sequence[bytes]) -> array[float] | None:
    """All of them as numbers; None where one is no plain number of JSON. Fast: one call for all."""
    try:
        found = _many(b"[%b]" % b",".join(texts))
    except (msgspec.MsgspecError, ValueError):
        return None
    return array("d", found) if len(found) == len(texts) else None  # one text may hold a comma


def number_of(text: bytes) -> float | None:
    """NaN and inf are numbers here, as Python and JavaScript write them."""
    return float(text) if len(text) <= _LONGEST and _NUMBER.fullmatch(text) else None


def plain(value: Any) -> float | None:
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


def leaves(row: dict[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, float]]:
    """The numbers of a row; nested keys are joined by dots."""
    for key, value in row.items():
        number = plain(value)
        if number is not None:
            yield f"{before}{key}", number
        elif type(value) is dict and depth < _DEEPEST:
            yield from leaves(value, f"{before}{key}.", depth + 1)


def decode(text: bytes, fast: Callable[[bytes], Any] = msgspec.json.decode) -> Any:
    """One JSON value; None where it is none. msgspec is fast, json knows bare NaN and Infinity, and huge numbers."""
    try:
        if len(text) > SMALL:
            check_values(text, times=HONEST)
        return fast(text)
    except TooManyValues:
        return None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
