"""The executor in the made-up world: leases that all campaigns share, requests for shims that may get lost, stops."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.engine.ports.executor import Lease, Slot, slot_from_name
from muster.hosts.local.slot_leases import slots_of_campaign
from muster.model.attempt import Attempt, Order
from muster.model.campaign import Slots
from simulator.campaign_folder import Folder, StopRequest
from simulator.campaign_ports import Caller
from simulator.campaign_shim import Outside, Shim, stop_without_shim
from simulator.world import Hold, Key, World


@dataclass(slots=True, eq=False)
class Request:
    """A shim was asked for, and is not there yet. The lease travels with it."""

    folder: Folder
    hold: Hold | None
    caller: Caller
    dropped: bool = False

    def drop(self) -> None:
        self.dropped = True
        if self.hold:
            self.hold.drop(self)


class Place(Outside, Protocol):
    """The campaign's part of the world, as the executor needs it."""

    world: World
    requests: list[Request]

    def folder(self, key: Key) -> Folder: ...

    def launching(self, caller: Caller, folder: Folder, lease: Lease, hold: Hold | None) -> None: ...

    def stopping(self, caller: Caller, folder: Folder, request: StopRequest) -> None: ...

    def launch_fails(self) -> bool: ...

    def spawn_delay(self) -> float | None:
        """None: the request is stuck with whom it was sent to."""

    def shim_dies_at(self) -> str: ...


class SimExecutor:
    def __init__(self, place: Place, caller: Caller, slots: Slots) -> None:
        self.place, self.world, self.caller = place, place.world, caller
        self.wanted = slots
        self._holds: dict[int, Hold] = {}
        self._kept: set[int] = set()  # of runs that let go of their slots and live
        self._numbers = itertools.count(3)

    def configure(self, slots: Slots) -> None:
        self.wanted = slots

    def slots(self) -> Sequence[Slot]:
        return slots_of_campaign(self.wanted, ())

    # -- leases

    def lease(self, names: Sequence[str]) -> Lease | None:
        self.caller.at("executor.lease")
        hold = self.world.lease(names, self.caller)
        if hold is None:
            return None
        number = next(self._numbers)
        self._holds[number] = hold
        self.caller.at("lease.taken")
        return Lease(tuple(slot_from_name(name) for name in names), (number,))

    def give_back(self, lease: Lease) -> None:
        for number in lease.fds:
            self._holds.pop(number).drop(self.caller)

    def holds(self) -> list[Hold]:
        """Leases that have neither been given back nor handed over, and are not kept for a run."""
        return [hold for number, hold in self._holds.items() if number not in self._kept]

    def every_hold(self) -> list[Hold]:
        return list(self._holds.values())

    def hold_of(self, lease: Lease) -> Hold | None:
        return next((self._holds[number] for number in lease.fds if number in self._holds), None)

    def keep(self, attempt: Attempt) -> Lease | None:
        self.caller.at("executor.keep")
        free = [name for name in attempt.slots if not self.world.leased(name)]
        hold = self.world.lease(free, self.caller) if free else None
        if hold is None:
            return None
        number = next(self._numbers)
        self._holds[number] = hold
        self._kept.add(number)
        return Lease(tuple(slot_from_name(name) for name in free), (number,))

    def holder(self, names: Sequence[str]) -> str:
        return f"{', '.join(names)} is held by another campaign"

    # -- launching

    def launch(self, order: Order, lease: Lease) -> None:
        self.caller.at("executor.launch")
        folder = self.place.folder((order.cell, order.n))
        if self._is_lost(folder):
            self.give_back(lease)
            return
        self.world.disk.write(2000)
        if self.place.launch_fails():
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        if folder.order is None:
            folder.order = order
        self.caller.at("order.rename")
        self.place.launching(self.caller, folder, lease, self.hold_of(lease))
        folder.hold = self.hold_of(lease)
        self._ask(folder, folder.hold)
        self.give_back(lease)
        self.caller.at("spawn.sent")

    def _is_lost(self, folder: Folder) -> bool:
        """It was launched, and its files were deleted."""
        return folder.gone

    def _ask(self, folder: Folder, hold: Hold | None) -> None:
        request = Request(folder, hold, self.caller)
        if hold:
            hold.by.add(request)
        delay = self.place.spawn_delay()
        self.place.requests.append(request)
        if delay is not None:
            self.world.after(delay, lambda: serve(self.place, request))

    def order(self, attempt: Attempt) -> Order | None:
        self.caller.at("executor.order")
        return self.place.folder(attempt.key).order

    def restart(self) -> None:
        self.caller.at("executor.restart")
        for request in [request for request in self.place.requests if request.caller is self.caller]:
            request.drop()
            self.place.requests.remove(request)

    def revoke(self, attempt: Attempt, reason: str) -> bool:
        self.caller.at("executor.revoke")
        folder = self.place.folder(attempt.key)
        if self._is_lost(folder):
            return False
        self.world.disk.write(200)
        if folder.started is not None:
            return False
        folder.started, folder.started_at, folder.synced = f"revoked: {reason}", self.world.now, True
        folder.ended_at = folder.over_at = self.world.now
        self.caller.at("revoke.create")
        return True

    # -- requests to a shim

    def stop(self, attempt: Attempt, *, epoch: int, reason: str, grace_s: float) -> None:
        self.caller.at("executor.stop")
        folder = self.place.folder(attempt.key)
        self.world.disk.write(200)
        request = StopRequest(epoch, reason, grace_s)
        self.place.stopping(self.caller, folder, request)
        folder.stop = request
        self.caller.at("stop.rename")
        shim = self._shim(folder)
        if shim:
            shim.poke()
        elif folder.identity is not None:
            stop_without_shim(self.world, folder, self.caller.life, request)
        self.caller.at("stop.poke")

    def nudge(self, attempt: Attempt) -> None:
        self.caller.at("executor.nudge")
        if shim := self._shim(self.place.folder(attempt.key)):
            shim.steps.go_on()

    def release(self, attempt: Attempt) -> None:
        self.caller.at("executor.release")
        folder = self.place.folder(attempt.key)
        folder.released = True
        if shim := self._shim(folder):
            shim.poke()

    def tidy(self, attempt: Attempt) -> None:
        pass

    def _shim(self, folder: Folder) -> Shim | None:
        """Who wrote shim.lock, if it lives and can be seen from here."""
        shim = folder.shim
        return shim if shim and shim.process.alive and shim.process.life == self.caller.life else None

    def close(self) -> None:
        """The warm process ends with its socket; what it was asked last may still be done, or not."""
        close_requests(self.place, self.caller)


def serve(place: Place, request: Request) -> None:
    """The warm process gets to a request: a shim is there."""
    if request.dropped:
        return
    if request in place.requests:
        place.requests.remove(request)
    request.dropped = True
    Shim(place.world, place, request.folder, request.hold, request.caller.life, place.shim_dies_at())
    if request.hold:
        request.hold.drop(request)


def close_requests(place: Place, caller: Caller) -> None:
    """Whoever asked is gone: each request is served once more, or lost with the lease that came with it."""
    for request in [request for request in place.requests if request.caller is caller]:
        place.requests.remove(request)
        if place.world.random.random() < 0.5:
            place.world.after(place.world.random.uniform(0.001, 0.05), lambda request=request: serve(place, request))  # type: ignore[misc]
        else:
            request.drop()
