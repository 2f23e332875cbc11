"""decisions.jsonl: appended and fsynced before anything takes effect. The database is folded from it."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from muster.domain.decision import Decision
from muster.domain.whereabouts import data_inside
from muster.ports.crash import reach
from muster.ports.known_secrets import know_state
from muster.ports.plain_files import open_plain
from muster.ports.write_files import open_to_append, sync_folder
from muster.store.masked_decisions import masked_decisions
from muster.store.place import whereabouts
from muster.store.text import decode_decision, encode

LOCK_PATIENCE_S = 2.0
BLOCK = 1 << 16  # bytes that are read at once, from the end, to find a torn line


class Log(Protocol):
    def append(self, decisions: Sequence[Decision]) -> tuple[int, int]:
        """Durably; returns the range of bytes that the new lines take."""

    def read(self, offset: int, end: int | None = None) -> Iterator[tuple[int, int, Decision]]:
        """(begin, end, decision) of every whole line from offset on, up to the byte `end` where it is given."""

    def sync(self) -> int:
        """Makes durable what others have written; returns up to which byte."""

    def size(self) -> int:
        """Its length in bytes."""


def _lines(data: bytes, offset: int) -> Iterator[tuple[int, int, Decision]]:
    *whole, _torn = data.split(b"\n")  # a last line without its end was torn by a crash: it never took effect
    for line in whole:
        begin, offset = offset, offset + len(line) + 1
        if line.strip():
            yield begin, offset, decode_decision(line)


class FileLog:
    def __init__(self, path: Path) -> None:
        self.path = path
        know_state(path.parent)

    def append(self, decisions: Sequence[Decision]) -> tuple[int, int]:
        """Paths below the campaign's folder are written relative to it: the folder may move. Texts without secrets."""
        where, told = whereabouts(self.path.parent), masked_decisions(decisions)
        data = b"".join(encode(replace(each, data=data_inside(each.data, where))) + b"\n" for each in told)
        fd = self.open_locked()
        try:
            begin = self._mend(fd)
            try:
                if os.write(fd, data) != len(data):
                    raise OSError(28, "No space left on device", str(self.path))
                reach("log.append")
                os.fsync(fd)
            except OSError:
                os.ftruncate(fd, begin)  # all of it or none: a half line would be mended away anyway
                raise
            reach("log.fsync")
            if begin == 0:
                sync_folder(self.path.parent)
            return begin, begin + len(data)
        finally:
            os.close(fd)

    def sync(self) -> int:
        fd = self.open_locked()  # nobody is in the middle of an append, which may yet take its lines back
        try:
            size = os.fstat(fd).st_size
            os.fsync(fd)
            reach("log.fsync")
            return size
        finally:
            os.close(fd)

    def open_locked(self) -> int:
        """The log, locked; not one that fsck has replaced while we waited for the lock."""
        while True:
            fd = open_to_append(self.path, flags=os.O_RDWR)
            try:
                self._lock(fd)
                if os.fstat(fd).st_nlink:
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    def _lock(self, fd: int) -> None:
        """Appending takes a moment; whoever holds it longer was stopped in the middle and may never go on."""
        deadline = time.monotonic() + LOCK_PATIENCE_S
        while True:
            try:
                return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    text = "a process that was stopped holds its lock"
                    raise BlockingIOError(errno.EAGAIN, text, str(self.path)) from None
                time.sleep(0.002)

    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def _mend(self, fd: int) -> int:
        """Cuts off a line that a crash tore; keeps what was torn beside the log. Returns the length."""
        size = os.fstat(fd).st_size
        if size == 0 or os.pread(fd, 1, size - 1) == b"\n":
            return size
        whole, torn_part = _torn(fd, size)
        with open(open_to_append(self.path.with_suffix(".torn")), "ab") as torn:
            torn.write(torn_part + b"\n")
        os.ftruncate(fd, whole)
        return whole

    def read(self, offset: int, end: int | None = None) -> Iterator[tuple[int, int, Decision]]:
        try:
            with open(open_plain(str(self.path)), "rb") as file:
                file.seek(offset)
                data = file.read() if end is None else file.read(max(0, end - offset))
        except FileNotFoundError:
            return
        yield from _lines(data, offset)


def _torn(fd: int, size: int) -> tuple[int, bytes]:
    """Where the last whole line ends, and what follows. From the end: one read of a large file ends before its end."""
    found = b""
    while len(found) < size:
        begin = max(0, size - len(found) - BLOCK)
        block = os.pread(fd, size - len(found) - begin, begin)
        if begin + len(block) != size - len(found):
            raise OSError(errno.EIO, "it can't be read to its end")
        newline = block.rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1, block[newline + 1 :] + found
        found = block + found
    return 0, found


class MemoryLog:
    """For the simulator and the contract tests."""

    def __init__(self) -> None:
        self.data = b""

    def append(self, decisions: Sequence[Decision]) -> tuple[int, int]:
        begin = len(self.data)
        self.data += b"".join(encode(decision) + b"\n" for decision in decisions)
        return begin, len(self.data)

    def sync(self) -> int:
        return len(self.data)

    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, end: int | None = None) -> Iterator[tuple[int, int, Decision]]:
        yield from _lines(self.data[offset:end], offset)
