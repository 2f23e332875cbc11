"""Which cell a run belongs to: the values of axes in its own config file, and the rows of a status table that
somebody's script kept.
"""

from __future__ import annotations

import csv
import difflib
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from muster.files.bounded_yaml import load_yaml
from muster.files.json_codec import load_bounded_json
from muster.files.safe_open import read_regular_file
from muster.model.campaign import Axis, AxisValue, Campaign, Job
from muster.model.errors import UsageError

RUN_CONFIG_FILES = (
    "config.yaml",
    "config.yml",
    "config.json",
    "args.json",
    "params.json",
    "train_config.json",
    ".hydra/config.yaml",
    "files/config.yaml",  # W&B's
)
# keys that name a variant whatever the axis is called: SafeDreamer's `method`, OmniSafe's `exp_name`
_LABELS = frozenset(
    {
        "method",
        "label",
        "name",
        "variant",
        "config",
        "configs",
        "config_name",
        "exp_name",
        "experiment",
        "experiment_name",
        "run_name",
        "algo",
    }
)
_LARGEST_CONFIG = 4 << 20
_DEEPEST = 12
_MOST_NODES = 20_000
_MOST_NAMES = 1000  # of configs in a list
_LARGEST_YAML = 512 << 10  # bytes: YAML is read at some 50 kB a second


@dataclass(frozen=True, slots=True)
class ConfigAxisValue:
    """One place in a config file that names a value of an axis."""

    value: str  # the value's name; for a number that is not declared, the number
    where: str  # "config.yaml: seed"


