"""The column of a file that counts the steps, read off its end, and the dates of rows and files, which give ages and
gaps for what was not watched.
"""

# ruff: noqa: PTH116, PTH118, PTH208
# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from muster.files.safe_open import open_regular_fd
from muster.model.calendar import seconds_of_iso_time
from muster.model.foreign_run import ProgressDates
from muster.readers.checkpoints.whole_checkpoints import checkpoint_saved_at
from muster.readers.records.row_steps import BLANK_BYTES, LogPattern, decode_json_row, finite_number_of
from muster.readers.records.step_counter import normalize_key_name, rank_of_counter
from muster.readers.records.table_rows import TableHeader

MOST_GAPS = 256
MOMENT_S = 1.0
_MOST_CHECKPOINTS = 64
FUTURE_S = 5.0
IN_THE_FUTURE = "its file time lies in the future: the clock was set, or another machine's clock is ahead"


def date_files(times: Sequence[float], now: float, since: float | None) -> ProgressDates:
    """`since`: when the process began; what is older is another run's, and says nothing about this one's gaps."""
    if not times:
        return ProgressDates()
    if max(times) > now + FUTURE_S:
        return ProgressDates(None, (), IN_THE_FUTURE)
    own = sorted(at for at in times if since is None or at >= since)
    return ProgressDates(max(own or times), gaps_between_times(own))


def gaps_between_times(times: Sequence[float]) -> tuple[float, ...]:
    """Between moments as looks a second apart would see them: ten files at once, or a copied folder, are one."""
    kept: list[float] = []
    for at in times:
        if not kept or at - kept[-1] >= MOMENT_S:
            kept.append(at)
    return tuple(after - before for before, after in pairwise(kept))[-MOST_GAPS:]


def refuse_future_time(dated: ProgressDates, now: float) -> ProgressDates:
    if dated.last is not None and dated.last > now + FUTURE_S:
        return ProgressDates(None, dated.gaps, IN_THE_FUTURE)
    return dated


def newest_times_of_crowded_folder(folder: str, ending: str) -> list[float]:
    """Of a crowded folder: those of the names that are most likely the newest, by number or by date."""
    try:
        names = [name for name in os.listdir(folder) if name.lower().endswith(ending)]
    except OSError:
        return []
    likely = {*heapq.nlargest(MOST_GAPS, names), *heapq.nlargest(MOST_GAPS, names, key=lambda name: (len(name), name))}
    return list(_modification_times(os.path.join(folder, name) for name in likely))


def checkpoint_times(paths: Iterable[str]) -> list[float]:
    """Of files or folders; of very many the ones with the latest names."""
    likely = heapq.nlargest(_MOST_CHECKPOINTS, paths, key=lambda path: (len(path), path))
    found = []
    for path in likely:
        try:
            found.append(checkpoint_saved_at(path))
        except OSError:
            continue
    return found


def _modification_times(paths: Iterable[str]) -> Iterable[float]:
    for path in paths:
        try:
            yield os.stat(path).st_mtime
        except OSError:
            continue


_TIME_COLUMN_NAMES = frozenset({"time", "timestamp", "ts", "walltime", "datetime", "date", "createdat", "loggedat"})
_TAIL_SIZES = (256 << 10, 4 << 20)
_MOST_ROWS = 600
_NEAR = 5  # rows from the end: a step further back was not written when the file was
_SAME_S = 120.0  # a row's own time and the file's may differ by this, and by whole half hours: zones
_ZONE_S = 1800.0
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
_LOG_NUMBER = r"(\d[\d,_]*(?:\.\d+)?[KMB]?)(?!\w)"
_GLUE = r"[\"']?\s{0,4}[:=#|\[(]{0,3}\s{0,20}"
STEP_PATTERNS = (
    rf"(?i)(?<![a-z_])(?:(?:global|env|train|training|total|agent)[ _-]?)?(?:time)?steps?{_GLUE}{_LOG_NUMBER}",
    rf"(?i)(?<![a-z_])(?:iter|iters|iterations?|it|updates?){_GLUE}{_LOG_NUMBER}",
    r"\|\s*(\d+)/\d+\s*\[",  # a progress bar
    r"\[\s{0,9}(\d+)\s?/\s?\d+\]",
    rf"(?i)(?<![a-z_])epochs?{_GLUE}{_LOG_NUMBER}",
    rf"(?i)(?<![a-z_])(?:episodes?|rounds?){_GLUE}{_LOG_NUMBER}",
)


