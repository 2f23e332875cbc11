"""Reading files that others may replace: a run may put what it likes into its own folder."""

from __future__ import annotations

import errno
import os
import stat

LARGEST = 16 << 20  # bytes; what Muster writes itself is far smaller
LARGEST_OF_CELLS = 256 << 20  # of what grows with the number of cells
BLOCK = 1 << 16
_NO_FILES = (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENODEV)  # link, socket, folder, device


class NotPlain(OSError):
    """Something is there, and it is no file that Muster made."""


def open_plain(path: str, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
    """Never waits for the other end of a FIFO, and never follows a link. Raises NotPlain, or what `open` raises."""
    try:
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in _NO_FILES:
            raise NotPlain(error.errno, "it is no plain file", path) from error
        raise
    except ValueError as error:  # it has a NUL byte
        raise NotPlain(errno.EINVAL, "no file has such a name", path) from error
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise NotPlain(errno.EINVAL, "it is no plain file", path)


def read_plain(path: str, most: int = LARGEST) -> bytes:
    """All of it. Raises NotPlain also for what is too large to be anything of ours."""
    fd = open_plain(path)
    try:
        pieces = [os.read(fd, BLOCK)]
        size = len(pieces[0])
        while len(pieces[-1]) == BLOCK:
            pieces.append(os.read(fd, BLOCK))
            size += len(pieces[-1])
            if size > most:
                raise NotPlain(errno.EFBIG, "it is too large", path)
        return b"".join(pieces)
    finally:
        os.close(fd)
