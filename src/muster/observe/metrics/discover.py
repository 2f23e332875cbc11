"""Finds what runs logged under a folder: a bounded walk, the files by their names, and which of them make one run."""

# Paths are texts here, as in the rest of this room.
# ruff: noqa: PTH113, PTH118, PTH119, PTH120, PTH122

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from muster.observe.metrics.around import PATIENCE_S, TRUST, Around, Source, look_around
from muster.observe.metrics.chain import Chain, Part
from muster.observe.metrics.history_csv import CsvPart
from muster.observe.metrics.history_jsonl import JsonlPart
from muster.observe.metrics.history_stdout import StdoutPart
from muster.observe.metrics.lines import counter_in
from muster.observe.metrics.meter import Feed
from muster.observe.metrics.names import (
    CHECKPOINT,
    LOGS,
    PARTS,
    ROWS,
    STATE,
    TABLES,
    WANDB_DEBUG,
    WANDB_EVENTS,
    WANDB_HISTORY,
    WANDB_SUMMARY,
)
from muster.observe.metrics.numbers import decode, leaves
from muster.observe.metrics.tfevents import EventPart
from muster.observe.metrics.wandb_runs import own_folders, wandb_sources
from muster.observe.metrics.whole_json import WholeJson, log_history
from muster.ports.metrics import MetricReader
from muster.ports.regular_files import read_start

_MOST_ROWS, _HEAD_BYTES = 20, 256 << 10  # of a file with another name that are looked at


@dataclass(frozen=True, slots=True)
class Run:
    folder: str
    sources: tuple[Source, ...]
    passed: tuple[str, ...] = ()  # what was found and left aside, and why

    def feeds(self) -> list[Feed]:
        return [Feed(source.make(), source.prefix) for source in self.sources]

    def files(self) -> list[str]:
        """All that hold its numbers: of a history in several files each of them."""
        return list(dict.fromkeys(path for source in self.sources for path in files_of(source.make())))


@dataclass(slots=True)
class Discovered:
    runs: list[Run] = field(default_factory=list)
    cut: str = ""  # what was not looked at, and why
    troubles: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Found:
    """What one run logged, and what may be missing from it."""

    run: Run | None
    told: tuple[str, ...] = ()  # what was not looked at, or can't be read


def files_of(reader: MetricReader) -> Sequence[str]:
    """All files that it reads; one that reads several says so."""
    found: Sequence[str] = getattr(reader, "files", None) or [reader.said.path]
    return found


def discover(root: str, patience_s: float = PATIENCE_S) -> Discovered:
    """Every run under the folder; `root` may be one of the files itself."""
    if os.path.isfile(root):
        return Discovered([_of_file(root)])
    root = root.rstrip(os.sep) or os.sep
    around = look_around(root, patience_s)
    own = _Own(around, root)
    passed: dict[str, list[str]] = defaultdict(list)
    found = [
        *_lines(around, root, own),
        *wandb_sources(around, root, passed),
        *_boards(around, root, own),
        *_trainer_states(around, passed),
    ]
    grouped: dict[str, list[Source]] = defaultdict(list)
    for source in found:
        grouped[source.run].append(source)
    for source in _logs(around, root, own, grouped):
        grouped[source.run].append(source)
    runs = [Run(folder, _ordered(sources), tuple(passed[folder])) for folder, sources in sorted(grouped.items())]
    return Discovered(runs, around.cut, [*around.troubles, *_empty(around)])


def _empty(around: Around) -> Iterator[str]:
    """A run that W&B was to record, and of which no record is left: it is no run that nobody misses."""
    for folder in around.wandb:
        inside = (path for path in around.files if path.startswith(f"{folder}{os.sep}"))
        if not any(
            path.endswith(".wandb") or os.path.basename(path) in (WANDB_HISTORY, WANDB_SUMMARY) for path in inside
        ):
            yield f"{folder} holds no record of W&B (*.wandb): what was logged there is not told"


def run_of(folder: str, patience_s: float = PATIENCE_S) -> Found:
    """What one run logged into its own output folder; of several that lie in it the newest."""
    found = discover(folder, patience_s)
    told = (*filter(None, [found.cut]), *found.troubles)
    if len(found.runs) <= 1:
        return Found(found.runs[0] if found.runs else None, told)
    newest = max(found.runs, key=lambda run: (run.folder == folder.rstrip(os.sep), max(map(_time, run.sources))))
    others = [os.path.relpath(run.folder, folder) for run in found.runs if run is not newest]
    aside = f"left aside, as other runs: {', '.join(others[:5])}"
    return Found(Run(newest.folder, newest.sources, (*newest.passed, aside)), told)


class _Own:
    """What lies in W&B's own folders: its records tell more, and a copy of what was printed is no second run."""

    def __init__(self, around: Around, root: str) -> None:
        self._root = root
        self._folders = own_folders(around)

    def __contains__(self, path: str) -> bool:
        inside = os.sep + path.removeprefix(self._root).lstrip(os.sep)  # whatever leads to the root tells nothing
        return f"{os.sep}wandb{os.sep}" in inside or self._is_in_one(path)

    def _is_in_one(self, path: str) -> bool:
        folder = path
        while self._folders and folder != self._root and (above := os.path.dirname(folder)) != folder:
            folder = above
            if folder in self._folders:
                return True
        return False


def records_of(path: str, kind: str) -> list[tuple[Chain, str]]:
    """What W&B or TensorBoard hold of the newest run under a path: readers, and what is put before their keys."""
    run = run_of(path).run
    made = [(source.make(), source.prefix) for source in run.sources if source.kind == kind] if run else []
    return [(reader, prefix) for reader, prefix in made if isinstance(reader, Chain)]


def _time(source: Source) -> float:
    try:
        return os.stat(source.path).st_mtime  # noqa: PTH116
    except OSError:
        return 0.0


