"""Reads the tar files that `muster pack` writes, member by member, and refuses every other kind.

tarfile would follow what a header claims: links, devices, owners, and headers of any length in memory. This knows plain
files with their name and size, and nothing else.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

BLOCK = 512
CHUNK = 1 << 20
LARGEST_EXTENSION = 64 << 10  # bytes of a pax header: a long name
LONGEST_END = 1 << 20  # bytes of padding after the last member
KINDS = {
    b"1": "a hard link", b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"5": "a folder", b"6": "a pipe",
}  # fmt: skip
_PLAIN, _EXTENSION = b"0", b"x"
_OCTAL = re.compile(rb"[0-7]+[\0 ]?")
_KNOWN = frozenset({"path", "size", "mtime"})

Read = Callable[[int], bytes]  # at most so many bytes; fewer only at the end


class BadTar(Exception):
    """Why this is no tar file of ours."""


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    size: int
    chunks: Callable[[], Iterator[bytes]]  # to be read to its end before the next member


def members(read: Read) -> Iterator[Member]:
    """Until the end of the archive, which is read as well: only then its checksum has been compared."""
    whole = _whole(read)
    while (header := whole(BLOCK)) != bytes(BLOCK):
        extension: dict[str, str] = {}
        if _kind(header) == _EXTENSION:
            size = _size(header)
            if size > LARGEST_EXTENSION:
                raise BadTar("a header in it is too long")
            extension = _extension(whole(size + _padding(size))[:size])
            header = whole(BLOCK)
        kind = _kind(header)
        name = extension.get("path") or _name(header)
        if kind != _PLAIN:
            raise BadTar(f"{name!r} in it is {KINDS.get(kind, 'no plain file')}")
        size = int(extension["size"]) if "size" in extension else _size(header)
        left = [size + _padding(size)]
        yield Member(name, size, lambda left=left, size=size: _chunks(whole, left, size))  # type: ignore[misc]
        if left[0]:
            raise BadTar(f"{name!r} in it was not read")
    _end(read)


def _chunks(whole: Read, left: list[int], size: int) -> Iterator[bytes]:
    while size:
        data = whole(min(CHUNK, size))
        size -= len(data)
        left[0] -= len(data)
        yield data
    whole(left[0])
    left[0] = 0


def _end(read: Read) -> None:
    seen = 0
    while data := read(CHUNK):
        seen += len(data)
        if seen > LONGEST_END or data.strip(b"\0"):
            raise BadTar("something follows its end")
    if seen < BLOCK:
        raise BadTar("its end is missing")


def _whole(read: Read) -> Read:
    def exactly(count: int) -> bytes:
        data = read(count)
        if len(data) != count:
            raise BadTar("its end is missing")
        return data

    return exactly


def _padding(size: int) -> int:
    return -size % BLOCK


def _kind(header: bytes) -> bytes:
    told, rest = header[148:156], header[:148] + b" " * 8 + header[156:]
    if _octal(told) != sum(rest) or not header[257:263].startswith(b"ustar"):
        raise BadTar("a header in it is damaged")
    return header[156:157]


def _size(header: bytes) -> int:
    return _octal(header[124:136])


def _octal(field: bytes) -> int:
    text = field.strip(b"\0 ")
    if not _OCTAL.fullmatch(text):
        raise BadTar("a number in it is damaged")
    return int(text, 8)


def _name(header: bytes) -> str:
    name, prefix = (header[start:end].partition(b"\0")[0] for start, end in ((0, 100), (345, 500)))
    with contextlib.suppress(UnicodeDecodeError):
        return (prefix + b"/" + name if prefix else name).decode()
    raise BadTar("a name in it is damaged")


def _extension(data: bytes) -> dict[str, str]:
    """Of a pax header: `LENGTH KEY=VALUE` and a line's end, each."""
    found: dict[str, str] = {}
    try:
        while data:
            length = int(data[: data.index(b" ")])
            key, equals, value = data[data.index(b" ") + 1 : length - 1].decode().partition("=")
            if not equals or not 4 < length <= len(data) or data[length - 1 : length] != b"\n" or key not in _KNOWN:
                raise BadTar("a header in it is damaged")
            found[key] = value
            data = data[length:]
    except ValueError:
        raise BadTar("a header in it is damaged") from None
    if "size" in found and not (found["size"].isascii() and found["size"].isdecimal()):
        raise BadTar("a header in it is damaged")
    return found
