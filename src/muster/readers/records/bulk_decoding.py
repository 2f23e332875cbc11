"""Decodes many rows at once, by numpy: events and history records side by side, item by item, into a column for each
key.

Only items whose lengths take one byte each are walked so; a record that holds any other is handed back to be read
slowly. All lengths are checked, so that both ways read the same.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from muster.readers.records.metric_reader import MetricColumn

IntArray = np.ndarray[Any, np.dtype[np.int64]]
KeyCells = tuple[Any, Any]  # the rows in which a key has a number, and the numbers
_SLACK = 16  # bytes behind the end that may be looked at
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], np.uint64)


class ByteBuffer:
    """A buffer with some slack behind it, as single bytes and as words of eight."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        padded = data + bytes(_SLACK)
        self._bytes = np.frombuffer(padded, np.uint8)
        self._words = np.ndarray((len(data) + _SLACK - 7,), "<u8", padded, strides=(1,))

    def copy(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        return self._bytes.copy()

    def at(self, places: IntArray) -> IntArray:
        return self._bytes[places].astype(np.int64)

    def floats(self, places: IntArray) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Four bytes each."""
        whole = np.zeros(len(places), np.uint32)
        for byte in range(4):
            whole |= self._bytes[places + byte].astype(np.uint32) << np.uint32(8 * byte)
        return whole.view(np.float32).astype(np.float64)

    def double(self, place: int) -> float:
        return float(np.frombuffer(self.data[place : place + 8], "<f8")[0])

    def words(self, places: IntArray) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return self._words[places]


def stable_sort_order(numbers: IntArray, most: int) -> IntArray:
    """Sorting by 16 bits is fast."""
    return np.argsort(numbers.astype(np.uint16) if most < 1 << 16 else numbers, kind="stable")


class KeyNumbering:
    """Numbers for keys, by their bytes: as words of eight, mixed, and compared word by word."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []  # by number
        self._mixed = np.zeros(0, np.uint64)  # sorted
        self._numbers = np.zeros(0, np.int64)

    def of(self, buffer: ByteBuffer, starts: IntArray, ends: IntArray) -> IntArray | None:
        """None where two keys can't be told apart: 64 bits of them are the same by chance."""
        sizes = ends - starts
        mixed, words = _mix_key_words(buffer, starts, sizes)
        places = np.minimum(np.searchsorted(self._mixed, mixed), max(len(self._mixed) - 1, 0))
        known = self._mixed[places] == mixed if len(self._mixed) else np.zeros(len(mixed), bool)
        if not known.all():
            self._learn(buffer, mixed, starts, ends, np.flatnonzero(~known))
            places = np.searchsorted(self._mixed, mixed)
        numbers: IntArray = self._numbers[places]
        return numbers if self._are(words, sizes, numbers) else None

    def _learn(self, buffer: ByteBuffer, mixed: Any, starts: IntArray, ends: IntArray, unknown: IntArray) -> None:
        _, first = np.unique(mixed[unknown], return_index=True)
        items = unknown[np.sort(first)]
        numbers = np.arange(len(self.keys), len(self.keys) + len(items))
        self.keys += [buffer.data[starts[item] : ends[item]] for item in items]
        known = np.concatenate([self._mixed, mixed[items]])
        order = np.argsort(known)
        self._mixed, self._numbers = known[order], np.concatenate([self._numbers, numbers])[order]

    def _are(self, words: list[Any], sizes: IntArray, numbers: IntArray) -> bool:
        width = 8 * len(words)
        padded = np.frombuffer(b"".join(key[:width].ljust(width, b"\0") for key in self.keys), "<u8")
        known = padded.reshape(len(self.keys), len(words))
        lengths = np.array([len(key) for key in self.keys])
        same = lengths[numbers] == sizes
        for place, word in enumerate(words):
            same &= known[numbers, place] == word
        return bool(same.all())


def _mix_key_words(buffer: ByteBuffer, starts: IntArray, sizes: IntArray) -> tuple[Any, list[Any]]:
    mixed = sizes.astype(np.uint64) * _MULTIPLIER
    words = []
    for place in range(0, int(sizes.max(initial=0)), 8):
        mask = _MASKS[np.clip(sizes - place, 0, 8)]
        within = sizes > place
        word = buffer.words(np.where(within, starts + place, 0)) & mask
        more = (mixed ^ word) * _MULTIPLIER
        mixed = np.where(within, more ^ more >> np.uint64(29), mixed)
        words.append(word)
    return mixed, words


def columns_from_cells(
    cells: dict[str, KeyCells], odd: dict[str, KeyCells], steps: array[float]
) -> dict[str, MetricColumn]:
    for key, more in odd.items():
        cells[key] = merge_cells(cells.get(key), more)
    every = np.arange(len(steps))
    of_rows = np.frombuffer(steps, np.float64)
    columns: dict[str, MetricColumn] = {}
    for key, (rows, values) in cells.items():
        dense = len(rows) == len(steps) and bool((rows == every).all())
        columns[key] = (steps if dense else array("d", of_rows[rows].tobytes()), array("d", values.tobytes()))
    return columns


def merge_cells(one: KeyCells | None, two: KeyCells) -> KeyCells:
    """In the order of rows."""
    if one is None:
        return two
    rows, values = np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]])
    order = np.argsort(rows, kind="stable")
    return rows[order], values[order]


