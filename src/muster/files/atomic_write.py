"""Files that are written whole or not at all, never through a link, and never under a name that others can guess.

What lies in `.muster` is private, whatever the umask. What is for people follows the umask of who asked for it. A
controller works under 077 itself and is told that umask (`work_privately`): `up` records it with the environment.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from muster.files.crash_points import reach_crash_point
from muster.text.phrases import phrase

PRIVATE_FILE, PRIVATE_FOLDER, PRIVATE_UMASK = 0o600, 0o700, 0o077
PUBLIC_FILE, PUBLIC_FOLDER = 0o666, 0o777  # less the umask, as of any program
UMASK_VARIABLE = "MUSTER_UMASK"  # in the recorded environment; the shim reads it there
NAME_TRIES = 100
LONGEST_NAME = 200  # of a file: the random part and the pid must fit behind it
_of_the_caller: list[int] = []  # the umask of who asked, where this process works under another one


# -- umask


def use_private_umask(umask: int | None) -> None:
    """From now on this process makes nothing that others may read, but what is for people. None: as we were called."""
    ours = os.umask(PRIVATE_UMASK)
    known = _of_the_caller[0] if _of_the_caller else ours
    _of_the_caller[:] = [known if umask is None else umask]


def umask_of_caller() -> int:
    """Of who asked for what is written: the recorded one in a controller, else our own."""
    if _of_the_caller:
        return _of_the_caller[0]
    found = os.umask(PRIVATE_UMASK)
    os.umask(found)
    return found


def recorded_umask(environment: Mapping[str, str]) -> int | None:
    """None: an older Muster recorded none."""
    text = environment.get(UMASK_VARIABLE, "")
    return int(text, 8) if text and len(text) <= 4 and set(text) <= set("01234567") else None


# -- files


def write_atomically(
    path: Path, data: bytes | str, *, mode: int = PRIVATE_FILE, exact: bool = False, sync: bool = False, point: str = ""
) -> None:
    """Readers see all of it or what was there before. `exact`: that mode, no umask. `point`: reached before the rename.

    A link by that name is replaced, not followed.
    """
    partial = write_partial_file(path, data, mode=mode, exact=exact, sync=sync)
    try:
        if point:
            reach_crash_point(point)
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    if sync:
        sync_folder(path.parent)


def write_partial_file(
    path: Path, data: bytes | str, *, mode: int = PRIVATE_FILE, exact: bool = False, sync: bool = False
) -> Path:
    """The file beside its place, for whoever links or renames it. Nothing is left where it can't be written."""
    fd, partial = create_partial_file(path, mode=mode, exact=exact)
    try:
        with open(fd, "wb") as file:
            file.write(data.encode("utf-8") if isinstance(data, str) else data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    return partial


def create_partial_file(path: Path, *, mode: int = PRIVATE_FILE, exact: bool = False) -> tuple[int, Path]:
    """An empty file beside `path` that is nobody else's: `.<name>.<random>.<pid>`; who cleans up asks for the pid."""
    for _ in range(NAME_TRIES):
        partial = path.with_name(f".{path.name[:LONGEST_NAME]}.{os.urandom(6).hex()}.{os.getpid()}")
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(partial, flags, mode & PRIVATE_FILE if exact else mode)
        except FileExistsError:
            continue
        if exact:
            os.fchmod(fd, mode)
        elif _of_the_caller and mode & ~PRIVATE_FILE:
            os.fchmod(fd, mode & ~_of_the_caller[0])
        return fd, partial
    raise FileExistsError(errno.EEXIST, phrase("files.no_free_temporary_name"), str(path))


def mode_no_wider_than(*paths: Path) -> int:
    """The mode of a copy for people: what one of these keeps to its owner is not shown by it either."""
    mode = PUBLIC_FILE
    for path in paths:
        with contextlib.suppress(OSError):
            mode &= path.stat().st_mode | PRIVATE_FILE
    return mode


def private_opener(path: str, flags: int) -> int:
    """For `open`."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)


def open_to_append(path: Path, mode: int = PRIVATE_FILE, flags: int = os.O_WRONLY) -> int:
    """A plain file, made where there is none; neither a link nor a pipe that somebody put there."""
    fd = os.open(path, flags | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, phrase("files.no_plain_file"), str(path))
    return fd


# -- folders


def make_private_folder(path: Path, *, parents: bool = False, inside: Path | None = None) -> None:
    """Of this user alone. Raises NotADirectoryError where a link or a file lies there.

    `inside`: its parents are made, too, but never that one, which may have been moved or deleted.
    """
    try:
        path.mkdir(PRIVATE_FOLDER)
    except FileExistsError:
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, phrase("files.link_or_no_folder"), str(path)) from None
    except FileNotFoundError:
        if not (parents or inside) or path.parent in (path, inside):
            raise
        make_private_folder(path.parent, parents=parents, inside=inside)
        make_private_folder(path)


def make_public_folder(path: Path, *, parents: bool = False, inside: Path | None = None) -> None:
    """For people, or for a run: as they would have made it themselves. `inside` as of a private one."""
    try:
        path.mkdir(PUBLIC_FOLDER)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    except FileNotFoundError:
        if not (parents or inside) or path.parent in (path, inside):
            raise
        make_public_folder(path.parent, parents=parents, inside=inside)
        make_public_folder(path)
        return
    if _of_the_caller:
        path.chmod(PUBLIC_FOLDER & ~_of_the_caller[0])


def sync_folder(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
