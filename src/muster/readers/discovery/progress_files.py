"""The progress files in the folder of a run that nobody described: which there are, what in them counts, how old."""

# Paths are texts here, as in the rest of this room.
# ruff: noqa: PTH118, PTH119

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.files.known_secrets import mask_secrets_in_tail
from muster.files.safe_open import open_regular_file
from muster.model.campaign import DeclaredProgress, ProgressKind
from muster.model.foreign_run import LogTail, ProgressDates, ProgressTrace, RunFolderFacts
from muster.readers.discovery.folder_walk import FolderEntry, WalkedFolder, entry_by_name, walk_run_folder
from muster.readers.discovery.step_columns import (
    checkpoint_times,
    date_files,
    find_step_column,
    newest_times_of_crowded_folder,
    refuse_future_time,
)
from muster.readers.progress import (
    CheckpointSource,
    FileCountSource,
    MuteSource,
    ProgressSource,
    RecordSource,
    StepSource,
    WrittenSource,
)
from muster.readers.records.row_steps import LogPattern
from muster.readers.records.text_steps import PrintedStepReader, StepReader

PROGRESS_LOOKED_FOR = (
    "metrics.jsonl, scores.jsonl, any *.jsonl or *.csv with a column that counts (step, iter, epoch, ...), folders of"
    " chunks such as replay/*.npz, checkpoints (*.ckpt, *.pt, *.pth, *.safetensors, checkpoints/*/), and logs (*.log,"
    " *.out) with numbers such as `step 123` or `Epoch 3/10`"
)
KNOWN_PROGRESS_FILES = frozenset(
    {"metrics.jsonl", "scores.jsonl", "progress.csv", "metrics.csv", "progress.jsonl", "diag.jsonl"}
)
LOG_ENDINGS = (".log", ".out", ".err")
LOG_NAMES = frozenset({"log.txt", "stdout.txt", "stderr.txt", "output.txt", "train.txt", "console.txt"})
CHECKPOINT_ENDINGS = (".ckpt", ".pt", ".pth", ".safetensors")
CHUNK_ENDINGS = frozenset(
    {
        ".npz",
        ".npy",
        ".pkl",
        ".pickle",
        ".parquet",
        ".arrow",
        ".tfrecord",
        ".h5",
        ".hdf5",
        ".msgpack",
        ".gz",
        ".zip",
        ".tar",
        ".bin",
    }
)
CHUNK_FOLDERS = frozenset({"replay", "eval_replay", "chunks", "episodes", "train_eps", "eval_eps", "buffer", "shards"})
CHECKPOINT_FOLDERS = frozenset({"checkpoints", "checkpoint", "ckpts", "ckpt", "weights", "models"})
PART_FOLDER_NAMES = frozenset(
    {"train", "eval", "val", "valid", "test", "log", "logs", "wandb", "tb", "tensorboard", "metrics"}
)
_CHECKPOINT_NAME = re.compile(r"(?:checkpoint|ckpt|step|epoch|iter)[-_=]?\d+(?:\.tmp)?")
_ORBAX = frozenset({"_METADATA", "_CHECKPOINT_METADATA", "_sharding", "pretrained_model"})
_MANY_CHUNKS = 3
_MOST_TRACES, _MOST_SNIFFED, _MOST_LOGS = 12, 40, 6
_END_BYTES = 64 << 10


@dataclass(slots=True)
class _ProgressSearch:
    root: str
    now: float
    since: float | None
    found: list[tuple[float, ProgressTrace]]  # with the newest file time
    logs: list[FolderEntry]
    troubles: list[str]

    def shown(self, path: str) -> str:
        return os.path.relpath(path, self.root) if _lies_within_folder(path, self.root) else path

    def add(
        self,
        kind: ProgressKind,
        path: str,
        at: float,
        dated: ProgressDates,
        step: str | None = None,
        mute: str = "",
        stands: bool = False,
    ) -> None:
        """`path` may be a glob in its last part only."""
        folder, name = os.path.split(path)
        pattern = os.path.join(glob.escape(folder), name if "*" in name else glob.escape(name))
        if kind == "stdout":
            pattern = path
        shown = self.shown(path)
        self.found.append((at, ProgressTrace(DeclaredProgress(kind, shown, step), pattern, dated, mute, stands)))


