"""Whether a file of a known format (zip, npy, safetensors, pickle) is whole, by its content and without executing any
of it.

Each check returns what was looked at, or raises BrokenFile with a plain reason. Nothing is loaded: large parts are
streamed or skipped, and what is looked at is bounded by the budget. What really comes out of a zip archive is
counted; what it claims is not believed. Only members that are stored or deflated are read, as torch, numpy and keras
write them: a few hundred bytes of bzip2 unfold to gigabytes before anybody can look.
"""

from __future__ import annotations

import ast
import os
import pickletools
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from io import BufferedIOBase
from typing import IO, Any, BinaryIO, cast

from muster.files.json_codec import TooManyJsonValues, load_bounded_json
from muster.files.safe_open import open_regular_file

UNZIP_BLOCK = 1 << 20
MOST_MEMBERS = 100_000
LARGEST_DIRECTORY = 16 << 20  # bytes: of 100,000 members with long names
_READ_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_METHOD_NAMES = {zipfile.ZIP_BZIP2: "bzip2", zipfile.ZIP_LZMA: "LZMA"}

# what zipfile and what it decompresses with raise over garbage
DAMAGED_FILE_ERRORS = (EOFError, zlib.error, struct.error, ValueError, OverflowError, NotImplementedError)


class UnreadableMember(Exception):
    """A part of the archive that is not read; the message says which and why."""


