"""Numbers in what a run prints: `key=value` and `key: value`, or the named groups of a regex. A row is a line."""

from __future__ import annotations

import re

from muster.observe.metrics.chain import Batch, Gathered
from muster.observe.metrics.lines import LinesPart
from muster.observe.metrics.numbers import number_of
from muster.observe.steps import number

_LONGEST = 8 << 10  # of a line: a regex may take quadratic time
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_NUMBER = rf"[-+]?(?:{_DIGITS}\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[KMB]?(?![\w:]|[.,]\w)|[-+]?(?:nan|inf(?:inity)?)(?!\w)"
PAIRS = re.compile(rf"(?<![\w./@:-])['\"]?([A-Za-z_][\w./@-]*)['\"]?(?:\s?[=:]\s{{0,8}})['\"]?({_NUMBER})", re.I)
_FILES = re.compile(r"\.(?:py|cpp|cc|c|h|cu|rs|go|sh|yaml|json)\Z")  # train.py:123 is a place in the code


class StdoutPart(LinesPart):
    breaks = (b"\n", b"\r")

    def __init__(self, path: str, pattern: re.Pattern[str] | None = None) -> None:
        super().__init__(path)
        self._pattern = pattern

    def take(self, text: bytes) -> Batch:
        gathered = Gathered()
        for line in text.replace(b"\r", b"\n").split(b"\n"):
            told = line[-_LONGEST:].decode("utf-8", "replace") if line else ""
            values = self._groups(told) if self._pattern else pairs_in(told)
            if values:
                self.steps.row(values, gathered)
        return gathered.columns, gathered.count

    def _groups(self, line: str) -> list[tuple[str, float]]:
        found = self._pattern.search(line) if self._pattern else None
        groups = found.groupdict() if found else {}
        return [(key, value) for key, text in groups.items() if text and (value := _value(text)) is not None]


def pairs_in(line: str) -> list[tuple[str, float]]:
    if "=" not in line and ":" not in line:
        return []
    found = [(match[1], _value(match[2])) for match in PAIRS.finditer(line)]
    return [(key, value) for key, value in found if value is not None and not _FILES.search(key)]


def _value(text: str) -> float | None:
    """Also `2K` and `1,000`, as LeRobot and others print them."""
    found = number_of(text.encode())
    return number(text.rstrip(",")) if found is None else found
