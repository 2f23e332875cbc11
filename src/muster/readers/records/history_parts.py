"""One history out of one or several files: those of a restarted run follow each other. Also what all histories with
one row per line share: the cutting into lines, and the step of each row.
"""

# ruff: noqa: PTH119
# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

from muster.readers.discovery.step_columns import STEP_COLUMN_NAMES, normalize_key_name
from muster.readers.records.growing_file import READ_BLOCK, GrowingFile
from muster.readers.records.metric_reader import MetricColumn, MetricRows, MetricSource, ReaderState, RecordedRunEnd

ColumnBatch = tuple[dict[str, MetricColumn], int]  # columns, and how many rows


class HistoryPart(ABC):
    """One file of a history."""

    def __init__(self, path: str) -> None:
        self.growing = GrowingFile(path)

    @abstractmethod
    def batches(self) -> Iterator[ColumnBatch]:
        """What is new; the file is opened. `growing.go_on` is called before each batch is handed out."""

    @abstractmethod
    def skipped(self) -> Iterator[str]:
        """What could not be read, in words."""

    def restart(self) -> None:
        """Reading begins anew."""
        self.growing.go_on(0)

    def state(self) -> ReaderState:
        return self.growing.state()

    def restore(self, state: ReaderState) -> None:
        self.growing.restore(state)

    @property
    def ended(self) -> RecordedRunEnd | None:
        return None

    @property
    def written(self) -> float | None:
        """Wall time of the last value."""
        return self.growing.written or None


class HistoryChain:
    """A metric reader over all files that `find` names, in that order."""

    def __init__(
        self, path: str, form: str, make: Callable[[str], HistoryPart], find: Callable[[], Sequence[str]]
    ) -> None:
        self.path = path
        self.format = form
        self.note = ""  # why these files and no others, where that is worth saying
        self._make = make
        self._find = find
        self._parts: dict[str, HistoryPart] = {}
        self._replaced = 0
        self._fresh = False

    @classmethod
    def of_file(cls, path: str, form: str, make: Callable[[str], HistoryPart]) -> HistoryChain:
        return cls(path, form, make, lambda: [path])

    @property
    def files(self) -> Sequence[str]:
        """As they are there now."""
        return self._find()

    def read(self) -> Iterator[MetricRows]:
        for path in self._find():
            if path not in self._parts:
                self._parts[path] = self._make(path)
        self._begin_anew_if_replaced()
        for part in list(self._parts.values()):
            with part.growing.opened() as replaced:
                if replaced:  # between the two looks at it: the next look begins anew
                    part.growing.offset = part.growing.size + 1
                    continue
                if part.growing.exists:
                    for columns, count in part.batches():
                        yield self._rows(columns, count)
        if self._fresh:
            yield self._rows({}, 0)

    def _begin_anew_if_replaced(self) -> None:
        replaced = False
        for part in self._parts.values():
            with part.growing.opened() as another:
                replaced |= another
        if replaced:
            self._replaced += 1
            self._fresh = True
            for part in self._parts.values():
                part.restart()

    def _rows(self, columns: dict[str, MetricColumn], count: int) -> MetricRows:
        fresh, self._fresh = self._fresh, False
        return MetricRows(columns, count, fresh)

    def state(self) -> ReaderState:
        return {
            "parts": {path: part.state() for path, part in self._parts.items()},
            "replaced": self._replaced,
            "fresh": self._fresh,
        }

    def restore(self, state: ReaderState) -> None:
        self._replaced, self._fresh = int(state["replaced"]), bool(state["fresh"])
        self._parts = {path: self._make(path) for path in state["parts"]}
        for path, part in self._parts.items():
            part.restore(state["parts"][path])

    @property
    def ended(self) -> RecordedRunEnd | None:
        """Of the last file: a run that was resumed goes on in another one."""
        return next((part.ended for part in reversed(self._parts.values())), None)

    @property
    def said(self) -> MetricSource:
        skipped = [self.note] if self.note else []
        for path, part in self._parts.items():
            name = f"{os.path.basename(path)}: " if len(self._parts) > 1 else ""
            skipped += [name + each for each in part.skipped()]
        if self._replaced:
            skipped.append("the file was replaced or cut while it was read: what it held before is not counted")
        written = [time for part in self._parts.values() if (time := part.written) is not None]
        return MetricSource(self.path, self.format, tuple(skipped), max(written, default=None))


class GatheredColumns:
    """Columns of numbers, row by row: for rows that no faster way fits."""

    def __init__(self) -> None:
        self.columns: dict[str, MetricColumn] = {}
        self.count = 0

    def add(self, key: str, step: float, value: float) -> None:
        column = self.columns.get(key)
        if column is None:
            column = self.columns[key] = (array("d"), array("d"))
        column[0].append(step)
        column[1].append(value)


