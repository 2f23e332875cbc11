"""Histories that are written anew as a whole: HF's `trainer_state.json`, and the summary that W&B leaves at exit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from muster.observe.metrics.chain import Gathered
from muster.observe.metrics.growing import Growing
from muster.observe.metrics.lines import Steps
from muster.observe.metrics.numbers import decode, leaves
from muster.ports.metrics import Ended, Rows, Said, State

MOST_BYTES = 128 << 20
RowsOf = Callable[[Any], list[dict[str, Any]] | None]


def log_history(whole: Any) -> list[dict[str, Any]] | None:
    """The rows of `trainer_state.json`."""
    found = whole.get("log_history") if isinstance(whole, dict) else None
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else None


def only_row(whole: Any) -> list[dict[str, Any]] | None:
    """A file that holds the last values alone."""
    return [whole] if isinstance(whole, dict) else None


class WholeJson:
    """Read again when it has changed; rows that were handed out already are not handed out again."""

    ended: Ended | None = None

    def __init__(self, path: str, form: str, rows_of: RowsOf, note: str = "") -> None:
        self.path, self.format, self.note = path, form, note
        self._rows_of = rows_of
        self._growing = Growing(path)
        self._seen: list[float] = []  # time and size of the file that was read last
        self._taken = 0
        self._last = ""  # the last row that was handed out
        self._trouble = ""
        self._steps = Steps()

    def read(self) -> Iterator[Rows]:
        with self._growing.opened():
            seen = [self._growing.written, float(self._growing.size)]
            if not self._growing.exists or seen == self._seen:
                return
            data = self._growing.at(0, min(self._growing.size, MOST_BYTES + 1))
        rows = self._rows_of(decode(data)) if len(data) <= MOST_BYTES else None
        self._trouble = "" if rows is not None else _why(data)
        if rows is None:
            return  # half written: what was read before stands
        self._seen = seen
        yield from self._new(rows)

    def _new(self, rows: list[dict[str, Any]]) -> Iterator[Rows]:
        fresh = self._taken > len(rows) or (self._taken > 0 and _told(rows[self._taken - 1]) != self._last)
        if fresh:
            self._taken, self._steps = 0, Steps()
        if self._taken == len(rows) and not fresh:
            return
        gathered = Gathered()
        for row in rows[self._taken :]:
            self._steps.row(list(leaves(row)), gathered)
        self._taken, self._last = len(rows), _told(rows[-1]) if rows else ""
        yield Rows(gathered.columns, gathered.count, fresh)

    def state(self) -> State:
        return {"seen": self._seen, "taken": self._taken, "last": self._last, "steps": self._steps.state()}

    def restore(self, state: State) -> None:
        self._seen, self._taken, self._last = list(state["seen"]), int(state["taken"]), state["last"]
        self._steps.restore(state["steps"])

    @property
    def said(self) -> Said:
        return Said(
            self.path, self.format, tuple(filter(None, (self.note, self._trouble))), self._growing.written or None
        )


def _told(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, default=str)


def _why(data: bytes) -> str:
    if len(data) > MOST_BYTES:
        return f"it has more than {MOST_BYTES >> 20} MiB"
    return "it is half written, or no JSON of its kind" if data.strip() else "it is empty"
