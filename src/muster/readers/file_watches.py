"""Watches files that appear while a run lives: checkpoints (each new one is opened once, and counts if it is whole),
and chunks, shards or logs in hundreds of thousands.

A folder is listed only when its own time says that names came or went, and files are counted by name without a look
at each. The newest few are looked at: one file that grows is progress too.
"""

# ruff: noqa: PTH112, PTH114, PTH116, PTH118, PTH208
# Paths are texts here: globs are no paths, and this runs for every run every few seconds.

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
from dataclasses import dataclass, field, replace

from muster.files.bounded_walk import glob_paths, walk_folders
from muster.readers.checkpoints.checkpoint_steps import CheckpointStep, step_of_checkpoint
from muster.readers.checkpoints.whole_checkpoints import CheckpointReading, check_checkpoint
from muster.readers.output_files import is_glob_pattern, why_glob_is_unreadable

_NEWEST_CHECKPOINTS = 4  # matches that are looked at: the newest may be half-written, or no checkpoint at all
_MOST_FILES = 5000

CheckpointStamp = tuple[int, int, int]  # inode, newest time in nanoseconds, bytes


@dataclass(frozen=True, slots=True)
class CheckpointObservation:
    count: int  # whole ones seen so far
    whole: str | None = None  # the path of the newest whole one
    how: str = ""  # what was looked at in it
    broken: str | None = None  # the path of a newer one that is not whole
    reason: str = ""  # why it is not
    trouble: str = ""  # why it abstains
    step: CheckpointStep | None = None  # that the newest whole one holds


class CheckpointWatch:
    """Watches an absolute glob of checkpoints, files or folders."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._stamps: dict[str, CheckpointStamp | None] = {}  # None: a folder that was too old to look into
        self._came: dict[str, int] = {}  # path -> the look at which it was new; times are no order, clocks are set back
        self._opened: dict[tuple[str, CheckpointStamp], CheckpointReading] = {}
        self._looks = 0
        self._last = CheckpointObservation(0)

    def look(self) -> CheckpointObservation:
        """Never raises: what can't be read is said, and what was counted before stands."""
        try:
            matches = _checkpoint_matches(self._pattern)
            if not matches and (trouble := why_glob_is_unreadable(self._pattern)):
                return replace(self._last, trouble=trouble)
            likely = self._note(matches)
        except OSError as error:
            return replace(self._last, trouble=str(error.strerror or error))
        self._last = self._open_all(likely)
        return self._last

    def _note(self, matches: set[str]) -> list[tuple[str, CheckpointStamp]]:
        """Finds out which ones are new or changed; returns the newest, those that came last first."""
        own = {path: stamp for path in matches if (stamp := _stamp_of_path(path))}
        before, first = self._stamps, not self._looks
        self._looks += 1
        likely = set(
            heapq.nlargest(_NEWEST_CHECKPOINTS, own, key=lambda path: (path not in before, own[path][1], path))
        )
        self._stamps = {
            path: _stamp_with_contents(path, own[path]) if path in likely else before.get(path) for path in own
        }
        self._came = {path: self._came.get(path, 0) for path in own}
        for path, stamp in self._stamps.items():
            if not first and (path not in before or before[path] not in (stamp, None)):
                self._came[path] = self._looks
        stamped = [(path, stamp) for path in likely if (stamp := self._stamps[path])]
        return sorted(stamped, key=lambda each: (self._came[each[0]], each[1][1], each[0]), reverse=True)

    def _open_all(self, likely: list[tuple[str, CheckpointStamp]]) -> CheckpointObservation:
        self._opened = {each: found for each, found in self._opened.items() if each in likely}
        found, none_yet = CheckpointObservation(self._last.count), not self._last.count
        for path, stamp in likely:
            is_new = self._came[path] == self._looks
            if found.whole and not is_new:
                break
            reading = self._open(path, stamp)
            if reading.unread:
                if is_new:
                    del self._stamps[path]  # so that it is at the next look too
                return replace(self._last, count=found.count, trouble=f"{path}: {reading.reason}")
            if reading.valid:
                found = self._counted(found, path, reading, new=is_new or none_yet)
                none_yet = False
            elif not found.whole and not found.broken:
                found = replace(found, broken=path, reason=reading.reason)
        return found

    def _counted(
        self, found: CheckpointObservation, path: str, reading: CheckpointReading, *, new: bool
    ) -> CheckpointObservation:
        if new:
            found = replace(found, count=found.count + 1)
        if found.whole:
            return found
        step = self._last.step if path == self._last.whole and not new else step_of_checkpoint(path)
        return replace(found, whole=path, how=reading.how, step=step)

    def _open(self, path: str, stamp: CheckpointStamp) -> CheckpointReading:
        found = self._opened.get((path, stamp)) or check_checkpoint(path)
        if not found.unread:
            self._opened[(path, stamp)] = found
        return found


