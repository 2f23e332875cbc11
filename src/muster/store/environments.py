"""Recorded environments, `.muster/env/*.json`: they hold secrets, and go when no attempt needs them any more.

Who records one holds the folder's lock until the decision that names it is folded. Who deletes holds it alone, so an
environment that is on its way into the log is never taken for an old one. Killed between two, the rest goes next time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from muster.ports.crash import reach
from muster.ports.write_files import make_private_folder

FOLDER = "env"


@contextlib.contextmanager
def recording(state: Path) -> Iterator[None]:
    """While an environment is recorded and taken in, none is deleted."""
    folder = state / FOLDER
    make_private_folder(folder, inside=state.parent)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        yield
    finally:
        os.close(fd)


def has_old(state: Path) -> bool:
    """Cheap: whether there is more than the one that every campaign has."""
    return len(_files(state)) > 1


def forget_old(state: Path, needed: Callable[[], Collection[str] | None]) -> list[str]:
    """Deletes all but those that `needed` names; it is asked while nobody records one. None: it can't tell now."""
    try:
        fd = os.open(state / FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        names = needed()
        gone = [] if names is None else sorted(set(_files(state)) - set(names))
        for name in gone:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=fd)
            reach("env.forgotten")
        if gone:
            os.fsync(fd)
        return gone
    except BlockingIOError:
        return []  # somebody records one: there is a next time
    finally:
        os.close(fd)


def _files(state: Path) -> list[str]:
    try:
        return [name for name in os.listdir(state / FOLDER) if name.endswith(".json")]  # noqa: PTH208
    except OSError:
        return []