_WALL, _EVENT_STEP_TAG, _SUMMARY, _SIMPLE = 0x09, 0x10, 0x2A, 0x15
_LONG_EVENT_VARINT = 0x80
_LONGEST_EVENT_STEP = 9
_SHORTEST_EVENT = 22  # wall time, step, and a summary of one number with an empty tag


@dataclass(frozen=True, slots=True)
class WalkedEvents:
    steps: np.ndarray[Any, np.dtype[np.float64]]
    heads: IntArray  # where the summary begins
    plain: Any  # which events look like one number: wall time, step, summary


def walk_events(buffer: ByteBuffer, starts: IntArray, ends: IntArray) -> WalkedEvents:
    plain = ends - starts >= _SHORTEST_EVENT
    first = np.where(plain, starts, 0)
    plain &= (buffer.at(first) == _WALL) & (buffer.at(first + 9) == _EVENT_STEP_TAG)
    at, steps = first + 10, np.zeros(len(starts), np.int64)
    going = np.flatnonzero(plain)
    for place in range(_LONGEST_EVENT_STEP):
        byte = buffer.at(at[going])
        steps[going] |= (byte & 0x7F) << (7 * place)
        at[going] += 1
        going = going[(byte >= _LONG_EVENT_VARINT) & (at[going] < ends[going])]
        if not len(going):
            break
    plain[going] = False
    plain &= at + 12 <= ends
    at = np.where(plain, at, 0)
    plain &= (buffer.at(at) == _SUMMARY) & (buffer.at(np.where(plain, ends - 5, 0)) == _SIMPLE)
    return WalkedEvents(steps.astype(np.float64), at, plain)


_ITEM, _HISTORY_STEP_TAG, _KEY, _NESTED, _NUM = 0x0A, 0x12, 0x0A, 0x12, 0x08
_LONG_HISTORY_LENGTH = 0x80  # a length that takes more than one byte
_LONGEST_HISTORY_STEP = 9
_OWN_STEP = [int.from_bytes(bytes([tag, 5]) + b"_step", "little") for tag in (_KEY, _NESTED)]  # as a key is written
_OWN_STEP_BYTES = 7
_MINUS, _ZERO, _NINE, _COMMA = b"-09,"
_decode_float_list = msgspec.json.Decoder(list[float]).decode


@dataclass(frozen=True, slots=True)
class WalkedHistory:
    """Items in the order of rows: where their keys and values lie."""

    steps: np.ndarray[Any, np.dtype[np.float64]]  # of each row
    plain: np.ndarray[Any, np.dtype[np.bool_]]  # of each row: whether it was walked
    rows: IntArray
    keys: IntArray  # where the key begins, with tag and length
    key_ends: IntArray
    values: IntArray
    value_ends: IntArray


def walk_history_records(buffer: ByteBuffer, starts: IntArray, ends: IntArray) -> WalkedHistory:
    """`starts`, `ends`: of each HistoryRecord in the buffer."""
    at, plain = starts.copy(), np.ones(len(starts), bool)
    found: list[tuple[IntArray, ...]] = []
    active = np.flatnonzero((at < ends) & (buffer.at(at) == _ITEM))
    while len(active):
        here, end = at[active], ends[active]
        key = here + 2
        stop = key + buffer.at(here + 1)
        good = (stop <= end) & (buffer.at(here + 1) < _LONG_HISTORY_LENGTH)
        key_end, sound = _end_of_keys(buffer, key, np.minimum(stop, end))
        value = key_end + 3
        size = buffer.at(np.minimum(key_end + 2, end))
        good &= sound & (buffer.at(key_end) == 0x82) & (buffer.at(key_end + 1) == 1)
        good &= (size < _LONG_HISTORY_LENGTH) & (value + size == stop)
        plain[active[~good]] = False
        active, stop = active[good], stop[good]
        found.append((active, key[good], key_end[good], value[good], stop))
        at[active] = stop
        active = active[(stop < ends[active]) & (buffer.at(stop) == _ITEM)]
    columns = [np.concatenate(each) for each in zip(*found, strict=True)] if found else [np.zeros(0, np.int64)] * 5
    without = plain & (at == ends)  # a step
    steps = _steps_of_records(buffer, at, ends, plain)
    if without.any():
        _fill_own_steps(buffer, columns, without, steps, plain)
    whole = plain[columns[0]]
    order = stable_sort_order(columns[0][whole], len(starts))
    rows, keys, key_ends, values, value_ends = (column[whole][order] for column in columns)
    return WalkedHistory(steps, plain, rows, keys, key_ends, values, value_ends)


