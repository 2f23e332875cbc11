"""Checkpoints that a living run saves: each new one is opened once, and counts if it is whole."""

# Paths are texts here: globs are no paths, and this runs for every run every few seconds.
# ruff: noqa: PTH112, PTH114, PTH116, PTH118

from __future__ import annotations

import heapq
import os
from dataclasses import dataclass, replace

from muster.observe import outputs
from muster.observe.checkpoint_steps import CheckpointStep, step_of
from muster.observe.checkpoints import CheckpointReading, open_checkpoint
from muster.ports.folders import glob_paths, walk

_NEWEST = 4  # matches that are looked at: the newest may be half-written, or no checkpoint at all
_MOST_FILES = 5000

Stamp = tuple[int, int, int]  # inode, newest time in nanoseconds, bytes


@dataclass(frozen=True, slots=True)
class CheckpointLook:
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
        self._stamps: dict[str, Stamp | None] = {}  # None: a folder that was too old to look into
        self._came: dict[str, int] = {}  # path -> the look at which it was new; times are no order, clocks are set back
        self._opened: dict[tuple[str, Stamp], CheckpointReading] = {}
        self._looks = 0
        self._last = CheckpointLook(0)

    def look(self) -> CheckpointLook:
        """Never raises: what can't be read is said, and what was counted before stands."""
        try:
            matches = _matches(self._pattern)
            if not matches and (trouble := outputs.unreadable(self._pattern)):
                return replace(self._last, trouble=trouble)
            likely = self._note(matches)
        except OSError as error:
            return replace(self._last, trouble=str(error.strerror or error))
        self._last = self._open_all(likely)
        return self._last

    def _note(self, matches: set[str]) -> list[tuple[str, Stamp]]:
        """Finds out which ones are new or changed; returns the newest, those that came last first."""
        own = {path: stamp for path in matches if (stamp := _own_stamp(path))}
        before, first = self._stamps, not self._looks
        self._looks += 1
        likely = set(heapq.nlargest(_NEWEST, own, key=lambda path: (path not in before, own[path][1], path)))
        self._stamps = {path: _stamp(path, own[path]) if path in likely else before.get(path) for path in own}
        self._came = {path: self._came.get(path, 0) for path in own}
        for path, stamp in self._stamps.items():
            if not first and (path not in before or before[path] not in (stamp, None)):
                self._came[path] = self._looks
        stamped = [(path, stamp) for path in likely if (stamp := self._stamps[path])]
        return sorted(stamped, key=lambda each: (self._came[each[0]], each[1][1], each[0]), reverse=True)

    def _open_all(self, likely: list[tuple[str, Stamp]]) -> CheckpointLook:
        self._opened = {each: found for each, found in self._opened.items() if each in likely}
        found, none_yet = CheckpointLook(self._last.count), not self._last.count
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

    def _counted(self, found: CheckpointLook, path: str, reading: CheckpointReading, *, new: bool) -> CheckpointLook:
        if new:
            found = replace(found, count=found.count + 1)
        if found.whole:
            return found
        step = self._last.step if path == self._last.whole and not new else step_of(path)
        return replace(found, whole=path, how=reading.how, step=step)

    def _open(self, path: str, stamp: Stamp) -> CheckpointReading:
        found = self._opened.get((path, stamp)) or open_checkpoint(path)
        if not found.unread:
            self._opened[(path, stamp)] = found
        return found


def _matches(pattern: str) -> set[str]:
    if not outputs.is_glob(pattern):
        return {pattern} if os.path.lexists(pattern) else set()
    matches = [match.rstrip("/") for match in glob_paths(pattern)]
    links = {match for match in matches if os.path.islink(match)}
    plain = set(matches) - links
    if not links:
        return plain
    there = {os.path.realpath(match) for match in plain}  # `last` is a link to one of them
    return plain | {link for link in links if os.path.realpath(link) not in there}


def _own_stamp(path: str) -> Stamp | None:
    try:
        own = os.stat(path)
    except FileNotFoundError:
        return (0, 0, 0) if os.path.islink(path) else None
    return (own.st_ino, own.st_mtime_ns, own.st_size)


def _stamp(path: str, own: Stamp) -> Stamp:
    """Of a folder with all files below it, for its own time says nothing about them."""
    if not os.path.isdir(path):
        return own
    newest, size, files = 0, 0, 0
    for folder, _, names in walk(path):
        for name in names:
            try:
                stat = os.stat(os.path.join(folder, name))
            except OSError:
                continue
            newest, size, files = max(newest, stat.st_mtime_ns), size + stat.st_size, files + 1
        if files > _MOST_FILES:
            break
    return (own[0], newest or own[1], size)
