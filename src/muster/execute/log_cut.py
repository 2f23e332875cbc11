"""Cuts the middle out of a log that grows without end, where `logs: {max: ...}` says so.

A hole is punched into the file: the blocks are given back, the length and every offset stay. The run, which appends,
notices nothing; nothing it writes meanwhile can be lost, as it could while a file is copied and truncated; and whoever
reads the log goes on where it was. Nothing is put between the run and its log, as a pipe would be: that would have to
live as long as the run does.
"""

from __future__ import annotations

import ctypes
import os
import stat

KEEP_SIZE, PUNCH_HOLE = 0x01, 0x02
BLOCK = 1 << 16
LOGS = ("stdout.log", "stderr.log")

_libc = ctypes.CDLL(None, use_errno=True)


def cut_logs(folder: str, most: int) -> int:
    """Of an attempt's folder; returns the bytes that were freed. A log that can't be cut stays as it is."""
    return sum(_cut_log(f"{folder}/{name}", most) for name in LOGS)


def _cut_log(path: str, most: int) -> int:
    """A quarter of `most` stays of its beginning, and half of it of its end: there is room until the next cut."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return 0
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode) or before.st_blocks * 512 <= most:
            return 0
        begin = -(-(most // 4) // BLOCK) * BLOCK
        end = (before.st_size - most // 2) // BLOCK * BLOCK
        if end <= begin or not _punch(fd, begin, end - begin):
            return 0
        return max(0, (before.st_blocks - os.fstat(fd).st_blocks) * 512)
    except OSError:
        return 0
    finally:
        os.close(fd)


def _punch(fd: int, begin: int, length: int) -> bool:
    """False: this file system has no holes."""
    return bool(_libc.fallocate(fd, KEEP_SIZE | PUNCH_HOLE, ctypes.c_longlong(begin), ctypes.c_longlong(length)) == 0)
