"""Which column of a file counts the steps, and when its last rows were written: read off its end."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from muster.domain.look_facts import Dated
from muster.observe.find_times import gaps_of
from muster.observe.steps import BLANK, Column, LogPattern, decode_row, number
from muster.ports.regular_files import open_fd

# names of counters without their separators, the best first; of "train/global_step" the last part counts
NAMES = (
    "step", "globalstep", "steps", "envstep", "envsteps", "totalenvsteps", "totalsteps", "numsteps", "trainstep",
    "agentstep", "totaltimesteps", "numtimesteps", "timesteps", "timestep", "iteration", "iterations", "iter", "iters",
    "it", "update", "updates", "nupdates", "numupdates", "frame", "frames", "numframes", "batch", "epoch", "epochs",
    "episode", "episodes", "round", "generation",
)  # fmt: skip
EPOCHS = frozenset({"epoch", "epochs"})
_TIMES = frozenset({"time", "timestamp", "ts", "walltime", "datetime", "date", "createdat", "loggedat"})
_TAILS = (256 << 10, 4 << 20)
_MOST_ROWS = 600
_NEAR = 5  # rows from the end: a step further back was not written when the file was
_SAME_S = 120.0  # a row's own time and the file's may differ by this, and by whole half hours: zones
_ZONE_S = 1800.0
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
_NUMBER = r"(\d[\d,_]*(?:\.\d+)?[KMB]?)(?!\w)"
_GLUE = r"[\"']?\s{0,4}[:=#|\[(]{0,3}\s{0,20}"
PATTERNS = (
    rf"(?i)(?<![a-z_])(?:(?:global|env|train|training|total|agent)[ _-]?)?(?:time)?steps?{_GLUE}{_NUMBER}",
    rf"(?i)(?<![a-z_])(?:iter|iters|iterations?|it|updates?){_GLUE}{_NUMBER}",
    r"\|\s*(\d+)/\d+\s*\[",  # a progress bar
    r"\[\s{0,9}(\d+)\s?/\s?\d+\]",
    rf"(?i)(?<![a-z_])epochs?{_GLUE}{_NUMBER}",
    rf"(?i)(?<![a-z_])(?:episodes?|rounds?){_GLUE}{_NUMBER}",
)


UNDATED = Dated()


@dataclass(frozen=True, slots=True)
class Sniffed:
    key: str | None = None  # the column, or the regex of a log; None: nothing in it counts
    dated: Dated = UNDATED
    columns: tuple[str, ...] = ()  # what there is instead
    stands: bool = False  # only one number was seen, which may count nothing


def sniff(path: str, kind: str) -> Sniffed:
    """`kind`: jsonl, csv or log. Raises OSError where the file can't be read."""
    fd = open_fd(path)
    try:
        facts = os.fstat(fd)
        lines = _last_lines(fd, facts.st_size)
        if kind == "jsonl":
            return _in_rows([row for line in lines if isinstance(row := decode_row(line), dict)], facts.st_mtime)
        if kind == "csv":
            return _in_table(os.pread(fd, 64 << 10, 0), lines, facts.st_mtime)
        return _in_log(lines, facts.st_mtime)
    finally:
        os.close(fd)


def plain_name(key: str) -> str:
    """`trainer/Global_Step` -> globalstep"""
    return re.sub(r"[^a-z0-9]", "", re.split(r"[/.]", key)[-1].lower())


def _last_lines(fd: int, size: int) -> list[bytes]:
    lines: list[bytes] = []
    for length in _TAILS:
        start = max(0, size - length)
        block = os.pread(fd, length, start)
        if not block.strip(BLANK + b"\n"):
            return []
        parts = block.replace(b"\r", b"\n").split(b"\n")
        lines = [line for part in (parts[1:] if start else parts) if (line := part.strip(BLANK))]
        if len(lines) > 1 or start == 0:
            break
    return lines[-_MOST_ROWS:]


# -- tables


def _in_rows(rows: Sequence[dict[str, Any]], written: float) -> Sniffed:
    flat = [dict(_leaves(row)) for row in rows]
    names = tuple(dict.fromkeys(name for row in flat for name in row))
    key = _counter(names, flat)
    if key is None:
        return Sniffed(columns=names[:20])
    return Sniffed(key, _dated(flat, key, _clock(names, flat, written), written), names[:20])


def _leaves(row: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, dict) and not before:
            yield from _leaves(value, f"{key}.")
        else:
            yield f"{before}{key}", value


