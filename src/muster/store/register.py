"""The register: which campaigns this user has on this machine. One small file each in `MUSTER_HOME/campaigns`.

A file is named like the campaign's id, which its log begins with: a copy has the same, and does not take its place.

Entry and campaign share a random key, which lies in the campaign's state too: a state that this user's `up` did not
enter has none that fits, whatever else it claims.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from muster.ports.plain_files import open_plain
from muster.ports.write_files import make_private_folder, write_atomically
from muster.store.place import read_beginning

FOLDER = "campaigns"
KEY = "registered"  # in the state
_KEY_BYTES = 16
_ID_LENGTH = 12
_MOST_NEIGHBOURS = 1000  # folders beside the old one in which a renamed campaign is looked for


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    path: str  # of the campaign's folder, without links
    inode: int  # of its .muster
    name: str
    at: str  # when it was registered
    key: str = ""  # as in its state; empty: an earlier version entered it


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
        line = read_beginning(state)
    except FileNotFoundError:
        return None
    return _sha256(line)[:_ID_LENGTH] if line.endswith(b"\n") else None


def _sha256(data: bytes) -> str:
    """Without OpenSSL, which takes `status` longer to load than all the rest of this."""
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:  # another Python has it elsewhere
        from hashlib import sha256
    return str(sha256(data).hexdigest())


def register(home: Path, state: Path, name: str, at: str, *, proven: bool = False, moving: bool = True) -> None:
    """Enters it, or where it lies now. One that is still where the register says keeps its place against a copy.

    `moving`: also where it was moved since it was entered; only `up` does that.

    It gets a new key, unless it is the one that is entered, or is `proven` to have been started here.
    """
    found = campaign_id(state)
    if found is None:
        return
    path, here = home / FOLDER / f"{found}.json", state.resolve()
    key, inode = read_key(state), here.stat().st_ino
    known = _read(path)
    if isinstance(known, Entry):
        if known.path != str(here.parent) and known.inode != inode and place(known).standing == "there":
            return
        if known.path != str(here.parent) and not moving and is_same(known, state):
            return
        proven = proven or is_same(known, state)
    else:
        _drop_predecessors(home, here.parent)
    key = key if key and proven else _new_key(state)
    made = Entry(found, str(here.parent), inode, name, at, key)
    if isinstance(known, Entry) and replace(known, at=at) == made:
        return
    make_private_folder(path.parent, parents=True)
    write_atomically(path, json.dumps(asdict(made)))  # ASCII: a path may hold bytes that are no text


def entry_of(home: Path, state: Path) -> Entry | None:
    """What is entered under the id that this state claims."""
    found = campaign_id(state)
    known = _read(home / FOLDER / f"{found}.json") if found else None
    return known if isinstance(known, Entry) else None


def has_entry(home: Path, state: Path) -> bool:
    """Whether there is one, whatever it says. Of a state that is not there, too: nothing could be entered."""
    found = campaign_id(state)
    return found is None or os.path.lexists(home / FOLDER / f"{found}.json")


def fits(entry: Entry, state: Path) -> bool:
    """Whether this state is the one that was entered, where it was entered."""
    return entry.path == str(state.resolve().parent) and is_same(entry, state)


def is_same(entry: Entry, state: Path) -> bool:
    """Whether it is the one that was entered, wherever it lies now: the same folder with the same key."""
    return bool(entry.key) and entry.key == read_key(state) and entry.inode == state.stat().st_ino


def is_of_earlier_version(entry: Entry, state: Path) -> bool:
    """Entered before there were keys, and still in its place."""
    here = state.resolve()
    return not entry.key and (entry.path, entry.inode) == (str(here.parent), here.stat().st_ino)


def read_key(state: Path) -> str:
    """Empty: it has none that this user wrote."""
    try:
        fd = open_plain(str(state / KEY))
    except OSError:
        return ""
    try:
        text = os.read(fd, 2 * _KEY_BYTES + 2).decode("ascii", "replace").strip()
        return text if os.fstat(fd).st_uid == os.geteuid() and len(text) == 2 * _KEY_BYTES else ""
    finally:
        os.close(fd)


def _new_key(state: Path) -> str:
    key = os.urandom(_KEY_BYTES).hex()
    write_atomically(state / KEY, key + "\n")
    return key


def _drop_predecessors(home: Path, root: Path) -> None:
    """Of campaigns that lay in this folder before it: their .muster was deleted."""
    for known in entries(home):
        if isinstance(known, Entry) and known.path == str(root) and place(known).standing == "gone":
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
    """None: there is none. One that somebody else may have written is no entry of this user."""
    try:
        with open(open_plain(str(file)), "rb") as opened:
            facts = os.fstat(opened.fileno())
            if facts.st_uid != os.geteuid() or facts.st_mode & stat.S_IWOTH:
                return Unread(file.stem, str(file), "others may have written it")
            told = json.loads(opened.read())
        key = str(told.get("key", ""))
        return Entry(file.stem, str(told["path"]), int(told["inode"]), str(told["name"]), str(told["at"]), key)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Unread(file.stem, str(file), error.strerror or str(error))
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
        return Unread(file.stem, str(file), "it is damaged")
