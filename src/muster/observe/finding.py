"""The progress files in the folder of a run that nobody described: which there are, what in them counts, how old."""

# Paths are texts here, as in the rest of this room.
# ruff: noqa: PTH118, PTH119

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.domain.campaign import Progress, ProgressKind
from muster.domain.look_facts import Dated, Found, LogEnd, Trace
from muster.observe.find_columns import sniff
from muster.observe.find_times import checkpoint_times, newest_times, of_file, of_times
from muster.observe.find_walk import Entry, Walked, entry_of, walk
from muster.observe.metrics.reader import StepReader
from muster.observe.metrics.stdout import LogReader
from muster.observe.sources import Checkpoints, Files, Mute, Recorded, Source, Steps, Written
from muster.observe.steps import LogPattern
from muster.ports.known_secrets import mask_tail
from muster.ports.regular_files import open_regular

LOOKED_FOR = (
    "metrics.jsonl, scores.jsonl, any *.jsonl or *.csv with a column that counts (step, iter, epoch, ...), folders of"
    " chunks such as replay/*.npz, checkpoints (*.ckpt, *.pt, *.pth, *.safetensors, checkpoints/*/), and logs (*.log,"
    " *.out) with numbers such as `step 123` or `Epoch 3/10`"
)
KNOWN = frozenset({"metrics.jsonl", "scores.jsonl", "progress.csv", "metrics.csv", "progress.jsonl", "diag.jsonl"})
LOGS = (".log", ".out", ".err")
LOG_NAMES = frozenset({"log.txt", "stdout.txt", "stderr.txt", "output.txt", "train.txt", "console.txt"})
CHECKPOINTS = (".ckpt", ".pt", ".pth", ".safetensors")
CHUNKS = frozenset({".npz", ".npy", ".pkl", ".pickle", ".parquet", ".arrow", ".tfrecord", ".h5", ".hdf5", ".msgpack",
                    ".gz", ".zip", ".tar", ".bin"})  # fmt: skip
CHUNK_FOLDERS = frozenset({"replay", "eval_replay", "chunks", "episodes", "train_eps", "eval_eps", "buffer", "shards"})
CHECKPOINT_FOLDERS = frozenset({"checkpoints", "checkpoint", "ckpts", "ckpt", "weights", "models"})
PARTS = frozenset({"train", "eval", "val", "valid", "test", "log", "logs", "wandb", "tb", "tensorboard", "metrics"})
_CHECKPOINT_NAME = re.compile(r"(?:checkpoint|ckpt|step|epoch|iter)[-_=]?\d+(?:\.tmp)?")
_ORBAX = frozenset({"_METADATA", "_CHECKPOINT_METADATA", "_sharding", "pretrained_model"})
_MANY = 3
_MOST_TRACES, _MOST_SNIFFED, _MOST_LOGS = 12, 40, 6
_END_BYTES = 64 << 10


@dataclass(slots=True)
class _Search:
    root: str
    now: float
    since: float | None
    found: list[tuple[float, Trace]]  # with the newest file time
    logs: list[Entry]
    troubles: list[str]

    def shown(self, path: str) -> str:
        return os.path.relpath(path, self.root) if _within(path, self.root) else path

    def add(self, kind: ProgressKind, path: str, at: float, dated: Dated, step: str | None = None,
            mute: str = "", stands: bool = False) -> None:  # fmt: skip
        """`path` may be a glob in its last part only."""
        folder, name = os.path.split(path)
        pattern = os.path.join(glob.escape(folder), name if "*" in name else glob.escape(name))
        if kind == "stdout":
            pattern = path
        shown = self.shown(path)
        self.found.append((at, Trace(Progress(kind, shown, step), pattern, dated, mute, stands)))


def find(
    folder: str, now: float, since: float | None = None, *, only_since: bool = False, also: Sequence[str] = ()
) -> Found:
    """`since`: when the process began (wall time); with `only_since` older files are left out: they may be anybody's.

    `also`: files elsewhere that the process writes, such as its redirected output. No folder: only those.
    """
    walked = walk(folder, (*KNOWN, "nohup.out")) if folder else Walked()
    if only_since and since is not None:
        walked.entries = [each for each in walked.entries if each.is_folder or each.time >= since]
    root, notes = _one_run(folder, walked)
    search = _Search(root, now, since, [], [], walked.troubles)
    entries = [each for each in walked.entries if _within(each.path, root) and not _of_wandb(each)]
    entries += [each for path in also if not _within(path, root) and (each := entry_of(*os.path.split(path)))]
    rest = _take_checkpoint_folders(search, entries)
    _take_rows_and_logs(search, rest)
    _take_groups(search, rest, walked)
    _take_named(search, rest)
    search.found.sort(
        key=lambda item: (bool(item[1].mute), os.path.basename(item[1].progress.path) not in KNOWN, -item[0])
    )
    if len(search.found) > _MOST_TRACES:
        notes.append(f"{len(search.found)} progress files were found; the newest {_MOST_TRACES} are watched")
    if walked.cut:
        notes.append(walked.cut)
    # W&B writes the machine's statistics whatever the run does: the time of its file tells nothing
    told = [at for at, trace in search.found if not trace.mute and trace.progress.kind != "wandb"]
    times = told + [log.time for log in search.logs]
    return Found(
        root,
        tuple(trace for _, trace in search.found[:_MOST_TRACES]),
        tuple(_ends(search)),
        max(times, default=None),
        max((each.time for each in entries if each.is_plain), default=None),
        tuple(notes),
        tuple(search.troubles),
    )


