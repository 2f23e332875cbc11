"""Where a run put its files: the declared folder, or the newest one that fits a glob, because trainers name their
own.
"""

# ruff: noqa: PTH112, PTH116, PTH208, PTH113, PTH118, PTH120
# Paths are texts here: globs are no paths, and this runs after every exit.

from __future__ import annotations

import glob
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

from muster.files.bounded_walk import glob_paths
from muster.model.attempt import Order
from muster.model.campaign import Job
from muster.model.cell import Cell
from muster.readers.checkpoints.whole_checkpoints import checkpoint_saved_at
from muster.readers.run_times import RunWindow, attempt_began_at, attempt_started_at
from muster.text.command_template import list_placeholders, render_template

OUTPUT_TIME_SLACK_S = 2.0  # coarse file times, and clocks of two machines
_RECENT_S = 60.0
_NOTHING: Mapping[str, float] = {}
_MOST_ENTRIES = 2000  # per folder: one look must stay cheap when a run has a million replay files


@dataclass(frozen=True, slots=True)
class FoundOutput:
    """A folder that fits, and when it was touched."""

    path: str
    first: float  # the oldest time on it: about when it was made
    last: float  # the newest time on it


def is_glob_pattern(path: str) -> bool:
    return glob.has_magic(path)


def find_attempt_output(order: Order, since: float | None) -> str | None:
    """The output of an attempt; of several that fit, the one most likely its own. None: there is none."""
    if not is_glob_pattern(order.output):
        return order.output if os.path.lexists(order.output) else None
    found = output_candidates(order.output, since, slack_s=slack_of(order), there=there_of(order))
    return found[0].path if found else None


def slack_of(order: Order) -> float:
    """By how much file times may seem to lie outside of the attempt that they belong to.

    None where its `started` lies on the same file system as its output: one clock stamps both. A retry starts within
    milliseconds of the death before it, and what that attempt wrote last must not be its own.
    """
    one = _one_clock(order.output, os.path.dirname(order.out))
    return 0.0 if one and attempt_started_at(order) is not None else OUTPUT_TIME_SLACK_S


def match_output_pattern(pattern: str, folder: str) -> dict[str, float]:
    """For `Order.there`: what fits just before a launch, with its newest time. `folder`: that of the attempts.

    Two file systems, perhaps of two machines, have two clocks: what the attempt before wrote last is told from what
    this one writes by what was there. Only what a clock that is a little wrong could take for new is kept.
    """
    if not is_glob_pattern(pattern) or os.path.lexists(pattern) or _one_clock(pattern, folder):
        return {}
    base, recent = _above_glob(pattern), time.time() - _RECENT_S
    found = [_output_times(match) for match in glob_paths(pattern)]
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
    while is_glob_pattern(pattern):
        pattern = os.path.dirname(pattern)
    return pattern


