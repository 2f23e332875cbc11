"""The interface of metric readers: what a run logged, handed out as it grows, by whatever format it was written in.

Values come in columns, 8 bytes each, never as one object per value: a history may have millions of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

ReaderState = dict[str, Any]  # plain JSON
MetricColumn = tuple["array[float]", "array[float]"]  # the steps of one key and its values, in the order of writing


@dataclass(frozen=True, slots=True)
class MetricRows:
    """A batch. NaN and inf are handed out as they were written; what is no number is left out."""

    columns: Mapping[str, MetricColumn]
    count: int  # rows in it
    fresh: bool = False  # the file was replaced: what was handed out before this does not count any more


@dataclass(frozen=True, slots=True)
class MetricSource:
    """Where the numbers are from."""

    path: str
    format: str
    skipped: tuple[str, ...] = ()  # what could not be read, in words
    written: float | None = None  # wall time of the last value: the row's own where it has one, else the file's
    step: str = ""  # the key that counts the steps; `row`: they are the numbers of rows; empty: there is no row yet
    tried: str = ""  # what a line had to look like; empty: some did


@dataclass(frozen=True, slots=True)
class RecordedRunEnd:
    """The run's own word that it ended, where its format has one."""

    code: int
    runtime_s: float | None = None


class MetricReader(Protocol):
    def read(self) -> Iterator[MetricRows]:
        """What is new since the last look, in batches of bounded size.

        Damage in the file raises nothing: what is whole is handed out, the rest is told in `said`. Raises OSError
        where the file is there and can't be read.
        """

    def state(self) -> ReaderState:
        """Where it stands, after any batch: another reader of the same run goes on from there."""

    def restore(self, state: ReaderState) -> None: ...

    @property
    def said(self) -> MetricSource: ...

    @property
    def ended(self) -> RecordedRunEnd | None: ...


@dataclass
class InMemoryReader:
    """Rows that are held in memory: fetched from elsewhere, or made up."""

    path: str
    format: str
    rows: list[MetricRows] = field(default_factory=list)
    ended: RecordedRunEnd | None = None
    written: float | None = None
    skipped: tuple[str, ...] = ()
    step: str = ""
    _taken: int = 0

    def read(self) -> Iterator[MetricRows]:
        while self._taken < len(self.rows):
            self._taken += 1
            yield self.rows[self._taken - 1]

    def state(self) -> ReaderState:
        return {"taken": self._taken}

    def restore(self, state: ReaderState) -> None:
        self._taken = int(state["taken"])

    @property
    def said(self) -> MetricSource:
        return MetricSource(self.path, self.format, self.skipped, self.written, self.step)
