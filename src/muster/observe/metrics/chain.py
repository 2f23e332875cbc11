"""One history out of one or several files: event files of a run that was restarted follow each other."""

# Paths are texts here, as in the rest of this room.
# ruff: noqa: PTH119

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterator, Sequence

from muster.observe.metrics.growing import Growing
from muster.ports.metrics import Column, Ended, Rows, Said, State

Batch = tuple[dict[str, Column], int]  # columns, and how many rows


class Part(ABC):
    """One file of a history."""

    def __init__(self, path: str) -> None:
        self.growing = Growing(path)

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """What is new; the file is opened. `growing.go_on` is called before each batch is handed out."""

    @abstractmethod
    def skipped(self) -> Iterator[str]:
        """What could not be read, in words."""

    def restart(self) -> None:
        """Reading begins anew."""
        self.growing.go_on(0)

    def state(self) -> State:
        return self.growing.state()

    def restore(self, state: State) -> None:
        self.growing.restore(state)

    @property
    def ended(self) -> Ended | None:
        return None

    @property
    def written(self) -> float | None:
        """Wall time of the last value."""
        return self.growing.written or None


class Chain:
    """A metric reader over all files that `find` names, in that order."""

    def __init__(self, path: str, form: str, make: Callable[[str], Part], find: Callable[[], Sequence[str]]) -> None:
        self.path = path
        self.format = form
        self.note = ""  # why these files and no others, where that is worth saying
        self._make = make
        self._find = find
        self._parts: dict[str, Part] = {}
        self._replaced = 0
        self._fresh = False

    @classmethod
    def of_file(cls, path: str, form: str, make: Callable[[str], Part]) -> Chain:
        return cls(path, form, make, lambda: [path])

    @property
    def files(self) -> Sequence[str]:
        """As they are there now."""
        return self._find()

    def read(self) -> Iterator[Rows]:
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

    def _rows(self, columns: dict[str, Column], count: int) -> Rows:
        fresh, self._fresh = self._fresh, False
        return Rows(columns, count, fresh)

    def state(self) -> State:
        return {
            "parts": {path: part.state() for path, part in self._parts.items()},
            "replaced": self._replaced,
            "fresh": self._fresh,
        }

    def restore(self, state: State) -> None:
        self._replaced, self._fresh = int(state["replaced"]), bool(state["fresh"])
        self._parts = {path: self._make(path) for path in state["parts"]}
        for path, part in self._parts.items():
            part.restore(state["parts"][path])

    @property
    def ended(self) -> Ended | None:
        """Of the last file: a run that was resumed goes on in another one."""
        return next((part.ended for part in reversed(self._parts.values())), None)

    @property
    def said(self) -> Said:
        skipped = [self.note] if self.note else []
        for path, part in self._parts.items():
            name = f"{os.path.basename(path)}: " if len(self._parts) > 1 else ""
            skipped += [name + each for each in part.skipped()]
        if self._replaced:
            skipped.append("the file was replaced or cut while it was read: what it held before is not counted")
        written = [time for part in self._parts.values() if (time := part.written) is not None]
        return Said(self.path, self.format, tuple(skipped), max(written, default=None))


class Gathered:
    """Columns of numbers, row by row: for rows that no faster way fits."""

    def __init__(self) -> None:
        self.columns: dict[str, Column] = {}
        self.count = 0

    def add(self, key: str, step: float, value: float) -> None:
        column = self.columns.get(key)
        if column is None:
            column = self.columns[key] = (array("d"), array("d"))
        column[0].append(step)
        column[1].append(value)
