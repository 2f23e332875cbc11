"""When a run that nobody watched began and ended, from its folder's name and the times of its files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from muster.acts.run_config import FILES
from muster.ports.folders import walk

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


def run_times(run: Path, recorded: tuple[float, float] | None = None) -> RunTimes | None:
    """None: the folder has no file. A status table's own times count where the files' times lie within them."""
    times = _file_times(run)
    if not times:
        return None
    oldest, newest = min(times), max(times)
    if recorded and recorded[0] - 60 <= oldest and newest <= recorded[1] + 60:
        return RunTimes(*recorded)
    stamp = _stamp(run.name)
    if stamp is None or stamp > oldest or _other_zone(oldest - stamp):
        return RunTimes(oldest, newest)
    return RunTimes(stamp, newest, _copied(run, stamp, oldest, newest))


def _other_zone(gap: float) -> bool:
    """A stamp hours before the first file, to a few minutes: it was made in another time zone."""
    return gap >= _ZONE_S and gap % _ZONE_S < _FIRST_FILE_S


def _copied(run: Path, stamp: float, oldest: float, newest: float) -> bool:
    """All files are of one moment, long after the start, and one that is written at the start is among them."""
    length = newest - stamp
    return length > 600 and newest - oldest < 0.02 * length and any((run / name).exists() for name in FILES)


def _stamp(name: str) -> float | None:
    match = _STAMP.search(name)
    if match is None:
        return None
    try:
        return datetime(*map(int, match.groups())).timestamp()  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return None


def _file_times(run: Path) -> list[float]:
    times: list[float] = []
    for folder, _, names in walk(run):
        for name in names:
            try:
                times.append(Path(folder, name).stat().st_mtime)
            except OSError:
                continue
        if len(times) > _MOST_FILES:
            break
    return times
