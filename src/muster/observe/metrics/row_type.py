"""A type for the rows of a JSONL file, made of the keys that were seen: decoding into it is fast and misses nothing.

Unknown keys and other types are errors of msgspec, so that a late key is never dropped: the type is made anew then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec

from muster.observe.metrics.numbers import leaves, plain

NUMBER, OTHER = "number", "other"  # of a key; nested keys have a mapping of their own
_MOST_LEAVES = 400
_DEEPEST = 8
Shape = dict[str, Any]


class RowType:
    def __init__(self) -> None:
        self.decode: Callable[[bytes], list[Any]] = lambda _: []
        self.numbers: list[str] = []  # keys that hold numbers only, joined by dots
        self.others: list[str] = []  # keys that hold something else now and then
        self._shape: Shape = {}
        self._get_numbers: Callable[[Any], Any] = lambda _: ()
        self._get_others: Callable[[Any], Any] = lambda _: ()

    @property
    def empty(self) -> bool:
        return not self._shape

    def learn(self, rows: Sequence[dict[str, Any]]) -> bool:
        """False where no type can be made of them."""
        for row in rows:
            if not _merge(self._shape, row, 0):
                return False
        paths = list(_paths(self._shape))
        if not paths or len(paths) > _MOST_LEAVES:
            return False
        try:
            self.decode = msgspec.json.Decoder(_struct(self._shape)).decode_lines
        except ValueError:  # a key with a quote or a control character in it
            return False
        self.numbers, self._get_numbers = _getter([each for each in paths if each[2] == NUMBER])
        self.others, self._get_others = _getter([each for each in paths if each[2] == OTHER])
        if all(kind == NUMBER for kind in self._shape.values()):
            self._get_numbers = msgspec.structs.astuple  # faster than asking for one after the other
        return True

    def matrix(self, rows: list[Any]) -> Any:
        """Rows x `numbers`, as numpy has it; NaN where a row lacks one: there are no other NaNs in what was decoded."""
        import numpy as np

        found = list(map(self._get_numbers, rows))
        try:
            flat = np.fromiter(chain.from_iterable(found), np.float64, len(rows) * len(self.numbers))
        except TypeError:
            return np.array(found, np.float64)  # None becomes NaN
        return flat.reshape(len(rows), len(self.numbers))

    def rest(self, rows: list[Any]) -> dict[str, list[float | None]]:
        """The numbers of the other keys; they may be objects now and then."""
        found: dict[str, list[float | None]] = {}
        if not self.others:
            return found
        for key, values in zip(self.others, zip(*map(self._get_others, rows), strict=True), strict=True):
            for at, value in enumerate(values):
                for name, number in leaves({key: value}) if value is not None else ():
                    found.setdefault(name, [None] * len(values))[at] = number
        return found


def _merge(shape: Shape, row: dict[str, Any], depth: int) -> bool:
    if depth > _DEEPEST:
        return False
    for key, value in row.items():
        known = shape.get(key)
        if isinstance(value, dict) and value and (known is None or isinstance(known, dict)):
            if not _merge(shape.setdefault(key, {}), value, depth + 1):
                return False
        elif plain(value) is not None:
            shape[key] = NUMBER if known in (None, NUMBER) else OTHER
        elif value is None:
            shape[key] = known if known == NUMBER else OTHER
        else:
            shape[key] = OTHER
    return True


def _paths(shape: Shape, key: str = "", path: str = "") -> Any:
    """(key, path of attributes, kind) of each leaf."""
    for number, (name, kind) in enumerate(shape.items()):
        if isinstance(kind, dict):
            yield from _paths(kind, f"{key}{name}.", f"{path}f{number}.")
        else:
            yield f"{key}{name}", f"{path}f{number}", kind


def _struct(shape: Shape) -> Any:
    fields: list[tuple[str, Any, Any]] = []
    for number, kind in enumerate(shape.values()):
        if isinstance(kind, dict):
            inner = _struct(kind)
            fields.append((f"f{number}", inner, msgspec.field(default_factory=inner)))
        else:
            fields.append((f"f{number}", float | None if kind == NUMBER else Any, None))
    names = {f"f{number}": name for number, name in enumerate(shape)}
    return msgspec.defstruct("Row", fields, rename=names, forbid_unknown_fields=True, gc=False)


def _getter(leaves_: list[tuple[str, str, str]]) -> tuple[list[str], Callable[[Any], Any]]:
    if not leaves_:
        return [], lambda _: ()
    get = attrgetter(*(path for _, path, _ in leaves_))
    keys = [key for key, _, _ in leaves_]
    return keys, get if len(keys) > 1 else lambda row: (get(row),)
