"""Walks a folder that nobody described: near files first, bounded in depth, number and time; and which names are
those of logs or of W&B's own files.
"""

# ruff: noqa: PTH116, PTH118
# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import os
import re
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from muster.readers.records.metric_reader import MetricReader
from muster.text.phrases import phrase

RUN_FOLDER_DEPTH = 4
MOST_ENTRIES = 20_000
MOST_PER_RUN_FOLDER = 2_000  # a replay folder may hold a million files; some of them show what they are
WALK_PATIENCE_S = 2.0
SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "env", "dist-info", "lost+found"})


@dataclass(frozen=True, slots=True)
class FolderEntry:
    folder: str
    name: str
    size: int
    time: float
    is_folder: bool
    is_plain: bool  # a file that can be read without waiting: no pipe, no device

    @property
    def path(self) -> str:
        return os.path.join(self.folder, self.name)

    @property
    def ending(self) -> str:
        return self.name[self.name.rfind(".") :].lower() if "." in self.name else ""


@dataclass(slots=True)
class WalkedFolder:
    entries: list[FolderEntry] = field(default_factory=list)
    crowded: set[str] = field(default_factory=set)  # folders of which only a part was listed
    cut: str = ""  # why the looking ended early
    troubles: list[str] = field(default_factory=list)


def walk_run_folder(
    root: str, wanted: Iterable[str] = (), deepest: int = RUN_FOLDER_DEPTH, patience_s: float = WALK_PATIENCE_S
) -> WalkedFolder:
    """Folders near the top first. Links to folders are not followed, hidden ones not entered.

    `wanted`: names that are looked for even in folders too crowded to list.
    """
    found = WalkedFolder()
    waiting = deque([(root, 0)])
    deadline = time.monotonic() + patience_s
    while waiting:
        folder, depth = waiting.popleft()
        if len(found.entries) >= MOST_ENTRIES or time.monotonic() > deadline:
            found.cut = f"looked at the first {len(found.entries)} files and folders only"
            break
        listed = _list_folder_entries(folder, found)
        if folder in found.crowded:
            names = {entry.name for entry in listed}
            listed += [entry for name in wanted if name not in names and (entry := entry_by_name(folder, name))]
        for entry in listed:
            found.entries.append(entry)
            if entry.is_folder and depth < deepest and not _is_skipped_folder(entry.name):
                waiting.append((entry.path, depth + 1))
    return found


def _list_folder_entries(folder: str, found: WalkedFolder) -> list[FolderEntry]:
    entries: list[FolderEntry] = []
    try:
        with os.scandir(folder) as listed:
            for each in listed:
                if len(entries) == MOST_PER_RUN_FOLDER:
                    found.crowded.add(folder)
                    break
                if entry := _folder_entry(folder, each):
                    entries.append(entry)
    except OSError as error:
        found.troubles.append(f"{folder} can't be read: {error.strerror or error}")
    return entries


def _folder_entry(folder: str, each: os.DirEntry[str]) -> FolderEntry | None:
    try:
        is_folder = each.is_dir(follow_symlinks=False)
        facts = each.stat()
    except OSError:
        return None  # it has just gone, or is a link that leads nowhere
    plain = stat.S_ISREG(facts.st_mode)
    return FolderEntry(folder, each.name, facts.st_size, facts.st_mtime, is_folder, plain)


def entry_by_name(folder: str, name: str) -> FolderEntry | None:
    try:
        facts = os.stat(os.path.join(folder, name))
    except OSError:
        return None
    return FolderEntry(
        folder, name, facts.st_size, facts.st_mtime, stat.S_ISDIR(facts.st_mode), stat.S_ISREG(facts.st_mode)
    )


def _is_skipped_folder(name: str) -> bool:
    return name in SKIPPED_FOLDERS or name.startswith(".")


