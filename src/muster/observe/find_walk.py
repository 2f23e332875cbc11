"""A look around in a folder that nobody told us about: bounded in depth, in number and in time."""

# Paths are texts here, as in the rest of this room.
# ruff: noqa: PTH116, PTH118

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

DEEPEST = 4
MOST_ENTRIES = 20_000
MOST_PER_FOLDER = 2_000  # a replay folder may hold a million files; some of them show what they are
PATIENCE_S = 2.0
SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "env", "dist-info", "lost+found"})


@dataclass(frozen=True, slots=True)
class Entry:
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
class Walked:
    entries: list[Entry] = field(default_factory=list)
    crowded: set[str] = field(default_factory=set)  # folders of which only a part was listed
    cut: str = ""  # why the looking ended early
    troubles: list[str] = field(default_factory=list)


def walk(root: str, wanted: Iterable[str] = (), deepest: int = DEEPEST, patience_s: float = PATIENCE_S) -> Walked:
    """Folders near the top first. Links to folders are not followed, hidden ones not entered.

    `wanted`: names that are looked for even in folders too crowded to list.
    """
    found = Walked()
    waiting = deque([(root, 0)])
    deadline = time.monotonic() + patience_s
    while waiting:
        folder, depth = waiting.popleft()
        if len(found.entries) >= MOST_ENTRIES or time.monotonic() > deadline:
            found.cut = f"looked at the first {len(found.entries)} files and folders only"
            break
        listed = _list(folder, found)
        if folder in found.crowded:
            names = {entry.name for entry in listed}
            listed += [entry for name in wanted if name not in names and (entry := entry_of(folder, name))]
        for entry in listed:
            found.entries.append(entry)
            if entry.is_folder and depth < deepest and not _skipped(entry.name):
                waiting.append((entry.path, depth + 1))
    return found


def _list(folder: str, found: Walked) -> list[Entry]:
    entries: list[Entry] = []
    try:
        with os.scandir(folder) as listed:
            for each in listed:
                if len(entries) == MOST_PER_FOLDER:
                    found.crowded.add(folder)
                    break
                if entry := _entry(folder, each):
                    entries.append(entry)
    except OSError as error:
        found.troubles.append(f"{folder} can't be read: {error.strerror or error}")
    return entries


def _entry(folder: str, each: os.DirEntry[str]) -> Entry | None:
    try:
        is_folder = each.is_dir(follow_symlinks=False)
        facts = each.stat()
    except OSError:
        return None  # it has just gone, or is a link that leads nowhere
    plain = stat.S_ISREG(facts.st_mode)
    return Entry(folder, each.name, facts.st_size, facts.st_mtime, is_folder, plain)


def entry_of(folder: str, name: str) -> Entry | None:
    try:
        facts = os.stat(os.path.join(folder, name))
    except OSError:
        return None
    return Entry(folder, name, facts.st_size, facts.st_mtime, stat.S_ISDIR(facts.st_mode), stat.S_ISREG(facts.st_mode))


def _skipped(name: str) -> bool:
    return name in SKIPPED or name.startswith(".")
