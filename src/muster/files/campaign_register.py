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

from muster.files.atomic_write import make_private_folder, write_atomically
from muster.files.safe_open import open_plain_file
from muster.files.state_folder import read_log_beginning
from muster.text.phrases import phrase

REGISTER_FOLDER = "campaigns"
REGISTER_KEY_FILE = "registered"  # in the state
_KEY_BYTES = 16
_ID_LENGTH = 12
_MOST_NEIGHBOURS = 1000  # folders beside the old one in which a renamed campaign is looked for


@dataclass(frozen=True, slots=True)
class RegisterEntry:
    id: str
    path: str  # of the campaign's folder, without links
    inode: int  # of its .muster
    name: str
    at: str  # when it was registered
    key: str = ""  # as in its state; empty: an earlier version entered it


@dataclass(frozen=True, slots=True)
class UnreadEntry:
    """An entry that can't be read: nobody knows which campaign it stands for."""

    id: str
    path: str  # of the entry itself
    why: str


@dataclass(frozen=True, slots=True)
class RegisteredPlace:
    """Where a registered campaign lies now."""

    standing: Literal["there", "moved", "gone", "unread"]
    root: Path | None = None  # None: gone, or it can't be told
    why: str = ""


def read_campaign_id(state: Path) -> str | None:
    """Of the campaign whose .muster this is; None: nothing was decided in it yet."""
    try:
        line = read_log_beginning(state)
    except FileNotFoundError:
        return None
    return _sha256_hexdigest(line)[:_ID_LENGTH] if line.endswith(b"\n") else None


def _sha256_hexdigest(data: bytes) -> str:
    """Without OpenSSL, which takes `status` longer to load than all the rest of this."""
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:  # another Python has it elsewhere
        from hashlib import sha256
    return str(sha256(data).hexdigest())


def register_campaign(
    home: Path, state: Path, name: str, at: str, *, proven: bool = False, moving: bool = True
) -> None:
    """Enters it, or where it lies now. One that is still where the register says keeps its place against a copy.

    `moving`: also where it was moved since it was entered; only `up` does that.

    It gets a new key, unless it is the one that is entered, or is `proven` to have been started here.
    """
    found = read_campaign_id(state)
    if found is None:
        return
    path, here = home / REGISTER_FOLDER / f"{found}.json", state.resolve()
    key, inode = read_register_key(state), here.stat().st_ino
    known = _read_register_entry(path)
    if isinstance(known, RegisterEntry):
        if (
            known.path != str(here.parent)
            and known.inode != inode
            and locate_registered_campaign(known).standing == "there"
        ):
            return
        if known.path != str(here.parent) and not moving and is_same(known, state):
            return
        proven = proven or is_same(known, state)
    else:
        _drop_former_entries(home, here.parent)
    key = key if key and proven else _write_register_key(state)
    made = RegisterEntry(found, str(here.parent), inode, name, at, key)
    if isinstance(known, RegisterEntry) and replace(known, at=at) == made:
        return
    make_private_folder(path.parent, parents=True)
    write_atomically(path, json.dumps(asdict(made)))  # ASCII: a path may hold bytes that are no text


def find_register_entry(home: Path, state: Path) -> RegisterEntry | None:
    """What is entered under the id that this state claims."""
    found = read_campaign_id(state)
    known = _read_register_entry(home / REGISTER_FOLDER / f"{found}.json") if found else None
    return known if isinstance(known, RegisterEntry) else None


def has_entry(home: Path, state: Path) -> bool:
    """Whether there is one, whatever it says. Of a state that is not there, too: nothing could be entered."""
    found = read_campaign_id(state)
    return found is None or os.path.lexists(home / REGISTER_FOLDER / f"{found}.json")


def is_registered_state(entry: RegisterEntry, state: Path) -> bool:
    """Whether this state is the one that was entered, where it was entered."""
    return entry.path == str(state.resolve().parent) and is_same(entry, state)


def is_same(entry: RegisterEntry, state: Path) -> bool:
    """Whether it is the one that was entered, wherever it lies now: the same folder with the same key."""
    return bool(entry.key) and entry.key == read_register_key(state) and entry.inode == state.stat().st_ino


