"""The executor of this machine: slot leases, attempt folders, shims. A warm process forks the shims; where it is
missing or gone, they are executed instead.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from muster.engine.ports.executor import Lease, LeaseHolder, Slot, slot_from_name
from muster.engine.ports.machine import GpuDevice
from muster.engine.ports.probe import REQUEST_TIMEOUT_S
from muster.files.atomic_write import (
    PRIVATE_FILE,
    make_private_folder,
    make_public_folder,
    open_to_append,
    sync_folder,
    umask_of_caller,
    write_atomically,
    write_partial_file,
)
from muster.files.crash_points import reach_crash_point
from muster.files.json_codec import plain_value
from muster.files.muster_home import slots_home
from muster.files.safe_open import read_plain_file
from muster.files.state_folder import attempt_folder
from muster.hosts.local.gpus import GpuInventory, find_gpu_devices
from muster.hosts.local.launch_orders import LaunchBook, LocalTraces
from muster.hosts.local.slot_leases import SlotLeases, close_descriptors, slots_of_campaign
from muster.model.attempt import Attempt, Order
from muster.model.attempt_snapshot import LARGEST_PID, ProofReading
from muster.model.campaign import Slots
from muster.readers.attempt_facts import _read_stored_order, read_order
from muster.text.phrases import english_text, join_phrases, phrase

if TYPE_CHECKING:
    from muster.engine.ports.clock import Clock

SHIM = str(Path(__file__).with_name("shim.py"))
SHIM_COMMAND = [sys.executable, "-I", "-S", SHIM]


class WarmProcess:
    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(self, folder: str, fds: Sequence[int]) -> None:
        """Asks for a shim; returns before it runs. A request that is lost is noticed by the missing `started`."""
        for _ in range(2):
            server = self._socket or self._start()
            try:
                socket.send_fds(server, [folder.encode()], list(fds))
                return
            except OSError:
                self.close()
        _execute_shim(folder, fds)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*SHIM_COMMAND, "serve", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                umask=umask_of_caller(),
            )
        self._socket = ours
        return ours

    def kill(self) -> None:
        """With its spare, which shares its process group; shims have sessions of their own and live on."""
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """It ends by itself when the socket closes; the shims it forked live on."""
        if self._socket:
            self._socket.close()
            self._socket = None
        if self._process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
            self._process = None


def _execute_shim(folder: str, fds: Sequence[int]) -> None:
    command = [*SHIM_COMMAND, "run", folder, ",".join(map(str, fds))]
    umask = umask_of_caller()
    subprocess.Popen(command, pass_fds=fds, stdin=subprocess.DEVNULL, start_new_session=True, cwd="/", umask=umask)


AFTER_STARTED = ("tree.lock", "identity.json", "execing")


class LocalExecutor:
    def __init__(self, state: Path, slots: Slots, find: Callable[[], list[GpuDevice]] = find_gpu_devices) -> None:
        self.state = state
        self.house = SlotLeases(slots_home() / "slots")
        self.launches = LaunchBook(state / "launched")
        self.traces = LocalTraces(state, self.launches)
        self.warm = WarmProcess()
        self.find = find
        self.watch: GpuInventory | None = None
        self.configure(slots)

    def configure(self, slots: Slots) -> None:
        self.wanted = slots
        if slots.gpus is None and self.watch is None:
            self.watch = GpuInventory(self.find)

    def folder(self, cell: str, n: int) -> Path:
        return attempt_folder(self.state, cell, n)

    def slots(self) -> Sequence[Slot]:
        """Of the newest reading: a GPU that the driver named late is a slot from then on."""
        return slots_of_campaign(self.wanted, self.watch.gpus if self.watch else ())

    # -- leases

    def lease(self, names: Sequence[str]) -> Lease | None:
        known = [slot_from_name(name) for name in names]
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
        close_descriptors(lease.fds)

    def keep(self, attempt: Attempt) -> Lease | None:
        """Whoever else may use its GPU, the run itself does: nobody is asked."""
        free: list[Slot] = []
        fds: list[int] = []
        for slot in map(slot_from_name, attempt.slots):
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
        return join_phrases(
            ", ", [phrase("hosts.slot_held_by", slot=name, holder=holder) for name, holder in held if holder]
        )

    def _holder(self, cell: str, n: int, token: str) -> LeaseHolder:
        return LeaseHolder(str(self.state.parent), cell, n, token)

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
        close_descriptors(lease.fds)  # shim and run hold it now

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
        moved = (
            known is not None and known.state != _read_stored_order(folder).state and not (folder / "started").exists()
        )
        if known and not moved:
            return
        partial = write_partial_file(path, msgspec.json.encode(order))  # synced by the shim, off the way to the run
        reach_crash_point("order.write")
        try:
            if moved:
                partial.replace(path)
            else:
                os.link(partial, path)
        except FileExistsError:
            if read_order(folder) is None:
                partial.replace(path)
        partial.unlink(missing_ok=True)
        reach_crash_point("order.rename")

    def order(self, attempt: Attempt) -> Order | None:
        return read_order(self.folder(*attempt.place))

    def restart(self) -> None:
        self.warm.kill()

    def revoke(self, attempt: Attempt, reason: str) -> bool:
        folder = self.folder(*attempt.place)
        if self._is_lost(folder, attempt.token) or self.traces.holds_slot(attempt, for_s=REQUEST_TIMEOUT_S):
            return False
        make_private_folder(folder, inside=self.state)
        try:
            fd = os.open(folder / "started", os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE)
        except FileExistsError:
            return False
        os.write(fd, f"revoked: {english_text(reason)}".encode("utf-8", "replace"))
        os.fsync(fd)
        os.close(fd)
        reach_crash_point("revoke.create")
        sync_folder(folder)
        return True

    # -- requests to a shim

    def stop(self, attempt: Attempt, *, epoch: int, reason: str, grace_s: float) -> None:
        folder = self._desk(attempt)
        request = {"epoch": epoch, "reason": reason, "grace_s": grace_s}
        write_atomically(folder / "stop", json.dumps(plain_value(request)), sync=True, point="stop.write")
        reach_crash_point("stop.rename")
        if not self._signal_shim(attempt, signal.SIGUSR1) and self._may_live(folder, attempt):
            command = [*SHIM_COMMAND, "stop", str(folder), attempt.token]
            subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, cwd="/")
        reach_crash_point("stop.poke")

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
            pid, ticks = map(int, read_plain_file(str(self.folder(*attempt.place) / "shim.lock")).split())
            if not 0 < pid <= LARGEST_PID:
                raise ValueError(phrase("hosts.no_process_such_pid"))
            return pid, ticks
        known = self.traces.identity(attempt.token)
        if known is None:
            raise ValueError(phrase("hosts.process_unseen"))
        return known.shim_pid, known.shim_ticks

    def close(self) -> None:
        self.warm.close()
        self.launches.close()


class LocalStepExecutor(LocalExecutor):
    """Shims in `.muster/finish/<step>/<n>`, without a slot."""

    def __init__(self, state: Path, clock: Clock, warm: WarmProcess | None = None) -> None:
        from muster.hosts.local.attempt_probe import AttemptProbe  # the command line looks with one of its own

        super().__init__(state, Slots(gpus=(), cpus=0))
        self.warm = warm or self.warm
        self.probe = AttemptProbe(self.folder, clock, lambda *_: ProofReading(True), traces=self.traces)

    def folder(self, cell: str, n: int) -> Path:
        return self.state / cell / str(n)
