"""Reads what a run left in its folder, for the journal: its command and script, evaluations, gates, schedule, and
series such as `training_stats.pkl`. Nothing in them is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from muster.app.journal.recorded_run import (
    ITERATION_KEYS,
    STAGE_KEYS,
    ArtifactFile,
    Evaluation,
    EvaluationRows,
    FileProblem,
    RecordedGateTrace,
    RunScript,
    TrainingSeries,
    find_script_in_command,
    split_command_text,
)
from muster.files.bounded_walk import walk_folders
from muster.files.safe_open import read_file_start
from muster.readers.checkpoints.arrays import (
    MOST_ARRAY_BYTES,
    PickleNotPlain,
    UnreadableArrays,
    is_numpy_array,
    read_npz_arrays,
)
from muster.readers.checkpoints.plain_pickles import read_plain_pickle
from muster.readers.records.row_steps import decode_json_value, numeric_leaves, plain_number
from muster.text.number_format import format_file_size

COMMAND_FILE_NAMES = ("argv.json", "command.json", "command.txt", "command.sh", "cmd.txt")
MOST_COMMAND_BYTES = 1 << 20
MOST_SCRIPT_BYTES = 4 << 20


class UnreadableCommand(Exception):
    """It is written there and can't be read; the message says why."""


def find_command_file(folder: Path) -> Path | None:
    return next((folder / name for name in COMMAND_FILE_NAMES if (folder / name).is_file()), None)


def read_command_file(path: Path) -> tuple[tuple[str, ...], str]:
    """The words, and the folder it was started in where that is told. Raises NoCommand."""
    try:
        data = read_file_start(path, MOST_COMMAND_BYTES + 1)
    except OSError as error:
        raise UnreadableCommand(error.strerror or str(error)) from None
    if len(data) > MOST_COMMAND_BYTES:
        raise UnreadableCommand("it is too large")
    text = data.decode("utf-8", "replace")
    if path.suffix == ".json":
        return _command_of_json(text)
    found = split_command_text(text)
    if found is None:
        raise UnreadableCommand("it holds no command that a shell could split")
    return found, ""


def _command_of_json(text: str) -> tuple[tuple[str, ...], str]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableCommand("it is no JSON") from None
    cwd = ""
    if isinstance(found, dict):
        cwd = str(found.get("cwd") or "")
        found = found.get("argv", found.get("command"))
    if isinstance(found, str):
        found = split_command_text(found)
    if not isinstance(found, list | tuple) or not found or not all(isinstance(word, str) for word in found):
        raise UnreadableCommand("it holds no list of words")
    return tuple(found), cwd


def read_script_of_command(argv: Sequence[str], places: Sequence[Path], begun: float | None) -> RunScript | None:
    """`places`: folders that its path may be meant from, the likeliest first. None: the command names no script."""
    name = find_script_in_command(argv)
    if name is None:
        return None
    for place in places:
        path = place / name
        try:
            if not path.is_file():
                continue
            data = read_file_start(path, MOST_SCRIPT_BYTES + 1)
            newer = begun is not None and path.stat().st_mtime > begun
        except OSError:
            continue
        if len(data) > MOST_SCRIPT_BYTES:
            break
        return RunScript(name, hashlib.sha256(data).hexdigest(), data.decode("utf-8", "replace"), newer)
    return RunScript(name)


MOST_SERIES = 500
MOST_CELLS = 1_500_000  # of a list of records
MOST_NUMBERS = 4_000_000  # of all series: 128 MB as Python keeps them
_DEEPEST = 3


def read_series_file(path: str) -> tuple[dict[str, list[float]], str]:
    """Name -> a number for each iteration; or none, and why."""
    try:
        found = _read_npz_series(path) if path.endswith(".npz") else read_plain_pickle(path)
    except PickleNotPlain as error:
        return {}, str(error)
    except OSError as error:
        return {}, error.strerror or str(error)
    series: dict[str, list[float]] = {}
    left = MOST_NUMBERS
    for name, values in _series_in_value(found, ""):
        left -= len(values)
        if len(series) >= MOST_SERIES or left < 0:
            break
        series[name] = values
    return series, "" if series else "it holds no series of numbers"