LOGS_LOOKED_FOR = (
    "wandb/run-*/*.wandb, wandb/offline-run-*/*.wandb, events.out.tfevents.*, *.jsonl, progress.csv, metrics.csv, "
    "trainer_state.json, other *.csv and *.tsv that count steps, mlruns/*/*/metrics, *.log"
)
LOG_PART_FOLDERS = frozenset(
    {"train", "eval", "val", "valid", "validation", "test", "log", "logs", "tb", "tensorboard", "metrics", "events"}
    | {"dvclive", "plots"}
)
OBJECT_LINE_NAMES = re.compile(
    r"(?:log|metrics|scalars|result|progress)\.(?:json|txt)\Z"
)  # maybe JSON lines by another name
TRAINER_STATE_FILE = "trainer_state.json"
TRAINER_CHECKPOINT = re.compile(r"checkpoint-(\d+)\Z")  # of HF: only its trainer_state.json is of interest
TABLE_NAMES = re.compile(
    r"(?:progress|metrics|history|results|log|monitor|training_log|.*\.monitor|.*[_-]metrics)\.csv\Z"
)
ROW_FILE_NAMES = frozenset({"metrics.jsonl", "scores.jsonl", "history.jsonl", "log.jsonl"})
MAIN_LOG_NAMES = (  # of several files of one kind: the first of these keeps its keys
    "metrics.jsonl", "scores.jsonl", "history.jsonl", "log.jsonl", "progress.csv", "metrics.csv", "history.csv",
    "results.csv", "log.csv", "stdout.log", "train.log",
)  # fmt: skip
_PRINTED = r"(?:stdout|stderr|output|train|training|run|nohup|log|slurm-.*)\.(?:log|out|txt)"
PRINTED_LOG_NAMES = re.compile(rf"{_PRINTED}\Z|.*\.log\Z")

# W&B
WANDB_RUN = re.compile(r"(?:offline-)?run-\d{8}_\d{6}-(?P<id>.+)\Z")
LATEST_RUN_LINK = "latest-run"  # a link to the newest one
WANDB_HISTORY, WANDB_SUMMARY, WANDB_EVENTS = "wandb-history.jsonl", "wandb-summary.json", "wandb-events.jsonl"
WANDB_DEBUG = re.compile(r"debug(?:-(?:internal|core|cli(?:\..*)?))?\.log\Z")  # what W&B says of itself

_FILES = re.compile(
    rf".*\.wandb\Z|.*\.tfevents\..*|{re.escape(TRAINER_STATE_FILE)}\Z|wandb-(?:history\.jsonl|summary\.json)\Z|"
    rf"(?:metrics|scores|history|log)\.jsonl\Z|{_PRINTED}\Z|{TABLE_NAMES.pattern}"
)
_FOLDERS = re.compile(
    rf"wandb\Z|{LATEST_RUN_LINK}\Z|lightning_logs\Z|version_\d+\Z|{WANDB_RUN.pattern}|{TRAINER_CHECKPOINT.pattern}"
)


def is_known_log_name(name: str) -> bool:
    """Whether a name tells by itself that it is worth a look, even among a million others."""
    return name in LOG_PART_FOLDERS or bool(_FILES.match(name) or _FOLDERS.match(name))


LOG_WALK_DEPTH = 8
MOST_LOG_FOLDERS = 20_000
MOST_LOG_FILES = 200_000
MOST_LOGS_PER_FOLDER = 5_000  # a replay folder may hold a million files: of the further ones only known names are taken
LOG_WALK_PATIENCE_S = 10.0
_ENTRIES_BETWEEN_CHECKS = 1_000  # entries of a crowded folder after which the time is looked at
SKIPPED_LOG_FOLDERS = re.compile(
    r"\..*|__pycache__|node_modules|site-packages|s?venv|env|dist-info|lost\+found|checkpoints?|ckpts?|replay|"
    r"eval_replay|media|artifacts|pretrained_model|training_state|torch_save|videos?"
)


LOOKS_LIKE_TABLE = "a table that counts steps"


@dataclass(frozen=True, slots=True)
class LogSource:
    path: str
    kind: str  # the name of its kind
    run: str  # the folder of the run it belongs to
    make: Callable[[], MetricReader]
    why: str  # it was chosen
    prefix: str = ""
    label: str = ""  # what tells its keys from those of other files of its kind; empty: they keep their names

    @property
    def guessed(self) -> bool:
        """Whether only its rows say that it is a log: it may be a table of something else."""
        return self.why == LOOKS_LIKE_TABLE


@dataclass(slots=True)
class FoundLogs:
    files: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)  # `latest-run` -> where it leads
    wandb: list[str] = field(default_factory=list)  # folders of this name, whatever is in them
    cut: str = ""  # what was not looked at, and why
    troubles: list[str] = field(default_factory=list)


