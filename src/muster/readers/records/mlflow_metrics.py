"""MLflow's store in files: `mlruns/<experiment>/<run>/metrics/`, one file per key, `time value step` in each line."""

# ruff: noqa: PTH118
# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import os
from array import array
from collections import defaultdict
from collections.abc import Iterator

from muster.readers.discovery.folder_walk import LogSource
from muster.readers.records.history_parts import ColumnBatch, HistoryChain, LineHistory
from muster.readers.records.record_kinds import LogSearch, RecordKind
from muster.readers.records.row_steps import parse_number

_FOLDER, _META = "metrics", "meta.yaml"


class MlflowHistory(LineHistory):
    """One file, which is one key."""

    fits = "`time value step` in each line"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.key = path.rpartition(f"{os.sep}{_FOLDER}{os.sep}")[2]

    @property
    def step_name(self) -> str:
        return "step"

    def take(self, text: bytes) -> ColumnBatch | None:
        steps, values = array("d"), array("d")
        for line in text.split(b"\n"):
            numbers = [parse_number(each) for each in line.split()]
            if len(numbers) == 3 and None not in numbers:
                time, value, step = numbers
                self._wall = (time or 0.0) / 1000
                steps.append(step)  # type: ignore[arg-type]
                values.append(value)  # type: ignore[arg-type]
            else:
                self.unfit += bool(line.strip())
        return ({self.key: (steps, values)}, len(steps)) if steps else None


def _find_mlflow_runs(search: LogSearch) -> Iterator[LogSource]:
    known = set(search.around.files)
    runs: dict[str, list[str]] = defaultdict(list)
    for path in search.around.files:
        run, metrics, _ = path.rpartition(f"{os.sep}{_FOLDER}{os.sep}")
        if metrics and os.path.join(run, _META) in known:
            runs[run].append(path)
    for run, files in runs.items():
        yield LogSource(os.path.join(run, _FOLDER), MLFLOW.name, run, _reader_of(run, files), "MLflow's files")


def _reader_of(run: str, files: list[str]):  # type: ignore[no-untyped-def]
    return lambda: HistoryChain(os.path.join(run, _FOLDER), "mlflow", MlflowHistory, lambda: files)


MLFLOW = RecordKind("mlflow", lambda path: HistoryChain.of_file(path, "mlflow", MlflowHistory), find=_find_mlflow_runs)