def _series_in_value(found: Any, name: str, depth: int = 0) -> Iterator[tuple[str, list[float]]]:
    if isinstance(found, Mapping) and depth < _DEEPEST:
        for key, value in found.items():
            yield from _series_in_value(value, f"{name}.{key}" if name else str(key), depth + 1)
    elif _are_records(found):
        yield from _series_of_records(found, name)
    elif values := _numbers_of_sequence(found):
        yield name or "values", values


def _are_records(found: Any) -> bool:
    return isinstance(found, list | tuple) and bool(found) and all(isinstance(row, Mapping) for row in found)


def _series_of_records(rows: Any, name: str) -> Iterator[tuple[str, list[float]]]:
    """Of a list of records, one for each iteration; keys that some of them lack are left out."""
    columns: dict[str, list[float]] = {}
    left = MOST_CELLS
    for at, row in enumerate(rows):
        numbers = dict(numeric_leaves({str(key): _number_of_array(value) for key, value in row.items()}))
        left -= max(1, len(row))
        if left < 0:
            return
        if at == 0:
            columns = {key: [] for key in numbers}
        columns = {key: values for key, values in columns.items() if key in numbers}
        for key, values in columns.items():
            values.append(numbers[key])
    for key, values in columns.items():
        yield f"{name}.{key}" if name else key, values


def _numbers_of_sequence(found: Any) -> list[float]:
    if is_numpy_array(found):
        if found.ndim != 1 or found.dtype.kind not in "biuf":
            return []
        return list(map(float, found.tolist())) if found.size <= MOST_NUMBERS else []
    if not isinstance(found, list | tuple) or not found:
        return []
    values = [plain_number(_number_of_array(value)) for value in found]
    return [value for value in values if value is not None] if None not in values else []


def _number_of_array(value: Any) -> Any:
    """An array of one number is a number."""
    return value.item() if is_numpy_array(value) and value.size == 1 and value.dtype.kind in "iuf" else value


def _read_npz_series(path: str) -> dict[str, Any]:
    try:
        return read_npz_arrays(path, lambda names: names[:MOST_SERIES], MOST_ARRAY_BYTES)
    except UnreadableArrays as error:
        raise PickleNotPlain(str(error)) from None


EVALUATIONS = ("eval_history.jsonl", "eval_multi_history.jsonl", "*eval*history*.jsonl")
GATE_TRACE_NAMES = ("gate_trace.jsonl", "*gate_trace*.jsonl")
SCHEDULES = ("schedule_trace.json", "*schedule_trace*.json")
SUMMARIES = ("stage_summary.json", "*stage_summary*.json")
TRAINING_STATS_NAMES = ("training_stats.pkl", "*training_stats*.pkl", "*_stats.pkl", "training_stats.npz")
TRAINING_LOG_NAMES = ("train.jsonl",)
PICTURES = (".png", ".svg", ".jpg", ".jpeg", ".gif")
MOST_CONTENT_BYTES = 64 << 20  # of a file whose content is told
MOST_FILES = 5_000
MOST_GATES = 4
MANY_FILES = 12  # files of a folder that are told as one
_SKIPPED = ("__pycache__", ".git", ".ipynb_checkpoints")
HashOfRunFile = Callable[[str], str | None]
LoggedRow = TypeVar("LoggedRow")


@dataclass(frozen=True, slots=True)
class RunFolderContents:
    """Paths are relative to `base`, the journal's folder."""

    evaluations: EvaluationRows | None
    gates: tuple[RecordedGateTrace, ...]
    schedule: Mapping[str, Any] | None
    schedule_source: str
    summary: Mapping[str, Any] | None
    summary_source: str
    training: TrainingSeries | None
    pictures: tuple[str, ...]
    files: tuple[ArtifactFile, ...]
    troubles: tuple[FileProblem, ...]


