"""Opens files that somebody else wrote or may replace: a run, a repository, another user. Every reader of such a file
begins here.

Only a regular file is opened, at the end of whatever links lead to it: an output may be a link. A FIFO would wait for
its other end, a device would never end, and to open some devices does something. Nothing is read beyond the size that
the file had when it was opened, so that one which grows faster than it is read ends, too. Muster's own files are
opened by `open_plain_file`, which follows no links.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from io import BufferedReader, FileIO
from pathlib import Path
from typing import BinaryIO, cast

from muster.text.phrases import phrase

LARGEST_OWN_FILE = 16 << 20  # bytes; what Muster writes itself is far smaller
LARGEST_CELLS_FILE = 256 << 20  # of what grows with the number of cells
READ_BLOCK = 1 << 16
_NO_FILES = (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENODEV)  # link, socket, folder, device


class NotPlainFile(OSError):
    """Something is there, and it is no file that Muster made."""


def open_plain_file(path: str, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
    """Never waits for the other end of a FIFO, and never follows a link. Raises NotPlainFile, or what `open` raises."""
    try:
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in _NO_FILES:
            raise NotPlainFile(error.errno, phrase("files.no_plain_file"), path) from error
        raise
    except ValueError as error:  # it has a NUL byte
        raise NotPlainFile(errno.EINVAL, phrase("files.no_such_file_name"), path) from error
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise NotPlainFile(errno.EINVAL, phrase("files.no_plain_file"), path)


def read_plain_file(path: str, most: int = LARGEST_OWN_FILE) -> bytes:
    """All of it. Raises NotPlainFile also for what is too large to be anything of ours."""
    fd = open_plain_file(path)
    try:
        pieces = [os.read(fd, READ_BLOCK)]
        size = len(pieces[0])
        while len(pieces[-1]) == READ_BLOCK:
            pieces.append(os.read(fd, READ_BLOCK))
            size += len(pieces[-1])
            if size > most:
                raise NotPlainFile(errno.EFBIG, phrase("files.too_large"), path)
        return b"".join(pieces)
    finally:
        os.close(fd)


READ_BUFFER = 256 << 10
MOST_UNPACKED_BYTES = 1 << 30  # of a packed log: more than that is no log, but a bomb
_GZIP_BITS = 31
LONGEST_HOLE = 1 << 20  # bytes that were never written, and are read as zeros
HOLE_BYTES = b"\0\n\0"  # neither the line before it nor the one behind it is a whole one
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = (
    (stat.S_ISFIFO, "files.kind_fifo"),
    (stat.S_ISSOCK, "files.kind_socket"),
    (stat.S_ISCHR, "files.kind_device"),
    (stat.S_ISBLK, "files.kind_device"),
)


class NotRegularFile(OSError):
    """Something is there, and it is no file: `strerror` names what it is."""


class FileTooLarge(OSError):
    """It has more bytes than are read of such a file."""


def is_permanent_read_error(error: OSError) -> bool:
    """Whether it can't be read because of what it is, and not because something is in the way just now."""
    too_deep = error.errno in (errno.ENAMETOOLONG, errno.ELOOP)
    return too_deep or isinstance(error, NotRegularFile | FileTooLarge | IsADirectoryError)


class RegularFile(FileIO):
    """Ends where it ended when it was opened."""

    def __init__(self, fd: int, size: int) -> None:
        super().__init__(fd, "rb")
        self.size = size

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        left = self.size - self.tell()
        if left <= 0:
            return 0
        return super().readinto(memoryview(buffer)[:left] if len(buffer) > left else buffer)

    def readall(self) -> bytes:
        pieces = []
        block = bytearray(1 << 20)
        while count := self.readinto(memoryview(block)):
            pieces.append(bytes(block[:count]))
        return b"".join(pieces)


class SparseLogFile(RegularFile):
    """Passes over what was never written."""

    def __init__(self, fd: int, size: int) -> None:
        super().__init__(fd, size)
        self._data = 0  # where the next data begins that was seen

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        at = self.tell()
        if at >= self._data and at < self.size:
            self._data = self._next_data(at)
            if self._data - at > LONGEST_HOLE and len(buffer) > len(HOLE_BYTES):
                self.seek(min(self._data, self.size))
                memoryview(buffer)[: len(HOLE_BYTES)] = HOLE_BYTES
                return len(HOLE_BYTES)
            self.seek(at)
        return super().readinto(buffer)

    def _next_data(self, at: int) -> int:
        try:
            return os.lseek(self.fileno(), at, os.SEEK_DATA)
        except OSError as error:
            return self.size if error.errno == errno.ENXIO else at