def find_progress_files(
    folder: str, now: float, since: float | None = None, *, only_since: bool = False, also: Sequence[str] = ()
) -> RunFolderFacts:
    """`since`: when the process began (wall time); with `only_since` older files are left out: they may be anybody's.

    `also`: files elsewhere that the process writes, such as its redirected output. No folder: only those.
    """
    walked = walk_run_folder(folder, (*KNOWN_PROGRESS_FILES, "nohup.out")) if folder else WalkedFolder()
    if only_since and since is not None:
        walked.entries = [each for each in walked.entries if each.is_folder or each.time >= since]
    root, notes = _choose_run_folder(folder, walked)
    search = _ProgressSearch(root, now, since, [], [], walked.troubles)
    entries = [
        each for each in walked.entries if _lies_within_folder(each.path, root) and not _is_wandb_debug_log(each)
    ]
    entries += [
        each for path in also if not _lies_within_folder(path, root) and (each := entry_by_name(*os.path.split(path)))
    ]
    rest = _add_checkpoint_folders(search, entries)
    _add_rows_and_logs(search, rest)
    _add_file_groups(search, rest, walked)
    _add_record_files(search, rest)
    search.found.sort(
        key=lambda item: (
            bool(item[1].mute),
            os.path.basename(item[1].progress.path) not in KNOWN_PROGRESS_FILES,
            -item[0],
        )
    )
    if len(search.found) > _MOST_TRACES:
        notes.append(f"{len(search.found)} progress files were found; the newest {_MOST_TRACES} are watched")
    if walked.cut:
        notes.append(walked.cut)
    # W&B writes the machine's statistics whatever the run does: the time of its file tells nothing
    told = [at for at, trace in search.found if not trace.mute and trace.progress.kind != "wandb"]
    times = told + [log.time for log in search.logs]
    return RunFolderFacts(
        root,
        tuple(trace for _, trace in search.found[:_MOST_TRACES]),
        tuple(_read_log_ends(search)),
        max(times, default=None),
        max((each.time for each in entries if each.is_plain), default=None),
        tuple(notes),
        tuple(search.troubles),
    )


def _lies_within_folder(path: str, folder: str) -> bool:
    return bool(folder) and path.startswith(folder.rstrip("/") + "/")


def _is_wandb_debug_log(entry: FolderEntry) -> bool:
    """W&B's own logs, which tell of W&B."""
    return "/wandb/" in entry.path and entry.name.startswith("debug")


# -- several runs in one folder


def find_run_folder(folder: str) -> tuple[str, list[str]]:
    """The folder itself, or in a folder of runs the one that was written to last; and what to say about it."""
    return _choose_run_folder(folder, walk_run_folder(folder, (*KNOWN_PROGRESS_FILES, "nohup.out")))


def _choose_run_folder(folder: str, walked: WalkedFolder) -> tuple[str, list[str]]:
    """A folder of runs is not a run: the one that was written to last is looked at, and that is said."""
    notes: list[str] = []
    for _ in range(3):
        files = [
            each
            for each in walked.entries
            if each.is_plain and _lies_within_folder(each.path, folder) and _is_progress_entry(each)
        ]
        if any(each.folder == folder for each in files):
            break
        runs: dict[str, list[FolderEntry]] = {}
        for each in files:
            runs.setdefault(os.path.relpath(each.path, folder).split("/")[0], []).append(each)
        alike = {os.path.relpath(each.path, folder).partition("/")[2] for each in files}
        if (
            len(runs) < 2 or len(alike) == len(files) or runs.keys() & PART_FOLDER_NAMES
        ):  # parts of one run differ in their names
            break
        newest = max(runs, key=lambda name: max(each.time for each in runs[name]))
        notes.append(f"{len(runs)} runs lie in {folder}; this is about {newest}, which was written to last")
        folder = os.path.join(folder, newest)
    return folder, notes


