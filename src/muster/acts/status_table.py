"""The status table that somebody's script kept: which run it calls a success, and where it lies."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from muster.acts.run_config import same
from muster.domain.campaign import Axis, AxisValue, Campaign, Job
from muster.domain.errors import UsageError
from muster.ports.regular_files import read_regular

LARGEST = 8 << 20  # bytes: it has a line for each run
MOST_ROWS = 100_000
_SUCCESS = frozenset(
    {"success", "succeeded", "successful", "done", "ok", "finished", "complete", "completed", "passed"}
)
_ALIKE = (
    ("config", "method", "variant", "configuration", "cfg", "config_name", "algo"),
    ("seed", "random_seed", "rng_seed"),
    ("split", "eval_split"),
)
_STATUS = ("status", "state", "result", "outcome", "verdict")
_FOLDER = ("run_dir", "rundir", "run_folder", "logdir", "log_dir", "run_path", "output_dir", "outdir", "output",
           "folder", "dir", "path", "run")  # fmt: skip
_CHECKPOINT = ("checkpoint", "ckpt", "checkpoint_path")
_START = ("started", "start", "start_time", "begin", "started_at")
_END = ("ended", "end", "end_time", "finished", "finish", "finished_at", "ended_at")
_STAMPS = ("%Y%m%d-%H%M%S", "%Y%m%d_%H%M%S", "%Y-%m-%d_%H-%M-%S", "%Y/%m/%d %H:%M:%S")


@dataclass(frozen=True, slots=True)
class Row:
    """One run as the table tells it. `trouble` says why it can't be taken in."""

    label: str  # "row 5": as an editor counts lines
    values: Mapping[str, AxisValue]  # axis -> value
    job: str | None = None
    status: str | None = None
    folder: str | None = None
    window: tuple[float, float] | None = None
    trouble: str | None = None


def read_table(path: Path, campaign: Campaign) -> list[Row]:
    try:
        lines = read_regular(path, LARGEST).decode("utf-8-sig", "replace").splitlines()
    except OSError as error:
        raise UsageError(f"the status table can't be read: {error.strerror}", where=str(path)) from None
    try:
        return _rows(lines, campaign)
    except csv.Error as error:
        raise UsageError(f"the status table can't be read: {error}", where=str(path)) from None


def _rows(lines: Sequence[str], campaign: Campaign) -> list[Row]:
    if not lines:
        return []
    if len(lines) > MOST_ROWS:
        raise csv.Error(f"it has more than {MOST_ROWS} lines")
    delimiter = "\t" if "\t" in lines[0] else ","
    header = [_plain(name) for name in next(csv.reader(lines[:1], delimiter=delimiter))]
    columns = {axis.name: column for axis in campaign.axes if (column := _axis_column(axis, header)) is not None}
    rows = []
    for number, line in enumerate(lines[1:], 2):
        if line.strip() and not line.startswith("#"):
            fields = next(csv.reader([line], delimiter=delimiter))
            rows.append(_row(f"row {number}", fields, header, columns, campaign))
    return rows


def jobs_for(row: Row, jobs: Sequence[Job]) -> list[Job]:
    """The jobs whose axes the row names, those with most axes: a row with a split is about `eval`, not `train`."""
    fitting = [job for job in jobs if set(job.axes) <= set(row.values) and row.job in (None, job.name)]
    most = max((len(job.axes) for job in fitting), default=0)
    return [job for job in fitting if len(job.axes) == most]


def _row(label: str, fields: list[str], header: list[str], columns: Mapping[str, int], campaign: Campaign) -> Row:
    def text(names: Sequence[str]) -> str | None:
        at = next((header.index(name) for name in names if name in header), None)
        return (fields[at].strip() or None) if at is not None and at < len(fields) else None

    if len(fields) < len(header):
        return Row(label, {}, trouble=f"has {len(fields)} of {len(header)} columns: cut off")
    values: dict[str, AxisValue] = {}
    for name, column in columns.items():
        axis = campaign.axis(name)
        found = _value(fields[column].strip(), axis)
        if found is None:
            return Row(label, {}, trouble=f"{name} '{fields[column].strip()}' is not declared")
        values[name] = found
    status = text(_STATUS)
    trouble = f"its status is '{status}'" if status is not None and status.lower() not in _SUCCESS else None
    checkpoint = text(_CHECKPOINT)
    folder = text(_FOLDER) or (str(Path(checkpoint).parent) if checkpoint else None)
    return Row(label, values, text(("job",)), status, folder, _window(text(_START), text(_END)), trouble)


def _axis_column(axis: Axis, header: list[str]) -> int | None:
    name = _plain(axis.name)
    alike = next((group for group in _ALIKE if name in group), ())
    taken = {*_STATUS, *_FOLDER, *_CHECKPOINT, *_START, *_END}
    near = difflib.get_close_matches(name, [each for each in header if each not in taken], 1, 0.8)
    return next((header.index(each) for each in (name, *alike, *near) if each in header), None)


def _value(text: str, axis: Axis) -> AxisValue | None:
    numbers = [number for kind in (int, float) if (number := _number(text, kind)) is not None]
    return next((each for each in axis.values if each.name == text or any(same(n, each) for n in numbers)), None)


def _number(text: str, kind: type[int] | type[float]) -> int | float | None:
    try:
        return kind(text)
    except ValueError:
        return None


def _window(start: str | None, end: str | None) -> tuple[float, float] | None:
    began, ended = _time(start), _time(end)
    return (began, ended) if began is not None and ended is not None and ended > began else None


def _time(text: str | None) -> float | None:
    if text is None:
        return None
    for form in _STAMPS:
        try:
            return datetime.strptime(text, form).timestamp()
        except ValueError:
            continue
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        number = _number(text, float)
        return number if number is not None and number > 1e9 else None


def _plain(name: str) -> str:
    return name.strip().casefold().replace(" ", "_").replace("-", "_")
