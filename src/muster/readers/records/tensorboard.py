"""TensorBoard event files, read without tensorboard: scalars as plain numbers and as tensors of one element."""

# ruff: noqa: PTH118, PTH119, PTH120
# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import os
import re
import struct
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.readers.discovery.folder_walk import LogSource
from muster.readers.records.growing_file import READ_BLOCK
from muster.readers.records.history_parts import ColumnBatch, HistoryChain, HistoryPart
from muster.readers.records.metric_reader import MetricReader, ReaderState
from muster.readers.records.record_frames import (
    BYTES,
    FIXED32,
    FIXED64,
    HEAD,
    VARINT,
    EventFrames,
    NotProtobuf,
    message_fields,
    read_varint,
    signed_int64,
)
from muster.readers.records.record_kinds import LogSearch, RecordKind, run_folder_of_logs
from muster.readers.records.step_counter import GatheredColumns

if TYPE_CHECKING:
    from muster.readers.records.bulk_decoding import ByteBuffer, IntArray, KeyCells, KeyNumbering

_WALL, _STEP, _SUMMARY, _SESSION = 1, 2, 5, 7  # Event
_STARTED = b"\x08\x01"  # of a session: it was started, perhaps again
_VALUE = 1  # Summary
_TAG, _SIMPLE, _TENSOR = 1, 2, 8  # Summary.Value
_DTYPE, _SHAPE, _CONTENT, _FLOATS, _DOUBLES, _INTS, _INT64S, _HALVES = 1, 2, 4, 5, 6, 7, 10, 13  # TensorProto
_DTYPE_FORMATS = {1: "<f", 2: "<d", 3: "<i", 4: "<B", 5: "<h", 6: "<b", 9: "<q", 17: "<H", 19: "<e", 22: "<I", 23: "<Q"}
_FIXED_WIDTH_FIELDS = {_FLOATS: "<f", _DOUBLES: "<d"}
_HALF, _BFLOAT = 19, 14
_SIMPLE_TAG = 0x15


@dataclass(frozen=True, slots=True)
class ScalarEvent:
    wall: float
    step: int
    values: list[tuple[str, float]]
    starts: bool = False  # what was written before, from this step on, was taken back


def read_scalar_event(data: bytes) -> ScalarEvent:
    """Of any form. Raises NotProtobuf."""
    wall, step = 0.0, 0
    values: list[tuple[str, float]] = []
    starts = False
    for field, kind, start, end in message_fields(data, 0, len(data)):
        if field == _WALL and kind == FIXED64:
            (wall,) = struct.unpack("<d", data[start:end])
        elif field == _STEP and kind == VARINT:
            step = signed_int64(start)
        elif field == _SUMMARY and kind == BYTES:
            values += _summary_values(data, start, end)
        elif field == _SESSION and kind == BYTES:
            starts = data[start:end].startswith(_STARTED)
    return ScalarEvent(wall, step, values, starts)


def _summary_values(data: bytes, at: int, end: int) -> Iterator[tuple[str, float]]:
    for field, kind, start, stop in message_fields(data, at, end):
        if field != _VALUE or kind != BYTES:
            continue
        tag, value = "", None
        for part, form, begin, close in message_fields(data, start, stop):
            if part == _TAG and form == BYTES:
                tag = data[begin:close].decode("utf-8", "replace")
            elif part == _SIMPLE and form == FIXED32:
                (value,) = struct.unpack("<f", data[begin:close])
            elif part == _TENSOR and form == BYTES:
                value = _scalar_of_tensor(data, begin, close)
        if value is not None:
            yield tag, value


def _scalar_of_tensor(data: bytes, at: int, end: int) -> float | None:
    """The one number of a tensor; None where it holds none or several."""
    dtype, found = 0, []
    for field, kind, start, stop in message_fields(data, at, end):
        if field == _DTYPE and kind == VARINT:
            dtype = start
        elif field == _SHAPE and kind == BYTES and not _is_single_element(data, start, stop):
            return None
        elif field == _CONTENT and kind == BYTES and start < stop:
            form = _DTYPE_FORMATS.get(dtype)
            if form is None or stop - start != struct.calcsize(form):
                return None
            found.append(float(struct.unpack(form, data[start:stop])[0]))
        elif field in (_FLOATS, _DOUBLES, _INTS, _INT64S, _HALVES):
            found += _repeated_numbers(data, field, kind, start, stop, dtype)
    return found[0] if len(found) == 1 else None


