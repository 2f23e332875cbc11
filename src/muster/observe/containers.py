"""Whether a file of a known format is whole, by its content and without executing any of it.

Each check returns what was looked at, or raises Broken with a plain reason. Nothing is loaded: large parts are
streamed or skipped, and what is looked at is bounded by the budget.
"""

from __future__ import annotations

import ast
import os
import pickletools
import re
import struct
import zipfile
from dataclasses import dataclass
from typing import IO, Any, BinaryIO

from muster.observe.zips import DAMAGED, BadMember, open_member, zip_of
from muster.ports.bounded_json import TooManyValues, loads_bounded
from muster.ports.regular_files import open_regular

_BLOCK = 1 << 20
_MOST_OPCODES = 2_000_000  # under two seconds; a pickle of arrays has thousands
_LARGEST_HEADER = 100_000_000  # safetensors' own limit
_READ_HEADER = 8 << 20  # of that are read: some 60,000 tensors, several times those of the largest files there are
_NPY_HEADER = 10_000  # numpy's own limit
_LARGEST = 1 << 62  # bytes or elements of anything
_UNFOLDED = 256 << 20  # bytes that an archive may unfold to, and
_FOLDS = 20  # times its own size; beyond that only sizes are compared
_LONGEST_LINE = 1 << 20  # of a pickle's text
_NPY = b"\x93NUMPY"
_DESCR = re.compile(r"[<>|=]?([?a-zA-Z])(\d*)(\[.*\])?")
_WIDTH = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2,
          "I8": 1, "U8": 1, "BOOL": 1, "F8_E5M2": 1, "F8_E4M3": 1}  # fmt: skip
_LEGACY_TORCH = bytes.fromhex("6cfc9c46f9206aa85019")  # the number that old torch.save files begin with
_TWO_LINES = -100  # pickletools calls the arguments of GLOBAL and INST one line; they are two
_OPCODES = {
    ord(op.code): (op.name, _TWO_LINES if op.name in ("GLOBAL", "INST") else op.arg.n if op.arg else 0)
    for op in pickletools.opcodes
}
_COUNTED = {  # a length, then that many bytes
    pickletools.TAKEN_FROM_ARGUMENT1: "<B",
    pickletools.TAKEN_FROM_ARGUMENT4: "<i",
    pickletools.TAKEN_FROM_ARGUMENT4U: "<I",
    pickletools.TAKEN_FROM_ARGUMENT8U: "<Q",
}


class Broken(Exception):
    """The file is not whole; the message says why."""


@dataclass
class Budget:
    """Bytes whose checksums may still be computed; beyond that only sizes are compared."""

    left: int = 2 << 30

    def take(self, size: int) -> bool:
        if size > self.left:
            return False
        self.left -= size
        return True


def check_zip(path: str, budget: Budget) -> str:
    """torch.save, npz, keras: the central directory, then the checksum of each member."""
    try:
        with open_regular(path) as file, zip_of(file) as archive:
            members = archive.infolist()
            _check_directory(members)
            unfolding = Budget(_UNFOLDED + _FOLDS * _size(file))
            unread = sum(not _check_member(archive, member, budget, unfolding) for member in members)
    except BadMember as error:
        raise Broken(f"the zip archive is not read: {error}") from None
    except zipfile.BadZipFile as error:
        raise Broken("the zip archive is cut off or damaged: " + _lower(str(error))) from None
    except DAMAGED as error:
        raise Broken(f"the zip archive is damaged: {error}") from None
    kind = "npz" if all(member.filename.endswith(".npy") for member in members) else "zip"
    return f"{kind}, {len(members)} members, " + ("checksums right" if not unread else f"{unread} by size only")


def _check_directory(members: list[zipfile.ZipInfo]) -> None:
    if not members:
        raise Broken("the zip archive is empty")
    # an archive inside a member looks like a whole one where the outer one was cut off just behind it
    if min(member.header_offset for member in members) != 0:
        raise Broken("the zip archive is cut off: its directory is not its own")


def _check_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, budget: Budget, unfolding: Budget) -> bool:
    """Whether its checksum was computed; zipfile raises BadZipFile at the end of a member whose checksum differs."""
    if not (budget.take(member.file_size) and unfolding.take(member.file_size)):
        return False
    try:
        with open_member(archive, member) as file:  # which gives no more than the size that was taken
            if member.filename.endswith(".npy"):
                _check_npy_stream(file, member.file_size)
            while file.read(_BLOCK):
                pass
    except (NotImplementedError, RuntimeError):  # a password
        return False
    return True


def check_npy(path: str, _: Budget) -> str:
    with open_regular(path) as file:
        size = _size(file)
        _check_npy_stream(file, size)
    return f"npy, {size} bytes as its header says"


