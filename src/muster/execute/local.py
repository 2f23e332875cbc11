"""The local executor: leases, attempt folders, shims on this machine."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import msgspec

from muster.domain.attempt import Attempt
from muster.domain.campaign import Slots
from muster.domain.formats import ORDER_FORMAT, newer_order
from muster.domain.order import Order
from muster.domain.sighting import LARGEST_PID
from muster.domain.whereabouts import Whereabouts, former_folder
from muster.execute.gpus import Gpu, GpuWatch, find_gpus
from muster.execute.launches import LaunchBook, LocalTraces
from muster.execute.paths import attempt_folder
from muster.execute.slots import Holder, SlotHouse, close, home, slots_of
from muster.execute.warm import PYTHON, Warm
from muster.ports.crash import reach
from muster.ports.executor import Lease, Slot
from muster.ports.no_json import NO_JSON
from muster.ports.plain_files import read_plain
from muster.ports.traces import REQUEST_S
from muster.ports.write_files import (
    PRIVATE_FILE,
    make_private_folder,
    make_public_folder,
    open_to_append,
    sync_folder,
    write_atomically,
    write_partial,
)

AFTER_STARTED = ("tree.lock", "identity.json", "execing")


class LocalExecutor:
    def __init__(self, state: Path, slots: Slots, find: Callable[[], list[Gpu]] = find_gpus) -> None:
        self.state = state
        self.house = SlotHouse(home() / "slots")
        self.launches = LaunchBook(state / "launched")
        self.traces = LocalTraces(state, self.launches)
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
        busy = self.watch.busy(gpu)
        return busy is None or busy

    def give_back(self, lease: Lease) -> None:
        close(lease.fds)

    def keep(self, attempt: Attempt) -> Lease | None:
        """Whoever else may use its GPU, the run itself does: nobody is asked."""
        free: list[Slot] = []
        fds: list[int] = []
        for slot in map(slot_of, attempt.slots):
            if lease := self.house.lease([slot], again=True):
                free.append(slot)
                fds += lease.fds
        if not free:
            return None
        kept = Lease(tuple(free), tuple(fds))
        self.house.sign(kept, self._holder(attempt.cell, attempt.n, attempt.token), kept=True)
        return kept

    def holder(self, names: Sequence[str]) -> str:
        held = ((name, self.house.holder(name)) for name in names)
        return ", ".join(f"{name} is held by {holder}" for name, holder in held if holder)

    def _holder(self, cell: str, n: int, token: str) -> Holder:
        return Holder(str(self.state.parent), cell, n, token)

    # -- launching

    def launch(self, order: Order, lease: Lease) -> None:
        folder = self.folder(order.cell, order.n)
        if self._is_lost(folder, order.token):  # to make the folder again would let it be executed again
            self.give_back(lease)
            return
        # not synced: the shim syncs the innermost folder, and a lost one can only mean that the machine went down
        make_private_folder(folder, inside=self.state)
        if order.mkdir:
            make_public_folder(Path(order.out))
        self._write_order(folder, order)
        self.launches.note(order.token)  # once the folder is whole: from here on its absence means that it was deleted
        self.house.sign(lease, self._holder(order.cell, order.n, order.token))
        self.warm.spawn(str(folder), lease.fds)
        close(lease.fds)  # shim and run hold it now

    def _is_lost(self, folder: Path, token: str) -> bool:
        """It was begun, or may have been, and what keeps others from beginning it is gone: its files were deleted."""
        begun = (
            self.traces.identity(token) is not None
            or any((folder / name).exists() for name in AFTER_STARTED)
            or (not (folder / "attempt.json").exists() and self.traces.launched(token))
        )
        return begun and not (folder / "started").exists()  # asked last: it is made before what tells that it was

    def _write_order(self, folder: Path, order: Order) -> None:
        """The first order that can be read stays: whichever shim wins `started` obeys the same one.

        Not where the campaign has moved since, and nobody has started it: its paths lead nowhere.
        """
        path = folder / "attempt.json"
        known = read_order(folder)
        moved = known is not None and known.state != _stored_order(folder).state and not (folder / "started").exists()
        if known and not moved:
            return
        partial = write_partial(path, msgspec.json.encode(order))  # synced by the shim, off the way to the run
        reach("order.write")
        try:
            if moved:
                partial.replace(path)
            else:
                os.link(partial, path)
        except FileExistsError:
            if read_order(folder) is None:
                partial.replace(path)
        partial.unlink(missing_ok=True)
        reach("order.rename")

    def order(self, attempt: Attempt) -> Order | None:
        return read_order(self.folder(*attempt.place))

    def restart(self) -> None:
        self.warm.kill()

    def revoke(self, attempt: Attempt, reason: str) -> bool:
        folder = self.folder(*attempt.place)
        if self._is_lost(folder, attempt.token) or self.traces.holds_slot(attempt, for_s=REQUEST_S):
            return False
        make_private_folder(folder, inside=self.state)
        try:
            fd = os.open(folder / "started", os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE)
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
        folder = self._desk(attempt)
        request = {"epoch": epoch, "reason": reason, "grace_s": grace_s}
        write_atomically(folder / "stop", json.dumps(request), sync=True, point="stop.write")
        reach("stop.rename")
        if not self._signal_shim(attempt, signal.SIGUSR1) and self._may_live(folder, attempt):
            command = [*PYTHON, "stop", str(folder), attempt.token]
            subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, cwd="/")
        reach("stop.poke")

    def _desk(self, attempt: Attempt) -> Path:
        """Where its shim reads requests: in its folder, or where the shim goes when that one was deleted."""
        folder = self.folder(*attempt.place)
        if self._is_lost(folder, attempt.token):
            folder = Path(self.traces.refuges(attempt.token)[0])
            make_private_folder(folder, inside=self.state)
            self._remind(folder, attempt.token)
        make_private_folder(folder, inside=self.state)
        return folder

    def _remind(self, refuge: Path, token: str) -> None:
        """Who it was, for who ends it where its shim is gone: its processes need not carry its token."""
        known = self.traces.identity(token)
        if known is None or (refuge / "identity.json").exists():
            return
        write_atomically(refuge / "identity.json", json.dumps({**asdict(known), "token": token}))

    def _may_live(self, desk: Path, attempt: Attempt) -> bool:
        return (desk / "identity.json").exists() or desk != self.folder(*attempt.place)

    def nudge(self, attempt: Attempt) -> None:
        self._signal_shim(attempt, signal.SIGCONT)

    def release(self, attempt: Attempt) -> None:
        os.close(open_to_append(self._desk(attempt) / "release"))
        self._signal_shim(attempt, signal.SIGUSR1)

    def tidy(self, attempt: Attempt) -> None:
        """What a killed process had begun to write."""
        for partial in self.folder(*attempt.place).glob(".*.[0-9]*"):
            with contextlib.suppress(OSError):
                partial.unlink()

    def _signal_shim(self, attempt: Attempt, number: signal.Signals) -> bool:
        """To the process that wrote shim.lock and to no other; False: it is gone."""
        try:
            pid, ticks = self._shim_of(attempt)
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

    def _shim_of(self, attempt: Attempt) -> tuple[int, int]:
        """Its pid and start ticks; raises OSError or ValueError where they are not known."""
        with contextlib.suppress(FileNotFoundError):
            pid, ticks = map(int, read_plain(str(self.folder(*attempt.place) / "shim.lock")).split())
            if not 0 < pid <= LARGEST_PID:
                raise ValueError("no process has such a pid")
            return pid, ticks
        known = self.traces.identity(attempt.token)
        if known is None:
            raise ValueError("nobody has seen it")
        return known.shim_pid, known.shim_ticks

    def close(self) -> None:
        self.warm.close()
        self.launches.close()


def _stored_order(folder: Path) -> Order:
    return msgspec.json.decode(read_plain(str(folder / "attempt.json")), type=Order)


def read_order(folder: Path) -> Order | None:
    """With the paths that it has where its campaign lies now. A shim obeys the file itself, as it was written."""
    try:
        order = _stored_order(folder)
    except (OSError, *NO_JSON):
        return None
    if order.muster > ORDER_FORMAT:
        raise newer_order(order.muster, str(folder / "attempt.json"))
    state = str(folder).removesuffix(f"/attempts/{order.cell}/{order.n}")
    former, now = former_folder(order.state), former_folder(state)
    if former is None or now is None or former == now:
        return order
    return _order_here(order, Whereabouts(now, (former,)))


def _order_here(order: Order, where: Whereabouts) -> Order:
    escaped = Whereabouts(glob.escape(where.now), tuple(map(glob.escape, where.former)))
    plain = order.output == order.out  # else it may be a pattern
    return replace(
        order,
        argv=tuple(map(where.text, order.argv)),
        cwd=where.here(order.cwd),
        env_file=where.here(order.env_file),
        out=where.here(order.out),
        output=where.here(order.output) if plain else escaped.here(order.output),
        resumed_from=where.here(order.resumed_from) if order.resumed_from else order.resumed_from,
        state=where.here(order.state),
        bell=where.here(order.bell),
        ballast=where.here(order.ballast),
        refuges=tuple(map(where.here, order.refuges)),
        revive=tuple(map(where.text, order.revive)),
    )


def slot_of(name: str) -> Slot:
    if name.startswith("gpu"):
        return Slot(name, "gpu", int(name[3:].split(".", maxsplit=1)[0]))
    return Slot(name, "cpu")
