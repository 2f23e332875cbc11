"""Histories with one row per line: what they share is the cutting into lines, and the step of each row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from muster.observe.find_columns import NAMES, plain_name
from muster.observe.metrics.chain import Batch, Gathered, Part
from muster.observe.metrics.growing import BLOCK
from muster.ports.metrics import Column, State

_TIMES = ("_timestamp", "timestamp", "wall_time", "time")
_THIS_AGE = (1e9, 1e10)  # seconds since 1970: others are the run's own clock
_RANK = {name: rank for rank, name in enumerate(NAMES)}


def counter_in(keys: Iterable[str]) -> str | None:
    """The key that counts the steps, if one does."""
    ranked = [(rank, key) for key in keys if (rank := _RANK.get(plain_name(key))) is not None]
    return min(ranked, key=lambda each: each[0])[1] if ranked else None


class Steps:
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

    def row(self, values: Sequence[tuple[str, float]], into: Gathered) -> None:
        """One row that was read slowly; the first one with a counter in it decides what counts."""
        if self.key is None:
            self.key = counter_in(key for key, _ in values)
        step = self.next(next((value for key, value in values if key == self.key), None))
        for key, value in values:
            into.add(key, step, value)
        into.count += 1

    def state(self) -> State:
        return {"key": self.key, "rows": self.rows, "last": self.last}

    def restore(self, state: State) -> None:
        self.key, self.rows, self.last = state["key"], int(state["rows"]), state["last"]


class LinesPart(Part):
    """A file of lines. Half a last line is waited for; one that is longer than a block is passed over."""

    breaks: tuple[bytes, ...] = (b"\n",)

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.steps = Steps()
        self.unfit = 0  # lines that hold no row
        self._overlong = 0
        self._within = False  # a line that is too long
        self._unended = False
        self._wall: float | None = None

    @abstractmethod
    def take(self, text: bytes) -> Batch | None:
        """Whole lines, without the last newline."""

    def take_unended(self, text: bytes) -> Batch | None:  # noqa: ARG002 - most kinds can't tell a half line from a whole one
        """The line that has not ended, where it is sure that it is whole."""
        return None

    def batches(self) -> Iterator[Batch]:
        growing = self.growing
        while growing.offset < growing.size:
            data = growing.at(growing.offset, BLOCK)
            cut = max(map(data.rfind, self.breaks))
            if cut < 0 and len(data) >= BLOCK:
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

    def _lines(self, data: bytes, cut: int) -> Batch | None:
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

    def _note_time(self, columns: dict[str, Column]) -> None:
        for name in _TIMES:
            if name in columns and _THIS_AGE[0] < columns[name][1][-1] < _THIS_AGE[1]:
                self._wall = columns[name][1][-1]
                return

    def restart(self) -> None:
        super().restart()
        self.steps, self.unfit = Steps(), 0
        self._overlong, self._within, self._unended, self._wall = 0, False, False, None

    def state(self) -> State:
        own = {"unfit": self.unfit, "overlong": self._overlong, "within": self._within, "wall": self._wall}
        return {**super().state(), **own, "steps": self.steps.state()}

    def restore(self, state: State) -> None:
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