def read_run_configs(run: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """The config files that can be read; a half-written one says nothing."""
    read = ((name, load_run_config(run / name)) for name in RUN_CONFIG_FILES)
    return [(name, config) for name, config in read if config is not None]


def axis_values_in_configs(configs: Sequence[tuple[str, Mapping[str, Any]]], axis: Axis) -> list[ConfigAxisValue]:
    return [
        ConfigAxisValue(value, f"{name}: {where}")
        for name, config in configs
        for value, where in _axis_values_in_config(config, axis)
    ]


def _axis_values_in_config(config: Mapping[str, Any], axis: Axis) -> list[tuple[str, str]]:
    """Its own key at the top; else the same key deeper down, where all agree. Labels in any case."""
    labels = [
        (found, key)
        for key, value in _config_labels(config)
        if key != axis.name and (found := _declared_value_name(value, axis))
    ]
    top = _axis_value_of_key(config.get(axis.name), axis)
    if top is not None:
        return [(top, axis.name), *labels]
    deep = [(found, path) for path, value in config_leaves(config) if (found := _axis_value_of_leaf(path, value, axis))]
    agreed = deep[:1] if len({value for value, _ in deep}) == 1 else []  # env.seed 0 and train.seed 3 say nothing
    return [*agreed, *labels]


def _axis_value_of_key(value: Any, axis: Axis) -> str | None:
    """A number that is not declared is a claim too: the run belongs to no cell of this campaign."""
    value = _unwrap_wandb_value(value)
    found = _declared_value_name(value, axis)
    if found is None and _is_plain_number(value) and all(_is_plain_number(each.value) for each in axis.values):
        return str(value)
    return found


def _axis_value_of_leaf(path: str, value: Any, axis: Axis) -> str | None:
    parts = path.split(".")
    return _declared_value_name(value, axis) if axis.name in (parts[-1], ".".join(parts[-2:])) else None


def _declared_value_name(value: Any, axis: Axis) -> str | None:
    """The name of the axis value that this is; of a list of config names the last one decides."""
    if isinstance(value, list):
        plain = [each for each in value[:_MOST_NAMES] if not isinstance(each, list)]
        named = [found for each in plain if (found := _declared_value_name(each, axis))]
        return named[-1] if named else None
    return next((each.name for each in axis.values if is_axis_value(value, each)), None)


def is_axis_value(value: Any, declared: AxisValue) -> bool:
    if isinstance(value, bool) or isinstance(declared.value, bool):
        return value is declared.value or str(value) == declared.name
    return bool(value == declared.value) or (isinstance(value, str | int | float) and str(value) == declared.name)


def _is_plain_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unwrap_wandb_value(value: Any) -> Any:
    """W&B writes `seed: {value: 3, desc: null}`."""
    return value["value"] if isinstance(value, Mapping) and "value" in value else value


def _config_labels(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        plain = _unwrap_wandb_value(value)
        if key in _LABELS and isinstance(plain, str | list):
            yield key, plain


def config_leaves(config: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Nested keys joined by dots, with their values. YAML may hold one part many times over: not all of it is told."""
    yield from islice(_bounded_config_leaves(config, before, depth, [_MOST_NODES]), _MOST_NODES)


def _bounded_config_leaves(
    config: Mapping[str, Any], before: str, depth: int, left: list[int]
) -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        left[0] -= 1
        if left[0] < 0:
            return
        plain = _unwrap_wandb_value(value)
        if isinstance(plain, Mapping) and depth < _DEEPEST:
            yield from _bounded_config_leaves(plain, f"{before}{key}.", depth + 1, left)
        elif not isinstance(plain, Mapping):
            yield f"{before}{key}", plain


def load_run_config(path: Path) -> Mapping[str, Any] | None:
    """A config file as a mapping; None: it is none, too large or broken."""
    try:
        parse = _CONFIG_PARSERS.get(path.suffix, _parse_config_yaml)
        text = read_regular_file(path, _LARGEST_YAML if parse is _parse_config_yaml else _LARGEST_CONFIG).decode(
            "utf-8", "replace"
        )
        value = parse(text)
    except (OSError, ValueError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, Mapping) else None


def _parse_config_yaml(text: str) -> Any:
    try:
        return load_yaml(text)
    except Exception:  # ruamel.yaml lets more through than its own errors; a broken config says nothing
        return None


def _parse_config_json(text: str) -> Any:
    return load_bounded_json(text.encode())


_CONFIG_PARSERS: dict[str, Callable[[str], Any]] = {".json": _parse_config_json, ".toml": tomllib.loads}

LARGEST_STATUS_TABLE = 8 << 20  # bytes: it has a line for each run
MOST_ROWS = 100_000
_SUCCESS_WORDS = frozenset(
    {"success", "succeeded", "successful", "done", "ok", "finished", "complete", "completed", "passed"}
)
_AXIS_SYNONYMS = (
    ("config", "method", "variant", "configuration", "cfg", "config_name", "algo"),
    ("seed", "random_seed", "rng_seed"),
    ("split", "eval_split"),
)
_STATUS_COLUMNS = ("status", "state", "result", "outcome", "verdict")
_FOLDER_COLUMNS = (
    "run_dir",
    "rundir",
    "run_folder",
    "logdir",
    "log_dir",
    "run_path",
    "output_dir",
    "outdir",
    "output",
    "folder",
    "dir",
    "path",
    "run",
)
_CHECKPOINT_COLUMNS = ("checkpoint", "ckpt", "checkpoint_path")
_START_COLUMNS = ("started", "start", "start_time", "begin", "started_at")
_END_COLUMNS = ("ended", "end", "end_time", "finished", "finish", "finished_at", "ended_at")
_STAMPS = ("%Y%m%d-%H%M%S", "%Y%m%d_%H%M%S", "%Y-%m-%d_%H-%M-%S", "%Y/%m/%d %H:%M:%S")


@dataclass(frozen=True, slots=True)
class StatusRow:
    """One run as the table tells it. `trouble` says why it can't be taken in."""

    label: str  # "row 5": as an editor counts lines
    values: Mapping[str, AxisValue]  # axis -> value
    job: str | None = None
    status: str | None = None
    folder: str | None = None
    window: tuple[float, float] | None = None
    trouble: str | None = None


def read_status_table(path: Path, campaign: Campaign) -> list[StatusRow]:
    try:
        lines = read_regular_file(path, LARGEST_STATUS_TABLE).decode("utf-8-sig", "replace").splitlines()
    except OSError as error:
        raise UsageError(f"the status table can't be read: {error.strerror}", where=str(path)) from None
    try:
        return _status_rows(lines, campaign)
    except csv.Error as error:
        raise UsageError(f"the status table can't be read: {error}", where=str(path)) from None


def _status_rows(lines: Sequence[str], campaign: Campaign) -> list[StatusRow]:
    if not lines:
        return []
    if len(lines) > MOST_ROWS:
        raise csv.Error(f"it has more than {MOST_ROWS} lines")
    delimiter = "\t" if "\t" in lines[0] else ","
    header = [_normalized_table_column(name) for name in next(csv.reader(lines[:1], delimiter=delimiter))]
    columns = {axis.name: column for axis in campaign.axes if (column := _column_of_axis(axis, header)) is not None}
    rows = []
    for number, line in enumerate(lines[1:], 2):
        if line.strip() and not line.startswith("#"):
            fields = next(csv.reader([line], delimiter=delimiter))
            rows.append(_status_row(f"row {number}", fields, header, columns, campaign))
    return rows


def jobs_of_row(row: StatusRow, jobs: Sequence[Job]) -> list[Job]:
    """The jobs whose axes the row names, those with most axes: a row with a split is about `eval`, not `train`."""
    fitting = [job for job in jobs if set(job.axes) <= set(row.values) and row.job in (None, job.name)]
    most = max((len(job.axes) for job in fitting), default=0)
    return [job for job in fitting if len(job.axes) == most]


def _status_row(
    label: str, fields: list[str], header: list[str], columns: Mapping[str, int], campaign: Campaign
) -> StatusRow:
    def text(names: Sequence[str]) -> str | None:
        at = next((header.index(name) for name in names if name in header), None)
        return (fields[at].strip() or None) if at is not None and at < len(fields) else None

    if len(fields) < len(header):
        return StatusRow(label, {}, trouble=f"has {len(fields)} of {len(header)} columns: cut off")
    values: dict[str, AxisValue] = {}
    for name, column in columns.items():
        axis = campaign.axis(name)
        found = _axis_value_of_text(fields[column].strip(), axis)
        if found is None:
            return StatusRow(label, {}, trouble=f"{name} '{fields[column].strip()}' is not declared")
        values[name] = found
    status = text(_STATUS_COLUMNS)
    trouble = f"its status is '{status}'" if status is not None and status.lower() not in _SUCCESS_WORDS else None
    checkpoint = text(_CHECKPOINT_COLUMNS)
    folder = text(_FOLDER_COLUMNS) or (str(Path(checkpoint).parent) if checkpoint else None)
    return StatusRow(
        label,
        values,
        text(("job",)),
        status,
        folder,
        _recorded_times(text(_START_COLUMNS), text(_END_COLUMNS)),
        trouble,
    )


def _column_of_axis(axis: Axis, header: list[str]) -> int | None:
    name = _normalized_table_column(axis.name)
    alike = next((group for group in _AXIS_SYNONYMS if name in group), ())
    taken = {*_STATUS_COLUMNS, *_FOLDER_COLUMNS, *_CHECKPOINT_COLUMNS, *_START_COLUMNS, *_END_COLUMNS}
    near = difflib.get_close_matches(name, [each for each in header if each not in taken], 1, 0.8)
    return next((header.index(each) for each in (name, *alike, *near) if each in header), None)


def _axis_value_of_text(text: str, axis: Axis) -> AxisValue | None:
    numbers = [number for kind in (int, float) if (number := _number_or_none(text, kind)) is not None]
    return next(
        (each for each in axis.values if each.name == text or any(is_axis_value(n, each) for n in numbers)), None
    )


def _number_or_none(text: str, kind: type[int] | type[float]) -> int | float | None:
    try:
        return kind(text)
    except ValueError:
        return None


def _recorded_times(start: str | None, end: str | None) -> tuple[float, float] | None:
    began, ended = _parse_status_time(start), _parse_status_time(end)
    return (began, ended) if began is not None and ended is not None and ended > began else None


def _parse_status_time(text: str | None) -> float | None:
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
        number = _number_or_none(text, float)
        return number if number is not None and number > 1e9 else None


def _normalized_table_column(name: str) -> str:
    return name.strip().casefold().replace(" ", "_").replace("-", "_")