def _ordered(sources: Sequence[Source]) -> tuple[Source, ...]:
    return tuple(sorted(sources, key=lambda source: (TRUST.index(source.kind), source.path)))


def _of_file(path: str) -> Run:
    name, folder = os.path.basename(path), os.path.dirname(path) or "."
    if name.endswith(".wandb"):
        from muster.observe.metrics.wandb import WandbPart

        return Run(folder, (Source(path, "wandb", folder, lambda: Chain.of_file(path, "wandb", WandbPart), "named"),))
    if ".tfevents." in name:
        make = lambda: Chain.of_file(path, "tensorboard", EventPart)  # noqa: E731
        return Run(folder, (Source(path, "tensorboard", folder, make, "named"),))
    if name == STATE:
        return Run(folder, (_state(path, folder, "named"),))
    part: dict[str, tuple[str, Callable[[str], Part]]] = {".csv": ("csv", CsvPart), ".jsonl": ("jsonl", JsonlPart)}
    kind, make_part = part.get(os.path.splitext(name)[1], ("stdout", StdoutPart))
    return Run(folder, (_source(path, kind, folder, make_part, "named"),))


def climb(folder: str, root: str) -> str:
    """The run that a folder of logs belongs to: out of `tb`, `logs/train` and the like."""
    while folder != root and os.path.basename(folder) in PARTS:
        folder = os.path.dirname(folder)
    return folder


def _lines(around: Around, root: str, own: _Own) -> list[Source]:
    found = []
    for path in around.files:
        name, run = os.path.basename(path), climb(os.path.dirname(path), root)
        if name.endswith(".jsonl") and path not in own and _is_history(path):
            found.append(_source(path, "jsonl", run, JsonlPart, "a JSON object per line"))
        elif TABLES.match(name):
            found.append(_source(path, "csv", run, CsvPart, "a table with a known name"))
    return found


def _source(path: str, kind: str, run: str, part: Callable[[str], Part], why: str) -> Source:
    return Source(path, kind, run, lambda: Chain.of_file(path, kind, part), why)


def _state(path: str, run: str, why: str) -> Source:
    return Source(path, "hf", run, lambda: WholeJson(path, "trainer_state", log_history), why)


def _is_history(path: str) -> bool:
    """By its name, or by rows that count steps: a dataset is a JSONL file, too."""
    name = os.path.basename(path)
    if name in ROWS or name in (WANDB_HISTORY, WANDB_EVENTS):
        return name in ROWS
    try:
        lines = read_start(path, _HEAD_BYTES).split(b"\n")[:_MOST_ROWS]
    except OSError:
        return False
    rows = [row for line in lines if isinstance(row := decode(line), dict)]
    return any(len(keys) > 1 and counter_in(keys) for row in rows if (keys := [key for key, _ in leaves(row)]))


def _boards(around: Around, root: str, own: _Own) -> list[Source]:
    """All event files of a folder follow each other; several folders of one run are told apart by their names."""
    folders: dict[str, list[str]] = defaultdict(list)
    for path in around.files:
        if ".tfevents." in os.path.basename(path) and path not in own:
            folders[os.path.dirname(path)].append(path)
    of_run: dict[str, list[str]] = defaultdict(list)
    for folder in folders:
        of_run[climb(folder, root)].append(folder)
    found = []
    for run, mine in of_run.items():
        for folder in sorted(mine):
            prefix = f"{os.path.relpath(folder, run)}/" if len(mine) > 1 and folder != run else ""
            count = len(folders[folder])
            why = "event files" if count == 1 else f"{count} event files, one after the other"
            found.append(Source(folder, "tensorboard", run, _board(folder), why, prefix))
    return found


def _board(folder: str) -> Callable[[], MetricReader]:
    return lambda: Chain(folder, "tensorboard", EventPart, lambda: event_files(folder))


def event_files(folder: str) -> list[str]:
    """In the order of their beginning, which is in their names."""
    try:
        names = [name for name in os.listdir(folder) if ".tfevents." in name]  # noqa: PTH208
    except OSError:
        return []
    return [os.path.join(folder, name) for name in sorted(names, key=_began)]


def _began(name: str) -> tuple[float, str]:
    digits = re.search(r"\.tfevents\.(\d+)", name)
    return float(digits[1]) if digits else 0.0, name


def _trainer_states(around: Around, passed: dict[str, list[str]]) -> list[Source]:
    """Each checkpoint has one; the newest holds all rows of the others."""
    of_run: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for path in around.files:
        if os.path.basename(path) != STATE:
            continue
        folder = os.path.dirname(path)
        step = CHECKPOINT.match(os.path.basename(folder))
        of_run[os.path.dirname(folder) if step else folder].append((float(step[1]) if step else float("inf"), path))
    found = []
    for run, states in of_run.items():
        *older, (_, newest) = sorted(states)
        if older:
            passed[run].append(f"{len(older)} older trainer_state.json: the newest holds their rows")
        why = f"the newest of {len(states)}" if older else "the state of HF's trainer"
        found.append(_state(newest, run, why))
    return found


def _logs(around: Around, root: str, own: _Own, known: dict[str, list[Source]]) -> list[Source]:
    """What a run printed, where there is nothing else of it."""
    found = []
    for path in around.files:
        name, run = os.path.basename(path), climb(os.path.dirname(path), root)
        if LOGS.match(name) and not WANDB_DEBUG.match(name) and path not in own and not _has(known, run):
            found.append(_source(path, "stdout", run, StdoutPart, "nothing else holds its numbers"))
    return found


def _has(known: dict[str, list[Source]], run: str) -> bool:
    return any(sources and (run == folder or folder.startswith(run + os.sep)) for folder, sources in known.items())