class _BoundedZipFile(BufferedIOBase):
    """zipfile reads a whole directory at once, of whatever size it claims."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > LARGEST_DIRECTORY:
            raise UnreadableMember(f"its directory has {size} bytes")
        return self._file.read(-1 if size is None else size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True


def open_zip(file: BinaryIO) -> zipfile.ZipFile:
    """Raises zipfile.BadZipFile, BadMember, or one of DAMAGED."""
    archive = zipfile.ZipFile(cast(Any, _BoundedZipFile(file)))
    if len(archive.infolist()) > MOST_MEMBERS:
        raise UnreadableMember(f"it has more than {MOST_MEMBERS} members")
    return archive


def open_zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    """Read it in pieces. Raises BadMember where it is compressed in another way than by deflate."""
    if member.compress_type not in _READ_METHODS:
        how = _METHOD_NAMES.get(member.compress_type, f"method {member.compress_type}")
        raise UnreadableMember(f"{member.filename[:80]!r} is compressed with {how}, which is not read")
    return archive.open(member)


def read_zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    """All of it. Raises BadMember where more than `most` bytes come out."""
    pieces: list[bytes] = []
    left = most
    with open_zip_member(archive, member) as file:
        while piece := file.read(UNZIP_BLOCK):
            pieces.append(piece)
            left -= len(piece)
            if left < 0:
                raise UnreadableMember(f"{member.filename[:80]!r} unfolds to more than {most >> 20} MiB")
    return b"".join(pieces)


_STREAM_BLOCK = 1 << 20
_MOST_OPCODES = 2_000_000  # under two seconds; a pickle of arrays has thousands
_LARGEST_HEADER = 100_000_000  # safetensors' own limit
_MOST_HEADER_READ = 8 << 20  # of that are read: some 60,000 tensors, several times those of the largest files there are
_NPY_HEADER = 10_000  # numpy's own limit
_LARGEST = 1 << 62  # bytes or elements of anything
_UNFOLDED = 256 << 20  # bytes that an archive may unfold to, and
_FOLDS = 20  # times its own size; beyond that only sizes are compared
_LONGEST_LINE = 1 << 20  # of a pickle's text
_NPY = b"\x93NUMPY"
_DESCR = re.compile(r"[<>|=]?([?a-zA-Z])(\d*)(\[.*\])?")
_WIDTH = {
    "F64": 8,
    "I64": 8,
    "U64": 8,
    "F32": 4,
    "I32": 4,
    "U32": 4,
    "F16": 2,
    "BF16": 2,
    "I16": 2,
    "U16": 2,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
    "F8_E5M2": 1,
    "F8_E4M3": 1,
}
_LEGACY_TORCH = bytes.fromhex("6cfc9c46f9206aa85019")  # the number that old torch.save files begin with
_TWO_LINES = -100  # pickletools calls the arguments of GLOBAL and INST one line; they are two
_OPCODE_ARGUMENTS = {
    ord(op.code): (op.name, _TWO_LINES if op.name in ("GLOBAL", "INST") else op.arg.n if op.arg else 0)
    for op in pickletools.opcodes
}
_LENGTH_FORMATS = {  # a length, then that many bytes
    pickletools.TAKEN_FROM_ARGUMENT1: "<B",
    pickletools.TAKEN_FROM_ARGUMENT4: "<i",
    pickletools.TAKEN_FROM_ARGUMENT4U: "<I",
    pickletools.TAKEN_FROM_ARGUMENT8U: "<Q",
}


class BrokenFile(Exception):
    """The file is not whole; the message says why."""


@dataclass
class ChecksumBudget:
    """Bytes whose checksums may still be computed; beyond that only sizes are compared."""

    left: int = 2 << 30

    def take(self, size: int) -> bool:
        if size > self.left:
            return False
        self.left -= size
        return True


def check_zip(path: str, budget: ChecksumBudget) -> str:
    """torch.save, npz, keras: the central directory, then the checksum of each member."""
    try:
        with open_regular_file(path) as file, open_zip(file) as archive:
            members = archive.infolist()
            _check_zip_directory(members)
            unfolding = ChecksumBudget(_UNFOLDED + _FOLDS * _open_file_size(file))
            unread = sum(not _check_zip_member(archive, member, budget, unfolding) for member in members)
    except UnreadableMember as error:
        raise BrokenFile(f"the zip archive is not read: {error}") from None
    except zipfile.BadZipFile as error:
        raise BrokenFile("the zip archive is cut off or damaged: " + _lower_first_letter(str(error))) from None
    except DAMAGED_FILE_ERRORS as error:
        raise BrokenFile(f"the zip archive is damaged: {error}") from None
    kind = "npz" if all(member.filename.endswith(".npy") for member in members) else "zip"
    return f"{kind}, {len(members)} members, " + ("checksums right" if not unread else f"{unread} by size only")


def _check_zip_directory(members: list[zipfile.ZipInfo]) -> None:
    if not members:
        raise BrokenFile("the zip archive is empty")
    # an archive inside a member looks like a whole one where the outer one was cut off just behind it
    if min(member.header_offset for member in members) != 0:
        raise BrokenFile("the zip archive is cut off: its directory is not its own")


def _check_zip_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, budget: ChecksumBudget, unfolding: ChecksumBudget
) -> bool:
    """Whether its checksum was computed; zipfile raises BadZipFile at the end of a member whose checksum differs."""
    if not (budget.take(member.file_size) and unfolding.take(member.file_size)):
        return False
    try:
        with open_zip_member(archive, member) as file:  # which gives no more than the size that was taken
            if member.filename.endswith(".npy"):
                _check_npy_array(file, member.file_size)
            while file.read(_STREAM_BLOCK):
                pass
    except (NotImplementedError, RuntimeError):  # a password
        return False
    return True


def check_npy(path: str, _: ChecksumBudget) -> str:
    with open_regular_file(path) as file:
        size = _open_file_size(file)
        _check_npy_array(file, size)
    return f"npy, {size} bytes as its header says"


def _check_npy_array(file: IO[bytes], size: int) -> None:
    header, length = read_npy_header(file, size)
    try:
        count = multiply_sizes(header["shape"])
        item = _dtype_item_size(header["descr"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BrokenFile("the npy header can't be read") from None
    wanted = None if item is None else length + count * item
    if wanted is not None and wanted != size:
        raise BrokenFile(f"the npy array has {size} bytes, its header says {wanted}")


def read_npy_header(file: IO[bytes], size: int) -> tuple[dict[str, Any], int]:
    """What it says, and where the array begins. Raises Broken, also for a header that numpy would not read."""
    start = _read_exactly(file, 8)
    if start[:6] != _NPY:
        raise BrokenFile("not an npy array although it is named so")
    width, form = (2, "<H") if start[6] == 1 else (4, "<I")
    length = struct.unpack(form, _read_exactly(file, width))[0]
    if length > size:
        raise BrokenFile("the npy header is cut off")
    if length > _NPY_HEADER:
        raise BrokenFile(f"the npy header has {length} bytes; numpy reads {_NPY_HEADER}")
    try:
        header = ast.literal_eval(_read_exactly(file, length).decode("utf-8").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise BrokenFile("the npy header can't be read") from None
    if not isinstance(header, dict):
        raise BrokenFile("the npy header can't be read")
    return header, 8 + width + length


def multiply_sizes(sizes: Any) -> int:
    """Raises ValueError where it is larger than any file: numbers of a million digits take for ever to multiply."""
    count = 1
    for size in sizes:
        if type(size) is not int or not 0 <= size < _LARGEST:
            raise ValueError("no size")
        count *= size
        if count >= _LARGEST:
            raise ValueError("too large")
    return count


def _dtype_item_size(descr: Any) -> int | None:
    """Bytes of one element of a dtype description; None: can't be told, as for pickled objects."""
    if isinstance(descr, list):
        sizes = [_dtype_field_size(field) for field in descr]
        return None if None in sizes else sum(size for size in sizes if size is not None)
    match = _DESCR.fullmatch(descr)
    if match is None or match.group(1) == "O" or not match.group(2):
        return None
    return multiply_sizes((int(match.group(2)), 4 if match.group(1) == "U" else 1))


def _dtype_field_size(field: Any) -> int | None:
    size = _dtype_item_size(field[1])
    return None if size is None else multiply_sizes((size, *(field[2] if len(field) > 2 else ())))