def _checkpoint_matches(pattern: str) -> set[str]:
    if not is_glob_pattern(pattern):
        return {pattern} if os.path.lexists(pattern) else set()
    matches = [match.rstrip("/") for match in glob_paths(pattern)]
    links = {match for match in matches if os.path.islink(match)}
    plain = set(matches) - links
    if not links:
        return plain
    there = {os.path.realpath(match) for match in plain}  # `last` is a link to one of them
    return plain | {link for link in links if os.path.realpath(link) not in there}


def _stamp_of_path(path: str) -> CheckpointStamp | None:
    try:
        own = os.stat(path)
    except FileNotFoundError:
        return (0, 0, 0) if os.path.islink(path) else None
    return (own.st_ino, own.st_mtime_ns, own.st_size)


def _stamp_with_contents(path: str, own: CheckpointStamp) -> CheckpointStamp:
    """Of a folder with all files below it, for its own time says nothing about them."""
    if not os.path.isdir(path):
        return own
    newest, size, files = 0, 0, 0
    for folder, _, names in walk_folders(path):
        for name in names:
            try:
                stat = os.stat(os.path.join(folder, name))
            except OSError:
                continue
            newest, size, files = max(newest, stat.st_mtime_ns), size + stat.st_size, files + 1
        if files > _MOST_FILES:
            break
    return (own[0], newest or own[1], size)


_SETTLED_NS = 50_000_000  # folder times are coarse: one that changed just before its listing may change unseen
_LIST_ANYWAY = 12  # looks: another machine's clock may hide a change
_MOST_FOLDERS = 10_000
_NEWEST_CHUNKS = 32  # files whose growth is watched
_ESCAPED = re.compile(r"\[([*?[])\]")
_ABSENT = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class ChunkObservation:
    """`count` rises with every new file, and with every look at which one of the newest had grown."""

    count: int
    present: int
    newest: str | None = None  # its path
    trouble: str = ""  # why it abstains