def _in_table(head: bytes, lines: Sequence[bytes], written: float) -> Sniffed:
    header = head.partition(b"\n")[0]
    delimiter = max((b",", b"\t", b";"), key=header.count)
    names = [name.strip().strip('"') for name in header.decode("utf-8-sig", "replace").split(delimiter.decode())]
    if not header.count(delimiter) and plain_name(names[0]) not in NAMES:
        return Sniffed()
    rows = []
    for line in lines:
        column = Column(tuple(names), 0, delimiter.decode())
        fields = column.fields(line)
        if len(fields) == len(names) and fields != names:
            rows.append(dict(zip(names, fields, strict=True)))
    return _in_rows(rows, written) if rows else Sniffed(columns=tuple(names[:20]))


def _counter(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> str | None:
    """The column with the best name of those that increase."""
    ranked = sorted((NAMES.index(plain_name(name)), len(name), name) for name in names if plain_name(name) in NAMES)
    still: str | None = None  # a counter that stands: an epoch may be long
    for _, _, name in ranked:
        values = [value for row in rows if (value := number(row.get(name))) is not None]
        if rises(values):
            return name
        if len(set(values)) == 1 and still is None:
            still = name
    return still


def rises(values: Sequence[float]) -> bool:
    """It counts upwards; it may begin again, as a bar does in each epoch."""
    ups = sum(after > before for before, after in pairwise(values))
    downs = sum(after < before for before, after in pairwise(values))
    return ups > 0 and ups >= 2 * downs


def _clock(names: Sequence[str], rows: Sequence[dict[str, Any]], written: float) -> str | None:
    """The column that says when a row was written, if its last value agrees with the file's own time."""
    for name in names:
        if plain_name(name) not in _TIMES:
            continue
        last = next((row[name] for row in reversed(rows) if name in row), None)
        if (at := _moment(last)) is not None and _agree(at, written):
            return name
    return None


def _moment(value: Any) -> float | None:
    """Seconds or milliseconds since 1970, or an ISO time."""
    if isinstance(value, str) and number(value) is None:
        try:
            return datetime.fromisoformat(value.strip()).timestamp()
        except (ValueError, OverflowError):
            return None
    at = number(value)
    if at is not None and at > 1e12:
        at /= 1000
    return at if at is not None and 1e9 < at < 4e9 else None


def _agree(at: float, written: float) -> bool:
    apart = abs(written - at) % _ZONE_S
    return min(apart, _ZONE_S - apart) <= _SAME_S and abs(written - at) < 24 * 3600


def _dated(rows: Sequence[dict[str, Any]], key: str, clock: str | None, written: float) -> Dated:
    steps = [(number(row.get(key)), _moment(row.get(clock)) if clock else None) for row in rows]
    return dated(steps, written)


def dated(steps: Sequence[tuple[float | None, float | None]], written: float) -> Dated:
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
        return Dated()
    gaps = gaps_of(times)
    if len(steps) - rose <= _NEAR:
        return Dated(written, gaps)
    if not times:
        return Dated(None, gaps, "it was written to since, so when its last step came can't be told")
    shift = round((written - times[-1]) / _ZONE_S) * _ZONE_S
    return Dated(min(written, times[-1] + shift), gaps)


# -- logs


def _in_log(lines: Sequence[bytes], written: float) -> Sniffed:
    shorter = [line[-2000:] for line in lines]
    still: tuple[str, list[float | None]] | None = None  # a counter that stands: the first step, or a long epoch
    for pattern in PATTERNS:
        steps = _steps(shorter, LogPattern.of(pattern))
        values = [step for step in steps if step is not None]
        if len(set(values)) > 1 and rises(values):
            return Sniffed(pattern, dated(list(zip(steps, _stamps(shorter, written), strict=True)), written))
        if len(set(values)) == 1 and still is None:
            still = pattern, steps
    if still is None:
        return Sniffed()
    moments = list(zip(still[1], _stamps(shorter, written), strict=True))
    return Sniffed(still[0], dated(moments, written), stands=True)


def _steps(lines: Sequence[bytes], pattern: LogPattern) -> list[float | None]:
    return [found.step if found else None for found in pattern.all_last(lines)]


def _stamps(lines: Sequence[bytes], written: float) -> list[float | None]:
    """The time that each line begins with, where the last of them agrees with the file's own."""
    times = [_stamp(line) for line in lines]
    last = next((at for at in reversed(times) if at is not None), None)
    return times if last is not None and _agree(last, written) else [None] * len(lines)


def _stamp(line: bytes) -> float | None:
    match = _STAMP.search(line[:64])
    if match is None:
        return None
    day, time, part = (piece.decode() if piece else "" for piece in match.groups())
    return _moment(f"{day}T{time}.{part or '0':0<6}")
