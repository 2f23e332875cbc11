"""The local executor: leases, attempt folders, shims on this machine."""

from __future__ import annotations

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
        self.configure(slots)

    def configure(self, slots: Slots) -> None:
        self.watch = GpuWatch(self.find) if slots.gpus is None else None
        self._slots = {slot.name: slot for slot in slots_of(slots, self.watch.gpus if self.watch else ())}

    def folder(self, cell: str, n: int) -> Path:
        return attempt_folder(self.state, cell, n)

    def slots(self) -> Sequence[Slot]:
        return list(self._slots.values())

    # -- leases

    def lease(self, names: Sequence[str]) -> Lease | None:
        known = [self._slots.get(name) or _unlisted(name) for name in names]
        if any(slot.gpu is not None and self._somebody_elses(slot.gpu) for slot in known):
            return None
        return self.house.lease(known)

    def _somebody_elses(self, gpu: int) -> bool:
        """With `gpus: auto` a GPU that others use is left to them, until they are gone. What Muster leased is ours."""
        if self.watch is None or self.house.uses_gpu(gpu):
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
        """The first order stays: whichever shim wins `started` obeys the same one."""
        path = folder / "attempt.json"
        if path.exists():
            return
        partial = folder / f".attempt.json.{os.getpid()}"
        fd = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
        try:
            os.write(fd, msgspec.json.encode(order))  # synced by the shim, off the way to the run
        finally:
            os.close(fd)
        reach("order.write")
        try:
            os.link(partial, path)
        except FileExistsError:
            pass
        partial.unlink()
        reach("order.rename")

    def order(self, attempt: Attempt) -> Order | None:
        return read_order(self.folder(*attempt.key))

    def revoke(self, attempt: Attempt) -> bool:
        folder = self.folder(*attempt.key)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            fd = os.open(folder / "started", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            return False
        os.write(fd, b"revoked")
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


def _unlisted(name: str) -> Slot:
    """A slot of an attempt that was claimed when the campaign had other slots."""
    if name.startswith("gpu"):
        return Slot(name, "gpu", int(name[3:].split(".", maxsplit=1)[0]))
    return Slot(name, "cpu")


def sync_folder(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