@dataclass(slots=True)
class _WatchedFolder:
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
        self._base, self._parts = _split_glob_base(pattern)
        self._fits = [re.compile(fnmatch.translate(part)).match for part in self._parts]
        self._folders: dict[str, _WatchedFolder] = {}
        self._new: list[str] = []  # paths that appeared at this look
        self._newest: dict[str, tuple[int, int, int]] = {}  # path -> inode, size, time
        self._count = 0
        self._looks = zlib.crc32(os.fsencode(pattern)) % _LIST_ANYWAY  # not all watches at the same look

    def look(self) -> ChunkObservation:
        """Never raises: what can't be read is said, and what was counted before stands."""
        self._looks += 1
        self._new = []
        trouble = self._walk()
        self._count += len(self._new) + self._grown()
        present = sum(len(folder.chunks) for folder in self._folders.values() if folder.here)
        newest = max(self._newest, key=lambda path: (self._newest[path][2], *_name_length_key(path)), default=None)
        return ChunkObservation(self._count, present, newest, trouble)

    # -- folders

    def _walk(self) -> str:
        trouble = ""
        seen: set[tuple[int, int]] = set()  # links may lead to a folder twice, or round in circles
        reached: dict[str, _WatchedFolder] = {}
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

    def _remember(self, reached: dict[str, _WatchedFolder]) -> None:
        for path, folder in self._folders.items():
            folder.here = path in reached
        if len(self._folders) > 2 * _MOST_FOLDERS:
            self._folders = reached

    def _folder(self, path: str, wants: frozenset[int], seen: set[tuple[int, int]]) -> _WatchedFolder | None:
        stat = os.stat(path)
        identity = (stat.st_dev, stat.st_ino)
        if identity in seen:
            return None
        seen.add(identity)
        stamp = (*identity, stat.st_mtime_ns)
        folder = self._folders.get(path)
        if folder is None or folder.stamp[:2] != identity:
            folder = _WatchedFolder(wants)
        elif folder.stamp == stamp and folder.settled and self._looks % _LIST_ANYWAY:
            return folder
        now = time.time_ns()
        self._list(path, folder)
        folder.stamp, folder.settled = stamp, now - stat.st_mtime_ns > _SETTLED_NS
        self._folders[path] = folder
        return folder

    def _list(self, path: str, folder: _WatchedFolder) -> None:
        names, folders = self._entries(path, folder)
        new = names - folder.names
        if len(names) < len(folder.names) + len(new):
            folder.chunks &= names
        folder.names = names
        chunks = [name for name in new if self._is_chunk(name, folder.wants)]
        folder.chunks.update(chunks)
        self._new += (os.path.join(path, name) for name in chunks)
        folder.below = {name: wants for name in folders if (wants := self._below(name, folder.wants))}

    def _entries(self, path: str, folder: _WatchedFolder) -> tuple[set[str], list[str]]:
        if folder.wants == {len(self._parts) - 1} and self._parts[-1] != "**":
            return set(os.listdir(path)), []
        with os.scandir(path) as entries:
            found = list(entries)
        folders = sorted((entry.is_symlink(), entry.name) for entry in found if _leads_to_folder(entry))
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
        after = dict(_file_stamps(before))
        grown = any(_has_file_grown(before[path], stamp) for path, stamp in after.items())
        if not self._new and (len(after) < len(before) or not after):  # the newest ones were deleted
            after.update(_file_stamps(self._likely()))
        after.update(_file_stamps(_likely_newest(self._new)))
        kept = heapq.nlargest(_NEWEST_CHUNKS, after.items(), key=lambda item: (item[1][2], *_name_length_key(item[0])))
        self._newest = dict(kept)
        return grown

    def _likely(self) -> Iterator[str]:
        for path, folder in self._folders.items():
            if folder.here:
                yield from (os.path.join(path, name) for name in _likely_newest(folder.chunks))


def _split_glob_base(pattern: str) -> tuple[str, list[str]]:
    """The folder that all matches are below, and the parts of the pattern from there on."""
    parts = [part for part in pattern.split("/") if part]
    base = ["/"] if pattern.startswith("/") else []
    while len(parts) > 1 and (literal := _literal_part(parts[0])) is not None:
        base.append(literal)
        parts.pop(0)
    return os.path.join(*base) if base else os.curdir, parts or ["*"]


def _literal_part(part: str) -> str | None:
    """The part as a name; None: it is a glob."""
    return None if glob.has_magic(_ESCAPED.sub("", part)) else _ESCAPED.sub(r"\1", part)


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _likely_newest(names: Collection[str]) -> set[str]:
    """By their names, without a look at each: the highest number or the latest date."""
    if len(names) <= 2 * _NEWEST_CHUNKS:
        return set(names)
    return {*heapq.nlargest(_NEWEST_CHUNKS, names), *heapq.nlargest(_NEWEST_CHUNKS, names, key=_name_length_key)}


def _name_length_key(path: str) -> tuple[int, str]:
    return (len(path), path)


def _file_stamps(paths: Iterable[str]) -> Iterator[tuple[str, tuple[int, int, int]]]:
    for path in paths:
        try:
            stat = os.stat(path)
        except OSError:
            continue
        yield path, (stat.st_ino, stat.st_size, stat.st_mtime_ns)


def _has_file_grown(before: tuple[int, int, int], after: tuple[int, int, int]) -> bool:
    return after[0] != before[0] or after[1] > before[1]
