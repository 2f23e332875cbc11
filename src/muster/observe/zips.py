"""Zip archives that somebody else made. What really comes out of them is counted; what they claim is not believed.

A few hundred bytes of bzip2 unfold to gigabytes before anybody can look, so only what is stored or deflated is read:
torch, numpy and keras write nothing else. Deflated members come out in pieces of a size that the reader chooses.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from io import BufferedIOBase
from typing import IO, Any, BinaryIO, cast

BLOCK = 1 << 20
MOST_MEMBERS = 100_000
LARGEST_DIRECTORY = 16 << 20  # bytes: of 100,000 members with long names
_READ = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_NAMES = {zipfile.ZIP_BZIP2: "bzip2", zipfile.ZIP_LZMA: "LZMA"}

# what zipfile and what it decompresses with raise over garbage
DAMAGED = (EOFError, zlib.error, struct.error, ValueError, OverflowError, NotImplementedError)


class BadMember(Exception):
    """A part of the archive that is not read; the message says which and why."""


class _Careful(BufferedIOBase):
    """zipfile reads a whole directory at once, of whatever size it claims."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > LARGEST_DIRECTORY:
            raise BadMember(f"its directory has {size} bytes")
        return self._file.read(-1 if size is None else size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True


def zip_of(file: BinaryIO) -> zipfile.ZipFile:
    """Raises zipfile.BadZipFile, BadMember, or one of DAMAGED."""
    archive = zipfile.ZipFile(cast(Any, _Careful(file)))
    if len(archive.infolist()) > MOST_MEMBERS:
        raise BadMember(f"it has more than {MOST_MEMBERS} members")
    return archive


def open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    """Read it in pieces. Raises BadMember where it is compressed in another way than by deflate."""
    if member.compress_type not in _READ:
        how = _NAMES.get(member.compress_type, f"method {member.compress_type}")
        raise BadMember(f"{member.filename[:80]!r} is compressed with {how}, which is not read")
    return archive.open(member)


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    """All of it. Raises BadMember where more than `most` bytes come out."""
    pieces: list[bytes] = []
    left = most
    with open_member(archive, member) as file:
        while piece := file.read(BLOCK):
            pieces.append(piece)
            left -= len(piece)
            if left < 0:
                raise BadMember(f"{member.filename[:80]!r} unfolds to more than {most >> 20} MiB")
    return b"".join(pieces)
