"""The arrays of a pickle: a type, a shape and bytes that must fit each other before numpy hears of them."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from typing import Any

_SIMPLE = re.compile(r"\?|b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|[SU][1-9][0-9]{0,5}")
_OBJECTS = ("O", "O8", "O4")
_MOST_DIMENSIONS = 32
_LARGEST = 1 << 40


class NotPlain(Exception):
    """It is no pickle of plain containers and arrays; the message says what is in it instead."""


class Unfinished(ABC):
    """Made by one step and filled by a later one."""

    def __init__(self) -> None:
        self.places: list[int] = []  # where the machine remembers it

    @abstractmethod
    def build(self, state: Any) -> Any: ...


class DType(Unfinished):
    def __init__(self, code: str) -> None:
        super().__init__()
        self.code = code
        self.order = "="

    @property
    def objects(self) -> bool:
        return self.code in _OBJECTS

    def build(self, state: Any) -> DType:
        if type(state) is not tuple or len(state) < 5 or any(part is not None for part in state[2:5]):
            raise NotPlain("an array of records")
        if state[1] not in ("<", ">", "|", "="):
            raise NotPlain("an array of an unknown byte order")
        self.order = state[1]
        return self


class Array(Unfinished):
    def build(self, state: Any) -> Any:
        if type(state) is not tuple or len(state) not in (4, 5):
            raise NotPlain("an array with an unknown content")
        shape, dtype, fortran, raw = state[-4:]
        return array_of(dtype, shape, raw, fortran=bool(fortran))


def dtype_of(code: Any = None, *_: Any) -> DType:
    if type(code) is not str or not (_SIMPLE.fullmatch(code) or code in _OBJECTS):
        raise NotPlain(f"an array of type {str(code)[:40]!r}")
    return DType(code)


def array_of(dtype: Any, shape: Any, raw: Any, *, fortran: bool) -> Any:
    """A view of the very bytes in the pickle: nothing is copied, and no size is believed."""
    if not isinstance(dtype, DType):
        raise NotPlain("an array without a type")
    count = _count(shape)
    if dtype.objects:
        return _objects(raw, shape, count)
    import numpy as np

    known = np.dtype(f"{dtype.order}{dtype.code}")
    if type(raw) is not bytes or len(raw) != count * known.itemsize:
        raise NotPlain("an array whose bytes do not fit its shape")
    return np.frombuffer(raw, known).reshape(shape, order="F" if fortran else "C")


def scalar_of(dtype: Any = None, raw: Any = b"") -> Any:
    """A number of numpy's, as one of Python's."""
    if isinstance(dtype, DType) and dtype.objects:
        return raw
    return array_of(dtype, (), raw, fortran=False).item()


def is_array(value: Any) -> bool:
    kind = type(value)
    return kind.__name__ == "ndarray" and kind.__module__ == "numpy"


def _count(shape: Any) -> int:
    if type(shape) is not tuple or len(shape) > _MOST_DIMENSIONS:
        raise NotPlain("an array of an unknown shape")
    if not all(type(size) is int and 0 <= size < _LARGEST for size in shape):
        raise NotPlain("an array of an unknown shape")
    return math.prod(shape)


def _objects(raw: Any, shape: tuple[int, ...], count: int) -> Any:
    """As the list that it is."""
    if type(raw) is not list or len(shape) > 1 or len(raw) != count:
        raise NotPlain("an array of objects with several dimensions")
    return raw if shape else raw[0]