def _is_progress_entry(entry: FolderEntry) -> bool:
    return entry.name in KNOWN_PROGRESS_FILES or entry.ending in (".jsonl", ".csv") or is_log_name(entry.name)


def is_log_name(name: str) -> bool:
    return name.lower().endswith(LOG_ENDINGS) or name.lower() in LOG_NAMES


# -- files with steps in them


def _add_rows_and_logs(search: _ProgressSearch, entries: Sequence[FolderEntry]) -> None:
    likely = [each for each in entries if not each.is_folder and _kind_of_entry(each)]
    likely.sort(key=lambda each: (each.name not in KNOWN_PROGRESS_FILES, -each.time))
    for entry in likely[:_MOST_SNIFFED]:
        _add_progress_file(search, entry, _kind_of_entry(entry) or "jsonl")


def _kind_of_entry(entry: FolderEntry) -> ProgressKind | None:
    if entry.ending in (".jsonl", ".ndjson"):
        return "jsonl"
    if entry.ending in (".csv", ".tsv"):
        return "csv"
    return "stdout" if is_log_name(entry.name) else None


def _add_progress_file(search: _ProgressSearch, entry: FolderEntry, kind: ProgressKind) -> None:
    if kind == "stdout":
        search.logs.append(entry)
    shown = search.shown(entry.path)
    try:
        if not entry.is_plain:
            raise OSError(0, "it is no plain file")
        sniffed = find_step_column(entry.path, "log" if kind == "stdout" else kind)
    except OSError as error:
        why = f"{shown} can't be read: {error.strerror or error}"
        if entry.name in KNOWN_PROGRESS_FILES:
            search.add(kind, entry.path, entry.time, ProgressDates(), "step", mute=why)
        else:
            search.troubles.append(why)
        return
    if sniffed.key is not None:
        at = refuse_future_time(sniffed.dated, search.now)
        search.add(kind, entry.path, entry.time, at, sniffed.key, stands=sniffed.stands)
    elif entry.name in KNOWN_PROGRESS_FILES:
        search.add(kind, entry.path, entry.time, ProgressDates(), "step")  # it may still get its first step
        if sniffed.columns:
            search.troubles.append(f"{shown} has no column that counts steps{_describe_columns(sniffed.columns)}")


# -- files that come one after the other


def _describe_columns(names: Sequence[str]) -> str:
    """Those that a person can read, if there are any: what is named .csv may be anything."""
    plain = [name for name in names if name.isprintable() and "\ufffd" not in name and len(name) <= 40]
    return f"; it has {', '.join(plain[:8])}" if plain and len(plain) == len(names) else ", and no readable header"


def _add_checkpoint_folders(search: _ProgressSearch, entries: Sequence[FolderEntry]) -> list[FolderEntry]:
    """Folders that are a checkpoint each; what lies in them is no progress file of its own."""
    groups: dict[str, list[FolderEntry]] = {}
    marked = {each.folder for each in entries if each.name in _ORBAX}
    for each in entries:
        known = os.path.basename(each.folder) in CHECKPOINT_FOLDERS and each.folder != search.root
        if each.is_folder and (known or each.path in marked or _CHECKPOINT_NAME.fullmatch(each.name)):
            pattern = "*" if known or not _CHECKPOINT_NAME.fullmatch(each.name) else _common_name_pattern(each.name)
            groups.setdefault(os.path.join(each.folder, pattern), []).append(each)
    inner = [each.path for group in groups.values() for each in group]
    for pattern, group in groups.items():
        if any(_lies_within_folder(group[0].path, path) for path in inner):
            continue
        times = checkpoint_times(each.path for each in group)
        search.add("checkpoint", pattern, max(times, default=0.0), date_files(times, search.now, search.since))
    return [each for each in entries if not any(_lies_within_folder(each.path, path) for path in inner)]


