"""Finds and reads what a staged training left in its folder, however much that is: long files are thinned out."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from muster.ports.regular_files import NotRegular, open_regular
from muster.report.figures.staged.artifacts import ENDINGS, GATE, Note, kind_of

LARGEST = 16 << 20  # bytes that are kept of one file: some ten thousand rows of a gate
LONGEST = 1 << 20  # bytes of a line
MOST_FOLDERS = 200  # below the run's own that are looked into
MOST_GATES = 12
OURS = "figures"
_AT = re.compile(rb'"(?:iteration|iter|step|_step|epoch)"\s*:\s*(\d{1,12})\b')
_MOVES = (b'"advance"', b'"fall_back"')


@dataclass(slots=True)
class StagedFiles:
    """What was read, by the name of the file."""

    paths: dict[str, Path] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    thinned: dict[str, int] = field(default_factory=dict)  # lines that the file has
    notes: list[Note] = field(default_factory=list)


def read_staged(folders: Sequence[Path]) -> StagedFiles:
    """Of a kind that is in several of these folders, those of the first one."""
    found = StagedFiles()
    for kind in ENDINGS:
        for path in _of_kind(kind, folders, found.notes):
            name = path.name if path.name not in found.paths else str(path)
            _read(path, name, found)
    return found


def _of_kind(kind: str, folders: Sequence[Path], notes: list[Note]) -> list[Path]:
    for folder in folders:
        here = _there(folder, kind)
        if not here:
            below = {sub: paths for sub in _below(folder) if (paths := _there(sub, kind))}
            here = next(iter(below.values()), [])
            if len(below) > 1:  # whose they are can't be told
                notes.append(Note("several", {"file": kind, "where": ", ".join(sorted(sub.name for sub in below)[:4])}))
                return []
        if here:
            return here[:MOST_GATES] if kind == GATE else _one(kind, here)
    return []


def _one(kind: str, paths: list[Path]) -> list[Path]:
    """The one that is called so and nothing more comes first."""
    return sorted(paths, key=lambda path: path.name != kind)


def _there(folder: Path, kind: str) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if kind_of(path.name) == kind)
    except OSError:
        return []


def _below(folder: Path) -> list[Path]:
    try:
        inside = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.name != OURS)
        return [path for path in inside[:MOST_FOLDERS] if path.is_dir()]
    except OSError:
        return []


def _read(path: Path, name: str, into: StagedFiles) -> None:
    try:
        with open_regular(path) as file:
            facts = os.fstat(file.fileno())
            if facts.st_size <= LARGEST:
                _keep(file.read(LARGEST + 1), path, name, into)
            elif path.suffix == ".jsonl":
                _keep_some(file, path, name, into)
            else:
                into.notes.append(Note("too_large", {"file": name, "most": LARGEST >> 20}))
    except (IsADirectoryError, NotRegular):
        into.notes.append(Note("no_file", {"file": name}))
    except OSError as error:
        into.notes.append(Note("unreadable", {"file": name, "why": error.strerror or str(error)}))


def _keep(data: bytes, path: Path, name: str, into: StagedFiles) -> None:
    into.paths[name] = path
    into.texts[name] = data.decode("utf-8", "replace").removeprefix("\ufeff")
    into.hashes[name] = hashlib.sha256(data).hexdigest()


def _keep_some(file: BinaryIO, path: Path, name: str, into: StagedFiles) -> None:
    digest = hashlib.sha256()
    kept, total = thinned(_lines(file, digest.update), LARGEST)
    _keep(b"\n".join(kept), path, name, into)
    into.hashes[name] = digest.hexdigest()
    into.thinned[name] = total


def _lines(file: BinaryIO, seen: Callable[[bytes], object]) -> Iterator[bytes]:
    """One that is endless is cut off, and so is no row."""
    while piece := file.readline(LONGEST):
        seen(piece)
        yield piece.rstrip(b"\n")
        while len(piece) == LONGEST and not piece.endswith(b"\n"):
            piece = file.readline(LONGEST)
            seen(piece)


def thinned(lines: Iterable[bytes], most: int) -> tuple[list[bytes], int]:
    """Every n-th line, the head, and where a gate moved, in `most` bytes; and how many lines there are.

    Where a run was resumed its later rows take the place of the earlier ones, as if all were there.
    """
    kept: list[tuple[int, int, bytes, bool]] = []  # number, iteration, line, whether it must stay
    every, size, total, newest = 1, 0, 0, -1
    for number, line in enumerate(lines):
        total += 1
        found = _AT.search(line)
        at = int(found[1]) if found else newest
        if found and at <= newest:
            while kept and kept[-1][1] >= at:
                size -= len(kept.pop()[2])
        newest = at
        moved = any(word in line for word in _MOVES)
        if not moved and number % every and found:
            continue
        kept.append((number, at, line, moved))
        size += len(line)
        while size > most and len(kept) > 2:
            every *= 2
            kept = _halved(kept, every, most)
            size = sum(len(each[2]) for each in kept)
    return [line for _, _, line, _ in kept], total


def _halved(kept: list[tuple[int, int, bytes, bool]], every: int, most: int) -> list[tuple[int, int, bytes, bool]]:
    found = [each for place, each in enumerate(kept) if place == 0 or each[3] or each[0] % every == 0]
    # moves alone may be too many: then they are halved too
    return found if sum(len(each[2]) for each in found) <= 0.75 * most else [kept[0], *kept[1::2]]
