"""W&B: the `.wandb` file that every run writes, online or offline, read without the wandb package.

A row is one record: its items hold a key (nested ones in parts) and a value as JSON; the step comes last. Clients
before 0.18 left it out where it was given by `log(..., step=)`: then it is in the item `_step` alone. Summary records,
two for each row, are passed over unread.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from muster.readers.records.growing_file import READ_BLOCK
from muster.readers.records.history_parts import ColumnBatch, HistoryPart
from muster.readers.records.metric_reader import ReaderState, RecordedRunEnd
from muster.readers.records.record_frames import (
    BYTES,
    VARINT,
    WANDB_HEADER_BYTES,
    WANDB_IDENT,
    NotProtobuf,
    WandbFrames,
    message_fields,
    signed_int64,
)
from muster.readers.records.row_steps import decode_json_value, numeric_leaves, parse_number
from muster.readers.records.step_counter import GatheredColumns

if TYPE_CHECKING:
    from muster.readers.records.bulk_decoding import ByteBuffer, KeyCells, KeyNumbering, WalkedHistory

TIMESTAMP_KEY = "_timestamp"
WANDB_STEP_KEY = "_step"  # W&B's own counter
_NUM, _HISTORY, _SUMMARY, _STATS = 0x08, 0x12, 0x1A, 0x3A  # tags of a record's fields
_EXIT = 18
_ITEM, _STEP = 1, 2
_KEY, _NESTED, _INTEGER, _NUMBER, _JSON, _VALUE = 1, 2, 5, 6, 8, 16
OddValue = tuple[int, str, bytes]  # row, key, and what was written there


class WandbHistoryRows:
    """Turns history records into columns."""

    def __init__(self) -> None:
        self.unreadable = 0  # records
        self._keys: list[str] = []  # by number
        self._numbers: KeyNumbering | None = None

    def batch(self, bodies: Sequence[bytes]) -> ColumnBatch:
        """HistoryRecords, in the order of writing."""
        import numpy as np

        from muster.readers.records.bulk_decoding import ByteBuffer, columns_from_cells, walk_history_records

        buffer = ByteBuffer(b"".join(bodies))
        ends = np.cumsum(np.fromiter(map(len, bodies), np.int64, len(bodies)))
        walked = walk_history_records(buffer, np.concatenate([[0], ends[:-1]]), ends)
        steps = array("d", walked.steps.tobytes())
        slow = np.flatnonzero(~walked.plain).tolist()
        rows = [(row, items) for row in slow if (items := self._read_slowly(bodies[row], row, steps)) is not None]
        odd = [(row, key, text) for row, items in rows for key, text in items]
        cells = self._walked_cells(buffer, walked, odd)
        odd.sort(key=itemgetter(0))  # those of slow rows came first; within a row the order of writing stays
        return columns_from_cells(cells, _cells_of_odd_values(odd), steps), len(bodies) - len(slow) + len(rows)

    def _walked_cells(self, buffer: ByteBuffer, walked: WalkedHistory, odd: list[OddValue]) -> dict[str, KeyCells]:
        """Plain numbers by key; what is none of those is put with the odd ones."""
        import numpy as np

        from muster.readers.records.bulk_decoding import (
            KeyNumbering,
            decode_plain_numbers,
            merge_cells,
            stable_sort_order,
        )

        self._numbers = self._numbers or KeyNumbering()
        if not len(walked.rows):
            return {}
        numbers = self._numbers.of(buffer, walked.keys, walked.key_ends)
        if numbers is None:
            places = zip(walked.rows, walked.keys, walked.key_ends, walked.values, walked.value_ends, strict=True)
            odd += [(int(row), _key_of_item(buffer.data[a:b]), buffer.data[c:d]) for row, a, b, c, d in places]
            return {}
        self._keys += [_key_of_item(raw) for raw in self._numbers.keys[len(self._keys) :]]
        values, good = decode_plain_numbers(buffer, walked.values, walked.value_ends)
        for item in np.flatnonzero(~good).tolist():
            text = buffer.data[walked.values[item] : walked.value_ends[item]]
            odd.append((int(walked.rows[item]), self._keys[numbers[item]], text))
        numbers, rows = numbers[good], walked.rows[good]
        order = stable_sort_order(numbers, len(self._keys))
        numbers, rows, values = numbers[order], rows[order], values[good][order]
        bounds = np.searchsorted(numbers, np.arange(len(self._keys) + 1)).tolist()
        cells: dict[str, KeyCells] = {}
        for key, at, end in zip(self._keys, bounds, bounds[1:], strict=False):
            if at < end:  # `a.b` may be written as one key and as two parts
                cells[key] = merge_cells(cells.get(key), (rows[at:end], values[at:end]))
        return cells

    def _read_slowly(self, body: bytes, row: int, steps: array[float]) -> list[tuple[str, bytes]] | None:
        try:
            steps[row], items = read_history_row(body)
        except NotProtobuf:
            self.unreadable += 1
            return None
        return items


def _cells_of_odd_values(odd: list[OddValue]) -> dict[str, KeyCells]:
    """NaN, Infinity, and what holds numbers inside; texts, lists and the like are no numbers."""
    import numpy as np

    found = GatheredColumns()
    for row, key, text in odd:
        value = parse_number(text)
        if value is not None:
            found.add(key, row, value)
        elif text.startswith(b"{"):
            for name, number in numeric_leaves({key: decode_json_value(text)}):
                found.add(name, row, number)
    return {key: (np.array(rows, np.int64), np.array(values)) for key, (rows, values) in found.columns.items()}


def _key_of_item(data: bytes) -> str:
    """From the fields `key` or `nested_key` of an item that was walked."""
    return ".".join(
        data[start:end].decode("utf-8", "replace") for _, _, start, end in message_fields(data, 0, len(data))
    )


def read_history_row(body: bytes) -> tuple[float, list[tuple[str, bytes]]]:
    """(step, items) of a HistoryRecord of any form. Raises NotProtobuf."""
    step: float | None = None
    items: list[tuple[str, bytes] | None] = []
    for field, kind, start, end in message_fields(body, 0, len(body)):
        if field == _ITEM and kind == BYTES:
            items.append(_history_item(body, start, end))
        elif field == _STEP and kind == BYTES:
            step = next(
                (signed_int64(v) for f, k, v, _ in message_fields(body, start, end) if (f, k) == (1, VARINT)), 0
            )
    found = [item for item in items if item is not None]
    return float(_own_step_of_items(found) if step is None else step), found


def _own_step_of_items(items: list[tuple[str, bytes]]) -> float:
    told = parse_number(dict(items).get(WANDB_STEP_KEY, b""))
    return told if told is not None and math.isfinite(told) else 0.0


def _history_item(body: bytes, at: int, end: int) -> tuple[str, bytes] | None:
    parts: list[str] = []
    text: bytes | None = None
    for field, kind, start, stop in message_fields(body, at, end):
        if field in (_KEY, _NESTED) and kind == BYTES:
            parts.append(body[start:stop].decode("utf-8", "replace"))
        elif field in (_VALUE, _JSON) and kind == BYTES:
            text = body[start:stop]
        elif field == _INTEGER and kind == VARINT:
            text = b"%d" % signed_int64(start)
        elif field == _NUMBER and stop - start == 8:
            text = repr(_double_of_bytes(body[start:stop])).encode()
    return (".".join(parts), text) if parts and text is not None else None


def _double_of_bytes(data: bytes) -> float:
    return array("d", data)[0] if _IS_LITTLE_ENDIAN else array("d", data[::-1])[0]


_IS_LITTLE_ENDIAN = array("H", [1]).tobytes()[0] == 1


class WandbHistory(HistoryPart):
    """One `.wandb` file."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._frames = WandbFrames()
        self._rows = WandbHistoryRows()
        self._bodies: list[bytes] = []  # of the read that is going on
        self._ended: RecordedRunEnd | None = None
        self._wall: float | None = None
        self._foreign = False

    def batches(self) -> Iterator[ColumnBatch]:
        growing, frames = self.growing, self._frames
        if growing.offset == 0 and not self._begins():
            return
        while True:
            before = frames.at
            data = growing.at(before, READ_BLOCK)
            bodies = self._bodies = []
            for record, start, end in frames.records(data, growing.size):
                self._take(record, start, end)
            if frames.whole > growing.offset:
                growing.go_on(frames.whole)
            if bodies:
                columns, count = self._rows.batch(bodies)
                if TIMESTAMP_KEY in columns:
                    self._wall = columns[TIMESTAMP_KEY][1][-1]
                yield columns, count
            if frames.at == before or before + len(data) >= growing.size:
                return

    def _begins(self) -> bool:
        head = self.growing.at(0, WANDB_HEADER_BYTES)
        self._foreign = not WANDB_IDENT.startswith(head[:4])
        if len(head) < WANDB_HEADER_BYTES or self._foreign:
            return False
        self.growing.go_on(WANDB_HEADER_BYTES)
        return True

    def _take(self, data: bytes, at: int, end: int) -> None:
        begin = at
        if at < end and data[at] == _NUM:
            at += 2
            while at < end and data[at - 1] > 0x7F:
                at += 1
        tag = data[at] if at < end else 0
        if tag == _HISTORY and at + 3 < end:
            low, high = data[at + 1], data[at + 2]  # a length of two bytes, as nearly all have
            if low > 0x7F > high and at + 3 + (low & 0x7F | high << 7) == end:
                self._bodies.append(data[at + 3 : end])
                return
        if tag not in (_SUMMARY, _STATS):
            self._take_other(data, begin, end)

    def _take_other(self, data: bytes, at: int, end: int) -> None:
        """A record of any form and kind."""
        try:
            for field, kind, start, stop in message_fields(data, at, end):
                if kind != BYTES:
                    continue
                if field == _EXIT:
                    self._ended = _parse_exit_record(data, start, stop)
                elif field == _HISTORY >> 3:
                    self._bodies.append(data[start:stop])
        except NotProtobuf:
            self._rows.unreadable += 1

    def restart(self, *, knowing: bool = False) -> None:
        super().restart(knowing=knowing)
        self._frames, self._rows, self._ended, self._wall = WandbFrames(), WandbHistoryRows(), None, None

    def state(self) -> ReaderState:
        ended = [self._ended.code, self._ended.runtime_s] if self._ended else None
        told = {"damaged": self._frames.damaged, "unreadable": self._rows.unreadable}
        return {**super().state(), **told, "ended": ended, "wall": self._wall}

    def restore(self, state: ReaderState) -> None:
        super().restore(state)
        self._frames = WandbFrames(max(WANDB_HEADER_BYTES, self.growing.offset))
        self._frames.damaged, self._rows.unreadable = int(state["damaged"]), int(state["unreadable"])
        self._ended = RecordedRunEnd(*state["ended"]) if state["ended"] else None
        self._wall = state["wall"]

    @property
    def ended(self) -> RecordedRunEnd | None:
        return self._ended

    @property
    def written(self) -> float | None:
        """As the rows tell it: the file's own time rises with the machine's statistics, whatever the run does."""
        return self._wall

    @property
    def step_name(self) -> str:
        return WANDB_STEP_KEY

    def skipped(self) -> Iterator[str]:
        if self._foreign:
            yield "it is no .wandb file"
        if damaged := self._frames.damaged:
            yield f"{damaged} damaged {'block' if damaged == 1 else 'blocks'} of 32 KiB passed over"
        if self._rows.unreadable:
            yield f"{self._rows.unreadable} records that could not be understood"
        if self._frames.torn:
            yield "its end is not whole yet"


def history_record_in(data: bytes, at: int, end: int) -> bytes | None:
    """The HistoryRecord in a record, if it holds one."""
    return _inner_message(data, at, end, _HISTORY >> 3)


def exit_record_in(data: bytes, at: int, end: int) -> RecordedRunEnd | None:
    """The run's own word that it ended, if this record holds it."""
    found = _inner_message(data, at, end, _EXIT)
    try:
        return _parse_exit_record(found, 0, len(found)) if found is not None else None
    except NotProtobuf:
        return None


def _inner_message(data: bytes, at: int, end: int, wanted: int) -> bytes | None:
    try:
        for field, kind, start, stop in message_fields(data, at, end):
            if field == wanted and kind == BYTES:
                return data[start:stop]
    except NotProtobuf:
        pass
    return None


def _parse_exit_record(data: bytes, at: int, end: int) -> RecordedRunEnd:
    found: dict[int, Any] = {
        field: signed_int64(v) for field, kind, v, _ in message_fields(data, at, end) if kind == VARINT
    }
    return RecordedRunEnd(found.get(1, 0), float(found[2]) if 2 in found else None)
