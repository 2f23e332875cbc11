"""One history out of one or several files: those of a restarted run follow each other. Also what all histories with
one row per line share: the cutting into lines, and the step of each row.
"""

# ruff: noqa: PTH119
# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from muster.readers.records.growing_file import READ_BLOCK, GrowingFile
from muster.readers.records.metric_reader import MetricColumn, MetricRows, MetricSource, ReaderState, RecordedRunEnd
from muster.readers.records.step_counter import StepCounter

_MOST_REVISIONS = 8  # of one look
ColumnBatch = tuple[dict[str, MetricColumn], int]  # columns, and how many rows


def cut_column(column: MetricColumn, mask: Any) -> MetricColumn:
    """What the mask leaves of it."""
    import numpy as np

    steps, values = (np.frombuffer(each)[mask] for each in column)
    return array("d", steps.tobytes()), array("d", values.tobytes())


def mask_below_step(steps: Sequence[float], end: float) -> Any:
    """A mask of the rows that count; one without a step does."""
    import numpy as np

    return ~(np.asarray(steps, np.float64) >= end)


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

    def restart(self, *, knowing: bool = False) -> None:  # noqa: ARG002 - most kinds learn nothing on their way
        """Reading begins anew; `knowing`: the same file, with what was learnt of it."""
        self.growing.go_on(0)

    @property
    def misled(self) -> bool:
        """Whether what was handed out is wrong by what was found since: reading begins anew then, and knows it."""
        return False

    def take_back_from(self) -> float | None:
        """The step that the last batch says the run was started again from: what came before, from it on, is void."""
        return None

    @property
    def step_name(self) -> str:
        """The key that counts the steps."""
        return "step"

    @property
    def tried(self) -> str:
        """What a line had to look like, where none of many did."""
        return ""

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
        self._void: list[tuple[str, int, float]] = []  # file, offset, and from which step on all before is void
        self._misled = False

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
        for _ in range(_MOST_REVISIONS):
            yield from self._read_on()
            if not self._misled and not any(part.misled for part in self._parts.values()):
                break
            self._fresh, self._misled = True, False
            for part in self._parts.values():
                part.restart(knowing=True)
        if self._fresh:
            yield self._rows({}, 0)

    def _read_on(self) -> Iterator[MetricRows]:
        for path, part in list(self._parts.items()):
            with part.growing.opened() as replaced:
                if replaced:  # between the two looks at it: the next look begins anew
                    part.growing.offset = part.growing.size + 1
                    continue
                if part.growing.exists:
                    yield from self._batches(path, part)

    def _batches(self, path: str, part: HistoryPart) -> Iterator[MetricRows]:
        begin = part.growing.offset
        for columns, count in part.batches():
            if (step := part.take_back_from()) is not None and (path, begin, step) not in self._void:
                self._void.append((path, begin, step))
                self._misled |= begin > 0 or path != next(iter(self._parts))  # else there is nothing before it
            yield self._rows(self._without_void(path, begin, columns), count)
            begin = part.growing.offset

    def _without_void(self, path: str, begin: int, columns: dict[str, MetricColumn]) -> dict[str, MetricColumn]:
        """Without what a later batch, or a later file, takes back."""
        order = list(self._parts)
        place = order.index(path), begin
        later = [step for other, at, step in self._void if other in self._parts and (order.index(other), at) > place]
        if not later:
            return columns
        end = min(later)
        kept = {key: cut_column(column, mask_below_step(column[0], end)) for key, column in columns.items()}
        return {key: column for key, column in kept.items() if len(column[0])}

    def _begin_anew_if_replaced(self) -> None:
        replaced = False
        for part in self._parts.values():
            with part.growing.opened() as another:
                replaced |= another
        if replaced:
            self._replaced += 1
            self._fresh = True
            self._void.clear()
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
            "void": self._void,
            "misled": self._misled,
        }

    def restore(self, state: ReaderState) -> None:
        self._replaced, self._fresh = int(state["replaced"]), bool(state["fresh"])
        self._void, self._misled = [(path, at, step) for path, at, step in state["void"]], bool(state["misled"])
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
        steps = [part.step_name for part in self._parts.values() if part.step_name]
        tried = [part.tried for part in self._parts.values()]
        return MetricSource(
            self.path,
            self.format,
            tuple(skipped),
            max(written, default=None),
            steps[-1] if steps else "",
            tried[-1] if tried and all(tried) else "",
        )


_TIMES = ("_timestamp", "timestamp", "wall_time", "time")
_THIS_AGE = (1e9, 1e10)  # seconds since 1970: others are the run's own clock


class LineHistory(HistoryPart):
    """A file of lines. Half a last line is waited for; one that is longer than a block is passed over."""

    breaks: tuple[bytes, ...] = (b"\n",)
    fits = "lines"  # what holds a value here, in words

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.steps = StepCounter()
        self.unfit = 0  # lines that hold no row
        self._overlong = 0
        self._within = False  # a line that is too long
        self._unended = False
        self._wall: float | None = None
        self._some = False  # whether it has held a value

    @property
    def tried(self) -> str:
        return self.fits if self.growing.offset and not self._some else ""

    @property
    def step_name(self) -> str:
        return self.steps.name

    @property
    def misled(self) -> bool:
        return self.steps.misled

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
                self._some |= bool(batch[0])
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

    def restart(self, *, knowing: bool = False) -> None:
        super().restart()
        self.steps, self.unfit = StepCounter(self.steps.barred if knowing else ()), 0
        self._overlong, self._within, self._unended, self._wall = 0, False, False, None
        self._some = False

    def state(self) -> ReaderState:
        own = {"unfit": self.unfit, "overlong": self._overlong, "within": self._within, "wall": self._wall}
        own["some"] = self._some
        return {**super().state(), **own, "steps": self.steps.state()}

    def restore(self, state: ReaderState) -> None:
        super().restore(state)
        self.unfit, self._overlong, self._within = int(state["unfit"]), int(state["overlong"]), bool(state["within"])
        self._wall, self._some = state["wall"], bool(state["some"])
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