UNDATED_FILE = ProgressDates()


@dataclass(frozen=True, slots=True)
class StepColumn:
    key: str | None = None  # the column, or the regex of a log; None: nothing in it counts
    dated: ProgressDates = UNDATED_FILE
    columns: tuple[str, ...] = ()  # what there is instead
    stands: bool = False  # only one number was seen, which may count nothing


def find_step_column(path: str, kind: str) -> StepColumn:
    """`kind`: jsonl, csv or log. Raises OSError where the file can't be read."""
    fd = open_regular_fd(path)
    try:
        facts = os.fstat(fd)
        lines = _last_lines_of_file(fd, facts.st_size)
        if kind == "jsonl":
            return _step_column_of_rows(
                [row for line in lines if isinstance(row := decode_json_row(line), dict)], facts.st_mtime
            )
        if kind == "csv":
            return _step_column_of_table(os.pread(fd, 64 << 10, 0), lines, facts.st_mtime)
        return _step_pattern_of_log(lines, facts.st_mtime)
    finally:
        os.close(fd)


def _last_lines_of_file(fd: int, size: int) -> list[bytes]:
    lines: list[bytes] = []
    for length in _TAIL_SIZES:
        start = max(0, size - length)
        block = os.pread(fd, length, start)
        if not block.strip(BLANK_BYTES + b"\n"):
            return []
        parts = block.replace(b"\r", b"\n").split(b"\n")
        lines = [line for part in (parts[1:] if start else parts) if (line := part.strip(BLANK_BYTES))]
        if len(lines) > 1 or start == 0:
            break
    return lines[-_MOST_ROWS:]


# -- tables


def _step_column_of_rows(rows: Sequence[dict[str, Any]], written: float) -> StepColumn:
    flat = [dict(_one_level_leaves(row)) for row in rows]
    names = tuple(dict.fromkeys(name for row in flat for name in row))
    key = _counting_column(names, flat)
    if key is None:
        return StepColumn(columns=names[:20])
    return StepColumn(key, _date_rows(flat, key, _clock_column(names, flat, written), written), names[:20])


def _one_level_leaves(row: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, dict) and not before:
            yield from _one_level_leaves(value, f"{key}.")
        else:
            yield f"{before}{key}", value


def _step_column_of_table(head: bytes, lines: Sequence[bytes], written: float) -> StepColumn:
    header = next(filter(None, map(TableHeader.of_line, head.split(b"\n"))), None)
    if header is None or (len(header.names) < 2 and rank_of_counter(header.names[0]) is None):
        return StepColumn()
    rows = [fields for line in lines if len(fields := header.fields(line)) == len(header.names)]
    found = [
        {name: number if (number := header.number(field)) is not None else field for name, field in named}
        for fields in rows
        if not header.is_followed_by(fields)
        for named in [zip(header.names, fields, strict=True)]
    ]
    return _step_column_of_rows(found, written) if found else StepColumn(columns=header.names[:20])


