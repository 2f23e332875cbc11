"""The kinds of files that runs write their numbers into: one registry, for Muster's own readers and those of others.

A kind says which files are of it and how their values are read. Readers of third parties register a `RecordKind` as an
entry point of the group `muster.readers`; they are looked up only where no built-in kind takes a file.
"""

# ruff: noqa: PTH119, PTH120, PTH122
# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from muster.files.safe_open import read_log_start
from muster.readers.discovery.folder_walk import LOG_PART_FOLDERS, FoundLogs, LogSource, wandb_own_folders
from muster.readers.records.metric_reader import MetricReader
from muster.readers.records.row_steps import decode_json_value, numeric_leaves
from muster.readers.records.step_counter import counting_key
from muster.readers.records.table_rows import TableHeader, holds_table

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "muster.readers"
_BUILT_IN = {  # in the order of trust, where two hold the same key; one line for each
    "jsonl": "muster.readers.records.json_history:JSONL",
    "csv": "muster.readers.records.text_history:CSV",
    "wandb": "muster.readers.records.wandb_runs:WANDB",
    "tensorboard": "muster.readers.records.tensorboard:TENSORBOARD",
    "mlflow": "muster.readers.records.mlflow_metrics:MLFLOW",
    "hf": "muster.readers.records.json_history:TRAINER_STATE",
    "json": "muster.readers.records.json_history:WHOLE_JSON",
    "npz": "muster.readers.records.json_history:EVALUATIONS",
    "stdout": "muster.readers.records.text_history:PRINTED",
}
_MOST_ROWS, _HEAD_BYTES = 20, 256 << 10  # of a file that are looked at


class LogFile:
    """A file that may be a log."""

    def __init__(self, path: str, *, named: bool = False) -> None:
        self.path = path
        self.named = named  # somebody asked for it by its name
        self.name = os.path.basename(path).removesuffix(".gz")
        self.ending = os.path.splitext(self.name)[1].lower()

    @cached_property
    def head(self) -> list[bytes]:
        """Its first lines, whole ones; none where it can't be read."""
        try:
            head = read_log_start(self.path, _HEAD_BYTES)
        except OSError:
            return []
        lines = head.split(b"\n")
        cut = len(head) >= _HEAD_BYTES and len(lines) <= _MOST_ROWS
        return [line for line in (lines[:-1] if cut else lines)[:_MOST_ROWS] if line.strip()]

    def counts_in_objects(self, how_many: Callable[[Iterable[bool]], bool]) -> bool:
        """Whether its lines, as many as `how_many` wants, are objects that count steps."""
        rows = [decode_json_value(line) for line in self.head]
        keys = [[key for key, _ in numeric_leaves(row)] if isinstance(row, dict) else [] for row in rows]
        return bool(rows) and how_many(len(each) > 1 and counting_key(each) is not None for each in keys)

    def counts_in_table(self) -> bool:
        """Whether it is a table of numbers with a column that counts steps."""
        header = next(filter(None, map(TableHeader.of_line, self.head)), None)
        return header is not None and counting_key(header.names) is not None and holds_table(self.head)


@dataclass
class LogSearch:
    """A folder that was walked, for those who look for their files in it."""

    around: FoundLogs
    root: str
    passed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # what was left aside, by run

    def run_of(self, path: str) -> str:
        """The run that a file belongs to: out of `tb`, `logs/train` and the like."""
        return run_folder_of_logs(os.path.dirname(path), self.root)

    @cached_property
    def _wandb_folders(self) -> set[str]:
        return wandb_own_folders(self.around)

    def is_of_wandb(self, path: str) -> bool:
        """Whether W&B keeps it: its records tell more, and a copy of what was printed is no second run."""
        inside = os.sep + path.removeprefix(self.root).lstrip(os.sep)  # whatever leads to the root tells nothing
        return f"{os.sep}wandb{os.sep}" in inside or self._lies_in_own_folder(path)

    def _lies_in_own_folder(self, path: str) -> bool:
        folder = path
        while self._wandb_folders and folder != self.root and (above := os.path.dirname(folder)) != folder:
            folder = above
            if folder in self._wandb_folders:
                return True
        return False


