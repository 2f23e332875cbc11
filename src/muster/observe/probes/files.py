"""Files that appear one after the other: replay chunks, shards, logs. Hundreds of thousands of them must cost little.

A folder is listed only when its own time says that names came or went, and files are counted by name without a look at
each. The newest few are looked at: one file that grows is progress too.
"""

# Paths are texts here: globs are no paths, and this runs for every run every few seconds.
# ruff: noqa: PTH116, PTH118, PTH208

from __future__ import annotations

import fnmatch
import glob
import heapq
import os
import re
import time
import zlib
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

_SETTLED_NS = 50_000_000  # folder times are coarse: one that changed just before its listing may change unseen
_LIST_ANYWAY = 12  # looks: another machine's clock may hide a change
_MOST_FOLDERS = 10_000
_NEWEST = 32  # files whose growth is watched
_ESCAPED = re.compile(r"\[([*?[])\]")
_ABSENT = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class ChunkLook:
    """`count` rises with every new file, and with every look at which one of the newest had grown."""

    count: int
    present: int
    newest: str | None = None  # its path
    trouble: str = ""  # why it abstains


@dataclass(slots=True)
class _Folder:
    wants: frozenset[int]  # which parts of the pattern its entries may fit
    stamp: tuple[int, int, int] = (0, 0, 0)  # device, inode, time
    here: bool = False  # one that vanished may come back with what was in it
    settled: bool = False
    names: set[str] = field(default_factory=set)  # all of them: only what is new is compared with the pattern
    chunks: set[str] = field(default_factory=set)  # those that fit
    below: dict[str, frozenset[int]] = field(default_factory=dict)  # folders to go on with


