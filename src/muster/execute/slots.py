"""Slot leases of all campaigns with one home: a flock on `$MUSTER_HOME/slots/<name>`, inherited by shim and run.

The kernel frees it when the last of them ends.

The file says who took the lease last. That is for people, and for whoever asks whose it is; the lock alone counts.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shlex
import stat
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from muster.domain.campaign import Slots
from muster.domain.errors import UsageError
from muster.domain.terminal_text import blanked
from muster.execute.gpus import Gpu
from muster.execute.slot_folder import closed_slots
from muster.ports.executor import Lease, Slot
from muster.ports.plain_files import NotPlain, open_plain
from muster.ports.write_files import PRIVATE_FILE, make_private_folder, make_public_folder

TRIES = 5  # a file that is deleted between two looks at it is made anew
OWN_FOLDERS = ("campaigns", "lost")  # in a home: of one user
SHARED_FOLDER, SHARED_FILE = 0o1777, 0o666  # whatever the umask: a second user must be able to ask and to take
LONGEST = 4096
KEPT = "kept"  # in a file that a controller holds for a run: the run itself may hold one that was deleted


@dataclass(frozen=True, slots=True)
class Holder:
    """Who took a lease last."""

    campaign: str  # its folder
    cell: str
    n: int
    token: str

    def __str__(self) -> str:
        """For people. Other users may have written it: nothing that a terminal would obey."""
        told = f"{self.cell} of {self.campaign}" if self.cell else "somebody"
        return blanked(told[:300], "?")


class Obstacle(Holder):
    """Something that is no lease lies where the lease should be; `campaign` is its path."""

    __slots__ = ()

    def __str__(self) -> str:
        told = (
            f"nobody who can be told: {self.campaign} is no plain file, or has a second name. Nothing was written to it"
        )
        told += f"; `rm -r {shlex.quote(self.campaign)}` lets the slot be used again"
        return blanked(told, "?")


class Closed(Obstacle):
    """A lease that this user may not even open; `campaign` is its path."""

    __slots__ = ()

    def __str__(self) -> str:
        shown = "".join(sign if sign.isprintable() else "?" for sign in shlex.quote(self.campaign))
        try:
            whose = f"uid {os.stat(self.campaign).st_uid}"  # noqa: PTH116 - nothing but a look
        except OSError:
            whose = "somebody else"
        return (
            f"nobody who can be told: {shown} belongs to {whose} and may not be opened by you (uid {os.geteuid()}). "
            f"Ask its owner for `chmod a+rw {shown}`, with slots/ 1777 and all folders above a+x; "
            "or use a MUSTER_HOME of your own, which does not coordinate with theirs"
        )


NOBODY_KNOWS = Holder("", "", 0, "")


def home() -> Path:
    """Of the slots. One that is given may be shared by several users; the usual one is this user's alone."""
    given = os.environ.get("MUSTER_HOME")
    return Path(given).absolute() if given else usual_home()


def own_home() -> Path:
    """Of what concerns this user alone, as the register: never in a folder of somebody else, whatever is given.

    Mended where it is ours: nobody else may replace what lies in it.
    """
    found = home()
    try:
        facts = found.stat()
        if facts.st_uid != os.geteuid() or any(_is_of_another(found / name) for name in OWN_FOLDERS):
            return usual_home()
        open_to = facts.st_mode & (0o022 if os.environ.get("MUSTER_HOME") else 0o077)
        if open_to and not (os.environ.get("MUSTER_HOME") and facts.st_mode & stat.S_ISVTX):
            found.chmod(stat.S_IMODE(facts.st_mode) & ~open_to)
    except FileNotFoundError:
        return found
    except OSError:
        return usual_home()
    return found


def usual_home() -> Path:
    try:
        return Path.home() / ".local" / "state" / "muster"
    except RuntimeError:
        raise UsageError(
            f"your home folder can't be told: HOME is not set, and nobody here knows uid {os.getuid()}",
            where="HOME",
            hint="set HOME to a folder that you may write to",
        ) from None


