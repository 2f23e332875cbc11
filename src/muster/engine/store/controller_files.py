"""Small files that a controller keeps in `.muster`: `controller.lock` (who decides, and when it last beat), the
ballast, `watch.json`, and on which machine each attempt was claimed.

The ballast is 16 MB laid by, freed when the disk is full, so that ends can still be written. `watch.json` has what
the looks at living runs add up to: replaced whole at each poll and never synced, since nothing that was decided rests
on it. `ReadOnlyLock` is the lock of a campaign that is only read.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from muster import __version__
from muster.engine.ports.clock import Clock
from muster.engine.ports.probe import WatchBookState
from muster.engine.ports.store import STALE_LOCK_S, ControllerSuperseded, LockHolder, Store
from muster.files.atomic_write import PRIVATE_FILE, write_atomically
from muster.files.crash_points import reach_crash_point
from muster.files.json_codec import JSON_ERRORS, encode_json_bytes
from muster.files.process_identity import _process_start_ticks, is_lock_held, kill_exact_process
from muster.files.safe_open import LARGEST_CELLS_FILE, read_plain_file
from muster.files.state_folder import anonymous_machine_name
from muster.model.attempt import Attempt
from muster.model.errors import STATE_FORMAT
from muster.text.phrases import english_text, phrase

BALLAST_BYTES = 16 << 20


class FileBallast:
    def __init__(self, path: Path) -> None:
        self.path = path

    def lay(self) -> bool:
        """False: the disk has no room for it."""
        if self.path.exists():
            return True
        try:
            fd = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        except OSError:
            return False
        try:
            os.posix_fallocate(fd, 0, BALLAST_BYTES)
            return True
        except OSError:
            self.free()
            return False
        finally:
            os.close(fd)

    def free(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()


LOCK_LENGTH = 1024


class ControllerLock:
    def __init__(self, folder: Path, clock: Clock) -> None:
        self.path = folder / "controller.lock"
        self.clock = clock
        self.fd = -1
        self._about: dict[str, float | int | str] = {}

    def take(self) -> bool:
        """False: someone else holds it."""
        fd = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
        if not _take_flock(fd):
            os.close(fd)
            return False
        self.fd = fd
        os.ftruncate(fd, LOCK_LENGTH)  # a longer one of an older version would leave its tail
        self._about = {
            "pid": os.getpid(),
            "ticks": _process_start_ticks(os.getpid()) or 0,
            "since": self.clock.wall(),
            "format": STATE_FORMAT,
            "version": __version__,
        }
        self.beat(0)
        reach_crash_point("lock.taken")
        return True

    def beat(self, epoch: int, trouble: str = "") -> None:
        """In place and always of one length: this can be written even where the disk is full."""
        if os.fstat(self.fd).st_nlink == 0:
            raise ControllerSuperseded(phrase("store.folder_deleted"))
        about = {**self._about, "epoch": epoch, "beat": self.clock.boot()}
        said = english_text(trouble)[:200]
        while (
            len(data := json.dumps({**about, "trouble": said}).encode()) > LOCK_LENGTH
        ):  # a character takes up to 12 bytes
            said = said[: len(said) * 3 // 4]
        os.pwrite(self.fd, data.ljust(LOCK_LENGTH), 0)

    def give_back(self) -> None:
        if self.fd >= 0:
            os.ftruncate(self.fd, 0)
            os.close(self.fd)
            self.fd = -1

    def held(self) -> bool:
        return is_lock_held(self.path)

    def holder(self) -> LockHolder | None:
        try:
            about = json.loads(read_plain_file(str(self.path)))
            found = LockHolder(
                int(about["pid"]),
                int(about["ticks"]),
                int(about["epoch"]),
                float(about["since"]),
                float(about["beat"]),
                str(about.get("trouble", "")),
                False,
                int(about.get("format", 1)),
                str(about.get("version", "")),
            )
        except (OSError, ValueError, OverflowError, KeyError, TypeError, RecursionError):
            return None
        return replace(found, alive=_process_start_ticks(found.pid) == found.ticks and self.held())

    def hung(self) -> LockHolder | None:
        """The holder, if it lives but has not beaten for long: stopped, or stuck."""
        holder = self.holder()
        if holder and holder.alive and self.clock.boot() - holder.beat > STALE_LOCK_S:
            return holder
        return None

    def take_over(self, patience_s: float = STALE_LOCK_S / 5) -> bool:
        """Takes the lock from a hung holder: kill by pidfd, then lock. After a suspend it gets a moment."""
        holder = self.hung()
        if not holder:
            return self.take()
        time.sleep(patience_s)
        again = self.hung()
        if again and again.pid == holder.pid and again.beat == holder.beat:
            kill_exact_process(holder.pid, holder.ticks, self.path)
        return self._take_soon()

    def take_from(self, holder: LockHolder) -> bool:
        """From a controller of an older Muster. It owns nothing that matters if it dies, and its runs go on."""
        kill_exact_process(holder.pid, holder.ticks, self.path)
        return self._take_soon()

    def _take_soon(self) -> bool:
        for _ in range(50):
            if self.take():
                return True
            time.sleep(0.02)
        return False


def _take_flock(fd: int) -> bool:
    """Someone who only looks (`held`) holds the lock for microseconds; a controller still holds it after this."""
    for _ in range(20):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            time.sleep(0.005)
    return False


def machine_of_epoch(state: Path) -> dict[str, Any]:
    """What a controller records with its epoch."""
    return {"machine": anonymous_machine_name(), "inode": state.stat().st_ino}


class ClaimMachines:
    """Whether an attempt was claimed elsewhere. Asked for where the boot id differs, which is rare."""

    def __init__(self, store: Store, state: Path) -> None:
        self.store, self.state = store, state

    def __call__(self, attempt: Attempt) -> bool:
        """Both must differ: a container that is made anew may get another name, and keeps its disk."""
        known, here = self._claimed.get(attempt.epoch, {}), machine_of_epoch(self.state)
        return all(known.get(name) and here[name] and known[name] != here[name] for name in ("machine", "inode"))

    @cached_property
    def _claimed(self) -> dict[int, dict[str, Any]]:
        events = (event.decision for event in self.store.events() if not event.void)
        return {int(each.data["epoch"]): dict(each.data) for each in events if each.kind == "epoch"}


class ReadOnlyLock(ControllerLock):
    """Never locked, not even for a moment: that would keep a controller of somebody else from its work."""

    def take(self) -> bool:
        return False

    def held(self) -> bool:
        return True  # `holder` still asks whether the process is the one that wrote this


_decoder = msgspec.json.Decoder(WatchBookState)


class WatchBookFile:
    def __init__(self, folder: Path, boot_id: str) -> None:
        self.path = folder / "watch.json"
        self.boot_id = boot_id

    def tidy(self) -> None:
        """What killed controllers had begun to write; for the one that holds the lock."""
        for partial in self.path.parent.glob(".watch.*.[0-9]*"):
            with contextlib.suppress(OSError):
                partial.unlink()

    def load(self) -> WatchBookState:
        try:
            found = _decoder.decode(read_plain_file(str(self.path), LARGEST_CELLS_FILE))
        except (OSError, *JSON_ERRORS):  # absent, cut off, or of another version
            return WatchBookState(self.boot_id)
        if found.boot_id != self.boot_id:
            return WatchBookState(self.boot_id, siblings=found.siblings)
        return found

    def save(self, remembered: WatchBookState) -> None:
        with contextlib.suppress(OSError):  # a full disk must not stop the watch
            write_atomically(self.path, encode_json_bytes(remembered))
