"""Arrays in checkpoints: of an .npz file, as many as are asked for and no more than fits; of a pickle, where type,
shape and bytes must agree before numpy sees them.
"""

from __future__ import annotations

import math
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from muster.files.safe_open import open_regular_file
from muster.readers.checkpoints.file_formats import (
    DAMAGED_FILE_ERRORS,
    UNZIP_BLOCK,
    BrokenFile,
    UnreadableMember,
    multiply_sizes,
    open_zip,
    open_zip_member,
    read_npy_header,
)

MOST_ARRAY_BYTES = 128 << 20  # that the arrays that are asked for unfold to
_ENDING = ".npy"
_PLAIN = re.compile(r"[<>|=]?(?:\?|b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|[SU][0-9]{1,6})")


class UnreadableArrays(Exception):
    """It can't be read; the message says why."""


def read_npz_arrays(
    path: str, choose: Callable[[list[str]], list[str]], most: int = MOST_ARRAY_BYTES
) -> dict[str, Any]:
    """`choose`: from the names that there are those that are wanted.

    Raises NoArrays, what `choose` raises, and OSError.
    """
    try:
        with open_regular_file(path) as file, open_zip(file) as archive:
            members = {each.filename.removesuffix(_ENDING): each for each in archive.infolist()}
            left, found = most, {}
            for name in choose(list(members)):
                found[name] = array = _read_npz_member(archive, members[name], left)
                left -= array.nbytes
            return found
    except (BrokenFile, UnreadableMember, zipfile.BadZipFile) as error:
        raise UnreadableArrays(f"it can't be read as npz: {error}") from None
    except (*DAMAGED_FILE_ERRORS, RuntimeError, KeyError, TypeError, MemoryError) as error:
        raise UnreadableArrays(f"it can't be read as npz: {error}") from None


def _read_npz_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, left: int) -> Any:
    """Its size is what its header says, which is held against what comes out of the archive."""
    import numpy as np

    with open_zip_member(archive, member) as file:
        header, _ = read_npy_header(file, member.file_size)
        descr, shape = header["descr"], header["shape"]
        if not isinstance(descr, str) or not _PLAIN.fullmatch(descr):
            raise UnreadableMember(f"{member.filename[:80]!r} holds no plain numbers")
        dtype = np.dtype(descr)
        if not isinstance(shape, tuple) or len(shape) > 32:
            raise UnreadableMember(f"{member.filename[:80]!r} has an unknown shape")
        size = multiply_sizes((*shape, dtype.itemsize))
        if size > left:
            raise UnreadableArrays(f"it unfolds to more than {MOST_ARRAY_BYTES >> 20} MiB")
        data = bytearray()
        while len(data) < size and (piece := file.read(min(UNZIP_BLOCK, size - len(data)))):
            data += piece
        if len(data) < size or file.read(1):
            raise UnreadableMember(f"{member.filename[:80]!r} is cut off")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if header.get("fortran_order") else "C")


_SIMPLE = re.compile(r"\?|b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|[SU][1-9][0-9]{0,5}")
_OBJECTS = ("O", "O8", "O4")
_MOST_DIMENSIONS = 32
_LARGEST = 1 << 40


class PickleNotPlain(Exception):
    """It is no pickle of plain containers and arrays; the message says what is in it instead."""


class UnfinishedValue(ABC):
    """Made by one step and filled by a later one."""

    def __init__(self) -> None:
        self.places: list[int] = []  # where the machine remembers it

    @abstractmethod
    def build(self, state: Any) -> Any: ...


class PickledDType(UnfinishedValue):
    def __init__(self, code: str) -> None:
        super().__init__()
        self.code = code
        self.order = "="

    @property
    def objects(self) -> bool:
        return self.code in _OBJECTS

    def build(self, state: Any) -> PickledDType:
        if type(state) is not tuple or len(state) < 5 or any(part is not None for part in state[2:5]):
            raise PickleNotPlain("an array of records")
        if state[1] not in ("<", ">", "|", "="):
            raise PickleNotPlain("an array of an unknown byte order")
        self.order = state[1]
        return self


class PickledArray(UnfinishedValue):
    def build(self, state: Any) -> Any:
        if type(state) is not tuple or len(state) not in (4, 5):
            raise PickleNotPlain("an array with an unknown content")
        shape, dtype, fortran, raw = state[-4:]
        return make_array(dtype, shape, raw, fortran=bool(fortran))


def make_dtype(code: Any = None, *_: Any) -> PickledDType:
    if type(code) is not str or not (_SIMPLE.fullmatch(code) or code in _OBJECTS):
        raise PickleNotPlain(f"an array of type {str(code)[:40]!r}")
    return PickledDType(code)


def make_array(dtype: Any, shape: Any, raw: Any, *, fortran: bool) -> Any:
    """A view of the very bytes in the pickle: nothing is copied, and no size is believed."""
    if not isinstance(dtype, PickledDType):
        raise PickleNotPlain("an array without a type")
    count = _count_of_shape(shape)
    if dtype.objects:
        return _objects_as_list(raw, shape, count)
    import numpy as np

    known = np.dtype(f"{dtype.order}{dtype.code}")
    if type(raw) is not bytes or len(raw) != count * known.itemsize:
        raise PickleNotPlain("an array whose bytes do not fit its shape")
    return np.frombuffer(raw, known).reshape(shape, order="F" if fortran else "C")


def make_scalar(dtype: Any = None, raw: Any = b"") -> Any:
    """A number of numpy's, as one of Python's."""
    if isinstance(dtype, PickledDType) and dtype.objects:
        return raw
    return make_array(dtype, (), raw, fortran=False).item()


def is_numpy_array(value: Any) -> bool:
    kind = type(value)
    return kind.__name__ == "ndarray" and kind.__module__ == "numpy"


def _count_of_shape(shape: Any) -> int:
    if type(shape) is not tuple or len(shape) > _MOST_DIMENSIONS:
        raise PickleNotPlain("an array of an unknown shape")
    if not all(type(size) is int and 0 <= size < _LARGEST for size in shape):
        raise PickleNotPlain("an array of an unknown shape")
    return math.prod(shape)


def _objects_as_list(raw: Any, shape: tuple[int, ...], count: int) -> Any:
    """As the list that it is."""
    if type(raw) is not list or len(shape) > 1 or len(raw) != count:
        raise PickleNotPlain("an array of objects with several dimensions")
    return raw if shape else raw[0]
