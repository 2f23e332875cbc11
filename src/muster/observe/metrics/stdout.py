"""Steps in what a run prints, found by a regex. Progress bars draw over their line with carriage returns."""

from __future__ import annotations

from muster.observe.metrics.reader import StepReader
from muster.observe.metrics.tailing import Tail, lines_back
from muster.observe.steps import LogPattern, LogStep

_LONGEST = 8 << 10  # of a line, from its end: a regex may take quadratic time


class LogReader(StepReader):
    """`stage_key` is the name of a group of the regex."""

    def __init__(self, path: str, pattern: LogPattern, scale: float = 1.0, stage_key: str | None = None) -> None:
        super().__init__(Tail(path, bars=True), pattern.pattern.regex.pattern, scale, stage_key)
        self._pattern = pattern

    def look(self) -> None:
        self._pattern.pattern.refuse_slow()  # what it was too slow for was passed over, and is still to be told
        super().look()

    def _take(self, text: bytes) -> None:
        found, without = self._pattern.first_of(map(_end_of, lines_back(text.replace(b"\r", b"\n"))))
        if found:
            self._found_in(found)
        else:
            self._not_found(without)

    def _peek(self, rest: bytes) -> None:
        if found := self._pattern.last(_end_of(rest), unended=True):
            self._found_in(found)

    def _found_in(self, found: LogStep) -> None:
        self._found(found.step)
        self.stage = found.named.get(self.stage_key or "") or self.stage

    def _unfit_told(self, name: str) -> str:  # noqa: ARG002 - several logs are told as one
        return f"0 of {self.unfit} lines fit its pattern"


def _end_of(line: bytes) -> bytes:
    if len(line) <= _LONGEST:
        return line
    return line[-_LONGEST:].partition(b" ")[2]  # not from the middle of a number
