"""The local executor: leases, attempt folders, shims on this machine."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from muster.domain.attempt import Attempt
from muster.domain.campaign import Slots
from muster.domain.order import Order
from muster.execute.gpus import Gpu, GpuWatch, find_gpus
from muster.execute.paths import attempt_folder
from muster.execute.slots import SlotHouse, close, home, slots_of
from muster.execute.warm import PYTHON, Warm
from muster.ports.crash import reach
from muster.ports.executor import Lease, Slot


class LocalExecutor:
    def __init__(self, state: Path, slots: Slots, find: Callable[[], list[Gpu]] = find_gpus) -> None:
        self.state = state
        self.house = SlotHouse(home() / "slots")
        self.warm = Warm()
        self.find = find
        self.watch: GpuWatch | None = None
        self.configure(slots)

    def configure(self, slots: Slots) -> None:
        self.wanted = slots
        if slots.gpus is None and self.watch is None:
            self.watch = GpuWatch(self.find)

    def folder(self, cell: str, n: int) -> Path:
        return attempt_folder(self.state, cell, n)

    def slots(self) -> Sequence[Slot]:
        """Of the newest reading: a GPU that the driver named late is a slot from then on."""
        return slots_of(self.wanted, self.watch.gpus if self.watch else ())

    # -- leases

    def lease(self, names: Sequence[str]) -> Lease | None:
        known = [slot_of(name) for name in names]
        if any(slot.gpu is not None and self._somebody_elses(slot.gpu) for slot in known):
            return None
        return self.house.lease(known)

    def _somebody_elses(self, gpu: int) -> bool:
        """With `gpus: auto` a GPU that others use is left to them, until they are gone. What Muster leased is ours."""
        if self.wanted.gpus is not None or self.watch is None or self.house.uses_gpu(gpu):
            return False
        return self.watch.busy(gpu) is not False

    def give_back(self, lease: Lease) -> None:
        close(lease.fds)

    # -- launching

    def launch(self, order: Order, lease: Lease) -> None:
        folder = self.folder(order.cell, order.n)
        # not synced: the shim syncs the innermost folder, and a lost one can only mean that the machine went down
        folder.mkdir(parents=True, exist_ok=True)
        if order.mkdir:
            Path(order.out).mkdir(exist_ok=True)
        self._write_order(folder, order)
        self.warm.spawn(str(folder), lease.fds)
        close(lease.fds)  # shim and run hold it now

    def _write_order(self, folder: Path, order: Order) -> None:
        """The first order that can be read stays: whichever shim wins `started` obeys the same one."""
        path = folder / "attempt.json"
        if read_order(folder):
            return
        partial = folder / f".attempt.json.{os.getpid()}"
        fd = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
        try:
            data = msgspec.json.encode(order)
            if os.write(fd, data) < len(data):  # synced by the shim, off the way to the run
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        finally:
            os.close(fd)
        reach("order.write")
        try:
            os.link(partial, path)
        except FileExistsError:
            if read_order(folder) is None:
                partial.replace(path)
        partial.unlink(missing_ok=True)
        reach("order.rename")

    def order(self, attempt: Attempt) -> Order | None:
        return read_order(self.folder(*attempt.key))

    def restart(self) -> None:
        self.warm.kill()

    def revoke(self, attempt: Attempt, reason: str) -> bool:
        folder = self.folder(*attempt.key)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            fd = os.open(folder / "started", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            return False
        os.write(fd, f"revoked: {reason}".encode("utf-8", "replace"))
        os.fsync(fd)
        os.close(fd)
        reach("revoke.create")
        sync_folder(folder)
        return True

    # -- requests to a shim

    def stop(self, attempt: Attempt, *, epoch: int, reason: str, grace_s: float) -> None:
        folder = self.folder(*attempt.key)
        folder.mkdir(parents=True, exist_ok=True)
        request = {"epoch": epoch, "reason": reason, "grace_s": grace_s}
        partial = folder / f".stop.{os.getpid()}"
        fd = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
        os.write(fd, json.dumps(request).encode())
        os.fsync(fd)
        os.close(fd)
        reach("stop.write")
        partial.replace(folder / "stop")
        sync_folder(folder)
        reach("stop.rename")
        if not self._signal_shim(folder, signal.SIGUSR1) and (folder / "identity.json").exists():
            subprocess.Popen([*PYTHON, "stop", str(folder)], stdin=subprocess.DEVNULL, start_new_session=True, cwd="/")
        reach("stop.poke")

    def nudge(self, attempt: Attempt) -> None:
        self._signal_shim(self.folder(*attempt.key), signal.SIGCONT)

    def release(self, attempt: Attempt) -> None:
        folder = self.folder(*attempt.key)
        (folder / "release").touch()
        self._signal_shim(folder, signal.SIGUSR1)

    def _signal_shim(self, folder: Path, number: signal.Signals) -> bool:
        """To the process that wrote shim.lock and to no other; False: it is gone."""
        try:
            pid, ticks = (int(part) for part in (folder / "shim.lock").read_text().split())
            fd = os.pidfd_open(pid)
        except (OSError, ValueError):
            return False
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[19]) != ticks or fields[0] in b"ZX":
                return False
            signal.pidfd_send_signal(fd, number)
            return True
        except OSError:
            return False
        finally:
            os.close(fd)

    def close(self) -> None:
        self.warm.close()


def read_order(folder: Path) -> Order | None:
    try:
        return msgspec.json.decode((folder / "attempt.json").read_bytes(), type=Order)
    except (OSError, msgspec.MsgspecError):
        return None


def slot_of(name: str) -> Slot:
    if name.startswith("gpu"):
        return Slot(name, "gpu", int(name[3:].split(".", maxsplit=1)[0]))
    return Slot(name, "cpu")


def sync_folder(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