def _nearest(place: str) -> str:
    while not _exists_for_sure(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    return place


def output_candidates(
    pattern: str,
    since: float | None,
    until: float | None = None,
    *,
    slack_s: float = OUTPUT_TIME_SLACK_S,
    there: Mapping[str, float] = _NOTHING,
) -> list[FoundOutput]:
    """What fits an absolute glob and was touched since the start, best first. `until`: its end, where that is known.

    Made since the start beats merely touched since: another run's plots or an `ls`-happy tool may touch an old folder.
    Made after the end is a later attempt's. `there`: what fitted at the launch, which counts if it was touched since.
    """
    # a literal name may happen to hold glob characters: runs/[a]
    matches = [pattern] if os.path.lexists(pattern) else glob_paths(pattern)
    found = [_output_times(match) for match in matches]
    start = float("-inf") if since is None else since - slack_s
    ours = [
        each
        for each in found
        if each.last >= start and each.last > there.get(os.path.normpath(each.path), float("-inf"))
    ]
    end = float("inf") if until is None else until + slack_s

    def likely(each: FoundOutput) -> tuple[bool, bool, float, str]:
        return start <= each.first and os.path.normpath(each.path) not in there, each.first <= end, each.last, each.path

    return sorted(ours, key=likely, reverse=True)


@dataclass(frozen=True, slots=True)
class FittingOutputs:
    """The outputs that fit, best first. `since`: of the best one only files with this time or later are the attempt's.

    That is so of a folder that was there before: a trainer may go on in it, or somebody else has touched it.
    """

    paths: tuple[str, ...] = ()
    since: float | None = None


def fitting_outputs(order: Order, window: RunWindow | None) -> FittingOutputs:
    if not is_glob_pattern(order.output) or os.path.lexists(order.output):
        return FittingOutputs((order.output,)) if os.path.lexists(order.output) else FittingOutputs()
    since, until = (window.started, window.ended) if window else (attempt_began_at(order), None)
    slack, there = slack_of(order), there_of(order)
    found = output_candidates(order.output, since, until, slack_s=slack, there=there)
    start = since - slack if since is not None else None
    older = bool(found) and start is not None and found[0].first < start
    before = there.get(os.path.normpath(found[0].path)) if found else None
    if before is not None:
        older, start = True, max(start or 0.0, math.nextafter(before, math.inf))
    return FittingOutputs(tuple(each.path for each in found), start if older and order.resumed_from is None else None)


def folder_of_output(output: str) -> str:
    """What relative paths are relative to: an output may be a single file."""
    return os.path.dirname(output) if os.path.isfile(output) else output


def why_glob_is_unreadable(pattern: str) -> str | None:
    """Why nothing could be found where a glob looks, if the reason is that it can't be looked at."""
    folder = pattern
    try:
        while is_glob_pattern(folder) or not _exists_for_sure(folder):
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


def _exists_for_sure(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _output_times(path: str) -> FoundOutput:
    """From the folder and its direct entries: a folder's own time stands still while its files grow."""
    try:
        own = os.stat(path)
    except OSError:
        return FoundOutput(path, float("-inf"), float("-inf"))
    # ctime moves with chmod and rename too, but also when a trainer restores old mtimes: either proves a touch
    times = [max(own.st_mtime, own.st_ctime)]
    first = [own.st_mtime]
    born = getattr(own, "st_birthtime", None)  # not on Linux before Python 3.15
    for entry in _bounded_entries(path):
        try:
            stat = entry.stat()
        except OSError:
            continue
        times.append(stat.st_mtime)
        first.append(stat.st_mtime)
    return FoundOutput(path, born if born is not None else min(first), max(times))


def _bounded_entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return [entry for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False)]
    except OSError:
        return []


def paths_fitting(pattern: str) -> list[str]:
    if is_glob_pattern(pattern):
        return glob_paths(pattern)
    return [pattern] if os.path.lexists(pattern) else []


def newest_paths_first(pattern: str) -> list[str]:
    found = {
        os.path.realpath(match): match for match in sorted(paths_fitting(pattern))
    }  # `last` is a link to one of them
    return sorted(found.values(), key=lambda match: (path_time(match), match), reverse=True)


def path_time(path: str) -> float:
    try:
        return checkpoint_saved_at(path)
    except OSError:
        return float("-inf")


def came_at(path: str) -> float:
    """When it was put there or written: a copy may keep the older time of what it was copied from."""
    try:
        stat = os.stat(path)
    except OSError:
        return float("-inf")
    return max(stat.st_mtime, stat.st_ctime)


def path_has_content(path: str) -> bool:
    try:
        return bool(os.listdir(path)) if os.path.isdir(path) else os.stat(path).st_size > 0
    except OSError:
        return False


def has_searchable_output(job: Job) -> bool:
    """Whether its output can be looked for: `{out}` lies in Muster's own folders."""
    known = {*job.axes, "steps", "cell", "attempt", "gpu", "slot", "device", "port"}
    return set(list_placeholders(job.output)) <= known


def output_pattern_of_cell(job: Job, cell: Cell) -> str:
    values = dict.fromkeys(("attempt", "gpu", "slot", "device", "port"), "*")
    values |= {"cell": glob.escape(cell.id), "steps": str(job.steps)}
    values |= {axis: glob.escape(value.name) for axis, value in cell.values}
    return render_template(job.output, values)
