"""Where a run put its files: the declared folder, or the one that fits a glob because the trainer names its own."""

# Paths are texts here: globs are no paths, and this runs after every exit.
# ruff: noqa: PTH112, PTH113, PTH116, PTH118, PTH120

from __future__ import annotations

import glob
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

from muster.domain.order import Order
from muster.observe.window import Window, began_at, started_at
from muster.ports.folders import glob_paths

SLACK_S = 2.0  # coarse file times, and clocks of two machines
_RECENT_S = 60.0
_NOTHING: Mapping[str, float] = {}
_MOST_ENTRIES = 2000  # per folder: one look must stay cheap when a run has a million replay files


@dataclass(frozen=True, slots=True)
class Found:
    """A folder that fits, and when it was touched."""

    path: str
    first: float  # the oldest time on it: about when it was made
    last: float  # the newest time on it


def is_glob(path: str) -> bool:
    return glob.has_magic(path)


def find_output(order: Order, since: float | None) -> str | None:
    """The output of an attempt; of several that fit, the one most likely its own. None: there is none."""
    if not is_glob(order.output):
        return order.output if os.path.lexists(order.output) else None
    found = candidates(order.output, since, slack_s=slack_of(order), there=there_of(order))
    return found[0].path if found else None


def slack_of(order: Order) -> float:
    """By how much file times may seem to lie outside of the attempt that they belong to.

    None where its `started` lies on the same file system as its output: one clock stamps both. A retry starts within
    milliseconds of the death before it, and what that attempt wrote last must not be its own.
    """
    one = _one_clock(order.output, os.path.dirname(order.out))
    return 0.0 if one and started_at(order) is not None else SLACK_S


def fitting(pattern: str, folder: str) -> dict[str, float]:
    """For `Order.there`: what fits just before a launch, with its newest time. `folder`: that of the attempts.

    Two file systems, perhaps of two machines, have two clocks: what the attempt before wrote last is told from what
    this one writes by what was there. Only what a clock that is a little wrong could take for new is kept.
    """
    if not is_glob(pattern) or os.path.lexists(pattern) or _one_clock(pattern, folder):
        return {}
    base, recent = _above_glob(pattern), time.time() - _RECENT_S
    found = [_times(match) for match in glob_paths(pattern)]
    return {os.path.relpath(each.path, base): each.last for each in found if each.last >= recent}


def there_of(order: Order) -> dict[str, float]:
    base = _above_glob(order.output)
    return {os.path.normpath(os.path.join(base, name)): at for name, at in order.there.items()}


def _one_clock(output: str, folder: str) -> bool:
    """Whether they lie on one file system, as far as they are there; False: it can't be told."""
    place, other = _above_glob(output), folder
    try:
        return os.stat(_nearest(place)).st_dev == os.stat(_nearest(other)).st_dev
    except OSError:
        return False


def _above_glob(pattern: str) -> str:
    while is_glob(pattern):
        pattern = os.path.dirname(pattern)
    return pattern


def _nearest(place: str) -> str:
    while not _is_there(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    return place


def candidates(
    pattern: str,
    since: float | None,
    until: float | None = None,
    *,
    slack_s: float = SLACK_S,
    there: Mapping[str, float] = _NOTHING,
) -> list[Found]:
    """What fits an absolute glob and was touched since the start, best first. `until`: its end, where that is known.

    Made since the start beats merely touched since: another run's plots or an `ls`-happy tool may touch an old folder.
    Made after the end is a later attempt's. `there`: what fitted at the launch, which counts if it was touched since.
    """
    # a literal name may happen to hold glob characters: runs/[a]
    matches = [pattern] if os.path.lexists(pattern) else glob_paths(pattern)
    found = [_times(match) for match in matches]
    start = float("-inf") if since is None else since - slack_s
    ours = [
        each
        for each in found
        if each.last >= start and each.last > there.get(os.path.normpath(each.path), float("-inf"))
    ]
    end = float("inf") if until is None else until + slack_s

    def likely(each: Found) -> tuple[bool, bool, float, str]:
        return start <= each.first and os.path.normpath(each.path) not in there, each.first <= end, each.last, each.path

    return sorted(ours, key=likely, reverse=True)


@dataclass(frozen=True, slots=True)
class Fits:
    """The outputs that fit, best first. `since`: of the best one only files with this time or later are the attempt's.

    That is so of a folder that was there before: a trainer may go on in it, or somebody else has touched it.
    """

    paths: tuple[str, ...] = ()
    since: float | None = None


def fits_of(order: Order, window: Window | None) -> Fits:
    if not is_glob(order.output) or os.path.lexists(order.output):
        return Fits((order.output,)) if os.path.lexists(order.output) else Fits()
    since, until = (window.started, window.ended) if window else (began_at(order), None)
    slack, there = slack_of(order), there_of(order)
    found = candidates(order.output, since, until, slack_s=slack, there=there)
    start = since - slack if since is not None else None
    older = bool(found) and start is not None and found[0].first < start
    before = there.get(os.path.normpath(found[0].path)) if found else None
    if before is not None:
        older, start = True, max(start or 0.0, math.nextafter(before, math.inf))
    return Fits(tuple(each.path for each in found), start if older and order.resumed_from is None else None)


def artifacts(patterns: tuple[str, ...], output: str | None) -> tuple[str, ...]:
    """Further files that belong to an attempt: rendered globs, relative to its output."""
    base = folder_of(output) if output else os.curdir
    matches = (glob_paths(os.path.join(base, pattern)) for pattern in patterns)
    return tuple(sorted({os.path.normpath(match) for found in matches for match in found}))


def folder_of(output: str) -> str:
    """What relative paths are relative to: an output may be a single file."""
    return os.path.dirname(output) if os.path.isfile(output) else output


def unreadable(pattern: str) -> str | None:
    """Why nothing could be found where a glob looks, if the reason is that it can't be looked at."""
    folder = pattern
    try:
        while is_glob(folder) or not _is_there(folder):
            parent = os.path.dirname(folder)
            if parent == folder:
                return None
            folder = parent
        if os.path.isdir(folder):
            os.scandir(folder).close()
    except OSError as error:  # no permission, a stale handle, nobody who serves it
        return f"{folder} can't be read: {(error.strerror or str(error)).lower()}"
    if os.access(folder, os.R_OK | (os.X_OK if os.path.isdir(folder) else 0)):
        return None
    return f"{folder} can't be read: permission denied"


def _is_there(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _times(path: str) -> Found:
    """From the folder and its direct entries: a folder's own time stands still while its files grow."""
    try:
        own = os.stat(path)
    except OSError:
        return Found(path, float("-inf"), float("-inf"))
    # ctime moves with chmod and rename too, but also when a trainer restores old mtimes: either proves a touch
    times = [max(own.st_mtime, own.st_ctime)]
    first = [own.st_mtime]
    born = getattr(own, "st_birthtime", None)  # not on Linux before Python 3.15
    for entry in _entries(path):
        try:
            stat = entry.stat()
        except OSError:
            continue
        times.append(stat.st_mtime)
        first.append(stat.st_mtime)
    return Found(path, born if born is not None else min(first), max(times))


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return [entry for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False)]
    except OSError:
        return []
