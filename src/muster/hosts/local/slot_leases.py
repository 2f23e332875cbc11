"""Slot leases of all campaigns with one home: a flock on `$MUSTER_HOME/slots/<name>`, inherited by shim and run. The
kernel frees it when the last of them ends.

The file says who took the lease last. That is for people, and for whoever asks whose it is; the lock alone counts.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from muster.engine.ports.executor import ClosedLease, Lease, LeaseHolder, LeaseObstacle, Slot
from muster.engine.ports.machine import ClosedSlots, GpuDevice
from muster.files.atomic_write import PRIVATE_FILE, make_private_folder
from muster.files.muster_home import make_slots_home, slots_home
from muster.files.process_identity import is_flock_taken
from muster.files.safe_open import NotPlainFile, open_plain_file
from muster.model.campaign import Slots
from muster.text.phrases import phrase


def why_slots_are_closed(folder: Path) -> ClosedSlots | None:
    """None: it can be used or made."""
    at = next((path for path in (folder, *folder.parents) if os.path.exists(path)), Path("/"))
    if at.is_dir() and os.access(at, os.W_OK | os.X_OK, effective_ids=True):
        return None
    if at == folder and _holds_readable_lock(folder):
        return None
    what = phrase("hosts.not_writable") if at.is_dir() else phrase("hosts.is_no_folder")
    if at == folder:
        return ClosedSlots(
            phrase("hosts.slot_folder_unwritable", folder=folder, reason=what),
            _slot_folder_hint(f"chmod 1777 {shlex.quote(str(folder))}"),
        )
    what = phrase("hosts.path_not_writable", path=at) if at.is_dir() else phrase("hosts.path_is_no_folder", path=at)
    return ClosedSlots(
        phrase("hosts.slot_folder_missing", folder=folder, reason=what),
        _slot_folder_hint(f"mkdir -m 1777 {shlex.quote(str(folder))}"),
    )


def _slot_folder_hint(command: str) -> str:
    if not os.environ.get("MUSTER_HOME"):
        return phrase("hosts.set_muster_home")
    return phrase("hosts.ask_owner_of_muster_home", command=command)


def _holds_readable_lock(folder: Path) -> bool:
    """For a lock it is enough to be allowed to read."""
    with contextlib.suppress(OSError):
        return any(os.access(path, os.R_OK, effective_ids=True) for path in folder.iterdir())
    return False


LEASE_TRIES = 5  # a file that is deleted between two looks at it is made anew
SHARED_FOLDER, SHARED_FILE = 0o1777, 0o666  # whatever the umask: a second user must be able to ask and to take
LONGEST_LEASE_TEXT = 4096
KEPT_MARK = "kept"  # in a file that a controller holds for a run: the run itself may hold one that was deleted


NOBODY_KNOWS = LeaseHolder("", "", 0, "")


class SlotLeases:
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
            close_descriptors(fds)
            if error.filename and os.path.lexists(error.filename):
                return None  # `holder` tells
            told = phrase(
                "hosts.slots_closed_here",
                reason=why_slots_are_closed(self.folder) or ClosedLease(str(self.folder), "", 0, ""),
            )
            raise PermissionError(errno.EACCES, told, str(self.folder)) from None
        except (BlockingIOError, NotPlainFile):  # what is no lease can't be had: `holder` tells
            close_descriptors(fds)
            return None
        except BaseException:
            close_descriptors(fds)
            raise
        return Lease(tuple(slots), tuple(fds))

    def _taken(self, name: str, again: bool) -> int:
        """The locked file, which is the one that everybody else asks for."""
        path = self.folder / name
        for _ in range(LEASE_TRIES):
            fd = self._open(path)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_file_at(fd, path):
                    if not again and _may_have_other_holder(fd) and is_held_though_deleted(path):
                        raise BlockingIOError(errno.EAGAIN, phrase("hosts.slot_file_replaced"), str(path))
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
        raise OSError(errno.ENOENT, phrase("hosts.slot_deleted_again"), str(path))

    def _open(self, path: Path) -> int:
        """Not created where it exists: the kernel refuses that for another user's file in a folder that all may use."""
        try:
            return _open_lease_file(path, os.O_RDWR)
        except FileNotFoundError:
            self._make_folder()
        shared = bool(os.environ.get("MUSTER_HOME"))
        mode = SHARED_FILE if shared else PRIVATE_FILE
        fd = _refuse_hard_link(open_plain_file(str(path), os.O_CREAT | os.O_RDWR, mode), path)
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
        if self.folder.parent == slots_home():
            make_slots_home()
        self.folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            self.folder.chmod(SHARED_FOLDER)

    def sign(self, lease: Lease, holder: LeaseHolder, *, kept: bool = False) -> None:
        """Says whose the lease is. Not synced, and never refused: the lock alone counts."""
        data = json.dumps({**asdict(holder), KEPT_MARK: True} if kept else asdict(holder)).encode()[:LONGEST_LEASE_TEXT]
        for fd in lease.fds:
            with contextlib.suppress(OSError):  # whole at every moment: what was longer is blanked before it is cut off
                if os.fstat(fd).st_nlink > 1:  # somebody else's file by now
                    continue
                os.pwrite(fd, data.ljust(os.fstat(fd).st_size), 0)
                os.ftruncate(fd, len(data))

    def holder(self, name: str) -> LeaseHolder | None:
        """Who holds it; None: nobody does."""
        try:
            fd = _open_lease_file(self.folder / name, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except NotPlainFile:
            return LeaseObstacle(str(self.folder / name), "", 0, "")
        except PermissionError:
            return ClosedLease(self._closed_at(name), "", 0, "")
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
        except BlockingIOError:
            return _parse_lease_holder(os.pread(fd, LONGEST_LEASE_TEXT, 0))
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

    def holders(self) -> dict[str, LeaseHolder]:
        """Slots that somebody holds, of whatever campaign."""
        try:
            names = sorted(file.name for file in self.folder.iterdir())
        except FileNotFoundError:
            return {}
        return {name: holder for name in names if (holder := self.holder(name))}

    def leased(self) -> list[str]:
        return list(self.holders())


def _open_lease_file(path: Path, flags: int) -> int:
    """For a lock it is enough to be allowed to read. Raises NotPlainFile."""
    try:
        fd = open_plain_file(str(path), flags)
    except PermissionError:
        fd = open_plain_file(str(path))
    return _refuse_hard_link(fd, path)


def _refuse_hard_link(fd: int, path: Path) -> int:
    """A file with a second name is somebody's: to sign it would overwrite that one."""
    if os.fstat(fd).st_nlink <= 1:
        return fd
    os.close(fd)
    raise NotPlainFile(errno.EMLINK, phrase("hosts.file_has_second_name"), str(path))


def _is_file_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


def _may_have_other_holder(fd: int) -> bool:
    """Whether a run may hold another file of this name: this one is new, or was kept in such a run's place."""
    data = os.pread(fd, LONGEST_LEASE_TEXT, 0)
    return not data.strip() or f'"{KEPT_MARK}"'.encode() in data


def is_held_though_deleted(path: Path) -> bool:
    """Whether a process that we may look at holds the lock of a file that lay here and was deleted.

    Raises OSError where we can't look for another reason: whom we could not look at may hold it.
    """
    gone = f"{path.parent.resolve() / path.name} (deleted)"
    for pid in filter(str.isdigit, os.listdir("/proc")):
        unseen = (FileNotFoundError, ProcessLookupError, PermissionError)
        with contextlib.suppress(*unseen), os.scandir(f"/proc/{pid}/fd") as descriptors:
            if any(_is_link_to(each.path, gone) and _is_lease_locked(each.path) for each in descriptors):
                return True
    return False


def _is_link_to(path: str, target: str) -> bool:
    try:
        return os.readlink(path) == target
    except OSError:
        return False


def _is_lease_locked(path: str) -> bool:
    """Who only inherited it may have outlived the lease: a lock that was given back is nobody's."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True  # it can't be asked
    return is_flock_taken(fd)


def _parse_lease_holder(data: bytes) -> LeaseHolder:
    """Others may write what they like into it."""
    try:
        found = json.loads(data)
        return LeaseHolder(str(found["campaign"]), str(found["cell"]), int(found["n"]), str(found["token"]))
    except (ValueError, OverflowError, KeyError, TypeError, RecursionError):
        return NOBODY_KNOWS


def close_descriptors(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


def slots_of_campaign(wanted: Slots, found: Sequence[GpuDevice]) -> list[Slot]:
    """The campaign's slots, free or not. A machine without GPUs has only those of CPUs."""
    indexes = [gpu.index for gpu in found] if wanted.gpus is None else list(wanted.gpus)
    gpus = [Slot(f"gpu{index}.{share}", "gpu", index) for share in range(wanted.per_gpu) for index in indexes]
    return gpus + [Slot(f"cpu{number}", "cpu") for number in range(wanted.cpus)]