def run_folder_of_logs(folder: str, root: str) -> str:
    while folder != root and os.path.basename(folder) in LOG_PART_FOLDERS:
        folder = os.path.dirname(folder)
    return folder


@dataclass(frozen=True, slots=True)
class RecordKind:
    name: str
    read: Callable[[str], MetricReader]  # all values of one file of it
    accepts: Callable[[LogFile], str] = lambda _: ""  # why a file is of this kind; empty: it is not
    find: Callable[[LogSearch], Iterable[LogSource]] | None = None  # where several files are one source
    last_resort: bool = False  # it is read only where a run has nothing else

    def source(self, path: str, run: str, why: str) -> LogSource:
        return LogSource(path, self.name, run, lambda: self.read(path), why)

    def sources(self, search: LogSearch) -> Iterator[LogSource]:
        if self.find is not None:
            yield from self.find(search)
            return
        for path in search.around.files:
            if why := self.accepts(LogFile(path)):
                yield self.source(path, search.run_of(path), why)


@cache
def kind_called(name: str) -> RecordKind:
    """Raises KeyError where there is none."""
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        kind: RecordKind = getattr(import_module(module), attribute)
        return kind
    return {kind.name: kind for kind in foreign_kinds()[0]}[name]


def built_in_kinds() -> list[RecordKind]:
    return [kind_called(name) for name in _BUILT_IN]


def find_entry_points(group: str) -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # it loads a lot, and is needed where nobody knows a file

    return entry_points(group=group)


@cache
def foreign_kinds() -> tuple[list[RecordKind], list[str]]:
    """Those of other packages, and which of them can't be used."""
    found: list[RecordKind] = []
    troubles: list[str] = []
    for point in find_entry_points(ENTRY_POINTS):
        try:
            kind = point.load()
            if not isinstance(kind, RecordKind) or kind.name in _BUILT_IN:
                raise TypeError("it is no RecordKind of another name")
            found.append(kind)
        except Exception as error:  # whatever the package of somebody else does
            troubles.append(f"the reader {point.name} of {point.value} can't be used: {error}")
    return found, troubles


def rank_of_kind(name: str) -> int:
    """In the order of trust; those of others come behind Muster's own."""
    return list(_BUILT_IN).index(name) if name in _BUILT_IN else len(_BUILT_IN)


def kind_of_file(path: str) -> tuple[RecordKind, str]:
    """Of a file that somebody named, and why; what nobody knows is read as printed lines."""
    file = LogFile(path, named=True)
    *known, printed = built_in_kinds()
    for kind in (*known, *_foreign_where_asked(file, known)):
        if why := kind.accepts(file):
            return kind, why
    return printed, "named"


def _foreign_where_asked(file: LogFile, known: Iterable[RecordKind]) -> list[RecordKind]:
    return [] if any(kind.accepts(file) for kind in known) else [_guarded(kind) for kind in foreign_kinds()[0]]


def _guarded(kind: RecordKind) -> RecordKind:
    """One that takes no file where it fails to tell."""

    def accepts(file: LogFile) -> str:
        try:
            return str(kind.accepts(file) or "")
        except Exception:  # whatever the package of somebody else does
            return ""

    return RecordKind(kind.name, kind.read, accepts, kind.find, kind.last_resort)


def sources_in(search: LogSearch) -> tuple[list[LogSource], list[str]]:
    """Of all runs in a folder, but for what is a last resort; and what could not be asked."""
    found = [source for kind in built_in_kinds() if not kind.last_resort for source in kind.sources(search)]
    if found:
        return found, []
    kinds, troubles = foreign_kinds()
    for kind in kinds:
        try:
            found += list(_guarded(kind).sources(search))
        except Exception as error:  # whatever the package of somebody else does
            troubles = [*troubles, f"the reader {kind.name} can't be used: {error}"]
    return found, troubles