class ChunkWatch:
    """Counts what fits an absolute glob, `**` included."""

    def __init__(self, pattern: str) -> None:
        self._base, self._parts = _split(pattern)
        self._fits = [re.compile(fnmatch.translate(part)).match for part in self._parts]
        self._folders: dict[str, _Folder] = {}
        self._new: list[str] = []  # paths that appeared at this look
        self._newest: dict[str, tuple[int, int, int]] = {}  # path -> inode, size, time
        self._count = 0
        self._looks = zlib.crc32(os.fsencode(pattern)) % _LIST_ANYWAY  # not all watches at the same look

    def look(self) -> ChunkLook:
        """Never raises: what can't be read is said, and what was counted before stands."""
        self._looks += 1
        self._new = []
        trouble = self._walk()
        self._count += len(self._new) + self._grown()
        present = sum(len(folder.chunks) for folder in self._folders.values() if folder.here)
        newest = max(self._newest, key=lambda path: (self._newest[path][2], *_by_name(path)), default=None)
        return ChunkLook(self._count, present, newest, trouble)

    # -- folders

    def _walk(self) -> str:
        trouble = ""
        seen: set[tuple[int, int]] = set()  # links may lead to a folder twice, or round in circles
        reached: dict[str, _Folder] = {}
        waiting = deque([(self._base, self._closed(frozenset({0})))])
        while waiting and len(reached) < _MOST_FOLDERS:
            path, wants = waiting.popleft()
            try:
                folder = self._folder(path, wants, seen)
            except _ABSENT:
                continue
            except OSError as error:
                trouble = f"{path} can't be read: {error.strerror or error}"
                folder = self._folders.get(path)
            if folder is not None:
                reached[path] = folder
                waiting += ((os.path.join(path, name), below) for name, below in folder.below.items())
        if waiting:
            trouble = f"more than {_MOST_FOLDERS} folders fit: the rest is not looked at"
        self._remember(reached)
        return trouble

    def _remember(self, reached: dict[str, _Folder]) -> None:
        for path, folder in self._folders.items():
            folder.here = path in reached
        if len(self._folders) > 2 * _MOST_FOLDERS:
            self._folders = reached

    def _folder(self, path: str, wants: frozenset[int], seen: set[tuple[int, int]]) -> _Folder | None:
        stat = os.stat(path)
        identity = (stat.st_dev, stat.st_ino)
        if identity in seen:
            return None
        seen.add(identity)
        stamp = (*identity, stat.st_mtime_ns)
        folder = self._folders.get(path)
        if folder is None or folder.stamp[:2] != identity:
            folder = _Folder(wants)
        elif folder.stamp == stamp and folder.settled and self._looks % _LIST_ANYWAY:
            return folder
        now = time.time_ns()
        self._list(path, folder)
        folder.stamp, folder.settled = stamp, now - stat.st_mtime_ns > _SETTLED_NS
        self._folders[path] = folder
        return folder

    def _list(self, path: str, folder: _Folder) -> None:
        names, folders = self._entries(path, folder)
        new = names - folder.names
        if len(names) < len(folder.names) + len(new):
            folder.chunks &= names
        folder.names = names
        chunks = [name for name in new if self._is_chunk(name, folder.wants)]
        folder.chunks.update(chunks)
        self._new += (os.path.join(path, name) for name in chunks)
        folder.below = {name: wants for name in folders if (wants := self._below(name, folder.wants))}

    def _entries(self, path: str, folder: _Folder) -> tuple[set[str], list[str]]:
        if folder.wants == {len(self._parts) - 1} and self._parts[-1] != "**":
            return set(os.listdir(path)), []
        with os.scandir(path) as entries:
            found = list(entries)
        folders = sorted((entry.is_symlink(), entry.name) for entry in found if _is_folder(entry))
        return {entry.name for entry in found}, [name for _, name in folders]

    # -- the pattern

    def _closed(self, wants: frozenset[int]) -> frozenset[int]:
        """`**` may stand for no folder at all."""
        last = len(self._parts) - 1
        skipped = {at + 1 for at in wants if self._parts[at] == "**" and at < last}
        return wants if skipped <= wants else self._closed(wants | skipped)

    def _is_chunk(self, name: str, wants: frozenset[int]) -> bool:
        last = len(self._parts) - 1
        return last in wants and self._fit(name, last)

    def _below(self, name: str, wants: frozenset[int]) -> frozenset[int]:
        last = len(self._parts) - 1
        steps = (at if self._parts[at] == "**" else at + 1 for at in wants if self._fit(name, at))
        return self._closed(frozenset(step for step in steps if step <= last))

    def _fit(self, name: str, at: int) -> bool:
        if name.startswith(".") and not self._parts[at].startswith("."):
            return False
        return self._fits[at](name) is not None

    # -- the newest files

    def _grown(self) -> bool:
        """Whether one of the newest files grew or was replaced since the last look; finds out which ones they are."""
        before = self._newest
        after = dict(_stamps(before))
        grown = any(_has_grown(before[path], stamp) for path, stamp in after.items())
        if not self._new and (len(after) < len(before) or not after):  # the newest ones were deleted
            after.update(_stamps(self._likely()))
        after.update(_stamps(_likely_newest(self._new)))
        kept = heapq.nlargest(_NEWEST, after.items(), key=lambda item: (item[1][2], *_by_name(item[0])))
        self._newest = dict(kept)
        return grown

    def _likely(self) -> Iterator[str]:
        for path, folder in self._folders.items():
            if folder.here:
                yield from (os.path.join(path, name) for name in _likely_newest(folder.chunks))


def _split(pattern: str) -> tuple[str, list[str]]:
    """The folder that all matches are below, and the parts of the pattern from there on."""
    parts = [part for part in pattern.split("/") if part]
    base = ["/"] if pattern.startswith("/") else []
    while len(parts) > 1 and (literal := _literal(parts[0])) is not None:
        base.append(literal)
        parts.pop(0)
    return os.path.join(*base) if base else os.curdir, parts or ["*"]


def _literal(part: str) -> str | None:
    """The part as a name; None: it is a glob."""
    return None if glob.has_magic(_ESCAPED.sub("", part)) else _ESCAPED.sub(r"\1", part)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _likely_newest(names: Collection[str]) -> set[str]:
    """By their names, without a look at each: the highest number or the latest date."""
    if len(names) <= 2 * _NEWEST:
        return set(names)
    return {*heapq.nlargest(_NEWEST, names), *heapq.nlargest(_NEWEST, names, key=_by_name)}


def _by_name(path: str) -> tuple[int, str]:
    return (len(path), path)


def _stamps(paths: Iterable[str]) -> Iterator[tuple[str, tuple[int, int, int]]]:
    for path in paths:
        try:
            stat = os.stat(path)
        except OSError:
            continue
        yield path, (stat.st_ino, stat.st_size, stat.st_mtime_ns)


def _has_grown(before: tuple[int, int, int], after: tuple[int, int, int]) -> bool:
    return after[0] != before[0] or after[1] > before[1]
