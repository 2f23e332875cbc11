"""Finds the logged runs under a folder (a bounded walk, files by their names, which of them make one run), and
measures their keys; a second look costs what is new.
"""

# ruff: noqa: PTH113, PTH119, PTH120, PTH122
# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from muster.model.provenance import Resumption
from muster.readers.discovery.folder_walk import (
    LOG_WALK_PATIENCE_S,
    MAIN_LOG_NAMES,
    WANDB_HISTORY,
    WANDB_SUMMARY,
    FoundLogs,
    LogSource,
    walk_for_logs,
)
from muster.readers.records.history_parts import HistoryChain
from muster.readers.records.metric_reader import MetricReader, MetricRows, MetricSource, RecordedRunEnd
from muster.readers.records.record_kinds import LogSearch, built_in_kinds, kind_of_file, rank_of_kind, sources_in
from muster.readers.records.step_counter import rank_of_counter
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


_LABELLED_KINDS = ("jsonl", "csv", "json", "stdout")


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
    search = LogSearch(around, root)
    grouped: dict[str, list[LogSource]] = defaultdict(list)
    found, troubles = sources_in(search)
    known: set[str] = set()  # a file is of the first kind that takes it
    for source in found:
        if source.path not in known:
            known.add(source.path)
            grouped[source.run].append(source)
    last = [source for kind in built_in_kinds() if kind.last_resort for source in kind.sources(search)]
    for source in [source for source in last if not _has_known_run(grouped, source.run)]:
        grouped[source.run].append(source)
    runs = [
        LoggedRun(folder, _label_sources(folder, _sources_by_trust(sources)), tuple(search.passed[folder]))
        for folder, sources in sorted(grouped.items())
    ]
    return DiscoveredRuns(runs, around.cut, [*around.troubles, *troubles, *_note_empty_wandb_folders(around)])


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
    newest = max(found.runs, key=lambda run: _rank_of_run(run, folder.rstrip(os.sep)))
    others = [os.path.relpath(run.folder, folder) for run in found.runs if run is not newest]
    aside = f"left aside, as other runs: {', '.join(others[:5])}"
    return FoundRun(LoggedRun(newest.folder, newest.sources, (*newest.passed, aside)), told)


def _rank_of_run(run: LoggedRun, folder: str) -> tuple[bool, bool, float]:
    known = not all(source.guessed for source in run.sources)
    return known, run.folder == folder, max(map(_source_time, run.sources))


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
    return tuple(sorted(sources, key=lambda source: (source.guessed, rank_of_kind(source.kind), source.path)))


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
    folder = os.path.dirname(path) or "."
    kind, _ = kind_of_file(path)
    return LoggedRun(folder, (kind.source(path, folder, "named"),))


def _has_known_run(known: dict[str, list[LogSource]], run: str) -> bool:
    return any(sources and (run == folder or folder.startswith(run + os.sep)) for folder, sources in known.items())
