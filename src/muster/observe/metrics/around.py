"""The files under a folder: near ones first, bounded in depth, in number and in time."""

# Paths are texts here, as in the rest of this room.
# ruff: noqa: PTH118

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.domain.wording import counted
from muster.observe.metrics.names import CHECKPOINT, LATEST, STATE, is_known
from muster.ports.metrics import MetricReader

DEEPEST = 8
MOST_FOLDERS = 20_000
MOST_FILES = 200_000
MOST_PER_FOLDER = 5_000  # a replay folder may hold a million files: of the further ones only known names are taken
PATIENCE_S = 10.0
_BETWEEN = 1_000  # entries of a crowded folder after which the time is looked at
SKIPPED = re.compile(
    r"\..*|__pycache__|node_modules|site-packages|s?venv|env|dist-info|lost\+found|checkpoints?|ckpts?|replay|"
    r"eval_replay|media|artifacts|pretrained_model|training_state|torch_save|videos?"
)


TRUST = ("jsonl", "csv", "wandb", "tensorboard", "hf", "stdout")  # in this order, where two hold the same key


@dataclass(frozen=True, slots=True)
class Source:
    path: str
    kind: str  # one of TRUST
    run: str  # the folder of the run it belongs to
    make: Callable[[], MetricReader]
    why: str  # it was chosen
    prefix: str = ""


@dataclass(slots=True)
class Around:
    files: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)  # `latest-run` -> where it leads
    wandb: list[str] = field(default_factory=list)  # folders of this name, whatever is in them
    cut: str = ""  # what was not looked at, and why
    troubles: list[str] = field(default_factory=list)


def look_around(root: str, patience_s: float = PATIENCE_S) -> Around:
    """Links to folders are not followed; hidden folders, checkpoints and packages are not entered."""
    walk = _Walk(time.monotonic() + patience_s)
    waiting = deque([(root, 0)])
    while waiting and not walk.ends():
        folder, depth = waiting.popleft()
        waiting.extend((inner, depth + 1) for inner in walk.enter(folder) if depth < DEEPEST)
    walk.found.files.sort()
    walk.found.cut = walk.told(left=bool(waiting))
    return walk.found


class _Walk:
    def __init__(self, deadline: float) -> None:
        self.found = Around()
        self._deadline = deadline
        self._folders = 0
        self._crowded: list[str] = []
        self._unended = ""  # a folder that took too long

    def ends(self) -> bool:
        """Not before the first folder was looked at."""
        many = self._folders >= MOST_FOLDERS or len(self.found.files) > MOST_FILES
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
                    if count >= MOST_PER_FOLDER:
                        if self._breaks_off(folder, count):
                            break
                        if not is_known(entry.name):
                            continue
                    self._take(entry, inner)
        except OSError as error:
            self._unreadable(folder, error)
        return sorted(inner)

    def _unreadable(self, path: str, error: OSError) -> None:
        self.found.troubles.append(f"{path} can't be read: {error.strerror or error}")

    def _breaks_off(self, folder: str, count: int) -> bool:
        if count == MOST_PER_FOLDER:
            self._crowded.append(folder)
        if count % _BETWEEN == 0 and self.ends():
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
            if CHECKPOINT.match(entry.name):
                self._note_state(os.path.join(entry.path, STATE))
            elif not SKIPPED.fullmatch(entry.name):
                inner.append(entry.path)
        elif entry.is_symlink() and entry.name == LATEST:
            self.found.links[entry.path] = os.path.realpath(entry.path)

    def _note_state(self, path: str) -> None:
        if os.path.isfile(path):  # noqa: PTH113
            self.found.files.append(path)

    def told(self, *, left: bool) -> str:
        """What was not looked at; `left`: folders."""
        cuts = []
        if self._crowded:
            others = len(self._crowded) - 1
            more = f" and {counted(others, 'other folder')}" if others else ""
            cuts.append(
                f"in {self._crowded[0]}{more} only {MOST_PER_FOLDER} entries and files with known names were looked at"
            )
        if self._unended:
            cuts.append(f"{self._unended} was not looked at to its end: that takes too long")
        if left:
            cuts.append(f"only the first {counted(self._folders, 'folder was', 'folders were')} looked at")
        return "; ".join(cuts)