def _is_single_element(data: bytes, at: int, end: int) -> bool:
    """All dimensions are 1, or there are none."""
    for field, kind, start, stop in message_fields(data, at, end):
        if field == 2 and kind == BYTES:
            size = next(
                (signed_int64(v) for f, k, v, _ in message_fields(data, start, stop) if (f, k) == (1, VARINT)), 0
            )
            if size != 1:
                return False
    return True


def _repeated_numbers(data: bytes, field: int, kind: int, start: int, stop: int, dtype: int) -> list[float]:
    """Of a repeated field: packed, or a single one."""
    if field in _FIXED_WIDTH_FIELDS:
        form = _FIXED_WIDTH_FIELDS[field]
        size = struct.calcsize(form)
        if (stop - start) % size:
            raise NotProtobuf("a list of numbers does not add up")
        return [float(struct.unpack(form, data[each : each + size])[0]) for each in range(start, stop, size)]
    whole: list[int] = [start] if kind == VARINT else []
    while kind == BYTES and start < stop:
        value, start = read_varint(data, start, stop)
        whole.append(value)
    if field == _HALVES:
        return [_half_precision_number(value, dtype) for value in whole]
    return [float(signed_int64(value)) for value in whole]


def _half_precision_number(bits: int, dtype: int) -> float:
    if dtype == _BFLOAT:
        return float(struct.unpack("<f", struct.pack("<I", (bits & 0xFFFF) << 16))[0])
    return float(struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0])


class ScalarColumns:
    """Turns events into columns: those with one plain number side by side, the others one by one."""

    def __init__(self) -> None:
        self.unreadable = 0  # events
        self.wall: float | None = None
        self.starts: list[
            tuple[int, float]
        ] = []  # of the batch: a row, and from which step on those before it are void
        self._tags: list[str | None] = []  # by number; None: it only looked like one
        self._numbers: KeyNumbering | None = None

    def batch(self, data: bytes, events: list[tuple[int, int]]) -> ColumnBatch:
        import numpy as np

        from muster.readers.records.bulk_decoding import ByteBuffer, columns_from_cells, walk_events

        buffer = ByteBuffer(data)
        starts, ends = (np.array(each, np.int64) for each in zip(*events, strict=True))
        walked = walk_events(buffer, starts, ends)
        steps = array("d", walked.steps.tobytes())
        cells, done = self._walked_cells(buffer, walked.heads, ends, walked.plain)
        self.starts = []
        odd, numbered = GatheredColumns(), np.flatnonzero(done)
        if len(numbered):
            self.wall = buffer.double(starts[numbered[-1]] + 1)
        for row in np.flatnonzero(~done).tolist():
            self._take_slowly(data[starts[row] : ends[row]], row, steps, odd)
        loose = {key: (np.array(rows, np.int64), np.array(values)) for key, (rows, values) in odd.columns.items()}
        if self.starts:
            cells, loose = (_without_void_rows(each, steps, self.starts) for each in (cells, loose))
        return columns_from_cells(cells, loose, steps), len(events)

    def _walked_cells(
        self, buffer: ByteBuffer, heads: IntArray, ends: IntArray, plain: IntArray
    ) -> tuple[dict[str, KeyCells], IntArray]:
        """By tag; and which events they were in."""
        import numpy as np

        from muster.readers.records.bulk_decoding import KeyNumbering, merge_cells, stable_sort_order

        done = np.zeros(len(ends), bool)
        self._numbers = self._numbers or KeyNumbering()
        rows = np.flatnonzero(plain)
        numbers = self._numbers.of(buffer, heads[rows], ends[rows] - 4) if len(rows) else None
        if numbers is None:
            return {}, done
        self._tags += [_tag_of_plain_event(raw) for raw in self._numbers.keys[len(self._tags) :]]
        values = buffer.floats(ends[rows] - 4)
        order = stable_sort_order(numbers, len(self._tags))
        rows, values = rows[order], values[order]
        bounds = np.searchsorted(numbers[order], np.arange(len(self._tags) + 1)).tolist()
        cells: dict[str, KeyCells] = {}
        for tag, at, end in zip(self._tags, bounds, bounds[1:], strict=False):
            if tag is not None and at < end:
                cells[tag] = merge_cells(cells.get(tag), (rows[at:end], values[at:end]))
                done[rows[at:end]] = True
        return cells, done

    def _take_slowly(self, data: bytes, row: int, steps: array[float], into: GatheredColumns) -> None:
        try:
            event = read_scalar_event(data)
        except NotProtobuf:
            self.unreadable += 1
            return
        steps[row] = float(event.step)
        if event.starts:
            self.starts.append((row, float(event.step)))
        for tag, value in event.values:
            into.add(tag, row, value)
        if event.values:
            self.wall = max(self.wall or 0.0, event.wall)