def walk_for_logs(root: str, patience_s: float = LOG_WALK_PATIENCE_S) -> FoundLogs:
    """Links to folders are not followed; hidden folders, checkpoints and packages are not entered."""
    walk = _LogWalk(time.monotonic() + patience_s)
    waiting = deque([(root, 0)])
    while waiting and not walk.ends():
        folder, depth = waiting.popleft()
        waiting.extend((inner, depth + 1) for inner in walk.enter(folder) if depth < LOG_WALK_DEPTH)
    walk.found.files.sort()
    walk.found.cut = walk.told(left=bool(waiting))
    return walk.found


class _LogWalk:
    def __init__(self, deadline: float) -> None:
        self.found = FoundLogs()
        self._deadline = deadline
        self._folders = 0
        self._crowded: list[str] = []
        self._unended = ""  # a folder that took too long

    def ends(self) -> bool:
        """Not before the first folder was looked at."""
        many = self._folders >= MOST_LOG_FOLDERS or len(self.found.files) > MOST_LOG_FILES
        return self._folders > 0 and (many or time.monotonic() > self._deadline)

    def enter(self, folder: str) -> list[str]:
        """The folders in it that are worth entering."""
        self._folders += 1
        if folder.rpartition(os.sep)[2] == "wandb":
            self.found.wandb.append(folder)
        inner: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for count, entry in enumerate(entries):
                    if count >= MOST_LOGS_PER_FOLDER:
                        if self._breaks_off(folder, count):
                            break
                        if not is_known_log_name(entry.name):
                            continue
                    self._take(entry, inner)
        except OSError as error:
            self._unreadable(folder, error)
        return sorted(inner)

    def _unreadable(self, path: str, error: OSError) -> None:
        self.found.troubles.append(f"{path} can't be read: {error.strerror or error}")

    def _breaks_off(self, folder: str, count: int) -> bool:
        if count == MOST_LOGS_PER_FOLDER:
            self._crowded.append(folder)
        if count % _ENTRIES_BETWEEN_CHECKS == 0 and self.ends():
            self._unended = folder
        return bool(self._unended)

    def _take(self, entry: os.DirEntry[str], inner: list[str]) -> None:
        try:
            self._sort_in(entry, inner)
        except OSError as error:  # a link that leads to itself, say: the others are still looked at
            self._unreadable(entry.path, error)

    def _sort_in(self, entry: os.DirEntry[str], inner: list[str]) -> None:
        if entry.is_file():
            self.found.files.append(entry.path)
        elif entry.is_dir(follow_symlinks=False):
            if TRAINER_CHECKPOINT.match(entry.name):
                self._note_state(os.path.join(entry.path, TRAINER_STATE_FILE))
            elif not SKIPPED_LOG_FOLDERS.fullmatch(entry.name):
                inner.append(entry.path)
        elif entry.is_symlink() and entry.name == LATEST_RUN_LINK:
            self.found.links[entry.path] = os.path.realpath(entry.path)

    def _note_state(self, path: str) -> None:
        if os.path.isfile(path):  # noqa: PTH113
            self.found.files.append(path)

    def told(self, *, left: bool) -> str:
        """What was not looked at; `left`: folders."""
        cuts = []
        if self._crowded:
            others = len(self._crowded) - 1
            more = f" and {phrase('count.other_folder', n=others)}" if others else ""
            cuts.append(
                f"in {self._crowded[0]}{more} only {MOST_LOGS_PER_FOLDER} entries and files with known names "
                "were looked at"
            )
        if self._unended:
            cuts.append(f"{self._unended} was not looked at to its end: that takes too long")
        if left:
            cuts.append(f"only the first {phrase('count.folder_was', n=self._folders)} looked at")
        return "; ".join(cuts)


def wandb_own_folders(around: FoundLogs) -> set[str]:
    """The folders that W&B made for its runs: their name says so, and there are records in them."""
    folders = {os.path.dirname(path) for path in around.files if path.endswith(".wandb")}  # noqa: PTH120
    return {folder for folder in folders if WANDB_RUN.match(os.path.basename(os.path.abspath(folder)))}  # noqa: PTH100, PTH119