def _common_name_pattern(name: str) -> str:
    return re.split(r"\d", name)[0] + "*"


def _add_file_groups(search: _ProgressSearch, entries: Sequence[FolderEntry], walked: WalkedFolder) -> None:
    groups: dict[tuple[str, str], list[FolderEntry]] = {}
    for each in entries:
        if each.is_plain and (each.ending in CHECKPOINT_ENDINGS or each.ending in CHUNK_ENDINGS):
            groups.setdefault((each.folder, each.ending), []).append(each)
    for (folder, ending), group in groups.items():
        if ending in CHECKPOINT_ENDINGS:
            _add_checkpoint_files(search, folder, ending, group)
        elif len(group) >= _MANY_CHUNKS or os.path.basename(folder) in CHUNK_FOLDERS:
            crowded = folder in walked.crowded
            times = newest_times_of_crowded_folder(folder, ending) if crowded else [each.time for each in group]
            path = os.path.join(folder, f"*{ending}")
            search.add("files", path, max(times, default=0.0), date_files(times, search.now, search.since))


def _add_checkpoint_files(search: _ProgressSearch, folder: str, ending: str, group: Sequence[FolderEntry]) -> None:
    path = os.path.join(folder, f"*{ending}") if len(group) > 1 else group[0].path
    times = [each.time for each in group]
    search.add("checkpoint", path, max(times), date_files(times, search.now, search.since))


def _add_record_files(search: _ProgressSearch, entries: Sequence[FolderEntry]) -> None:
    """Records of W&B and TensorBoard; of several the newest."""
    boards = [each for each in entries if each.is_plain and ".tfevents." in each.name]
    for folder in {each.folder for each in boards}:
        newest = max(each.time for each in boards if each.folder == folder)
        search.add("tensorboard", os.path.join(folder, "events.out.tfevents.*"), newest, ProgressDates())
    records = [each for each in entries if each.is_plain and each.ending == ".wandb"]
    for each in sorted(records, key=lambda record: -record.time)[:1]:
        search.add("wandb", each.path, each.time, ProgressDates())


# -- the ends of logs


def _read_log_ends(search: _ProgressSearch) -> Iterable[LogTail]:
    for entry in sorted(search.logs, key=lambda log: -log.time)[:_MOST_LOGS]:
        if entry.is_plain:
            yield LogTail(entry.path, search.shown(entry.path), entry.time, read_log_end(entry.path))


def read_log_end(path: str) -> str:
    try:
        with open_regular_file(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
            return mask_secrets_in_tail(file.read(_END_BYTES).decode("utf-8", "replace"))
    except OSError:
        return ""


# -- what reads them


class RedirectedLog(StepSource):
    """A log by its own path, where the run's output was sent."""

    def __init__(self, declared: DeclaredProgress, signal: str, path: str) -> None:
        pattern = LogPattern.of(declared.step or "")
        super().__init__(declared, signal, lambda found: PrintedStepReader(found, pattern))
        self.path = path

    def _paths(self) -> list[str]:
        return [self.path]

    def _nothing(self, readers: list[StepReader]) -> str:
        return readers[0].nothing(self._name(readers[0]))


def progress_source_of_trace(trace: ProgressTrace) -> ProgressSource:
    declared, signal = trace.progress, trace.progress.path
    if trace.mute:
        return MuteSource(declared, signal, trace.mute)
    if declared.kind == "stdout":
        return RedirectedLog(declared, signal, trace.pattern)
    if declared.kind == "files":
        return FileCountSource(declared, signal, trace.pattern)
    if declared.kind == "checkpoint":
        return CheckpointSource(declared, signal, trace.pattern)
    if declared.kind in ("wandb", "tensorboard"):
        return RecordSource(declared, signal, trace.pattern, None)
    return WrittenSource(declared, signal, trace.pattern, None)
