"""SHA-256 of files and folders, remembered while the file system vouches that a file is the same.

What is remembered is kept in `hashes.json`. A file is the same while its size, both its times and its inode are. Times
are coarse: a file that changed a moment before it was read might change once more under the same time, so its hash is
told and not remembered.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from muster.files.atomic_write import write_atomically
from muster.files.safe_open import open_regular_raw, read_regular_file
from muster.model.campaign_location import CampaignLocation

HASH_CACHE_FILE = "hashes.json"
RACY_S = 2.0  # coarse file times, and clocks of file servers that are a little off
SMALL_FILE_BYTES = 16 << 10  # bytes: reading so few costs no more than looking them up
MOST_HASHES = 20_000  # files that are remembered
HASH_CHUNK = 1 << 20
LARGEST_HASH_CACHE = 64 << 20  # bytes of what is remembered
DEEPEST_HASHED_FOLDER = 64  # folders within folders

FileFingerprint = tuple[int, int, int, int]  # size, mtime_ns, ctime_ns, inode


class HashCache:
    """Reads a file once, however often it is asked for. Call `save` when all is asked."""

    def __init__(self, folder: Path, *, now: Callable[[], float] = time.time) -> None:
        self._file = folder / HASH_CACHE_FILE
        self._root = str(folder.absolute().parent)
        self._now = now
        self._known: dict[str, tuple[FileFingerprint, str]] | None = None  # None: not loaded yet
        self._used: set[str] = set()
        self._changed = False

    def sha256(self, path: str | Path) -> str | None:
        """Of a file's bytes, or of a folder's names and hashes; None: it is gone, can't be read, or is neither."""
        name = os.path.abspath(path)  # noqa: PTH100 - a link's target may change: the name that was asked for counts
        try:
            facts = os.stat(name)  # noqa: PTH116
            if stat.S_ISDIR(facts.st_mode):
                return self._folder(name, 0)
            return self._of_file(name, facts) if stat.S_ISREG(facts.st_mode) else None
        except OSError:
            return None

    def save(self) -> None:
        """Atomically. A disk that can't be written costs time later and no hash."""
        if not self._changed or self._known is None or not _is_own_folder(self._file.parent):
            return
        kept = self._kept(self._known)
        where = CampaignLocation(self._root)
        data = {where.inside(name): [*same, digest] for name, (same, digest) in kept.items()}
        with contextlib.suppress(OSError):
            write_atomically(self._file, json.dumps({"muster": 1, "files": data}))  # ASCII: odd names are spelled out
            self._changed = False

    def _kept(self, known: dict[str, tuple[FileFingerprint, str]]) -> dict[str, tuple[FileFingerprint, str]]:
        """All; or, of too many, those that were asked for, the largest first: they cost most to read again."""
        if len(known) <= MOST_HASHES:
            return known
        ranked = sorted(known, key=lambda name: (name in self._used, known[name][0][0]), reverse=True)
        return {name: known[name] for name in ranked[:MOST_HASHES]}

    def _of_file(self, name: str, facts: os.stat_result) -> str:
        known = self._load()
        self._used.add(name)
        found = known.get(name)
        if found and found[0] == _file_fingerprint(facts):
            return found[1]
        digest, same = _hash_file(name, self._now)
        if same is not None and same[0] > SMALL_FILE_BYTES:
            known[name] = (same, digest)
            self._changed = True
        elif known.pop(name, None):
            self._changed = True
        return digest

    def _folder(self, name: str, depth: int) -> str | None:
        """Over sorted names, kinds and hashes. One file that can't be read, and nothing is known of the whole."""
        import hashlib

        if depth > DEEPEST_HASHED_FOLDER:
            return None
        digest = hashlib.sha256()
        with os.scandir(name) as entries:
            ordered = sorted(entries, key=lambda entry: os.fsencode(entry.name))
        for entry in ordered:
            told = self._entry(entry, depth)
            if told is None:
                return None
            digest.update(os.fsencode(entry.name) + b"\0" + told + b"\n")
        return digest.hexdigest()

    def _entry(self, entry: os.DirEntry[str], depth: int) -> bytes | None:
        """A link to a file counts as the file; any other link as its text: it might lead round in a circle."""
        if entry.is_dir(follow_symlinks=False):
            inner = self._folder(entry.path, depth + 1)
            return None if inner is None else b"folder " + inner.encode()
        if entry.is_file():
            return b"file " + self._of_file(entry.path, entry.stat()).encode()
        if entry.is_symlink():
            return b"link " + os.fsencode(os.readlink(entry.path))  # noqa: PTH115
        return b"other"  # a pipe or a socket: to open one may wait for ever

    def _load(self) -> dict[str, tuple[FileFingerprint, str]]:
        if self._known is None:
            self._known = _load_hash_cache(self._file, CampaignLocation(self._root))
        return self._known


def _is_own_folder(folder: Path) -> bool:
    try:
        return folder.stat().st_uid == os.geteuid()
    except OSError:
        return False


def _hash_file(name: str, now: Callable[[], float]) -> tuple[str, FileFingerprint | None]:
    """The hash, and what the file is known by; None: it changed while it was read, or a moment before."""
    import hashlib

    digest = hashlib.sha256()
    with open_regular_raw(name) as file:
        before, began = os.fstat(file.fileno()), now()
        buffer = bytearray(HASH_CHUNK)
        view = memoryview(buffer)
        while count := file.readinto(view):
            digest.update(view[:count])
        after = os.fstat(file.fileno())
    calm = max(before.st_mtime, before.st_ctime) < began - RACY_S
    return digest.hexdigest(), _file_fingerprint(before) if calm and _file_fingerprint(before) == _file_fingerprint(
        after
    ) else None


def _file_fingerprint(facts: os.stat_result) -> FileFingerprint:
    return (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)


def _load_hash_cache(file: Path, where: CampaignLocation) -> dict[str, tuple[FileFingerprint, str]]:
    """What was saved; a damaged file says nothing."""
    try:
        rows = json.loads(read_regular_file(file, LARGEST_HASH_CACHE))["files"]
        return {
            where.here(str(name)): ((int(size), int(mtime), int(ctime), int(inode)), str(digest))
            for name, (size, mtime, ctime, inode, digest) in rows.items()
        }
    except (OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