def _counting_column(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> str | None:
    """The column with the best name of those that increase."""
    ranked = sorted((rank, len(name), name) for name in names if (rank := rank_of_counter(name)) is not None)
    still: str | None = None  # a counter that stands: an epoch may be long
    for _, _, name in ranked:
        values = [value for row in rows if (value := finite_number_of(row.get(name))) is not None]
        if counts_upwards(values):
            return name
        if len(set(values)) == 1 and still is None:
            still = name
    return still


def counts_upwards(values: Sequence[float]) -> bool:
    """It counts upwards; it may begin again, as a bar does in each epoch."""
    ups = sum(after > before for before, after in pairwise(values))
    downs = sum(after < before for before, after in pairwise(values))
    return ups > 0 and ups >= 2 * downs


def _clock_column(names: Sequence[str], rows: Sequence[dict[str, Any]], written: float) -> str | None:
    """The column that says when a row was written, if its last value agrees with the file's own time."""
    for name in names:
        if normalize_key_name(name) not in _TIME_COLUMN_NAMES:
            continue
        last = next((row[name] for row in reversed(rows) if name in row), None)
        if (at := _parse_moment(last)) is not None and _agrees_with_file_time(at, written):
            return name
    return None


def _parse_moment(value: Any) -> float | None:
    """Seconds or milliseconds since 1970, or an ISO time."""
    if isinstance(value, str) and finite_number_of(value) is None:
        return seconds_of_iso_time(value.strip())
    at = finite_number_of(value)
    if at is not None and at > 1e12:
        at /= 1000
    return at if at is not None and 1e9 < at < 4e9 else None


def _agrees_with_file_time(at: float, written: float) -> bool:
    apart = abs(written - at) % _ZONE_S
    return min(apart, _ZONE_S - apart) <= _SAME_S and abs(written - at) < 24 * 3600


def _date_rows(rows: Sequence[dict[str, Any]], key: str, clock: str | None, written: float) -> ProgressDates:
    steps = [(finite_number_of(row.get(key)), _parse_moment(row.get(clock)) if clock else None) for row in rows]
    return dates_of_steps(steps, written)


def dates_of_steps(steps: Sequence[tuple[float | None, float | None]], written: float) -> ProgressDates:
    """(step, its own time) of each row; the file's time stands for the last one, if that holds a step."""
    times: list[float] = []
    last: float | None = None
    rose: int | None = None  # the row at which it counted up last
    for row, (step, at) in enumerate(steps):
        if step is None:
            continue
        if last is None or step > last:
            rose = row
            times += [] if at is None else [at]
        last = step
    if rose is None:
        return ProgressDates()
    gaps = gaps_between_times(times)
    if len(steps) - rose <= _NEAR:
        return ProgressDates(written, gaps)
    if not times:
        return ProgressDates(None, gaps, "it was written to since, so when its last step came can't be told")
    shift = round((written - times[-1]) / _ZONE_S) * _ZONE_S
    return ProgressDates(min(written, times[-1] + shift), gaps)


# -- logs


def _step_pattern_of_log(lines: Sequence[bytes], written: float) -> StepColumn:
    shorter = [line[-2000:] for line in lines]
    still: tuple[str, list[float | None]] | None = None  # a counter that stands: the first step, or a long epoch
    for pattern in STEP_PATTERNS:
        steps = _steps_of_lines(shorter, LogPattern.of(pattern))
        values = [step for step in steps if step is not None]
        if len(set(values)) > 1 and counts_upwards(values):
            return StepColumn(
                pattern, dates_of_steps(list(zip(steps, _stamps_of_lines(shorter, written), strict=True)), written)
            )
        if len(set(values)) == 1 and still is None:
            still = pattern, steps
    if still is None:
        return StepColumn()
    moments = list(zip(still[1], _stamps_of_lines(shorter, written), strict=True))
    return StepColumn(still[0], dates_of_steps(moments, written), stands=True)


def _steps_of_lines(lines: Sequence[bytes], pattern: LogPattern) -> list[float | None]:
    return [found.step if found else None for found in pattern.all_last(lines)]


def _stamps_of_lines(lines: Sequence[bytes], written: float) -> list[float | None]:
    """The time that each line begins with, where the last of them agrees with the file's own."""
    times = [_stamp_of_line(line) for line in lines]
    last = next((at for at in reversed(times) if at is not None), None)
    return times if last is not None and _agrees_with_file_time(last, written) else [None] * len(lines)


def _stamp_of_line(line: bytes) -> float | None:
    match = _STAMP.search(line[:64])
    if match is None:
        return None
    day, time, part = (piece.decode() if piece else "" for piece in match.groups())
    return _parse_moment(f"{day}T{time}.{part or '0':0<6}")
