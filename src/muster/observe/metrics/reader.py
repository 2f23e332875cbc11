"""What all readers of steps share: the newest step of one file, and what can be said where there is none."""

from __future__ import annotations

from abc import ABC, abstractmethod

from muster.observe.metrics.tailing import FAR_BEHIND, MOST_BYTES, Tail

_MOST_READS = FAR_BEHIND // MOST_BYTES + 1
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


class StepReader(ABC):
    """One file that a run writes its steps into. What was found last stands until something newer is found."""

    def __init__(self, tail: Tail, key: str, scale: float = 1.0, stage_key: str | None = None) -> None:
        self.tail = tail
        self.key = key
        self.scale = scale
        self.stage_key = stage_key
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
            return f"no newline in the last {told_bytes(self.tail.unended)} of {name}"
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

    def _restart(self) -> None:  # noqa: B027 - most kinds keep nothing of the file
        """Another file begins."""


def told_bytes(count: float) -> str:
    for unit in _UNITS:
        if count < 1000 or unit == _UNITS[-1]:
            break
        count /= 1000
    return f"{count:.3g} {unit}"
