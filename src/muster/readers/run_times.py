"""When an unwatched run began and ended, from its folder's name and the times of its files; and where in the course
of a run a file was saved. File times are wall times, and the wall clock may jump.
"""

# ruff: noqa: PTH116, PTH118, PTH120
# Paths are texts here: globs are no paths, and this runs after every exit.

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from muster.files.bounded_walk import walk_folders
from muster.files.safe_open import read_file_start
from muster.model.attempt import Order
from muster.model.attempt_snapshot import ExitRecord
from muster.model.calendar import seconds_of_iso_time
from muster.readers.discovery.axis_values import RUN_CONFIG_FILES

_MOST_FILES = 100_000
_STAMP = re.compile(r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)[-_T ](\d\d)[-:]?(\d\d)[-:]?(\d\d)(?!\d)")
_ZONE_S = 1800  # zones differ by half hours
_FIRST_FILE_S = 120  # a trainer that stamps its folder writes something into it soon


@dataclass(frozen=True, slots=True)
class RunTimes:
    started: float
    ended: float
    lost: bool = False  # the files' times are those of a copy: when anything was saved can't be told

    @property
    def duration_s(self) -> float:
        return self.ended - self.started


def times_of_run_folder(run: Path, recorded: tuple[float, float] | None = None) -> RunTimes | None:
    """None: the folder has no file. A status table's own times count where the files' times lie within them."""
    times = _file_times_of_run(run)
    if not times:
        return None
    oldest, newest = min(times), max(times)
    if recorded and recorded[0] - 60 <= oldest and newest <= recorded[1] + 60:
        return RunTimes(*recorded)
    stamp = _time_in_folder_name(run.name)
    if stamp is None or stamp > oldest or _is_from_other_zone(oldest - stamp):
        return RunTimes(oldest, newest)
    return RunTimes(stamp, newest, _is_copied_folder(run, stamp, oldest, newest))


def _is_from_other_zone(gap: float) -> bool:
    """A stamp hours before the first file, to a few minutes: it was made in another time zone."""
    return gap >= _ZONE_S and gap % _ZONE_S < _FIRST_FILE_S


def _is_copied_folder(run: Path, stamp: float, oldest: float, newest: float) -> bool:
    """All files are of one moment, long after the start, and one that is written at the start is among them."""
    length = newest - stamp
    return length > 600 and newest - oldest < 0.02 * length and any((run / name).exists() for name in RUN_CONFIG_FILES)


def _time_in_folder_name(name: str) -> float | None:
    match = _STAMP.search(name)
    if match is None:
        return None
    try:
        return datetime(*map(int, match.groups())).timestamp()  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return None


def _file_times_of_run(run: Path) -> list[float]:
    times: list[float] = []
    for folder, _, names in walk_folders(run):
        for name in names:
            try:
                times.append(Path(folder, name).stat().st_mtime)
            except OSError:
                continue
        if len(times) > _MOST_FILES:
            break
    return times


_SLACK_S = 2.0  # coarse file times
_DRIFT = 0.01  # wall and boot clock may differ by that share of a run before it counts as a jump


@dataclass(frozen=True, slots=True)
class RunShare:
    """Where in the run: 0 its start, 1 its end; None where the clock does not say, `why` in words."""

    value: float | None
    late: bool | None  # late enough; None: can't be told
    why: str = ""


@dataclass(frozen=True, slots=True)
class RunWindow:
    """The run's wall times, and its true length by a clock that does not jump."""

    started: float
    ended: float
    duration_s: float

    def share(self, saved: float, wanted: float) -> RunShare:
        slack = _SLACK_S / max(self.duration_s, 1e-3)
        by_start, by_end = self._by_start(saved), self._by_end(saved)
        if not self._jumped and saved > self.ended + _SLACK_S:
            return RunShare(
                None, None, f"was saved {saved - self.ended:.0f} s after the run's end by the clock: can't be compared"
            )
        if not self._jumped and by_start < -slack:
            return RunShare(None, False, f"was saved {self.started - saved:.0f} s before the run started")
        if not self._jumped:
            return _bounded_share(by_start, wanted)
        # saved before the jump, or after it: each reading is right in one of the two cases
        shares = [_bounded_share(each, wanted) for each in (by_start, by_end) if -slack <= each <= 1 + slack]
        if len({each.late for each in shares}) == 1:
            return shares[-1]
        return RunShare(None, None, "can't be compared with the run: the clock jumped while it ran")

    def _by_start(self, saved: float) -> float:
        return (saved - self.started) / max(self.duration_s, 1e-3)

    def _by_end(self, saved: float) -> float:
        return 1 - (self.ended - saved) / max(self.duration_s, 1e-3)

    @property
    def _jumped(self) -> bool:
        return abs((self.ended - self.started) - self.duration_s) > max(_SLACK_S, _DRIFT * self.duration_s)


def _bounded_share(value: float, wanted: float) -> RunShare:
    value = min(1.0, max(0.0, value))
    return RunShare(value, value >= wanted)


def window_of_attempt(order: Order, exit_: ExitRecord | None) -> RunWindow | None:
    """From the attempt's own files where they exist: the clock that stamped them stamped the checkpoint too."""
    if exit_ is None:
        return None
    started, ended = (
        attempt_started_at(order),
        _modification_time(os.path.join(os.path.dirname(order.out), "exit.json")),
    )
    if started is not None and ended is not None:
        return RunWindow(started, ended, exit_.duration_s)
    return RunWindow(exit_.at - exit_.duration_s, exit_.at, exit_.duration_s)


def attempt_started_at(order: Order) -> float | None:
    """When its shim took the attempt, by the clock that stamps files; None: it never did."""
    path = os.path.join(os.path.dirname(order.out), "started")
    return _modification_time(path) if _read_stripped_text(path) == order.token else None


def attempt_began_at(order: Order) -> float | None:
    """When it began at the earliest: as its shim wrote it down, or its claim where that file is gone."""
    started = attempt_started_at(order)
    return started if started is not None else seconds_of_iso_time(order.claimed_at)


def _read_stripped_text(path: str) -> str | None:
    try:
        return read_file_start(path, 4096).decode("utf-8", "replace").strip()
    except OSError:
        return None


def _modification_time(path: str) -> float | None:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None
