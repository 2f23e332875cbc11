"""Finds the logged runs under a folder (a bounded walk, files by their names, which of them make one run), and
measures their keys; a second look costs what is new.
"""

# ruff: noqa: PTH113, PTH118, PTH119, PTH120, PTH122
# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from muster.files.safe_open import read_file_start
from muster.model.provenance import Resumption
from muster.readers.discovery.folder_walk import (
    LOG_PART_FOLDERS,
    LOG_WALK_PATIENCE_S,
    MAIN_LOG_NAMES,
    OBJECT_LINE_NAMES,
    PRINTED_LOG_NAMES,
    ROW_FILE_NAMES,
    SOURCE_TRUST_ORDER,
    TABLE_NAMES,
    TRAINER_CHECKPOINT,
    TRAINER_STATE_FILE,
    WANDB_DEBUG,
    WANDB_EVENTS,
    WANDB_HISTORY,
    WANDB_SUMMARY,
    FoundLogs,
    LogSource,
    walk_for_logs,
)
from muster.readers.records.history_parts import HistoryChain, HistoryPart
from muster.readers.records.json_history import JsonlHistory, WholeJsonHistory, rows_of_trainer_state
from muster.readers.records.metric_reader import MetricReader, MetricRows, MetricSource, RecordedRunEnd
from muster.readers.records.row_steps import decode_json_value, numeric_leaves
from muster.readers.records.step_counter import counting_key, rank_of_counter
from muster.readers.records.tensorboard import TensorboardHistory
from muster.readers.records.text_history import CsvHistory, PrintedHistory
from muster.readers.records.wandb_runs import wandb_log_sources, wandb_own_folders
from muster.rules.metric_summary import Summarizer, Summary

MOST_KEYS = 20_000  # of one source: no run that people look at has as many


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What a run's metrics show."""

    sources: tuple[MetricSource, ...]
    keys: Mapping[str, Summary]
    ended: RecordedRunEnd | None = None
    written: float | None = None  # wall time of the last value
    troubles: tuple[str, ...] = ()  # sources that can't be read
    others: tuple[str, ...] = ()  # keys that nobody asked for
    resumed: Resumption | None = None  # what counts of the attempts that wrote it, by the source that is trusted most


@dataclass(frozen=True, slots=True)
class MetricFeed:
    """A reader, and what is put before its keys."""

    reader: MetricReader
    prefix: str = ""
    kind: str = ""
    label: str = ""  # what is put before those keys that others of its kind use, too; empty: they are its own