def _check_npy_stream(file: IO[bytes], size: int) -> None:
    header, length = npy_header(file, size)
    try:
        count = bounded_product(header["shape"])
        item = _item_size(header["descr"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Broken("the npy header can't be read") from None
    wanted = None if item is None else length + count * item
    if wanted is not None and wanted != size:
        raise Broken(f"the npy array has {size} bytes, its header says {wanted}")


def npy_header(file: IO[bytes], size: int) -> tuple[dict[str, Any], int]:
    """What it says, and where the array begins. Raises Broken, also for a header that numpy would not read."""
    start = _exactly(file, 8)
    if start[:6] != _NPY:
        raise Broken("not an npy array although it is named so")
    width, form = (2, "<H") if start[6] == 1 else (4, "<I")
    length = struct.unpack(form, _exactly(file, width))[0]
    if length > size:
        raise Broken("the npy header is cut off")
    if length > _NPY_HEADER:
        raise Broken(f"the npy header has {length} bytes; numpy reads {_NPY_HEADER}")
    try:
        header = ast.literal_eval(_exactly(file, length).decode("utf-8").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise Broken("the npy header can't be read") from None
    if not isinstance(header, dict):
        raise Broken("the npy header can't be read")
    return header, 8 + width + length


def bounded_product(sizes: Any) -> int:
    """Raises ValueError where it is larger than any file: numbers of a million digits take for ever to multiply."""
    count = 1
    for size in sizes:
        if type(size) is not int or not 0 <= size < _LARGEST:
            raise ValueError("no size")
        count *= size
        if count >= _LARGEST:
            raise ValueError("too large")
    return count


def _item_size(descr: Any) -> int | None:
    """Bytes of one element of a dtype description; None: can't be told, as for pickled objects."""
    if isinstance(descr, list):
        sizes = [_field_size(field) for field in descr]
        return None if None in sizes else sum(size for size in sizes if size is not None)
    match = _DESCR.fullmatch(descr)
    if match is None or match.group(1) == "O" or not match.group(2):
        return None
    return bounded_product((int(match.group(2)), 4 if match.group(1) == "U" else 1))


def _field_size(field: Any) -> int | None:
    size = _item_size(field[1])
    return None if size is None else bounded_product((size, *(field[2] if len(field) > 2 else ())))


def check_safetensors(path: str, _: Budget) -> str:
    """The header's length, its JSON, and tensors that cover the rest of the file without a gap."""
    with open_regular(path) as file:
        size = _size(file)
        length = struct.unpack("<Q", _exactly(file, 8))[0]
        if length > min(_LARGEST_HEADER, size - 8):
            raise Broken(f"the header is cut off: {length} bytes wanted, {max(0, size - 8)} there")
        if length > _READ_HEADER:
            return f"safetensors, its header of {length} bytes not read"
        try:
            header = loads_bounded(_exactly(file, length))
            tensors = [tensor for name, tensor in header.items() if name != "__metadata__"]
            spans = sorted((*map(_offset, t["data_offsets"]), _tensor_size(t)) for t in tensors)
        except TooManyValues as error:
            raise Broken(f"the safetensors header is not read: {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            raise Broken("the safetensors header can't be read") from None
    _check_cover(spans, size - 8 - length)
    return f"safetensors, {len(tensors)} tensors cover the file exactly"


def _offset(value: Any) -> int:
    return bounded_product((value,))


def _tensor_size(tensor: dict[str, Any]) -> int:
    """-1: a dtype that is not known here."""
    width = _WIDTH.get(tensor["dtype"])
    return -1 if width is None else bounded_product((width, *tensor["shape"]))


def _check_cover(spans: list[Any], data: int) -> None:
    end = 0
    for start, stop, wanted in spans:
        if start != end or stop < start or (wanted >= 0 and stop - start != wanted):
            raise Broken("the tensors' offsets leave a gap or overlap")
        end = stop
    if end != data:
        raise Broken(f"{data} bytes of tensors, the header says {end}" + (": cut off" if data < end else ""))


def check_pickle(path: str, _: Budget) -> str:
    """Walks the opcodes without executing one: each pickle must end with STOP, and the last one with the file."""
    count, opcodes = 0, 0
    with open_regular(path) as file:
        size = _size(file)
        start = file.read(4096)
        file.seek(0)
        legacy = _LEGACY_TORCH in start[:16]
        if b"joblib.numpy_pickle" in start:  # raw arrays lie between its opcodes
            return f"joblib, {size} bytes, content not checked"
        while file.tell() < size:
            opcodes += _walk(file, size, _MOST_OPCODES - opcodes)
            count += 1
            if opcodes >= _MOST_OPCODES:
                return _last_byte(file, size, opcodes)
            if legacy and count == 5:  # magic, version, machine, object, keys; then raw storages
                return f"old torch format, {opcodes} opcodes, {size - file.tell()} bytes of storage not checked"
    return f"pickle, {opcodes} opcodes to its STOP, not executed"


def _walk(file: BinaryIO, size: int, most: int) -> int:
    """Reads one pickle to its STOP; returns the opcodes seen."""
    for seen in range(1, most + 1):
        code = file.read(1)
        if not code:
            raise Broken(f"the pickle is cut off after {size} bytes: no STOP at its end")
        name, arg = _OPCODES.get(code[0], (None, 0))
        if name is None:
            raise Broken(f"no pickle opcode at byte {file.tell() - 1} of {size}")
        if name == "STOP":
            return seen
        if arg:
            _skip(file, arg, size)
    return most


def _skip(file: BinaryIO, arg: int, size: int) -> None:
    if arg in (pickletools.UP_TO_NEWLINE, _TWO_LINES):
        for _ in range(2 if arg == _TWO_LINES else 1):
            if not file.readline(_LONGEST_LINE).endswith(b"\n"):
                raise Broken("the pickle is cut off inside a line")
        return
    if arg in _COUNTED:
        form = _COUNTED[arg]
        arg = struct.unpack(form, _exactly(file, struct.calcsize(form)))[0]
    if arg < 0 or file.tell() + arg > size:
        raise Broken(f"the pickle is cut off: {arg} bytes wanted at byte {file.tell()} of {size}")
    file.seek(arg, os.SEEK_CUR)


def _last_byte(file: BinaryIO, size: int, opcodes: int) -> str:
    file.seek(size - 1)
    if file.read(1) != b".":
        raise Broken("the pickle is cut off: no STOP at its end")
    return f"pickle, {opcodes} opcodes walked and a STOP at its end, not executed"


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _exactly(file: IO[bytes], count: int) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise Broken(f"cut off: {count} bytes wanted, {len(data)} there")
    return data


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
