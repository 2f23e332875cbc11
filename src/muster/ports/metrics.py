"""The metric reader: what a run logged, handed out as it grows, by whatever format it was written in.

Values come in columns, 8 bytes each, never as one object per value: a history may have millions of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

State = dict[str, Any]  # plain JSON
Column = tuple["array[float]", "array[float]"]  # the steps of one key and its values, in the order of writing


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch. NaN and inf are handed out as they were written; what is no number is left out."""

    columns: Mapping[str, Column]
    count: int  # rows in it
    fresh: bool = False  # the file was replaced: what was handed out before this does not count any more


@dataclass(frozen=True, slots=True)
class Said:
    """Where the numbers are from."""

    path: str
    format: str
    skipped: tuple[str, ...] = ()  # what could not be read, in words
    written: float | None = None  # wall time of the last value: the row's own where it has one, else the file's


@dataclass(frozen=True, slots=True)
class Ended:
    """The run's own word that it ended, where its format has one."""

    code: int
    runtime_s: float | None = None


class MetricReader(Protocol):
    def read(self) -> Iterator[Rows]:
        """What is new since the last look, in batches of bounded size.

        Damage in the file raises nothing: what is whole is handed out, the rest is told in `said`. Raises OSError
        where the file is there and can't be read.
        """

    def state(self) -> State:
        """Where it stands, after any batch: another reader of the same run goes on from there."""

    def restore(self, state: State) -> None: ...

    @property
    def said(self) -> Said: ...

    @property
    def ended(self) -> Ended | None: ...


@dataclass
class HeldReader:
    """Rows that are held in memory: fetched from elsewhere, or made up."""

    path: str
    format: str
    rows: list[Rows] = field(default_factory=list)
    ended: Ended | None = None
    written: float | None = None
    skipped: tuple[str, ...] = ()
    _taken: int = 0

    def read(self) -> Iterator[Rows]:
        while self._taken < len(self.rows):
            self._taken += 1
            yield self.rows[self._taken - 1]

    def state(self) -> State:
        return {"taken": self._taken}

    def restore(self, state: State) -> None:
        self._taken = int(state["taken"])

    @property
    def said(self) -> Said:
        return Said(self.path, self.format, self.skipped, self.written)
