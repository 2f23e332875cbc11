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

from muster.ports.metrics import MetricReader

DEEPEST = 8
MOST_FOLDERS = 20_000
MOST_FILES = 200_000
MOST_PER_FOLDER = 5_000  # a replay folder may hold a million files
PATIENCE_S = 10.0
SKIPPED = re.compile(
    r"\..*|__pycache__|node_modules|site-packages|s?venv|env|dist-info|lost\+found|checkpoints?|ckpts?|replay|"
    r"eval_replay|media|artifacts|pretrained_model|training_state|torch_save|videos?"
)
CHECKPOINT = re.compile(r"checkpoint-\d+")  # only their trainer_state.json is of interest
STATE = "trainer_state.json"


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
    cut: str = ""  # why the looking ended early
    troubles: list[str] = field(default_factory=list)


def look_around(root: str, patience_s: float = PATIENCE_S) -> Around:
    """Links to folders are not followed; hidden folders, checkpoints and packages are not entered."""
    found = Around()
    waiting = deque([(root, 0)])
    deadline, folders = time.monotonic() + patience_s, 0
    while waiting:
        folder, depth = waiting.popleft()
        folders += 1
        if folders > MOST_FOLDERS or len(found.files) > MOST_FILES or time.monotonic() > deadline:
            found.cut = f"only the first {folders - 1} folders were looked at"
            break
        waiting.extend((inner, depth + 1) for inner in _list(folder, found) if depth < DEEPEST)
    found.files.sort()
    return found


def _list(folder: str, found: Around) -> list[str]:
    """The folders in it that are worth entering."""
    inner: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count >= MOST_PER_FOLDER:
                    break
                if entry.is_file():
                    found.files.append(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    if CHECKPOINT.fullmatch(entry.name):
                        _note_state(os.path.join(entry.path, STATE), found)
                    elif not SKIPPED.fullmatch(entry.name):
                        inner.append(entry.path)
                elif entry.is_symlink() and entry.name == "latest-run":
                    found.links[entry.path] = os.path.realpath(entry.path)
    except OSError as error:
        found.troubles.append(f"{folder} can't be read: {error.strerror or error}")
    return sorted(inner)


def _note_state(path: str, found: Around) -> None:
    if os.path.isfile(path):  # noqa: PTH113
        found.files.append(path)
