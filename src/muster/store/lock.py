"""controller.lock: one controller per campaign. The file says who holds it and when it last beat."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path

from muster import __version__
from muster.domain.formats import STATE_FORMAT
from muster.ports.clock import Clock
from muster.ports.crash import reach
from muster.ports.plain_files import read_plain
from muster.ports.store import Superseded
from muster.ports.write_files import PRIVATE_FILE

LENGTH = 1024
STALE_S = float(os.environ.get("MUSTER_STALE_S", "10"))  # it beats every second; a hung one still holds its lock


@dataclass(frozen=True, slots=True)
class Holder:
    pid: int
    ticks: int
    epoch: int
    since: float  # wall
    beat: float  # boot time of the last sign of life
    trouble: str  # what keeps it from its work
    alive: bool  # the process exists and is the one that wrote this
    format: int = 1  # STATE_FORMAT of its Muster
    version: str = ""

    @property
    def outdated(self) -> bool:
        """A controller of an older Muster: it can't know all that we may write. A command holds the lock at epoch 0."""
        return self.alive and self.epoch > 0 and self.format < STATE_FORMAT


class ControllerLock:
    def __init__(self, folder: Path, clock: Clock) -> None:
        self.path = folder / "controller.lock"
        self.clock = clock
        self.fd = -1
        self._about: dict[str, float | int | str] = {}

    def take(self) -> bool:
        """False: someone else holds it."""
        fd = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
        if not _flock_patiently(fd):
            os.close(fd)
            return False
        self.fd = fd
        os.ftruncate(fd, LENGTH)  # a longer one of an older version would leave its tail
        self._about = {"pid": os.getpid(), "ticks": _ticks(os.getpid()) or 0, "since": self.clock.wall(),
                       "format": STATE_FORMAT, "version": __version__}  # fmt: skip
        self.beat(0)
        reach("lock.taken")
        return True

    def beat(self, epoch: int, trouble: str = "") -> None:
        """In place and always of one length: this can be written even where the disk is full."""
        if os.fstat(self.fd).st_nlink == 0:
            raise Superseded("the campaign's folder was deleted")
        about = {**self._about, "epoch": epoch, "beat": self.clock.boot()}
        said = trouble[:200]
        while len(data := json.dumps({**about, "trouble": said}).encode()) > LENGTH:  # a character takes up to 12 bytes
            said = said[: len(said) * 3 // 4]
        os.pwrite(self.fd, data.ljust(LENGTH), 0)

    def give_back(self) -> None:
        if self.fd >= 0:
            os.ftruncate(self.fd, 0)
            os.close(self.fd)
            self.fd = -1

    def held(self) -> bool:
        """Whether anyone holds it, without taking it."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        except OSError:
            return True
        finally:
            os.close(fd)

    def holder(self) -> Holder | None:
        try:
            about = json.loads(read_plain(str(self.path)))
            found = Holder(int(about["pid"]), int(about["ticks"]), int(about["epoch"]), float(about["since"]),
                           float(about["beat"]), str(about.get("trouble", "")), False, int(about.get("format", 1)),
                           str(about.get("version", "")))  # fmt: skip
        except (OSError, ValueError, OverflowError, KeyError, TypeError, RecursionError):
            return None
        return replace(found, alive=_ticks(found.pid) == found.ticks and self.held())

    def hung(self) -> Holder | None:
        """The holder, if it lives but has not beaten for long: stopped, or stuck."""
        holder = self.holder()
        if holder and holder.alive and self.clock.boot() - holder.beat > STALE_S:
            return holder
        return None

    def take_over(self, patience_s: float = STALE_S / 5) -> bool:
        """Takes the lock from a hung holder: kill by pidfd, then lock. After a suspend it gets a moment."""
        holder = self.hung()
        if not holder:
            return self.take()
        time.sleep(patience_s)
        again = self.hung()
        if again and again.pid == holder.pid and again.beat == holder.beat:
            kill_exactly(holder.pid, holder.ticks, self.path)
        return self._take_soon()

    def take_from(self, holder: Holder) -> bool:
        """From a controller of an older Muster. It owns nothing that matters if it dies, and its runs go on."""
        kill_exactly(holder.pid, holder.ticks, self.path)
        return self._take_soon()

    def _take_soon(self) -> bool:
        for _ in range(50):
            if self.take():
                return True
            time.sleep(0.02)
        return False


def _flock_patiently(fd: int) -> bool:
    """Someone who only looks (`held`) holds the lock for microseconds; a controller still holds it after this."""
    for _ in range(20):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            time.sleep(0.005)
    return False


def kill_exactly(pid: int, ticks: int, held: Path | None = None) -> None:
    """SIGKILL to the process of that pid and start time and to no other, however pids are reused.

    `held`: the lock that names it. A process that does not have this very file open is spared: anybody may have
    written its name into a state that was brought here, and hold the lock himself.
    """
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _ticks(pid) == ticks and (held is None or has_open(pid, held)):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(fd)


def has_open(pid: int, path: Path) -> bool:
    """Whether this process has this very file open; not where we may not look."""
    try:
        facts, opened = path.lstat(), [each.path for each in os.scandir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return any(_is_same(each, facts) for each in opened)


def _is_same(path: str, facts: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), facts)  # noqa: PTH116
    except OSError:  # closed meanwhile
        return False


def _ticks(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None