def open_regular_fd(path: str | os.PathLike[str]) -> int:
    """A descriptor of a regular file. Raises NotRegular, IsADirectoryError, or what `open` raises; never waits."""
    check_regular_kind(path, os.stat(path).st_mode)  # noqa: PTH116 - before it is opened: some devices act on that
    fd = os.open(path, _FLAGS)
    try:
        check_regular_kind(path, os.fstat(fd).st_mode)
    except OSError:
        os.close(fd)
        raise
    return fd


def regular_opener(path: str, _flags: int) -> int:
    """For `FileIO(path, opener=regular_opener)`, where what was added since matters."""
    return open_regular_fd(path)


def open_regular_raw(path: str | os.PathLike[str]) -> RegularFile:
    """To be read in blocks of one's own. Raises as `open_fd` does."""
    fd = open_regular_fd(path)
    return RegularFile(fd, os.fstat(fd).st_size)


def open_regular_file(path: str | os.PathLike[str], buffer: int = READ_BUFFER) -> BinaryIO:
    """To be read as bytes. Raises as `open_fd` does."""
    return cast(BinaryIO, BufferedReader(open_regular_raw(path), buffer))


def open_log_fd(path: str | os.PathLike[str]) -> int:
    """A descriptor of a log; of a packed one (.gz) of what is in it. Raises as `open_fd` does."""
    fd = open_regular_fd(path)
    if not str(path).endswith(".gz"):
        return fd
    try:
        return _unpack_to_temporary_file(fd)
    finally:
        os.close(fd)


def _unpack_to_temporary_file(packed: int) -> int:
    """As much of it as is whole, and no more than anybody logs."""
    import zlib
    from tempfile import TemporaryFile

    with TemporaryFile() as file:
        unpacker, left = zlib.decompressobj(_GZIP_BITS), MOST_UNPACKED_BYTES
        with contextlib.suppress(zlib.error):  # damaged: what comes before that is read
            while left > 0 and (block := os.read(packed, READ_BUFFER)):
                while block and left > 0:
                    data = unpacker.decompress(block, min(left, READ_BUFFER * 4))
                    left -= file.write(data)
                    block = unpacker.unconsumed_tail
                    if unpacker.eof:  # another one may follow
                        block, unpacker = unpacker.unused_data, zlib.decompressobj(_GZIP_BITS)
        file.seek(0)
        return os.dup(file.fileno())


def open_log_file(path: str | os.PathLike[str]) -> BinaryIO:
    """To be read from its beginning to its end, however long it is. For a long hole in it stands `HOLE`.

    A log that was cut has one in its middle; and a file of nothing else may claim to have any size.
    """
    fd = open_log_fd(path)
    return cast(BinaryIO, BufferedReader(SparseLogFile(fd, os.fstat(fd).st_size), READ_BUFFER))


def read_regular_file(path: str | os.PathLike[str], most: int) -> bytes:
    """All of it. Raises TooLarge where that is more than `most` bytes, and as `open_fd` does."""
    with open_regular_file(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise FileTooLarge(errno.EFBIG, phrase("files.larger_than", size_limit=_format_size_limit(most)), str(path))
        return file.read(most)


def read_file_start(path: str | os.PathLike[str], most: int) -> bytes:
    """At most its first bytes. Raises as `open_fd` does."""
    with open_regular_file(path, 0x2000) as file:
        return file.read(most)


def read_log_start(path: str, most: int) -> bytes:
    """At most its first bytes; of a packed log those of what is in it. Raises as `open_fd` does."""
    if not path.endswith(".gz"):
        return read_file_start(path, most)
    import zlib

    with contextlib.suppress(zlib.error):
        return zlib.decompressobj(_GZIP_BITS).decompress(read_file_start(path, most), most)
    return b""


def check_regular_kind(path: str | os.PathLike[str], mode: int) -> None:
    """Raises what `open_fd` raises where it is no regular file."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    kind = phrase(next((code for fits, code in _KINDS if fits(mode)), "files.kind_odd"))
    raise NotRegularFile(errno.EINVAL, phrase("files.no_plain_file_but", kind=kind), str(path))


def _format_size_limit(count: int) -> str:
    return phrase("files.size_mib", n=count >> 20) if count >= 1 << 20 else phrase("files.size_bytes", n=count)


def path_holds_something(path: str) -> bool:
    found = Path(path)
    return found.is_dir() or (found.is_file() and found.stat().st_size > 0)