class RunMeter:
    """Where two sources hold the same key, the first one counts: they are in the order of trust."""

    def __init__(self, feeds: Sequence[MetricFeed], wanted: Callable[[str], bool] = lambda _: True) -> None:
        self._feeds = list(feeds)
        self._wanted = wanted
        self._keys: list[dict[str, Summarizer]] = [{} for _ in feeds]
        self._names: list[dict[str, None]] = [{} for _ in feeds]  # all keys, asked for or not
        self._others: dict[str, None] = {}
        self._troubles: dict[int, str] = {}
        self._crowded: set[int] = set()  # sources with more keys than are kept

    def look(self) -> None:
        """Takes in what is new. A source that can't be read is told of, and the others are read."""
        for at, feed in enumerate(self._feeds):
            try:
                for rows in feed.reader.read():
                    self._take(at, rows)
                self._troubles.pop(at, None)
            except OSError as error:
                self._troubles[at] = f"{feed.reader.said.path} can't be read: {error.strerror or error}"

    def _take(self, at: int, rows: MetricRows) -> None:
        feed, names = self._feeds[at], self._names[at]
        if rows.fresh:
            self._keys[at].clear()
            names.clear()
            self._crowded.discard(at)
        for key, (steps, values) in rows.columns.items():
            name = feed.prefix + key
            if len(names) < MOST_KEYS:
                names[name] = None
            summarizer = self._keys[at].get(name)
            if summarizer is None:
                if not self._wanted(name) and not (feed.label and self._wanted(f"{feed.label}/{name}")):
                    if len(self._others) < MOST_KEYS:
                        self._others[name] = None
                    continue
                if len(self._keys[at]) >= MOST_KEYS:
                    self._crowded.add(at)
                    continue
                summarizer = self._keys[at][name] = Summarizer(name)
            summarizer.add_many(steps, values)

    def measured(self) -> MeasuredRun:
        keys: dict[str, Summary] = {}
        shared = self._shared_keys()
        for feed, held in zip(self._feeds, self._keys, strict=True):
            for key, each in held.items():
                apart = key in shared.get(feed.kind, ()) and feed.label
                name = f"{feed.label}/{key}" if apart else key
                if name not in keys and (not apart or self._wanted(key) or self._wanted(name)):
                    keys[name] = replace(each.summary(), key=name)
        said = tuple(feed.reader.said for feed in self._feeds)
        ended = next((feed.reader.ended for feed in self._feeds if feed.reader.ended), None)
        times = [each.written for each, held in zip(said, self._keys, strict=True) if held and each.written is not None]
        crowded = (self._feeds[at].reader.said.path for at in sorted(self._crowded))
        more = (f"{path} has more than {MOST_KEYS} keys: those that came later are left out" for path in crowded)
        troubles = (*self._troubles.values(), *more, *self._describe_shared(shared))
        resumed = next((found for feed in self._feeds if (found := getattr(feed.reader, "resumption", None))), None)
        return MeasuredRun(said, keys, ended, max(times, default=None), troubles, tuple(self._others), resumed)

    def _shared_keys(self) -> dict[str, dict[str, None]]:
        """Of each kind the keys that several of its files hold, and not with the same values."""
        found: dict[str, dict[str, None]] = defaultdict(dict)
        for kind in {feed.kind for feed in self._feeds if feed.label}:
            mine = [at for at, feed in enumerate(self._feeds) if feed.kind == kind]
            counts = Counter(name for at in mine for name in self._names[at])
            for name in [name for name, count in counts.items() if count > 1]:
                held = [self._keys[at][name].summary() for at in mine if name in self._keys[at]]
                if len(held) < counts[name] or any(each != held[0] for each in held):
                    found[kind][name] = None
        return found

    def _describe_shared(self, shared: Mapping[str, Mapping[str, None]]) -> Iterator[str]:
        for kind, names in shared.items():
            labels = [feed.label for feed in self._feeds if feed.kind == kind and feed.label]
            first, count = min(names, key=lambda name: rank_of_counter(name) is not None, default=""), len(names)
            if count:
                some = " and ".join(f"{label}/{first}" for label in labels[:2])
                others = f", and {count - 1} more" if count > 1 else ""
                yield f"{len(labels)} {kind} files use keys that others use, too; they are told apart as {some}{others}"


_LABELLED_KINDS = ("jsonl", "csv", "stdout")
_STATE_HEAD_BYTES = 64 << 10
_MOST_ROWS, _HEAD_BYTES = 20, 256 << 10  # of a file with another name that are looked at


@dataclass(frozen=True, slots=True)
class LoggedRun:
    folder: str
    sources: tuple[LogSource, ...]
    passed: tuple[str, ...] = ()  # what was found and left aside, and why

    def feeds(self) -> list[MetricFeed]:
        return [MetricFeed(source.make(), source.prefix, source.kind, source.label) for source in self.sources]

    def files(self) -> list[str]:
        """All that hold its numbers: of a history in several files each of them."""
        return list(dict.fromkeys(path for source in self.sources for path in files_of_reader(source.make())))


@dataclass(slots=True)
class DiscoveredRuns:
    runs: list[LoggedRun] = field(default_factory=list)
    cut: str = ""  # what was not looked at, and why
    troubles: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FoundRun:
    """What one run logged, and what may be missing from it."""

    run: LoggedRun | None
    told: tuple[str, ...] = ()  # what was not looked at, or can't be read


def files_of_reader(reader: MetricReader) -> Sequence[str]:
    """All files that it reads; one that reads several says so."""
    found: Sequence[str] = getattr(reader, "files", None) or [reader.said.path]
    return found