def _within(path: str, folder: str) -> bool:
    return bool(folder) and path.startswith(folder.rstrip("/") + "/")


def _of_wandb(entry: Entry) -> bool:
    """W&B's own logs, which tell of W&B."""
    return "/wandb/" in entry.path and entry.name.startswith("debug")


# -- several runs in one folder


def run_folder(folder: str) -> tuple[str, list[str]]:
    """The folder itself, or in a folder of runs the one that was written to last; and what to say about it."""
    return _one_run(folder, walk(folder, (*KNOWN, "nohup.out")))


def _one_run(folder: str, walked: Walked) -> tuple[str, list[str]]:
    """A folder of runs is not a run: the one that was written to last is looked at, and that is said."""
    notes: list[str] = []
    for _ in range(3):
        files = [each for each in walked.entries if each.is_plain and _within(each.path, folder) and _tells(each)]
        if any(each.folder == folder for each in files):
            break
        runs: dict[str, list[Entry]] = {}
        for each in files:
            runs.setdefault(os.path.relpath(each.path, folder).split("/")[0], []).append(each)
        alike = {os.path.relpath(each.path, folder).partition("/")[2] for each in files}
        if len(runs) < 2 or len(alike) == len(files) or runs.keys() & PARTS:  # parts of one run differ in their names
            break
        newest = max(runs, key=lambda name: max(each.time for each in runs[name]))
        notes.append(f"{len(runs)} runs lie in {folder}; this is about {newest}, which was written to last")
        folder = os.path.join(folder, newest)
    return folder, notes


def _tells(entry: Entry) -> bool:
    return entry.name in KNOWN or entry.ending in (".jsonl", ".csv") or is_log(entry.name)


def is_log(name: str) -> bool:
    return name.lower().endswith(LOGS) or name.lower() in LOG_NAMES


# -- files with steps in them


def _take_rows_and_logs(search: _Search, entries: Sequence[Entry]) -> None:
    likely = [each for each in entries if not each.is_folder and _kind(each)]
    likely.sort(key=lambda each: (each.name not in KNOWN, -each.time))
    for entry in likely[:_MOST_SNIFFED]:
        _take_file(search, entry, _kind(entry) or "jsonl")


def _kind(entry: Entry) -> ProgressKind | None:
    if entry.ending in (".jsonl", ".ndjson"):
        return "jsonl"
    if entry.ending in (".csv", ".tsv"):
        return "csv"
    return "stdout" if is_log(entry.name) else None


def _take_file(search: _Search, entry: Entry, kind: ProgressKind) -> None:
    if kind == "stdout":
        search.logs.append(entry)
    shown = search.shown(entry.path)
    try:
        if not entry.is_plain:
            raise OSError(0, "it is no plain file")
        sniffed = sniff(entry.path, "log" if kind == "stdout" else kind)
    except OSError as error:
        why = f"{shown} can't be read: {error.strerror or error}"
        if entry.name in KNOWN:
            search.add(kind, entry.path, entry.time, Dated(), "step", mute=why)
        else:
            search.troubles.append(why)
        return
    if sniffed.key is not None:
        at = of_file(sniffed.dated, search.now)
        search.add(kind, entry.path, entry.time, at, sniffed.key, stands=sniffed.stands)
    elif entry.name in KNOWN:
        search.add(kind, entry.path, entry.time, Dated(), "step")  # it may still get its first step
        if sniffed.columns:
            search.troubles.append(f"{shown} has no column that counts steps{_columns(sniffed.columns)}")


# -- files that come one after the other


def _columns(names: Sequence[str]) -> str:
    """Those that a person can read, if there are any: what is named .csv may be anything."""
    plain = [name for name in names if name.isprintable() and "\ufffd" not in name and len(name) <= 40]
    return f"; it has {', '.join(plain[:8])}" if plain and len(plain) == len(names) else ", and no readable header"


