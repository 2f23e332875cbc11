"""Where a run put its files: the declared folder, or the one that fits a glob because the trainer names its own."""

# Paths are texts here: globs are no paths, and this runs after every exit.
# ruff: noqa: PTH112, PTH113, PTH116, PTH118, PTH120

from __future__ import annotations

import glob
import os
from dataclasses import dataclass

from muster.domain.order import Order
from muster.observe.window import Window, began_at, started_at
from muster.ports.folders import glob_paths

SLACK_S = 2.0  # coarse file times, and clocks of two machines
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
    found = candidates(order.output, since, slack_s=slack_of(order))
    return found[0].path if found else None


def slack_of(order: Order) -> float:
    """By how much file times may seem to lie outside of the attempt that they belong to.

    None where its `started` lies on the same file system as its output: one clock stamps both. A retry starts within
    milliseconds of the death before it, and what that attempt wrote last must not be its own.
    """
    place = order.output
    while is_glob(place) or not _is_there(place):
        if place == os.path.dirname(place):
            break
        place = os.path.dirname(place)
    try:
        same = os.stat(place).st_dev == os.stat(os.path.dirname(order.out)).st_dev
    except OSError:
        return SLACK_S
    return 0.0 if same and started_at(order) is not None else SLACK_S


def candidates(
    pattern: str, since: float | None, until: float | None = None, *, slack_s: float = SLACK_S
) -> list[Found]:
    """What fits an absolute glob and was touched since the start, best first. `until`: its end, where that is known.

    Made since the start beats merely touched since: another run's plots or an `ls`-happy tool may touch an old folder.
    Made after the end is a later attempt's.
    """
    # a literal name may happen to hold glob characters: runs/[a]
    matches = [pattern] if os.path.lexists(pattern) else glob_paths(pattern)
    found = [_times(match) for match in matches]
    start = float("-inf") if since is None else since - slack_s
    ours = [each for each in found if each.last >= start]
    end = float("inf") if until is None else until + slack_s
    return sorted(ours, key=lambda each: (start <= each.first, each.first <= end, each.last, each.path), reverse=True)


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
    slack = slack_of(order)
    found = candidates(order.output, since, until, slack_s=slack)
    start = since - slack if since is not None else None
    older = bool(found) and start is not None and found[0].first < start
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