def make_home() -> None:
    """Others may enter one that is given, as far as our umask lets them, and put nothing into it but slots."""
    path = home()
    if path.is_dir():
        return
    if os.environ.get("MUSTER_HOME"):
        make_public_folder(path, parents=True)
        with contextlib.suppress(OSError):
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o022)
    else:
        make_private_folder(path, parents=True)


def _is_of_another(path: Path) -> bool:
    try:
        return path.lstat().st_uid != os.geteuid()
    except FileNotFoundError:
        return False


class SlotHouse:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lease(self, slots: Sequence[Slot], *, again: bool = False) -> Lease | None:
        """All of them or none; never waits. The order of the names keeps two takers from taking halves for ever.

        `again`: for a run that has them already, whatever became of the files.
        """
        fds: list[int] = []
        try:
            for slot in sorted(slots, key=lambda slot: slot.name):
                fds.append(self._taken(slot.name, again))
        except PermissionError as error:
            close(fds)
            if error.filename and os.path.lexists(error.filename):
                return None  # `holder` tells
            told = f"slots can't be made here: {closed_slots(self.folder) or Closed(str(self.folder), '', 0, '')}"
            raise PermissionError(errno.EACCES, told, str(self.folder)) from None
        except (BlockingIOError, NotPlain):  # what is no lease can't be had: `holder` tells
            close(fds)
            return None
        except BaseException:
            close(fds)
            raise
        return Lease(tuple(slots), tuple(fds))

    def _taken(self, name: str, again: bool) -> int:
        """The locked file, which is the one that everybody else asks for."""
        path = self.folder / name
        for _ in range(TRIES):
            fd = self._open(path)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(fd, path):
                    if not again and _is_doubtful(fd) and is_held_though_deleted(path):
                        raise BlockingIOError(errno.EAGAIN, "a run holds the file that lay here before", str(path))
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
        raise OSError(errno.ENOENT, "it is deleted again and again", str(path))

    def _open(self, path: Path) -> int:
        """Not created where it exists: the kernel refuses that for another user's file in a folder that all may use."""
        try:
            return _open(path, os.O_RDWR)
        except FileNotFoundError:
            self._make_folder()
        shared = bool(os.environ.get("MUSTER_HOME"))
        mode = SHARED_FILE if shared else PRIVATE_FILE
        fd = _unshared(open_plain(str(path), os.O_CREAT | os.O_RDWR, mode), path)
        with contextlib.suppress(OSError):  # another user's, made in this very moment
            if shared:
                os.fchmod(fd, mode)
        return fd

    def _make_folder(self) -> None:
        if self.folder.is_dir():
            return
        if not os.environ.get("MUSTER_HOME"):  # a place that somebody chose may be shared; one's own home is not
            make_private_folder(self.folder, parents=True)
            return
        if self.folder.parent == home():
            make_home()
        self.folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            self.folder.chmod(SHARED_FOLDER)

    def sign(self, lease: Lease, holder: Holder, *, kept: bool = False) -> None:
        """Says whose the lease is. Not synced, and never refused: the lock alone counts."""
        data = json.dumps({**asdict(holder), KEPT: True} if kept else asdict(holder)).encode()[:LONGEST]
        for fd in lease.fds:
            with contextlib.suppress(OSError):  # whole at every moment: what was longer is blanked before it is cut off
                if os.fstat(fd).st_nlink > 1:  # somebody else's file by now
                    continue
                os.pwrite(fd, data.ljust(os.fstat(fd).st_size), 0)
                os.ftruncate(fd, len(data))

    def holder(self, name: str) -> Holder | None:
        """Who holds it; None: nobody does."""
        try:
            fd = _open(self.folder / name, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except NotPlain:
            return Obstacle(str(self.folder / name), "", 0, "")
        except PermissionError:
            return Closed(self._closed_at(name), "", 0, "")
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
        except BlockingIOError:
            return _told(os.pread(fd, LONGEST, 0))
        finally:
            os.close(fd)

    def _closed_at(self, name: str) -> str:
        """The outermost of home, folder and file that can't be used."""
        for path in (self.folder.parent, self.folder):
            if path.exists() and not os.access(path, os.X_OK, effective_ids=True):
                return str(path)
        return str(self.folder / name)

    def signed_for_s(self, name: str) -> float:
        """How long ago its holder was written down, by the clock on the wall; 0: there is none, or it can't be told."""
        try:
            return abs(time.time() - (self.folder / name).lstat().st_mtime)
        except OSError:
            return 0.0

    def uses_gpu(self, index: int) -> bool:
        """Whether a run of Muster, of any campaign, has a share of this GPU."""
        return any(self.holder(file.name) for file in self.folder.glob(f"gpu{index}.*"))

    def holders(self) -> dict[str, Holder]:
        """Slots that somebody holds, of whatever campaign."""
        try:
            names = sorted(file.name for file in self.folder.iterdir())
        except FileNotFoundError:
            return {}
        return {name: holder for name in names if (holder := self.holder(name))}

    def leased(self) -> list[str]:
        return list(self.holders())


def _open(path: Path, flags: int) -> int:
    """For a lock it is enough to be allowed to read. Raises NotPlain."""
    try:
        fd = open_plain(str(path), flags)
    except PermissionError:
        fd = open_plain(str(path))
    return _unshared(fd, path)


def _unshared(fd: int, path: Path) -> int:
    """A file with a second name is somebody's: to sign it would overwrite that one."""
    if os.fstat(fd).st_nlink <= 1:
        return fd
    os.close(fd)
    raise NotPlain(errno.EMLINK, "it has a second name", str(path))


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


def _is_doubtful(fd: int) -> bool:
    """Whether a run may hold another file of this name: this one is new, or was kept in such a run's place."""
    data = os.pread(fd, LONGEST, 0)
    return not data.strip() or f'"{KEPT}"'.encode() in data


def is_held_though_deleted(path: Path) -> bool:
    """Whether a process that we may look at holds the lock of a file that lay here and was deleted.

    Raises OSError where we can't look for another reason: whom we could not look at may hold it.
    """
    gone = f"{path.parent.resolve() / path.name} (deleted)"
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        unseen = (FileNotFoundError, ProcessLookupError, PermissionError)
        with contextlib.suppress(*unseen), os.scandir(f"/proc/{pid}/fd") as descriptors:
            if any(_links_to(each.path, gone) and _is_locked(each.path) for each in descriptors):
                return True
    return False


def _links_to(path: str, target: str) -> bool:
    try:
        return os.readlink(path) == target  # noqa: PTH115
    except OSError:
        return False


def _is_locked(path: str) -> bool:
    """Who only inherited it may have outlived the lease: a lock that was given back is nobody's."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True  # it can't be asked
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


def _told(data: bytes) -> Holder:
    """Others may write what they like into it."""
    try:
        found = json.loads(data)
        return Holder(str(found["campaign"]), str(found["cell"]), int(found["n"]), str(found["token"]))
    except (ValueError, OverflowError, KeyError, TypeError, RecursionError):
        return NOBODY_KNOWS


def close(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


def slots_of(wanted: Slots, found: Sequence[Gpu]) -> list[Slot]:
    """The campaign's slots, free or not. A machine without GPUs has only those of CPUs."""
    indexes = [gpu.index for gpu in found] if wanted.gpus is None else list(wanted.gpus)
    gpus = [Slot(f"gpu{index}.{share}", "gpu", index) for share in range(wanted.per_gpu) for index in indexes]
    return gpus + [Slot(f"cpu{number}", "cpu") for number in range(wanted.cpus)]


def is_slot_of(wanted: Slots, name: str) -> bool:
    """Whether a campaign may use the slot of this name, as far as its file tells."""
    kind, number = name[:3], name[3:].partition(".")[0]
    if not number.isdigit():
        return False
    if kind == "cpu":
        return int(number) < wanted.cpus
    return kind == "gpu" and (wanted.gpus is None or int(number) in wanted.gpus)