class RunFolderReader:
    def __init__(self, folder: Path, base: Path) -> None:
        self._folder, self._base = folder, base
        self._troubles: list[FileProblem] = []
        self._files = self._walk()

    def read(self, hash_: HashOfRunFile) -> RunFolderContents:
        """Everything; what can't be read is among the troubles."""
        schedule, schedule_source = self._object(SCHEDULES)
        summary, summary_source = self._object(SUMMARIES)
        return RunFolderContents(
            self._evaluations(),
            tuple(self._gates()),
            schedule,
            schedule_source,
            summary,
            summary_source,
            self._training(),
            tuple(self.shown(path) for path in self._files if path.lower().endswith(PICTURES)),
            tuple(self._list(hash_)),
            tuple(self._troubles),
        )

    def shown(self, path: str) -> str:
        return os.path.relpath(path, self._base).replace(os.sep, "/")

    @property
    def earliest(self) -> float | None:
        """When the first of its files got its present content: the run had begun by then."""
        return min((os.stat(path).st_mtime for path in self._files), default=None)  # noqa: PTH116

    # -- files

    def _walk(self) -> list[str]:
        """The nearest first."""
        found: list[str] = []
        for folder, below, names in walk_folders(self._folder):
            below[:] = sorted(name for name in below if name not in _SKIPPED)
            paths = (os.path.join(folder, name) for name in sorted(names))  # noqa: PTH118
            found += (path for path in paths if os.path.isfile(path))  # noqa: PTH113
            if len(found) > MOST_FILES:
                self._tell("many", n=MOST_FILES)
                del found[MOST_FILES:]
                break
        return sorted(found, key=lambda path: (path.count(os.sep), path))

    def _named(self, patterns: Sequence[str]) -> list[str]:
        for pattern in patterns:
            if found := [path for path in self._files if fnmatchcase(os.path.basename(path), pattern)]:  # noqa: PTH119
                return found
        return []

    def _one(self, patterns: Sequence[str]) -> str | None:
        """The nearest; of several the others are named."""
        found = self._named(patterns)
        if len(found) > 1:
            others = ", ".join(self.shown(path) for path in found[1:4])
            name = os.path.basename(found[0])  # noqa: PTH119
            self._tell("several", name=name, file=self.shown(found[0]), others=others)
        return found[0] if found else None

    def _bytes(self, path: str) -> bytes | None:
        try:
            data = read_file_start(path, MOST_CONTENT_BYTES + 1)
        except OSError as error:
            self._tell("unread", file=self.shown(path), why=error.strerror or str(error))
            return None
        if len(data) > MOST_CONTENT_BYTES:
            told = format_file_size(os.path.getsize(path))  # noqa: PTH202
            self._tell("large", file=self.shown(path), size=told, most=format_file_size(MOST_CONTENT_BYTES))
            return None
        return data

    def _tell(self, key: str, **parts: object) -> None:
        self._troubles.append(FileProblem(f"trouble.{key}", parts))

    # -- rows

    def _rows(self, path: str) -> list[dict[str, Any]]:
        """The objects of a jsonl file. Half a last line is normal while a run writes, or where it was killed."""
        data = self._bytes(path)
        lines = (data or b"").split(b"\n")
        found, unfit = [], 0
        for number, line in enumerate(lines, 1):
            text = line.rpartition(b"\0")[2].strip()
            if not text:
                continue
            row = decode_json_value(text)
            if isinstance(row, dict):
                found.append(row)
            elif number == len(lines):
                self._tell("torn", file=self.shown(path))
            else:
                unfit += 1
        if unfit:
            self._tell("lines", file=self.shown(path), n=unfit)
        return found

    def _evaluations(self) -> EvaluationRows | None:
        path = self._one(EVALUATIONS)
        if path is None:
            return None
        rows = [_evaluation_of_row(row) for row in self._rows(path)]
        kept = _rows_kept_after_resume(rows, [(row.at, row.stage) for row in rows])
        if len(kept) < len(rows):
            self._tell("again", file=self.shown(path), n=len(rows) - len(kept))
        return EvaluationRows(self.shown(path), kept) if any(row.values for row in kept) else None

    def _gates(self) -> Iterator[RecordedGateTrace]:
        for path in self._named(GATE_TRACE_NAMES)[:MOST_GATES]:
            rows = self._rows(path)
            head = next((row for row in rows if "settings" in row and "state" not in row), {})
            name = str(head.get("gate") or Path(path).stem)
            told = [row for row in rows if "state" in row]
            decided = _rows_kept_after_resume(told, [(plain_number(row.get("iteration")), "") for row in told])
            settings = head.get("settings")
            yield RecordedGateTrace(
                self.shown(path), name, settings if isinstance(settings, dict) else {}, tuple(decided)
            )

    def _object(self, patterns: Sequence[str]) -> tuple[Mapping[str, Any] | None, str]:
        path = self._one(patterns)
        data = self._bytes(path) if path else None
        if path is None or data is None:
            return None, ""
        found = decode_json_value(data)
        if not isinstance(found, dict):
            self._tell("unread", file=self.shown(path), why="no JSON object")
            return None, ""
        return found, self.shown(path)

    # -- series

    def _training(self) -> TrainingSeries | None:
        path = self._one(TRAINING_STATS_NAMES)
        if path:
            series, why = read_series_file(path)
            if series:
                return TrainingSeries(self.shown(path), series)
            self._tell("unread", file=self.shown(path), why=why)
        log = self._one(TRAINING_LOG_NAMES)
        return self._logged(log) if log else None

    def _logged(self, path: str) -> TrainingSeries | None:
        read = self._rows(path)
        rows = _rows_kept_after_resume(
            read, [(_iteration_of_row(row, number), "") for number, row in enumerate(read, 1)]
        )
        series: dict[str, list[float]] = {}
        for row in rows:
            for key, value in numeric_leaves(row):
                if key not in ITERATION_KEYS:
                    series.setdefault(key, []).append(value)
        first = _iteration_of_row(rows[0], 1) if rows else 1
        whole = {key: values for key, values in series.items() if len(values) == len(rows)}
        return TrainingSeries(self.shown(path), whole, int(first)) if whole else None

    # -- the list

    def _list(self, hash_: HashOfRunFile) -> Iterator[ArtifactFile]:
        """Each file, but folders with many in them as one."""
        direct: dict[str, int] = {}
        for path in self._files:
            direct[os.path.dirname(path)] = direct.get(os.path.dirname(path), 0) + 1  # noqa: PTH120
        root = str(self._folder)
        many = {folder for folder, count in direct.items() if count > MANY_FILES and folder != root}
        told: dict[str, list[str]] = {}
        for path in self._files:
            above = [folder for folder in many if path.startswith(folder + os.sep)]
            told.setdefault(min(above, key=len) if above else path, []).append(path)
        for name, paths in sorted(told.items()):
            size = sum(os.stat(path).st_size for path in paths if os.path.exists(path))  # noqa: PTH110, PTH116
            folder = name in many
            yield ArtifactFile(self.shown(name) + "/" * folder, size, hash_(name) or "", len(paths) if folder else 1)