def discover_runs(root: str, patience_s: float = LOG_WALK_PATIENCE_S) -> DiscoveredRuns:
    """Every run under the folder; `root` may be one of the files itself."""
    if os.path.isfile(root):
        return DiscoveredRuns([_run_of_single_file(root)])
    root = root.rstrip(os.sep) or os.sep
    around = walk_for_logs(root, patience_s)
    own = _WandbOwnedFiles(around, root)
    passed: dict[str, list[str]] = defaultdict(list)
    found = [
        *_line_sources(around, root, own),
        *wandb_log_sources(around, root, passed),
        *_tensorboard_sources(around, root, own),
        *_trainer_state_sources(around, passed),
    ]
    grouped: dict[str, list[LogSource]] = defaultdict(list)
    for source in found:
        grouped[source.run].append(source)
    for source in _printed_log_sources(around, root, own, grouped):
        grouped[source.run].append(source)
    runs = [
        LoggedRun(folder, _label_sources(folder, _sources_by_trust(sources)), tuple(passed[folder]))
        for folder, sources in sorted(grouped.items())
    ]
    return DiscoveredRuns(runs, around.cut, [*around.troubles, *_note_empty_wandb_folders(around)])


def _note_empty_wandb_folders(around: FoundLogs) -> Iterator[str]:
    """A run that W&B was to record, and of which no record is left: it is no run that nobody misses."""
    for folder in around.wandb:
        inside = (path for path in around.files if path.startswith(f"{folder}{os.sep}"))
        if not any(
            path.endswith(".wandb") or os.path.basename(path) in (WANDB_HISTORY, WANDB_SUMMARY) for path in inside
        ):
            yield f"{folder} holds no record of W&B (*.wandb): what was logged there is not told"


def newest_run_in(folder: str, patience_s: float = LOG_WALK_PATIENCE_S) -> FoundRun:
    """What one run logged into its own output folder; of several that lie in it the newest."""
    found = discover_runs(folder, patience_s)
    told = (*filter(None, [found.cut]), *found.troubles)
    if len(found.runs) <= 1:
        return FoundRun(found.runs[0] if found.runs else None, told)
    newest = max(found.runs, key=lambda run: (run.folder == folder.rstrip(os.sep), max(map(_source_time, run.sources))))
    others = [os.path.relpath(run.folder, folder) for run in found.runs if run is not newest]
    aside = f"left aside, as other runs: {', '.join(others[:5])}"
    return FoundRun(LoggedRun(newest.folder, newest.sources, (*newest.passed, aside)), told)


class _WandbOwnedFiles:
    """What lies in W&B's own folders: its records tell more, and a copy of what was printed is no second run."""

    def __init__(self, around: FoundLogs, root: str) -> None:
        self._root = root
        self._folders = wandb_own_folders(around)

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


def record_readers(path: str, kind: str) -> list[tuple[HistoryChain, str]]:
    """What W&B or TensorBoard hold of the newest run under a path: readers, and what is put before their keys."""
    run = newest_run_in(path).run
    made = [(source.make(), source.prefix) for source in run.sources if source.kind == kind] if run else []
    return [(reader, prefix) for reader, prefix in made if isinstance(reader, HistoryChain)]


def _source_time(source: LogSource) -> float:
    try:
        return os.stat(source.path).st_mtime  # noqa: PTH116
    except OSError:
        return 0.0


def _sources_by_trust(sources: Sequence[LogSource]) -> tuple[LogSource, ...]:
    return tuple(sorted(sources, key=lambda source: (SOURCE_TRUST_ORDER.index(source.kind), source.path)))


