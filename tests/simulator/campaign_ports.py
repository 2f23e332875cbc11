"""The controller's ports in the made-up world: clock, waker, lock, memory and ballast.

Every call costs a moment in which the world goes on, and is a place where the controller may be killed or stopped.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from muster.engine.ports.executor import WakeReason
from muster.engine.ports.probe import WatchBookState
from simulator.world import Key, Life, World


class Killed(BaseException):
    """The controller was killed here: nothing of it runs any more."""


class Caller:
    """Who calls a port. The plain one is never disturbed."""

    def __init__(self, life: Life) -> None:
        self.life = life

    def at(self, point: str, *, stoppable: bool = True) -> None:
        """A port call has come to this point: it may be killed here; the world goes on, if it may be stopped."""


class SimClock:
    def __init__(self, world: World) -> None:
        self.world = world

    def boot(self) -> float:
        return self.world.boot

    def wall(self) -> float:
        return self.world.wall


class SimWaker:
    """`wait` lets the world go on until something happens to whom it watches, somebody rings, or time is up."""

    def __init__(self, world: World, caller: Caller) -> None:
        self.world, self.caller = world, caller
        self._watched: dict[Key, set[int]] = {}
        self._fired: set[Key] = set()
        self._log = False

    def watch(self, key: Key, pids: Iterable[int]) -> None:
        self.caller.at("waker.watch")
        known = self._watched.setdefault(key, set())
        for pid in pids:
            if pid in known:
                continue
            known.add(pid)
            process = self.world.process(pid, self.caller.life)
            if process is None or process.zombie:
                self._fired.add(key)  # it ended between the look and now
            else:
                process.watched.append((self, key))

    def forget(self, key: Key) -> None:
        self.caller.at("waker.forget")
        self._watched.pop(key, None)

    def fire(self, key: Key) -> None:
        if key in self._watched:
            self._fired.add(key)

    def ring(self, message: str) -> None:
        cell, _, n = message.partition("\t")
        if n.isdigit():
            self._fired.add((cell, int(n)))
        else:
            self._log = True

    @property
    def awake(self) -> bool:
        return self._log or bool(self._fired)

    def wait(self, timeout_s: float) -> WakeReason:
        until = self.world.now + timeout_s
        while not self.awake and self.world.next_at <= until:
            self.world.fire()
        if not self.awake:
            self.world.now = max(self.world.now, until)
        wake = WakeReason(frozenset(self._fired), self._log)
        self._fired, self._log = set(), False
        return wake

    def close(self) -> None:
        self._watched.clear()


class SimLock:
    """controller.lock: the newest one to take it has it; who had it before was killed, or should have been."""

    def __init__(self, world: World, caller: Caller) -> None:
        self.world, self.caller = world, caller
        self.beats: list[tuple[float, int, str]] = []

    def beat(self, epoch: int, trouble: str = "") -> None:
        self.caller.at("lock.beat")
        self.beats[:] = [(self.world.boot, epoch, trouble)]


_remembered = msgspec.json.Decoder(WatchBookState)
_json = msgspec.json.Encoder()


class SimMemory:
    """watch.json, which outlives the controller but is never synced."""

    def __init__(self, file: list[bytes], caller: Caller) -> None:
        self.file, self.caller = file, caller

    def load(self) -> WatchBookState:
        if not self.file:
            return WatchBookState(self.caller.life.boot_id)
        found = _remembered.decode(self.file[0])
        if found.boot_id != self.caller.life.boot_id:
            return WatchBookState(self.caller.life.boot_id, siblings=found.siblings)
        return found

    def save(self, remembered: WatchBookState) -> None:
        self.caller.at("memory.save")
        self.file[:] = [_json.encode(remembered)]
        self.caller.at("memory.saved")


class SimBallast:
    def __init__(self, world: World, caller: Caller) -> None:
        self.world, self.caller = world, caller

    def lay(self) -> bool:
        return self.world.disk.lay()

    def free(self) -> None:
        self.caller.at("ballast.free")
        self.world.disk.free()
        self.world.say("the ballast is freed")