def is_keyless_entry(entry: RegisterEntry, state: Path) -> bool:
    """Entered before there were keys, and still in its place."""
    here = state.resolve()
    return not entry.key and (entry.path, entry.inode) == (str(here.parent), here.stat().st_ino)


def read_register_key(state: Path) -> str:
    """Empty: it has none that this user wrote."""
    try:
        fd = open_plain_file(str(state / REGISTER_KEY_FILE))
    except OSError:
        return ""
    try:
        text = os.read(fd, 2 * _KEY_BYTES + 2).decode("ascii", "replace").strip()
        return text if os.fstat(fd).st_uid == os.geteuid() and len(text) == 2 * _KEY_BYTES else ""
    finally:
        os.close(fd)


def _write_register_key(state: Path) -> str:
    key = os.urandom(_KEY_BYTES).hex()
    write_atomically(state / REGISTER_KEY_FILE, key + "\n")
    return key


def _drop_former_entries(home: Path, root: Path) -> None:
    """Of campaigns that lay in this folder before it: their .muster was deleted."""
    for known in list_register_entries(home):
        if (
            isinstance(known, RegisterEntry)
            and known.path == str(root)
            and locate_registered_campaign(known).standing == "gone"
        ):
            forget_register_entry(home, known)


def list_register_entries(home: Path) -> list[RegisterEntry | UnreadEntry]:
    """By path. Raises OSError where the register can't be read; no register at all is an empty one."""
    try:
        files = sorted((home / REGISTER_FOLDER).iterdir())
    except FileNotFoundError:
        return []
    known = [found for file in files if file.suffix == ".json" and (found := _read_register_entry(file)) is not None]
    return sorted(known, key=lambda each: each.path)


def forget_register_entry(home: Path, entry: RegisterEntry | UnreadEntry) -> None:
    with contextlib.suppress(FileNotFoundError):
        (home / REGISTER_FOLDER / f"{entry.id}.json").unlink()


def locate_registered_campaign(entry: RegisterEntry) -> RegisteredPlace:
    """Where it lies now: in its place, renamed beside it, or nowhere. Only what is surely not there is gone."""
    root = Path(entry.path)
    try:
        if read_campaign_id(root / ".muster") == entry.id:
            return RegisteredPlace("there", root)
        moved = _find_renamed_folder(entry, root.parent)
    except OSError as error:
        return RegisteredPlace("unread", None, error.strerror or str(error))
    return RegisteredPlace("moved", moved) if moved else RegisteredPlace("gone")


def _find_renamed_folder(entry: RegisterEntry, parent: Path) -> Path | None:
    """`mv old new` in one folder keeps the inode."""
    for folder, _ in zip(_neighbour_folders(parent), range(_MOST_NEIGHBOURS), strict=False):
        state = folder / ".muster"
        with contextlib.suppress(OSError):
            if state.stat().st_ino == entry.inode and read_campaign_id(state) == entry.id:
                return folder
    return None


def _neighbour_folders(parent: Path) -> Iterator[Path]:
    try:
        with os.scandir(parent) as found:
            yield from (Path(each.path) for each in found if each.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return


def _read_register_entry(file: Path) -> RegisterEntry | UnreadEntry | None:
    """None: there is none. One that somebody else may have written is no entry of this user."""
    try:
        with open(open_plain_file(str(file)), "rb") as opened:
            facts = os.fstat(opened.fileno())
            if facts.st_uid != os.geteuid() or facts.st_mode & stat.S_IWOTH:
                return UnreadEntry(file.stem, str(file), phrase("files.written_by_others"))
            told = json.loads(opened.read())
        key = str(told.get("key", ""))
        return RegisterEntry(file.stem, str(told["path"]), int(told["inode"]), str(told["name"]), str(told["at"]), key)
    except FileNotFoundError:
        return None
    except OSError as error:
        return UnreadEntry(file.stem, str(file), error.strerror or str(error))
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
        return UnreadEntry(file.stem, str(file), phrase("files.entry_damaged"))
