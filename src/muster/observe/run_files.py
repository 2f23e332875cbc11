"""What a run left in its folder, for the journal: evaluations, gates, schedule, series, and a list of it all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from muster.observe.metrics.numbers import decode, leaves, plain
from muster.observe.run_series import series_of
from muster.ports.folders import walk
from muster.ports.regular_files import read_start
from muster.report.journal.facts import COUNTERS, STAGES, Evaluation, Evaluations, File, GateTrace, Training, Trouble
from muster.report.record_wording import size as size_words

EVALUATIONS = ("eval_history.jsonl", "eval_multi_history.jsonl", "*eval*history*.jsonl")
GATES = ("gate_trace.jsonl", "*gate_trace*.jsonl")
SCHEDULES = ("schedule_trace.json", "*schedule_trace*.json")
SUMMARIES = ("stage_summary.json", "*stage_summary*.json")
STATS = ("training_stats.pkl", "*training_stats*.pkl", "*_stats.pkl", "training_stats.npz")
LOGS = ("train.jsonl",)
PICTURES = (".png", ".svg", ".jpg", ".jpeg", ".gif")
MOST_BYTES = 64 << 20  # of a file whose content is told
MOST_FILES = 5_000
MOST_GATES = 4
MANY = 12  # files of a folder that are told as one
_SKIPPED = ("__pycache__", ".git", ".ipynb_checkpoints")
Hash = Callable[[str], str | None]
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Found:
    """Paths are relative to `base`, the journal's folder."""

    evaluations: Evaluations | None
    gates: tuple[GateTrace, ...]
    schedule: Mapping[str, Any] | None
    schedule_source: str
    summary: Mapping[str, Any] | None
    summary_source: str
    training: Training | None
    pictures: tuple[str, ...]
    files: tuple[File, ...]
    troubles: tuple[Trouble, ...]


class RunFolder:
    def __init__(self, folder: Path, base: Path) -> None:
        self._folder, self._base = folder, base
        self._troubles: list[Trouble] = []
        self._files = self._walk()

    def read(self, hash_: Hash) -> Found:
        """Everything; what can't be read is among the troubles."""
        schedule, schedule_source = self._object(SCHEDULES)
        summary, summary_source = self._object(SUMMARIES)
        return Found(
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
        for folder, below, names in walk(self._folder):
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
            data = read_start(path, MOST_BYTES + 1)
        except OSError as error:
            self._tell("unread", file=self.shown(path), why=error.strerror or str(error))
            return None
        if len(data) > MOST_BYTES:
            told = size_words(os.path.getsize(path))  # noqa: PTH202
            self._tell("large", file=self.shown(path), size=told, most=size_words(MOST_BYTES))
            return None
        return data

    def _tell(self, key: str, **parts: object) -> None:
        self._troubles.append(Trouble(f"trouble.{key}", parts))

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
            row = decode(text)
            if isinstance(row, dict):
                found.append(row)
            elif number == len(lines):
                self._tell("torn", file=self.shown(path))
            else:
                unfit += 1
        if unfit:
            self._tell("lines", file=self.shown(path), n=unfit)
        return found

    def _evaluations(self) -> Evaluations | None:
        path = self._one(EVALUATIONS)
        if path is None:
            return None
        rows = [_evaluation(row) for row in self._rows(path)]
        kept = _resumed(rows, [(row.at, row.stage) for row in rows])
        if len(kept) < len(rows):
            self._tell("again", file=self.shown(path), n=len(rows) - len(kept))
        return Evaluations(self.shown(path), kept) if any(row.values for row in kept) else None

    def _gates(self) -> Iterator[GateTrace]:
        for path in self._named(GATES)[:MOST_GATES]:
            rows = self._rows(path)
            head = next((row for row in rows if "settings" in row and "state" not in row), {})
            name = str(head.get("gate") or Path(path).stem)
            told = [row for row in rows if "state" in row]
            decided = _resumed(told, [(plain(row.get("iteration")), "") for row in told])
            settings = head.get("settings")
            yield GateTrace(self.shown(path), name, settings if isinstance(settings, dict) else {}, tuple(decided))

    def _object(self, patterns: Sequence[str]) -> tuple[Mapping[str, Any] | None, str]:
        path = self._one(patterns)
        data = self._bytes(path) if path else None
        if path is None or data is None:
            return None, ""
        found = decode(data)
        if not isinstance(found, dict):
            self._tell("unread", file=self.shown(path), why="no JSON object")
            return None, ""
        return found, self.shown(path)

    # -- series

    def _training(self) -> Training | None:
        path = self._one(STATS)
        if path:
            series, why = series_of(path)
            if series:
                return Training(self.shown(path), series)
            self._tell("unread", file=self.shown(path), why=why)
        log = self._one(LOGS)
        return self._logged(log) if log else None

    def _logged(self, path: str) -> Training | None:
        read = self._rows(path)
        rows = _resumed(read, [(_at(row, number), "") for number, row in enumerate(read, 1)])
        series: dict[str, list[float]] = {}
        for row in rows:
            for key, value in leaves(row):
                if key not in COUNTERS:
                    series.setdefault(key, []).append(value)
        first = _at(rows[0], 1) if rows else 1
        whole = {key: values for key, values in series.items() if len(values) == len(rows)}
        return Training(self.shown(path), whole, int(first)) if whole else None

    # -- the list

    def _list(self, hash_: Hash) -> Iterator[File]:
        """Each file, but folders with many in them as one."""
        direct: dict[str, int] = {}
        for path in self._files:
            direct[os.path.dirname(path)] = direct.get(os.path.dirname(path), 0) + 1  # noqa: PTH120
        root = str(self._folder)
        many = {folder for folder, count in direct.items() if count > MANY and folder != root}
        told: dict[str, list[str]] = {}
        for path in self._files:
            above = [folder for folder in many if path.startswith(folder + os.sep)]
            told.setdefault(min(above, key=len) if above else path, []).append(path)
        for name, paths in sorted(told.items()):
            size = sum(os.stat(path).st_size for path in paths if os.path.exists(path))  # noqa: PTH110, PTH116
            folder = name in many
            yield File(self.shown(name) + "/" * folder, size, hash_(name) or "", len(paths) if folder else 1)


def _evaluation(row: Mapping[str, Any]) -> Evaluation:
    counter = next((key for key in COUNTERS if plain(row.get(key)) is not None), None)
    stage = next((key for key in STAGES if isinstance(row.get(key), str)), None)
    values = {key: value for key, value in leaves(dict(row)) if key != counter}
    return Evaluation(plain(row[counter]) if counter else None, str(row[stage]) if stage else "", values)


def _resumed(rows: Sequence[Row], places: Sequence[tuple[float | None, str]]) -> list[Row]:
    """Where iterations go back a run was resumed: what it had written from there on counts no more.

    `places`: iteration and stage of each row; two stages may be evaluated at one iteration.
    """
    kept: list[tuple[Row, tuple[float | None, str]]] = []
    for row, (at, stage) in zip(rows, places, strict=True):
        if at is not None:
            while kept and (last := kept[-1][1])[0] is not None and (last[0] > at or last == (at, stage)):
                kept.pop()
        kept.append((row, (at, stage)))
    return [row for row, _ in kept]


def _at(row: Mapping[str, Any], number: int) -> float:
    found = next((value for key in COUNTERS if (value := plain(row.get(key))) is not None), None)
    return float(number) if found is None else found
