"""The arrays of an .npz file: as much of them as is asked for, and no more than fits."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from typing import Any

from muster.observe.containers import Broken, bounded_product, npy_header
from muster.observe.zips import BLOCK, DAMAGED, BadMember, open_member, zip_of
from muster.ports.regular_files import open_regular

MOST_BYTES = 128 << 20  # that the arrays that are asked for unfold to
_ENDING = ".npy"
_PLAIN = re.compile(r"[<>|=]?(?:\?|b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|[SU][0-9]{1,6})")


class NoArrays(Exception):
    """It can't be read; the message says why."""


def read_arrays(path: str, choose: Callable[[list[str]], list[str]], most: int = MOST_BYTES) -> dict[str, Any]:
    """`choose`: from the names that there are those that are wanted.

    Raises NoArrays, what `choose` raises, and OSError.
    """
    try:
        with open_regular(path) as file, zip_of(file) as archive:
            members = {each.filename.removesuffix(_ENDING): each for each in archive.infolist()}
            left, found = most, {}
            for name in choose(list(members)):
                found[name] = array = _array(archive, members[name], left)
                left -= array.nbytes
            return found
    except (Broken, BadMember, zipfile.BadZipFile) as error:
        raise NoArrays(f"it can't be read as npz: {error}") from None
    except (*DAMAGED, RuntimeError, KeyError, TypeError, MemoryError) as error:
        raise NoArrays(f"it can't be read as npz: {error}") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, left: int) -> Any:
    """Its size is what its header says, which is held against what comes out of the archive."""
    import numpy as np

    with open_member(archive, member) as file:
        header, _ = npy_header(file, member.file_size)
        descr, shape = header["descr"], header["shape"]
        if not isinstance(descr, str) or not _PLAIN.fullmatch(descr):
            raise BadMember(f"{member.filename[:80]!r} holds no plain numbers")
        dtype = np.dtype(descr)
        if not isinstance(shape, tuple) or len(shape) > 32:
            raise BadMember(f"{member.filename[:80]!r} has an unknown shape")
        size = bounded_product((*shape, dtype.itemsize))
        if size > left:
            raise NoArrays(f"it unfolds to more than {MOST_BYTES >> 20} MiB")
        data = bytearray()
        while len(data) < size and (piece := file.read(min(BLOCK, size - len(data)))):
            data += piece
        if len(data) < size or file.read(1):
            raise BadMember(f"{member.filename[:80]!r} is cut off")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if header.get("fortran_order") else "C")
