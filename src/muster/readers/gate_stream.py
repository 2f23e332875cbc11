"""The rows that a gate reads, as a run writes them: what is new since the last look."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from muster.model.campaign import GateSource
from muster.readers.records.growing_file import READ_BLOCK, GrowingFile
from muster.readers.records.logged_runs import newest_run_in
from muster.readers.records.metric_reader import MetricReader
from muster.readers.records.row_steps import decode_json_row
from muster.readers.records.table_rows import BYTE_ORDER_MARK, TableHeader
from muster.stages.notation import parse_finite_number
from muster.stages.traces import EvaluationRow

PATIENCE_S = 1.0
LONGEST_WORD = 1000  # letters
LONGEST_GATE_LINE = 1 << 20  # bytes of a line that has not ended: what is longer is no row


@dataclass(frozen=True, slots=True)
class GateRows:
    rows: Sequence[EvaluationRow]
    fresh: bool = False  # the file was replaced: what was handed out before does not count any more


class GateStream(Protocol):
    def look(self) -> GateRows:
        """Raises OSError where it is there and can't be read."""

    def rest(self) -> list[EvaluationRow]:
        """Of a run that has ended, behind a look: what may not have been whole before is so now."""


def open_gate_stream(read: GateSource, stage: str | None, base: str, since: float = 0.0) -> GateStream:
    """`read`: as the gate declares it; `base`: the folder that its path is relative to; `since`: when the run began.

    What was last written before that is an earlier run's, which had the same folder.
    """
    kind, path = read.place
    path = os.path.join(glob.escape(base), path)  # noqa: PTH118  it may be a glob
    if kind in ("jsonl", "csv"):
        return TextGateStream(path, kind, read.step, stage or "stage", since)
    return RecordGateStream(path, kind)


@dataclass(slots=True)
class TextGateStream:
    """Lines of JSON or CSV. The newest of the files that fit is read."""

    pattern: str
    kind: str
    step: str
    stage: str
    since: float = 0.0
    _file: GrowingFile | None = None
    _header: TableHeader | None = None  # of CSV
    _tail: bytes = b""  # a last line that has not ended

    def look(self) -> GateRows:
        path, self._tail = _newest_matching_file(self.pattern, self.since), b""
        if path is None:
            return GateRows(())
        other = self._file is not None and self._file.path != path
        if self._file is None or other:
            self._file, self._header = GrowingFile(path), None
        with self._file.opened() as replaced:
            if replaced:
                self._header = None
            rows = [row for line in self._lines(self._file) if (row := self._row(line)) is not None]
        return GateRows(rows, replaced or other)

    def rest(self) -> list[EvaluationRow]:
        """Not every script ends its last line. One that was cut is no row: it lacks its brace, or some columns."""
        line, self._tail = self._tail, b""
        row = self._row(line) if line.strip() else None
        return [row] if row and (self.kind == "jsonl" or len(row.values) + 1 >= self._columns()) else []

    def _columns(self) -> int:
        names = self._header.names if self._header else ()
        return len(names) - (self.stage in names)

    def _lines(self, file: GrowingFile) -> Iterator[bytes]:
        """Those that have ended. One that is too long to be a row is passed over."""
        rest = b""
        at = file.offset
        while at < file.size:
            block = file.at(at, READ_BLOCK)
            if not block:
                break
            at += len(block)
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                if line.strip():
                    yield line
            if len(rest) > LONGEST_GATE_LINE:
                rest = b""
            file.go_on(at - len(rest))
        self._tail = rest

    def _row(self, line: bytes) -> EvaluationRow | None:
        found = decode_json_row(line.removeprefix(BYTE_ORDER_MARK)) if self.kind == "jsonl" else self._table_row(line)
        entry = found if isinstance(found, dict) else {}
        at = entry.get(self.step)
        if isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at < 2**53 or at != int(at):
            return None
        label = entry.get(self.stage)
        values = {
            name: _without_large_values(value) for name, value in entry.items() if name not in (self.step, self.stage)
        }
        return EvaluationRow(int(at), values, str(label) if label is not None else "")

    def _table_row(self, line: bytes) -> dict[str, Any]:
        if self._header is None:
            self._header = TableHeader.of_line(line)
            return {}
        header, fields = self._header, self._header.fields(line)
        if header.is_followed_by(fields):
            self._header = TableHeader.of_line(line)
            return {}
        row = {}
        for name, cell in zip(header.names, fields, strict=False):
            number = parse_finite_number(cell.strip())
            grouped = header.number(cell) if number is None and "," in cell else None
            row[name] = grouped if grouped is not None else cell if number is None else number
        return row


@dataclass(slots=True)
class RecordGateStream:
    """W&B and TensorBoard: each value has a step, and the values of one step are a row. They name no stage."""

    folder: str
    kind: str
    _reader: MetricReader | None = None
    _rows: dict[int, dict[str, float]] = field(default_factory=dict)
    _last: int = -1  # the newest step that was handed out

    def look(self) -> GateRows:
        if self._reader is None:
            found = _newest_matching_file(self.folder)
            run = newest_run_in(found, PATIENCE_S).run if found else None
            source = next((each for each in run.sources if each.kind == self.kind), None) if run else None
            if source is None:
                return GateRows(())
            self._reader = source.make()
        fresh = False
        touched: set[int] = set()
        for rows in self._reader.read():
            if rows.fresh:
                self._rows, self._last, fresh, touched = {}, -1, True, set()
            for key, (steps, values) in rows.columns.items():
                for step, value in zip(steps, values, strict=True):
                    if 0 <= step < 2**53:
                        self._rows.setdefault(int(step), {})[key] = value
                        touched.add(int(step))
        return GateRows(self._from(min(touched, default=self._last + 1), whole=False), fresh)

    def rest(self) -> list[EvaluationRow]:
        return self._from(self._last + 1, whole=True)

    def _from(self, first: int, *, whole: bool) -> list[EvaluationRow]:
        """The newest step may not be whole yet: it is handed out with the next one. Where a step that was handed out
        got more, or was written again, all from there on comes once more."""
        steps = sorted(step for step in self._rows if step >= min(first, self._last + 1))
        ready = steps if whole or not steps or steps[-1] < max(self._rows) else steps[:-1]
        if ready:
            self._last = ready[-1]
        return [EvaluationRow(step, dict(self._rows[step])) for step in ready]


def _without_large_values(value: Any) -> Any:
    """A gate compares numbers and words: a list or an endless text is kept for none of the rows."""
    return None if isinstance(value, list | dict) or (isinstance(value, str) and len(value) > LONGEST_WORD) else value


def _newest_matching_file(pattern: str, since: float = 0.0) -> str | None:
    found = [path for path in glob.glob(pattern) if not since or _gate_file_time(path) >= since]  # noqa: PTH207
    if len(found) < 2:
        return found[0] if found else None
    return max(found, key=lambda path: (_gate_file_time(path), path))


def _gate_file_time(path: str) -> float:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116
    except OSError:
        return 0.0