def check_safetensors(path: str, _: ChecksumBudget) -> str:
    """The header's length, its JSON, and tensors that cover the rest of the file without a gap."""
    with open_regular_file(path) as file:
        size = _open_file_size(file)
        length = struct.unpack("<Q", _read_exactly(file, 8))[0]
        if length > min(_LARGEST_HEADER, size - 8):
            raise BrokenFile(f"the header is cut off: {length} bytes wanted, {max(0, size - 8)} there")
        if length > _MOST_HEADER_READ:
            return f"safetensors, its header of {length} bytes not read"
        try:
            header = load_bounded_json(_read_exactly(file, length))
            tensors = [tensor for name, tensor in header.items() if name != "__metadata__"]
            spans = sorted(map(_tensor_span, tensors))
        except TooManyJsonValues as error:
            raise BrokenFile(f"the safetensors header is not read: {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            raise BrokenFile("the safetensors header can't be read") from None
    _check_tensors_cover(spans, size - 8 - length)
    return f"safetensors, {len(tensors)} tensors cover the file exactly"


def _tensor_span(tensor: dict[str, Any]) -> tuple[int, int, int]:
    """Where its bytes begin and end, and how many there should be."""
    start, stop = (multiply_sizes((offset,)) for offset in tensor["data_offsets"])
    return start, stop, _tensor_bytes(tensor)


def _tensor_bytes(tensor: dict[str, Any]) -> int:
    """-1: a dtype that is not known here."""
    width = _WIDTH.get(tensor["dtype"])
    return -1 if width is None else multiply_sizes((width, *tensor["shape"]))


def _check_tensors_cover(spans: list[Any], data: int) -> None:
    end = 0
    for start, stop, wanted in spans:
        if start != end or stop < start or (wanted >= 0 and stop - start != wanted):
            raise BrokenFile("the tensors' offsets leave a gap or overlap")
        end = stop
    if end != data:
        raise BrokenFile(f"{data} bytes of tensors, the header says {end}" + (": cut off" if data < end else ""))


def check_pickle(path: str, _: ChecksumBudget) -> str:
    """Walks the opcodes without executing one: each pickle must end with STOP, and the last one with the file."""
    count, opcodes = 0, 0
    with open_regular_file(path) as file:
        size = _open_file_size(file)
        start = file.read(4096)
        file.seek(0)
        legacy = _LEGACY_TORCH in start[:16]
        if b"joblib.numpy_pickle" in start:  # raw arrays lie between its opcodes
            return f"joblib, {size} bytes, content not checked"
        while file.tell() < size:
            opcodes += _walk_pickle(file, size, _MOST_OPCODES - opcodes)
            count += 1
            if opcodes >= _MOST_OPCODES:
                return _check_last_byte(file, size, opcodes)
            if legacy and count == 5:  # magic, version, machine, object, keys; then raw storages
                return f"old torch format, {opcodes} opcodes, {size - file.tell()} bytes of storage not checked"
    return f"pickle, {opcodes} opcodes to its STOP, not executed"


def _walk_pickle(file: BinaryIO, size: int, most: int) -> int:
    """Reads one pickle to its STOP; returns the opcodes seen."""
    for seen in range(1, most + 1):
        code = file.read(1)
        if not code:
            raise BrokenFile(f"the pickle is cut off after {size} bytes: no STOP at its end")
        name, arg = _OPCODE_ARGUMENTS.get(code[0], (None, 0))
        if name is None:
            raise BrokenFile(f"no pickle opcode at byte {file.tell() - 1} of {size}")
        if name == "STOP":
            return seen
        if arg:
            _skip_argument(file, arg, size)
    return most


def _skip_argument(file: BinaryIO, arg: int, size: int) -> None:
    if arg in (pickletools.UP_TO_NEWLINE, _TWO_LINES):
        for _ in range(2 if arg == _TWO_LINES else 1):
            if not file.readline(_LONGEST_LINE).endswith(b"\n"):
                raise BrokenFile("the pickle is cut off inside a line")
        return
    if arg in _LENGTH_FORMATS:
        form = _LENGTH_FORMATS[arg]
        arg = struct.unpack(form, _read_exactly(file, struct.calcsize(form)))[0]
    if arg < 0 or file.tell() + arg > size:
        raise BrokenFile(f"the pickle is cut off: {arg} bytes wanted at byte {file.tell()} of {size}")
    file.seek(arg, os.SEEK_CUR)


def _check_last_byte(file: BinaryIO, size: int, opcodes: int) -> str:
    file.seek(size - 1)
    if file.read(1) != b".":
        raise BrokenFile("the pickle is cut off: no STOP at its end")
    return f"pickle, {opcodes} opcodes walked and a STOP at its end, not executed"


def _open_file_size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _read_exactly(file: IO[bytes], count: int) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise BrokenFile(f"cut off: {count} bytes wanted, {len(data)} there")
    return data


def _lower_first_letter(text: str) -> str:
    return text[:1].lower() + text[1:]