def _evaluation_of_row(row: Mapping[str, Any]) -> Evaluation:
    counter = next((key for key in ITERATION_KEYS if plain_number(row.get(key)) is not None), None)
    stage = next((key for key in STAGE_KEYS if isinstance(row.get(key), str)), None)
    values = {key: value for key, value in numeric_leaves(dict(row)) if key != counter}
    return Evaluation(plain_number(row[counter]) if counter else None, str(row[stage]) if stage else "", values)


def _rows_kept_after_resume(rows: Sequence[LoggedRow], places: Sequence[tuple[float | None, str]]) -> list[LoggedRow]:
    """Where iterations go back a run was resumed: what it had written from there on counts no more.

    `places`: iteration and stage of each row; two stages may be evaluated at one iteration.
    """
    kept: list[tuple[LoggedRow, tuple[float | None, str]]] = []
    for row, (at, stage) in zip(rows, places, strict=True):
        if at is not None:
            while kept and (last := kept[-1][1])[0] is not None and (last[0] > at or last == (at, stage)):
                kept.pop()
        kept.append((row, (at, stage)))
    return [row for row, _ in kept]


def _iteration_of_row(row: Mapping[str, Any], number: int) -> float:
    found = next((value for key in ITERATION_KEYS if (value := plain_number(row.get(key))) is not None), None)
    return float(number) if found is None else found