def _end_of_keys(
    buffer: ByteBuffer, at: IntArray, stop: IntArray
) -> tuple[IntArray, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Behind `key`, or behind the last of the parts of `nested_key`; and whether they add up."""
    tag, size = buffer.at(at), buffer.at(at + 1)
    sound = ((tag == _KEY) | (tag == _NESTED)) & (size < _LONG_HISTORY_LENGTH) & (at + 2 + size < stop)
    end = np.where(sound, at + 2 + size, at)
    more = np.flatnonzero(sound & (tag == _NESTED) & (buffer.at(end) == _NESTED))
    while len(more):
        here = end[more]
        size = buffer.at(here + 1)
        fits = (size < _LONG_HISTORY_LENGTH) & (here + 2 + size < stop[more])
        sound[more[~fits]] = False
        more = more[fits]
        end[more] = here[fits] + 2 + size[fits]
        more = more[buffer.at(end[more]) == _NESTED]
    return end, sound


def _steps_of_records(buffer: ByteBuffer, at: IntArray, ends: IntArray, plain: Any) -> Any:
    """HistoryStep must be all that is left; where it is not, the row is not plain."""
    left = ends - at
    at = np.minimum(at, ends)
    size = buffer.at(at + 1)
    plain &= (left >= 2) & (buffer.at(at) == _HISTORY_STEP_TAG) & (size == left - 2)
    plain &= (left == 2) | (
        (left >= 4) & (left <= 3 + _LONGEST_HISTORY_STEP) & (buffer.at(np.minimum(at + 2, ends)) == _NUM)
    )
    steps = np.zeros(len(at), np.int64)
    longest = int(left[plain].max(initial=0)) - 3
    for place in range(longest):
        within = left > 3 + place
        byte = buffer.at(np.minimum(at + 3 + place, ends))
        steps |= np.where(within, (byte & 0x7F) << (7 * place), 0)
        goes_on = byte >= _LONG_HISTORY_LENGTH
        plain &= ~within | (goes_on == (left > 4 + place))  # it ends where the message ends, and not before
    return steps.astype(np.float64)


def _fill_own_steps(buffer: ByteBuffer, columns: list[IntArray], without: Any, steps: Any, plain: Any) -> None:
    """Rows without a step that have the item `_step`, as a plain number, are plain."""
    rows, keys, key_ends, values, value_ends = columns
    items = np.flatnonzero(without[rows] & (key_ends - keys == _OWN_STEP_BYTES))
    names = buffer.words(keys[items]) & np.uint64((1 << 8 * _OWN_STEP_BYTES) - 1)
    items = items[np.isin(names, np.array(_OWN_STEP, np.uint64))]
    items = items[np.argsort(values[items])]
    told, good = decode_plain_numbers(buffer, values[items], value_ends[items])
    steps[rows[items]], plain[rows[items]] = told, True
    plain[rows[items[~good]]] = False


def decode_plain_numbers(buffer: ByteBuffer, starts: IntArray, ends: IntArray) -> tuple[Any, Any]:
    """(the values, which of them are plain numbers). Starts must rise; before each there is a byte of no value."""
    first = buffer.at(starts)
    first = np.where(first == _MINUS, buffer.at(starts + 1), first)
    good = (first >= _ZERO) & (first <= _NINE) & (ends > starts)
    found = _decode_values_at_once(buffer, starts[good], ends[good])
    values = np.full(len(starts), np.nan)
    if found is None:  # one of them only looks like a number
        good[:] = False
    else:
        values[good] = found
    return values, good


def _decode_values_at_once(buffer: ByteBuffer, starts: IntArray, ends: IntArray) -> Any:
    """All of them in one call: what lies between the values is left out, but for a comma before each."""
    text = buffer.copy()
    text[starts - 1] = _COMMA
    kept = np.zeros(len(text) + 1, np.int8)
    kept[starts - 1] = 1
    kept[ends] = -1
    kept = np.cumsum(kept, dtype=np.int8)[:-1].view(bool)
    found = _decode_number_list_text(text[kept].tobytes()[1:])
    return None if found is None or len(found) != len(starts) else np.array(found)


def _decode_number_list_text(text: bytes) -> list[float] | None:
    try:
        return _decode_float_list(b"[%b]" % text)
    except (msgspec.MsgspecError, ValueError):
        return None