_TIMES = ("_timestamp", "timestamp", "wall_time", "time")
_THIS_AGE = (1e9, 1e10)  # seconds since 1970: others are the run's own clock
_RANK = {name: rank for rank, name in enumerate(STEP_COLUMN_NAMES)}


def counting_key(keys: Iterable[str]) -> str | None:
    """The key that counts the steps, if one does."""
    ranked = [(rank, key) for key in keys if (rank := _RANK.get(normalize_key_name(key))) is not None]
    return min(ranked, key=lambda each: each[0])[1] if ranked else None


class StepCounter:
    """The step of each row: what its counter says; where it is silent, that of the row before, or the row's number."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.rows = 0
        self.last: float | None = None

    def next(self, step: float | None) -> float:
        if step is not None:
            self.last = step
        self.rows += 1
        return float(self.rows - 1) if self.last is None else self.last

    def all(self, steps: Sequence[float]) -> None:
        """Rows that all have one."""
        self.last = float(steps[-1])
        self.rows += len(steps)

    def row(self, values: Sequence[tuple[str, float]], into: GatheredColumns) -> None:
        """One row that was read slowly; the first one with a counter in it decides what counts."""
        if self.key is None:
            self.key = counting_key(key for key, _ in values)
        step = self.next(next((value for key, value in values if key == self.key), None))
        for key, value in values:
            into.add(key, step, value)
        into.count += 1

    def state(self) -> ReaderState:
        return {"key": self.key, "rows": self.rows, "last": self.last}

    def restore(self, state: ReaderState) -> None:
        self.key, self.rows, self.last = state["key"], int(state["rows"]), state["last"]


class LineHistory(HistoryPart):
    """A file of lines. Half a last line is waited for; one that is longer than a block is passed over."""

    breaks: tuple[bytes, ...] = (b"\n",)

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.steps = StepCounter()
        self.unfit = 0  # lines that hold no row
        self._overlong = 0
        self._within = False  # a line that is too long
        self._unended = False
        self._wall: float | None = None

    @abstractmethod
    def take(self, text: bytes) -> ColumnBatch | None:
        """Whole lines, without the last newline."""

    def take_unended(self, text: bytes) -> ColumnBatch | None:  # noqa: ARG002 - most kinds can't tell a half line from a whole one
        """The line that has not ended, where it is sure that it is whole."""
        return None

    def batches(self) -> Iterator[ColumnBatch]:
        growing = self.growing
        while growing.offset < growing.size:
            data = growing.at(growing.offset, READ_BLOCK)
            cut = max(map(data.rfind, self.breaks))
            if cut < 0 and len(data) >= READ_BLOCK:
                self._overlong += not self._within
                self._within = True
                growing.go_on(growing.offset + len(data))
                continue
            batch = self._lines(data, cut)
            if batch is not None and batch[1]:
                self._note_time(batch[0])
                yield batch
            if cut < 0 or growing.offset >= growing.size:
                break

    def _lines(self, data: bytes, cut: int) -> ColumnBatch | None:
        offset = self.growing.offset
        if cut >= 0:
            text, self._unended = data[:cut], False
            if self._within:
                text, self._within = text.partition(b"\n")[2], False
            batch = self.take(text) if text else None
            self.growing.go_on(offset + cut + 1)
            return batch
        batch = None if self._within else self.take_unended(data)
        self._unended = batch is None and bool(data.strip())
        if batch is not None:
            self.growing.go_on(offset + len(data))
        return batch

    def _note_time(self, columns: dict[str, MetricColumn]) -> None:
        for name in _TIMES:
            if name in columns and _THIS_AGE[0] < columns[name][1][-1] < _THIS_AGE[1]:
                self._wall = columns[name][1][-1]
                return

    def restart(self) -> None:
        super().restart()
        self.steps, self.unfit = StepCounter(), 0
        self._overlong, self._within, self._unended, self._wall = 0, False, False, None

    def state(self) -> ReaderState:
        own = {"unfit": self.unfit, "overlong": self._overlong, "within": self._within, "wall": self._wall}
        return {**super().state(), **own, "steps": self.steps.state()}

    def restore(self, state: ReaderState) -> None:
        super().restore(state)
        self.unfit, self._overlong, self._within = int(state["unfit"]), int(state["overlong"]), bool(state["within"])
        self._wall = state["wall"]
        self.steps.restore(state["steps"])

    @property
    def written(self) -> float | None:
        return self._wall if self._wall is not None else super().written

    def skipped(self) -> Iterator[str]:
        if self.unfit:
            yield f"{self.unfit} {'line that is' if self.unfit == 1 else 'lines that are'} no row"
        if self._overlong:
            yield f"{self._overlong} {'line' if self._overlong == 1 else 'lines'} too long to be read"
        if self._unended:
            yield "its last line has not ended yet"
