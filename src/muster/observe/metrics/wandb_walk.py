"""Many history records at once: numpy walks all of them side by side, item by item.

Only items whose lengths take one byte each are walked so; a record that holds any other is handed back to be read
slowly. All lengths are checked, so that both ways read the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from muster.observe.metrics.keys import Bytes, Ints, stable_order

_ITEM, _STEP, _KEY, _NESTED, _NUM = 0x0A, 0x12, 0x0A, 0x12, 0x08
_LONG = 0x80  # a length that takes more than one byte
_LONGEST_STEP = 9
_OWN_STEP = [int.from_bytes(bytes([tag, 5]) + b"_step", "little") for tag in (_KEY, _NESTED)]  # as a key is written
_OWN_STEP_BYTES = 7
_MINUS, _ZERO, _NINE, _COMMA = b"-09,"
_list = msgspec.json.Decoder(list[float]).decode


@dataclass(frozen=True, slots=True)
class Walked:
    """Items in the order of rows: where their keys and values lie."""

    steps: np.ndarray[Any, np.dtype[np.float64]]  # of each row
    plain: np.ndarray[Any, np.dtype[np.bool_]]  # of each row: whether it was walked
    rows: Ints
    keys: Ints  # where the key begins, with tag and length
    key_ends: Ints
    values: Ints
    value_ends: Ints


def walk(buffer: Bytes, starts: Ints, ends: Ints) -> Walked:
    """`starts`, `ends`: of each HistoryRecord in the buffer."""
    at, plain = starts.copy(), np.ones(len(starts), bool)
    found: list[tuple[Ints, ...]] = []
    active = np.flatnonzero((at < ends) & (buffer.at(at) == _ITEM))
    while len(active):
        here, end = at[active], ends[active]
        key = here + 2
        stop = key + buffer.at(here + 1)
        good = (stop <= end) & (buffer.at(here + 1) < _LONG)
        key_end, sound = _key_end(buffer, key, np.minimum(stop, end))
        value = key_end + 3
        size = buffer.at(np.minimum(key_end + 2, end))
        good &= sound & (buffer.at(key_end) == 0x82) & (buffer.at(key_end + 1) == 1)
        good &= (size < _LONG) & (value + size == stop)
        plain[active[~good]] = False
        active, stop = active[good], stop[good]
        found.append((active, key[good], key_end[good], value[good], stop))
        at[active] = stop
        active = active[(stop < ends[active]) & (buffer.at(stop) == _ITEM)]
    columns = [np.concatenate(each) for each in zip(*found, strict=True)] if found else [np.zeros(0, np.int64)] * 5
    without = plain & (at == ends)  # a step
    steps = _steps(buffer, at, ends, plain)
    if without.any():
        _take_own_steps(buffer, columns, without, steps, plain)
    whole = plain[columns[0]]
    order = stable_order(columns[0][whole], len(starts))
    rows, keys, key_ends, values, value_ends = (column[whole][order] for column in columns)
    return Walked(steps, plain, rows, keys, key_ends, values, value_ends)


def _key_end(buffer: Bytes, at: Ints, stop: Ints) -> tuple[Ints, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Behind `key`, or behind the last of the parts of `nested_key`; and whether they add up."""
    tag, size = buffer.at(at), buffer.at(at + 1)
    sound = ((tag == _KEY) | (tag == _NESTED)) & (size < _LONG) & (at + 2 + size < stop)
    end = np.where(sound, at + 2 + size, at)
    more = np.flatnonzero(sound & (tag == _NESTED) & (buffer.at(end) == _NESTED))
    while len(more):
        here = end[more]
        size = buffer.at(here + 1)
        fits = (size < _LONG) & (here + 2 + size < stop[more])
        sound[more[~fits]] = False
        more = more[fits]
        end[more] = here[fits] + 2 + size[fits]
        more = more[buffer.at(end[more]) == _NESTED]
    return end, sound


def _steps(buffer: Bytes, at: Ints, ends: Ints, plain: Any) -> Any:
    """HistoryStep must be all that is left; where it is not, the row is not plain."""
    left = ends - at
    at = np.minimum(at, ends)
    size = buffer.at(at + 1)
    plain &= (left >= 2) & (buffer.at(at) == _STEP) & (size == left - 2)
    plain &= (left == 2) | ((left >= 4) & (left <= 3 + _LONGEST_STEP) & (buffer.at(np.minimum(at + 2, ends)) == _NUM))
    steps = np.zeros(len(at), np.int64)
    longest = int(left[plain].max(initial=0)) - 3
    for place in range(longest):
        within = left > 3 + place
        byte = buffer.at(np.minimum(at + 3 + place, ends))
        steps |= np.where(within, (byte & 0x7F) << (7 * place), 0)
        goes_on = byte >= _LONG
        plain &= ~within | (goes_on == (left > 4 + place))  # it ends where the message ends, and not before
    return steps.astype(np.float64)


def _take_own_steps(buffer: Bytes, columns: list[Ints], without: Any, steps: Any, plain: Any) -> None:
    """Rows without a step that have the item `_step`, as a plain number, are plain."""
    rows, keys, key_ends, values, value_ends = columns
    items = np.flatnonzero(without[rows] & (key_ends - keys == _OWN_STEP_BYTES))
    names = buffer.words(keys[items]) & np.uint64((1 << 8 * _OWN_STEP_BYTES) - 1)
    items = items[np.isin(names, np.array(_OWN_STEP, np.uint64))]
    items = items[np.argsort(values[items])]
    told, good = plain_numbers(buffer, values[items], value_ends[items])
    steps[rows[items]], plain[rows[items]] = told, True
    plain[rows[items[~good]]] = False


def plain_numbers(buffer: Bytes, starts: Ints, ends: Ints) -> tuple[Any, Any]:
    """(the values, which of them are plain numbers). Starts must rise; before each there is a byte of no value."""
    first = buffer.at(starts)
    first = np.where(first == _MINUS, buffer.at(starts + 1), first)
    good = (first >= _ZERO) & (first <= _NINE) & (ends > starts)
    found = _decoded(buffer, starts[good], ends[good])
    values = np.full(len(starts), np.nan)
    if found is None:  # one of them only looks like a number
        good[:] = False
    else:
        values[good] = found
    return values, good


def _decoded(buffer: Bytes, starts: Ints, ends: Ints) -> Any:
    """All of them in one call: what lies between the values is left out, but for a comma before each."""
    text = buffer.copy()
    text[starts - 1] = _COMMA
    kept = np.zeros(len(text) + 1, np.int8)
    kept[starts - 1] = 1
    kept[ends] = -1
    kept = np.cumsum(kept, dtype=np.int8)[:-1].view(bool)
    found = _numbers(text[kept].tobytes()[1:])
    return None if found is None or len(found) != len(starts) else np.array(found)


def _numbers(text: bytes) -> list[float] | None:
    try:
        return _list(b"[%b]" % text)
    except (msgspec.MsgspecError, ValueError):
        return None