def _label_sources(folder: str, sources: Sequence[LogSource]) -> tuple[LogSource, ...]:
    """Files of one kind by their names, but for the main one, which keeps its keys."""
    found = []
    for source in sources:
        alike = [each for each in sources if each.kind == source.kind and each.kind in _LABELLED_KINDS]
        names = [os.path.basename(each.path) for each in alike]
        main = min((name for name in names if name in MAIN_LOG_NAMES), key=MAIN_LOG_NAMES.index, default=None)
        name = os.path.basename(source.path)
        if len(alike) < 2 or (name == main and names.count(name) == 1):
            found.append(source)
            continue
        label = name if names.count(name) == 1 else os.path.relpath(source.path, folder)
        found.append(replace(source, label=os.path.splitext(label)[0]))
    return tuple(found)


def _run_of_single_file(path: str) -> LoggedRun:
    name, folder = os.path.basename(path), os.path.dirname(path) or "."
    if name.endswith(".wandb"):
        from muster.readers.records.wandb_records import WandbHistory

        return LoggedRun(
            folder,
            (LogSource(path, "wandb", folder, lambda: HistoryChain.of_file(path, "wandb", WandbHistory), "named"),),
        )
    if ".tfevents." in name:
        make = lambda: HistoryChain.of_file(path, "tensorboard", TensorboardHistory)  # noqa: E731
        return LoggedRun(folder, (LogSource(path, "tensorboard", folder, make, "named"),))
    if name == TRAINER_STATE_FILE:
        return LoggedRun(folder, (_trainer_state_source(path, folder, "named"),))
    part: dict[str, tuple[str, Callable[[str], HistoryPart]]] = {
        ".csv": ("csv", CsvHistory),
        ".jsonl": ("jsonl", JsonlHistory),
    }
    kind, make_part = part.get(os.path.splitext(name)[1], ("stdout", PrintedHistory))
    if kind == "stdout" and _counting_rows(path, all):
        kind, make_part = part[".jsonl"]
    return LoggedRun(folder, (_line_source(path, kind, folder, make_part, "named"),))


def run_folder_of_logs(folder: str, root: str) -> str:
    """The run that a folder of logs belongs to: out of `tb`, `logs/train` and the like."""
    while folder != root and os.path.basename(folder) in LOG_PART_FOLDERS:
        folder = os.path.dirname(folder)
    return folder


def _line_sources(around: FoundLogs, root: str, own: _WandbOwnedFiles) -> list[LogSource]:
    found = []
    for path in around.files:
        name, run = os.path.basename(path), run_folder_of_logs(os.path.dirname(path), root)
        objects = name.endswith(".jsonl") and path not in own and _is_history_file(path)
        if objects or (OBJECT_LINE_NAMES.match(name) and path not in own and _counting_rows(path, all)):
            found.append(_line_source(path, "jsonl", run, JsonlHistory, "a JSON object per line"))
        elif TABLE_NAMES.match(name):
            found.append(_line_source(path, "csv", run, CsvHistory, "a table with a known name"))
    return found


def _line_source(path: str, kind: str, run: str, part: Callable[[str], HistoryPart], why: str) -> LogSource:
    return LogSource(path, kind, run, lambda: HistoryChain.of_file(path, kind, part), why)


def _trainer_state_source(path: str, run: str, why: str) -> LogSource:
    return LogSource(path, "hf", run, lambda: WholeJsonHistory(path, "trainer_state", rows_of_trainer_state), why)


def _is_history_file(path: str) -> bool:
    """By its name, or by rows that count steps: a dataset is a JSONL file, too."""
    name = os.path.basename(path)
    if name in ROW_FILE_NAMES or name in (WANDB_HISTORY, WANDB_EVENTS):
        return name in ROW_FILE_NAMES
    return _counting_rows(path, any)


def _counting_rows(path: str, how_many: Callable[[Iterable[bool]], bool]) -> bool:
    """Whether the lines of a file, as many as `how_many` wants, are objects that count steps."""
    try:
        head = read_file_start(path, _HEAD_BYTES)
    except OSError:
        return False
    lines = [line for line in head.split(b"\n")[:_MOST_ROWS] if line.strip()]
    if len(head) >= _HEAD_BYTES and len(lines) < _MOST_ROWS:
        lines.pop()  # it was cut
    rows = [decode_json_value(line) for line in lines]
    counting = [
        len(keys) > 1 and counting_key(keys) is not None
        for row in rows
        for keys in [[key for key, _ in numeric_leaves(row)] if isinstance(row, dict) else []]
    ]
    return bool(rows) and how_many(counting)


