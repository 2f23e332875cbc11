"""campaign.db as a file, which may be deleted under those who have it open.

SQLite keeps two files beside it, `-wal` and `-shm`, and finds them by name. Where the database was deleted and they
were not, whoever makes it anew would share them with whoever still has the old one open: each would spoil the other's.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from muster.ports.write_files import PRIVATE_FILE

PATIENCE_S = 2.0  # for another process that makes it; one that was stopped in the middle may never go on


def make_private_database(path: Path) -> None:
    """Empty, before SQLite makes one that others may read; it gives the files beside it the same mode."""
    with contextlib.suppress(OSError):  # SQLite has the words for what is wrong
        fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
        os.fchmod(fd, PRIVATE_FILE)
        os.close(fd)


def has_journal(path: Path) -> bool:
    """Ours never have one beside them. SQLite would obey it before anything else, and delete the file that it names."""
    return os.path.lexists(f"{path}-journal")


def discard_database(path: Path) -> None:
    """With the files beside it, unopened: the log tells all that was decided."""
    for suffix in ("-journal", "-wal", "-shm", ""):
        with contextlib.suppress(OSError):
            path.with_name(path.name + suffix).unlink()


class DatabaseFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: tuple[int, int] | None = None
        self._missed: float | None = None  # monotonic: since when another file, or none, is seen in its place

    @contextlib.contextmanager
    def made_by_one(self) -> Iterator[None]:
        """Where there is none yet: by one process at a time, without what a deleted one has left.

        One with a journal is none: it was never ours, or a kill of an earlier version's maker left it half made.
        """
        if not self._is_missing():
            yield
            return
        with self._locked_folder() as alone:
            if has_journal(self.path):
                discard_database(self.path)
            if alone and self._is_missing():
                for suffix in ("-wal", "-shm"):
                    with contextlib.suppress(OSError):
                        self.path.with_name(self.path.name + suffix).unlink()
            make_private_database(self.path)
            yield

    def remember(self) -> None:
        self._opened, self._missed = self._identity(), None

    def displaced(self) -> bool:
        """Whether another file, or none, lies where the opened one lay. A folder that has moved took it along."""
        found = self._identity()
        return found != self._opened and (found is not None or self.path.parent.is_dir())

    def displaced_s(self) -> float:
        """For how long, as far as was looked."""
        now = time.monotonic()
        self._missed = now if self._missed is None else self._missed
        return now - self._missed

    def _is_missing(self) -> bool:
        try:
            return self.path.stat().st_size == 0 or has_journal(self.path)  # its maker has it open, or was killed
        except OSError:
            return True

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    @contextlib.contextmanager
    def _locked_folder(self) -> Iterator[bool]:
        """False: somebody else makes it and does not come to an end."""
        try:
            fd = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            yield False
            return
        try:
            deadline = time.monotonic() + PATIENCE_S
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        yield False
                        return
                    time.sleep(0.002)
            yield True
        finally:
            os.close(fd)


def has_seen_decisions(path: Path) -> bool:
    """Whether it was folded from a log, by a look that changes nothing and ends soon, whoever made it."""
    if not path.is_file() or has_journal(path):
        return False
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            db.set_progress_handler(lambda: 1, 100_000)
            row = db.execute("SELECT value FROM meta WHERE key = 'applied'").fetchone()
            return row is not None and int(row[0]) > 0
    except (sqlite3.Error, ValueError, TypeError):
        return False
