"""Looks into folders that somebody else made: a run, a repository, another user. However deep, wherever links lead.

Python's own `os.walk` and `glob` call themselves for each level, which ends in a RecursionError; and the `**` of a glob
follows links: two of them to `.` double its work forty times.
"""

# Paths are texts here: globs are no paths, and some of this runs for every run every few seconds.
# ruff: noqa: PTH104, PTH112, PTH114, PTH118, PTH120, PTH207

from __future__ import annotations

import contextlib
import errno
import fnmatch
import glob
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from muster.text.phrases import phrase

DEEPEST_FOLDER = 128  # folders within folders
MOST_LINKED_ENTRIES = 20_000  # entries of folders that one glob reaches through links
_LONG = 2000  # bytes of a path below the top: what lies beyond is moved before it is removed


class FoldersTooDeep(OSError):
    """Folders lie in it deeper than any program puts them."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ENAMETOOLONG, phrase("files.folders_too_deep", most=DEEPEST_FOLDER), path)


def walk_folders(
    top: str | os.PathLike[str], onerror: Callable[[OSError], object] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """As os.walk from the top down, links not followed. What lies too deep is left out; `onerror` hears TooDeep."""
    waiting = [(os.fspath(top), 0)]
    while waiting:
        folder, depth = waiting.pop()
        folders: list[str] = []
        names: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for each in entries:
                    (folders if _is_directory_entry(each) else names).append(each.name)
        except OSError as error:
            if onerror:
                onerror(error)
            continue
        yield folder, folders, names
        below = [path for name in reversed(folders) if not os.path.islink(path := os.path.join(folder, name))]
        if depth < DEEPEST_FOLDER:
            waiting += ((path, depth + 1) for path in below)
        elif below and onerror:
            onerror(FoldersTooDeep(os.fspath(top)))


def _is_directory_entry(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def glob_paths(pattern: str, root_dir: str | os.PathLike[str] | None = None) -> list[str]:
    """As `glob.glob(pattern, recursive=True)`, bounded in depth and in what is looked into through links."""
    if sum(map(glob.has_magic, pattern.split("/"))) <= 1 and "**" not in pattern.split("/"):
        return glob.glob(pattern, root_dir=root_dir)
    return list(dict.fromkeys(_BoundedGlob(pattern, os.fspath(root_dir or "")).found()))


class _BoundedGlob:
    """One pattern in several parts, which may each stand for many folders."""

    def __init__(self, pattern: str, root: str) -> None:
        self._start = "/" if pattern.startswith("/") else ""
        self._root = root
        self._only_folders = pattern.endswith("/")
        parts = [each for each in pattern.split("/") if each]
        self._parts = [each for at, each in enumerate(parts) if each != "**" or parts[at - 1 : at] != ["**"]]
        self._fits = [re.compile(fnmatch.translate(each)).match for each in self._parts]
        self._linked = 0  # entries that were reached through links

    def found(self) -> Iterator[str]:
        waiting = [(self._start, 0, 0, False, True)]
        seen: set[tuple[str, int]] = set()
        while waiting:
            path, at, depth, linked, fresh = waiting.pop()  # fresh: this part of the pattern begins here
            if (path, at) in seen or depth > DEEPEST_FOLDER or (linked and self._linked > MOST_LINKED_ENTRIES):
                continue
            seen.add((path, at))
            anything, last = self._parts[at] == "**", at == len(self._parts) - 1
            if anything and last and fresh and path and os.path.isdir(self._real(path)):
                yield os.path.join(path, "")
            elif anything and not last:
                waiting.append((path, at + 1, depth, linked, True))
            for name, kind in self._next(path, at):
                self._linked += linked
                below = os.path.join(path, name)
                if last and (kind != "file" or not self._only_folders):
                    yield os.path.join(below, "") if self._only_folders else below
                if kind == "file" or (last and not anything) or (kind == "link" and self._goes_round(below)):
                    continue
                waiting.append((below, at + (not anything), depth + 1, linked or kind == "link", not anything))

    def _next(self, path: str, at: int) -> Iterator[tuple[str, str]]:
        """Names that fit a part of the pattern, each with whether it is a file, a folder or a link to a folder."""
        part = self._parts[at]
        if not glob.has_magic(part):
            below = self._real(os.path.join(path, part))
            if os.path.lexists(below):
                yield part, "folder" if os.path.isdir(below) else "file"
            return
        try:
            with os.scandir(self._real(path) or os.curdir) as entries:
                for each in entries:
                    if self._fit(each.name, at):
                        folder = _is_directory_entry(each)
                        yield each.name, "file" if not folder else "link" if each.is_symlink() else "folder"
        except OSError:
            return

    def _fit(self, name: str, at: int) -> bool:
        part = self._parts[at]
        if name.startswith(".") and not part.startswith("."):
            return False
        return part == "**" or self._fits[at](name) is not None

    def _goes_round(self, path: str) -> bool:
        """A link to a folder that it lies in."""
        link = self._real(path)
        here, there = (os.path.join(os.path.realpath(each), "") for each in (os.path.dirname(link) or ".", link))
        return here.startswith(there)

    def _real(self, path: str) -> str:
        return os.path.join(self._root, path)


def remove_tree(path: str | os.PathLike[str]) -> None:
    """As `shutil.rmtree(path, ignore_errors=True)`, of folders of any depth. No link is followed."""
    top = os.fspath(path)
    waiting = [] if os.path.islink(top) else [top]
    moved = 0
    while waiting:  # what lies too deep is brought to the top
        begin = waiting.pop()
        for folder, folders, _ in walk_folders(begin):
            below = folder[len(begin) :]
            if below.count(os.sep) < DEEPEST_FOLDER and len(below) < _LONG:
                continue
            for name in folders:
                moved += 1
                place = os.path.join(top, f".{moved}.removed")
                with contextlib.suppress(OSError):
                    os.rename(os.path.join(folder, name), place)
                    waiting += [] if os.path.islink(place) else [place]
            folders.clear()
    with contextlib.suppress(RecursionError):
        shutil.rmtree(top, ignore_errors=True)


def list_files_below(path: Path) -> Iterator[Path]:
    """Every file below a folder, links to files included."""
    for folder, _, names in walk_folders(path):
        yield from (Path(folder, name) for name in names)