def _without_void_rows(
    cells: dict[str, KeyCells], steps: array[float], starts: list[tuple[int, float]]
) -> dict[str, KeyCells]:
    import numpy as np

    told, kept = np.frombuffer(steps), np.ones(len(steps), bool)
    for row, step in starts:
        kept[:row] &= told[:row] < step
    return {key: (rows[kept[rows]], values[kept[rows]]) for key, (rows, values) in cells.items() if kept[rows].any()}


def _tag_of_plain_event(head: bytes) -> str | None:
    """`head` is an event from its summary up to the number: exactly one value with a tag and a number?"""
    end = len(head) + 4
    sizes = [head[1:2], head[3:4], head[5:6]]
    if head[:1] != b"\x2a" or head[2:3] != b"\x0a" or head[4:5] != b"\x0a" or any(each > b"\x7f" for each in sizes):
        return None
    summary, value, tag = (each[0] for each in sizes)
    if (summary, value, tag) != (end - 2, end - 4, end - 11) or head[-1] != _SIMPLE_TAG:
        return None
    return head[6:-1].decode("utf-8", "replace")


class TensorboardHistory(HistoryPart):
    """One event file."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._frames = EventFrames()
        self._rows = ScalarColumns()

    def take_back_from(self) -> float | None:
        return min((step for _, step in self._rows.starts), default=None)

    def batches(self) -> Iterator[ColumnBatch]:
        growing, frames = self.growing, self._frames
        while frames.at < growing.size:
            before = frames.at
            data = growing.at(before, READ_BLOCK + HEAD)
            events = frames.events(data, growing.size)
            if frames.at > before:
                growing.go_on(frames.at)
            if events:
                yield self._rows.batch(data, events)
            if frames.at == before or before + len(data) >= growing.size:
                return

    def restart(self, *, knowing: bool = False) -> None:
        super().restart(knowing=knowing)
        self._frames, self._rows = EventFrames(), ScalarColumns()

    def state(self) -> ReaderState:
        told = {"damaged": self._frames.damaged, "unreadable": self._rows.unreadable, "wall": self._rows.wall}
        return {**super().state(), **told}

    def restore(self, state: ReaderState) -> None:
        super().restore(state)
        self._frames = EventFrames(self.growing.offset)
        self._frames.damaged, self._rows.unreadable = int(state["damaged"]), int(state["unreadable"])
        self._rows.wall = state["wall"]

    @property
    def written(self) -> float | None:
        return self._rows.wall

    def skipped(self) -> Iterator[str]:
        if damaged := self._frames.damaged:
            yield f"{damaged} damaged {'place' if damaged == 1 else 'places'} passed over"
        if self._rows.unreadable:
            yield f"{self._rows.unreadable} events that could not be understood"
        if self._frames.torn:
            yield "its end is not whole yet"


def _find_event_folders(search: LogSearch) -> Iterator[LogSource]:
    """All event files of a folder follow each other; several folders of one run are told apart by their names."""
    folders: dict[str, list[str]] = defaultdict(list)
    for path in search.around.files:
        if ".tfevents." in os.path.basename(path) and not search.is_of_wandb(path):
            folders[os.path.dirname(path)].append(path)
    of_run: dict[str, list[str]] = defaultdict(list)
    for folder in folders:
        of_run[run_folder_of_logs(folder, search.root)].append(folder)
    for run, mine in of_run.items():
        for folder in sorted(mine):
            prefix = f"{os.path.relpath(folder, run)}/" if len(mine) > 1 and folder != run else ""
            count = len(folders[folder])
            why = "event files" if count == 1 else f"{count} event files, one after the other"
            yield LogSource(folder, "tensorboard", run, _tensorboard_reader(folder), why, prefix)


def _tensorboard_reader(folder: str) -> Callable[[], MetricReader]:
    return lambda: HistoryChain(folder, "tensorboard", TensorboardHistory, lambda: event_files_in_order(folder))


def event_files_in_order(folder: str) -> list[str]:
    """In the order of their beginning, which is in their names."""
    try:
        names = [name for name in os.listdir(folder) if ".tfevents." in name]  # noqa: PTH208
    except OSError:
        return []
    return [os.path.join(folder, name) for name in sorted(names, key=_event_file_start)]


def _event_file_start(name: str) -> tuple[float, str]:
    digits = re.search(r"\.tfevents\.(\d+)", name)
    return float(digits[1]) if digits else 0.0, name


TENSORBOARD = RecordKind(
    "tensorboard",
    lambda path: HistoryChain.of_file(path, "tensorboard", TensorboardHistory),
    lambda file: "event files" if ".tfevents." in file.name else "",
    _find_event_folders,
)
