"""Steps in a file with one JSON object per line. Only the newest row that holds the key is decoded."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

from muster.observe.metrics.reader import StepReader
from muster.observe.metrics.tailing import Tail, lines_back
from muster.observe.steps import decode_row, look_up, needle_of, number

_DAMAGED = 16  # lines at the end that may not parse before the newest row is given up
_DEEPEST = 8
_AFTER_KEY = b": \t"  # a text with the key's name in it is followed by something else


class JsonlReader(StepReader):
    def __init__(self, path: str, key: str, scale: float = 1.0, stage_key: str | None = None) -> None:
        super().__init__(Tail(path), key, scale, stage_key)
        self._needle = needle_of(key)
        self._stage_needle = needle_of(stage_key or "")

    def _take(self, text: bytes) -> None:
        self._look_for_step(text)
        self._look_for_stage(text)
        self._look_at_newest(text)

    def _peek(self, rest: bytes) -> None:
        if rest.rstrip().endswith(b"}"):  # an object that ends is whole, newline or not
            self._take(rest)

    def _look_for_step(self, text: bytes) -> None:
        for line in lines_back(text, self._needle, _AFTER_KEY):
            value = number(look_up(decode_row(line), self.key))
            if value is not None:
                self._found(value)
                return
        if not self.fitted:
            self._not_found(text.count(b"\n"))

    def _look_for_stage(self, text: bytes) -> None:
        if self.stage_key is None:
            return
        for line in lines_back(text, self._stage_needle, _AFTER_KEY):
            value = look_up(decode_row(line), self.stage_key)
            if isinstance(value, str | int | float):
                self.stage = str(value)
                return

    def _look_at_newest(self, text: bytes) -> None:
        for line in islice(lines_back(text), _DAMAGED):
            row = decode_row(line)
            if isinstance(row, dict):
                self.non_finite = non_finite(row)
                return

    def _unfit_told(self, name: str) -> str:
        return f"0 of {self.unfit} rows of {name} hold a number at '{self.key}'"


def non_finite(row: Any, depth: int = 0) -> str:
    """The first key whose value is NaN or inf, nested ones joined by dots."""
    if not isinstance(row, dict) or depth > _DEEPEST:
        return ""
    for key, value in row.items():
        if isinstance(value, float) and not math.isfinite(value):
            return str(key)
        if inner := non_finite(value, depth + 1):
            return f"{key}.{inner}"
    return ""