def _take_checkpoint_folders(search: _Search, entries: Sequence[Entry]) -> list[Entry]:
    """Folders that are a checkpoint each; what lies in them is no progress file of its own."""
    groups: dict[str, list[Entry]] = {}
    marked = {each.folder for each in entries if each.name in _ORBAX}
    for each in entries:
        known = os.path.basename(each.folder) in CHECKPOINT_FOLDERS and each.folder != search.root
        if each.is_folder and (known or each.path in marked or _CHECKPOINT_NAME.fullmatch(each.name)):
            pattern = "*" if known or not _CHECKPOINT_NAME.fullmatch(each.name) else _common(each.name)
            groups.setdefault(os.path.join(each.folder, pattern), []).append(each)
    inner = [each.path for group in groups.values() for each in group]
    for pattern, group in groups.items():
        if any(_within(group[0].path, path) for path in inner):
            continue
        times = checkpoint_times(each.path for each in group)
        search.add("checkpoint", pattern, max(times, default=0.0), of_times(times, search.now, search.since))
    return [each for each in entries if not any(_within(each.path, path) for path in inner)]


def _common(name: str) -> str:
    return re.split(r"\d", name)[0] + "*"


def _take_groups(search: _Search, entries: Sequence[Entry], walked: Walked) -> None:
    groups: dict[tuple[str, str], list[Entry]] = {}
    for each in entries:
        if each.is_plain and (each.ending in CHECKPOINTS or each.ending in CHUNKS):
            groups.setdefault((each.folder, each.ending), []).append(each)
    for (folder, ending), group in groups.items():
        if ending in CHECKPOINTS:
            _take_checkpoints(search, folder, ending, group)
        elif len(group) >= _MANY or os.path.basename(folder) in CHUNK_FOLDERS:
            crowded = folder in walked.crowded
            times = newest_times(folder, ending) if crowded else [each.time for each in group]
            path = os.path.join(folder, f"*{ending}")
            search.add("files", path, max(times, default=0.0), of_times(times, search.now, search.since))


def _take_checkpoints(search: _Search, folder: str, ending: str, group: Sequence[Entry]) -> None:
    path = os.path.join(folder, f"*{ending}") if len(group) > 1 else group[0].path
    times = [each.time for each in group]
    search.add("checkpoint", path, max(times), of_times(times, search.now, search.since))


def _take_named(search: _Search, entries: Sequence[Entry]) -> None:
    """Records of W&B and TensorBoard; of several the newest."""
    boards = [each for each in entries if each.is_plain and ".tfevents." in each.name]
    for folder in {each.folder for each in boards}:
        newest = max(each.time for each in boards if each.folder == folder)
        search.add("tensorboard", os.path.join(folder, "events.out.tfevents.*"), newest, Dated())
    records = [each for each in entries if each.is_plain and each.ending == ".wandb"]
    for each in sorted(records, key=lambda record: -record.time)[:1]:
        search.add("wandb", each.path, each.time, Dated())


# -- the ends of logs


def _ends(search: _Search) -> Iterable[LogEnd]:
    for entry in sorted(search.logs, key=lambda log: -log.time)[:_MOST_LOGS]:
        if entry.is_plain:
            yield LogEnd(entry.path, search.shown(entry.path), entry.time, end_of(entry.path))


def end_of(path: str) -> str:
    try:
        with open_regular(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
            return mask_tail(file.read(_END_BYTES).decode("utf-8", "replace"))
    except OSError:
        return ""


# -- what reads them


class LogFile(Steps):
    """A log by its own path, where the run's output was sent."""

    def __init__(self, declared: Progress, signal: str, path: str) -> None:
        pattern = LogPattern.of(declared.step or "")
        super().__init__(declared, signal, lambda found: LogReader(found, pattern))
        self.path = path

    def _paths(self) -> list[str]:
        return [self.path]

    def _nothing(self, readers: list[StepReader]) -> str:
        return readers[0].nothing(self._name(readers[0]))


def source_of(trace: Trace) -> Source:
    declared, signal = trace.progress, trace.progress.path
    if trace.mute:
        return Mute(declared, signal, trace.mute)
    if declared.kind == "stdout":
        return LogFile(declared, signal, trace.pattern)
    if declared.kind == "files":
        return Files(declared, signal, trace.pattern)
    if declared.kind == "checkpoint":
        return Checkpoints(declared, signal, trace.pattern)
    if declared.kind in ("wandb", "tensorboard"):
        return Recorded(declared, signal, trace.pattern, None)
    return Written(declared, signal, trace.pattern, None)
