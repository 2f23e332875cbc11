"""The register: which campaigns this user has on this machine. One small file each in `MUSTER_HOME/campaigns`.

A file is named like the campaign's id, which its log begins with: a copy has the same, and does not take its place.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

FOLDER = "campaigns"
LOG = "decisions.jsonl"
_ID_LENGTH = 12
_LONGEST_LINE = 1 << 20
_MOST_NEIGHBOURS = 1000  # folders beside the old one in which a renamed campaign is looked for


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    path: str  # of the campaign's folder, without links
    inode: int  # of its .muster
    name: str
    at: str  # when it was registered


@dataclass(frozen=True, slots=True)
class Unread:
    """An entry that can't be read: nobody knows which campaign it stands for."""

    id: str
    path: str  # of the entry itself
    why: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a registered campaign lies now."""

    standing: Literal["there", "moved", "gone", "unread"]
    root: Path | None = None  # None: gone, or it can't be told
    why: str = ""


def campaign_id(state: Path) -> str | None:
    """Of the campaign whose .muster this is; None: nothing was decided in it yet."""
    try:
        with open(state / LOG, "rb") as log:
            line = log.readline(_LONGEST_LINE)
    except FileNotFoundError:
        return None
    return hashlib.sha256(line).hexdigest()[:_ID_LENGTH] if line.endswith(b"\n") else None


def register(home: Path, state: Path, name: str, at: str) -> None:
    """Enters it, or where it lies now. One that is still where the register says keeps its place against a copy."""
    found = campaign_id(state)
    if found is None:
        return
    path, here = home / FOLDER / f"{found}.json", state.resolve()
    made = Entry(found, str(here.parent), here.stat().st_ino, name, at)
    known = _read(path)
    if isinstance(known, Entry):
        if (known.path, known.inode, known.name) == (made.path, made.inode, made.name):
            return
        if known.path != made.path and known.inode != made.inode and place(known).standing == "there":
            return
    else:
        _drop_predecessors(home, made)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(json.dumps(asdict(made)).encode())  # ASCII: a path may hold bytes that are no text
    partial.replace(path)


def follow(home: Path, state: Path) -> None:
    """It was moved: the entry leads to where it lies now. One that is not registered stays so."""
    found = campaign_id(state)
    known = _read(home / FOLDER / f"{found}.json") if found else None
    if isinstance(known, Entry):
        register(home, state, known.name, known.at)


def _drop_predecessors(home: Path, made: Entry) -> None:
    """Of campaigns that lay in this folder before it: their .muster was deleted."""
    for known in entries(home):
        if isinstance(known, Entry) and known.path == made.path and place(known).standing == "gone":
            forget(home, known)


def entries(home: Path) -> list[Entry | Unread]:
    """By path. Raises OSError where the register can't be read; no register at all is an empty one."""
    try:
        files = sorted((home / FOLDER).iterdir())
    except FileNotFoundError:
        return []
    known = [found for file in files if file.suffix == ".json" and (found := _read(file)) is not None]
    return sorted(known, key=lambda each: each.path)


def forget(home: Path, entry: Entry | Unread) -> None:
    with contextlib.suppress(FileNotFoundError):
        (home / FOLDER / f"{entry.id}.json").unlink()


def place(entry: Entry) -> Place:
    """Where it lies now: in its place, renamed beside it, or nowhere. Only what is surely not there is gone."""
    root = Path(entry.path)
    try:
        if campaign_id(root / ".muster") == entry.id:
            return Place("there", root)
        moved = _renamed(entry, root.parent)
    except OSError as error:
        return Place("unread", None, error.strerror or str(error))
    return Place("moved", moved) if moved else Place("gone")


def _renamed(entry: Entry, parent: Path) -> Path | None:
    """`mv old new` in one folder keeps the inode."""
    for folder, _ in zip(_folders(parent), range(_MOST_NEIGHBOURS), strict=False):
        state = folder / ".muster"
        with contextlib.suppress(OSError):
            if state.stat().st_ino == entry.inode and campaign_id(state) == entry.id:
                return folder
    return None


def _folders(parent: Path) -> Iterator[Path]:
    try:
        with os.scandir(parent) as found:
            yield from (Path(each.path) for each in found if each.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return


def _read(file: Path) -> Entry | Unread | None:
    """None: there is none."""
    try:
        told = json.loads(file.read_bytes())
        return Entry(file.stem, str(told["path"]), int(told["inode"]), str(told["name"]), str(told["at"]))
    except FileNotFoundError:
        return None
    except OSError as error:
        return Unread(file.stem, str(file), error.strerror or str(error))
    except (ValueError, KeyError, TypeError, RecursionError):
        return Unread(file.stem, str(file), "it is damaged")