def _tensorboard_sources(around: FoundLogs, root: str, own: _WandbOwnedFiles) -> list[LogSource]:
    """All event files of a folder follow each other; several folders of one run are told apart by their names."""
    folders: dict[str, list[str]] = defaultdict(list)
    for path in around.files:
        if ".tfevents." in os.path.basename(path) and path not in own:
            folders[os.path.dirname(path)].append(path)
    of_run: dict[str, list[str]] = defaultdict(list)
    for folder in folders:
        of_run[run_folder_of_logs(folder, root)].append(folder)
    found = []
    for run, mine in of_run.items():
        for folder in sorted(mine):
            prefix = f"{os.path.relpath(folder, run)}/" if len(mine) > 1 and folder != run else ""
            count = len(folders[folder])
            why = "event files" if count == 1 else f"{count} event files, one after the other"
            found.append(LogSource(folder, "tensorboard", run, _tensorboard_reader(folder), why, prefix))
    return found


def _tensorboard_reader(folder: str) -> Callable[[], MetricReader]:
    return lambda: HistoryChain(folder, "tensorboard", TensorboardHistory, lambda: event_files_in_order(folder))


def event_files_in_order(folder: str) -> list[str]:
    """In the order of their beginning, which is in their names."""
    try:
        names = [name for name in os.listdir(folder) if ".tfevents." in name]  # noqa: PTH208
    except OSError:
        return []
    return [os.path.join(folder, name) for name in sorted(names, key=_event_file_start)]


def _event_file_start(name: str) -> tuple[float, str]:
    digits = re.search(r"\.tfevents\.(\d+)", name)
    return float(digits[1]) if digits else 0.0, name


def _trainer_state_sources(around: FoundLogs, passed: dict[str, list[str]]) -> list[LogSource]:
    """Each checkpoint has one; the newest holds all rows of the others."""
    of_run: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for path in around.files:
        if os.path.basename(path) != TRAINER_STATE_FILE:
            continue
        folder = os.path.dirname(path)
        step = TRAINER_CHECKPOINT.match(os.path.basename(folder))
        known = (float(step[1]), 0.0) if step else (_global_step(path), 1.0)  # of two the root's holds the end, too
        of_run[os.path.dirname(folder) if step else folder].append((*known, path))
    found = []
    for run, states in of_run.items():
        *older, (_, _, newest) = sorted(states)
        if older:
            passed[run].append(f"{len(older)} older trainer_state.json: the newest holds their rows")
        why = f"the newest of {len(states)}" if older else "the state of HF's trainer"
        found.append(_trainer_state_source(newest, run, why))
    return found


def _global_step(path: str) -> float:
    """How far a state of the trainer has come; where it does not say so near its beginning, as far as any."""
    try:
        found = re.search(rb'"global_step":\s*(\d{1,15})', read_file_start(path, _STATE_HEAD_BYTES))
    except OSError:
        found = None
    return float(found[1]) if found else float("inf")


def _printed_log_sources(
    around: FoundLogs, root: str, own: _WandbOwnedFiles, known: dict[str, list[LogSource]]
) -> list[LogSource]:
    """What a run printed, where there is nothing else of it."""
    found = []
    for path in around.files:
        name, run = os.path.basename(path), run_folder_of_logs(os.path.dirname(path), root)
        if (
            PRINTED_LOG_NAMES.match(name)
            and not WANDB_DEBUG.match(name)
            and path not in own
            and not _has_known_run(known, run)
        ):
            found.append(_line_source(path, "stdout", run, PrintedHistory, "nothing else holds its numbers"))
    return found


def _has_known_run(known: dict[str, list[LogSource]], run: str) -> bool:
    return any(sources and (run == folder or folder.startswith(run + os.sep)) for folder, sources in known.items())
