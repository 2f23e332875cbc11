"""A made-up machine: its clocks, processes, slots and disk, and everything that is going to happen on it.

`now` is the true time. What programs see of it differs: boot time begins again at a reboot, wall time jumps, and while
the machine is suspended nothing works although both go on.
"""

from __future__ import annotations

import errno
import heapq
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

Key = tuple[str, int]
Do = Callable[[], None]
BALLAST = 16 << 20


class Violation(Exception):
    """Something happened that must never happen."""


@dataclass(frozen=True, slots=True)
class Life:
    """What tells one life of a machine or a container from any other."""

    boot_id: str
    pid_namespace: int
    init_ticks: int


class Listener(Protocol):
    """Whoever wants to know that a process has ended."""

    def fire(self, key: Key) -> None: ...


@dataclass(slots=True, eq=False)
class Hold:
    """Leased slots: one open file that several processes may share. Free when the last of them is gone."""

    slots: tuple[str, ...]
    by: set[object] = field(default_factory=set)

    def drop(self, holder: object) -> None:
        self.by.discard(holder)

    def unlock(self) -> None:
        self.by.clear()


@dataclass(slots=True, eq=False)
class Process:
    pid: int
    ticks: int
    life: Life
    what: str  # shim | run | orphan | stranger
    token: str = ""  # MUSTER_ATTEMPT in its environment
    alive: bool = True
    zombie: bool = False  # ended, and its parent has not asked yet
    stopped: bool = False  # SIGSTOP
    gpu: bool = False  # holds a GPU open
    holds: list[Hold] = field(default_factory=list)
    watched: list[tuple[Listener, Key]] = field(default_factory=list)
    on_end: list[Do] = field(default_factory=list)

    def share(self, hold: Hold | None) -> None:
        if hold is not None:
            hold.by.add(self)
            self.holds.append(hold)

    def end(self) -> None:
        if not self.alive:
            return
        self.alive = False
        for hold in self.holds:
            hold.drop(self)
        for listener, key in self.watched:
            listener.fire(key)
        for do in self.on_end:
            do()


class Disk:
    """Room for what must be written. On a full disk only what the ballast leaves."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.full_until = 0.0
        self.ballast = True
        self.room = 0

    @property
    def full(self) -> bool:
        return self.world.now < self.full_until

    def write(self, size: int) -> None:
        if not self.full or size <= self.room:
            self.room = max(0, self.room - size)
            return
        raise OSError(errno.ENOSPC, "No space left on device")

    def free(self) -> None:
        """Somebody else may take the room before we do."""
        if self.ballast:
            self.ballast = False
            self.room = self.world.random.choice((0, 2000, 20000, BALLAST))

    def lay(self) -> bool:
        if self.full:
            return self.ballast
        self.ballast = True
        return True


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.suspended = 0.0
        self.boot0 = -self.random.uniform(1e3, 1e6)
        self.wall0 = 1.75e9
        self.lives = itertools.count(1)
        self.life = self._new_life()
        self._booted = {self.life.boot_id: self.boot0}  # in true time
        self.processes: dict[int, Process] = {}
        self._pid = 1000
        self.slots: dict[str, Hold] = {}
        self.disk = Disk(self)
        self.told: list[tuple[float, str]] = []
        self._queue: list[tuple[float, int, Do]] = []
        self._order = itertools.count()

    def _new_life(self) -> Life:
        number = next(self.lives)
        return Life(f"boot-{number}", 4026531836 + number, 10 * number)

    # -- clocks

    @property
    def boot(self) -> float:
        return self.now - self.boot0

    @property
    def wall(self) -> float:
        return self.wall0 + self.now

    def true_time(self, boot: float, boot_id: str) -> float:
        """Of a boot time, which may be from before a reboot."""
        return self._booted[boot_id] + boot

    @property
    def active(self) -> float:
        """Time in which something could work."""
        return self.now - self.suspended

    def suspend(self, seconds: float) -> None:
        """Nothing works; what was due happens afterwards."""
        self.now += seconds
        self.suspended += seconds
        self.say(f"the machine slept for {seconds:.0f} s")

    def jump(self, seconds: float) -> None:
        self.wall0 += seconds
        self.say(f"the wall clock jumped by {seconds:.0f} s")

    # -- what is going to happen

    def after(self, delay: float, do: Do) -> None:
        heapq.heappush(self._queue, (self.now + delay, next(self._order), do))

    @property
    def next_at(self) -> float:
        return self._queue[0][0] if self._queue else float("inf")

    def fire(self) -> None:
        """The next thing happens."""
        at, _, do = heapq.heappop(self._queue)
        self.now = max(self.now, at)
        try:
            do()
        except (
            OSError,
            LookupError,
            ValueError,
        ) as error:  # a controller that waits meanwhile would take it for its own
            raise Violation(f"the simulator itself failed: {error!r}") from error

    def spend(self, seconds: float) -> None:
        """Somebody is busy for so long; the world goes on meanwhile."""
        until = self.now + seconds
        while self._queue and self._queue[0][0] <= until:
            self.fire()
        self.now = max(self.now, until)

    def say(self, text: str) -> None:
        self.told.append((self.now, text))

    # -- processes

    def spawn(self, what: str, token: str = "", life: Life | None = None) -> Process:
        self._pid += self.random.randint(1, 3)
        process = Process(self._pid, int(self.boot * 100), life or self.life, what, token)
        self.processes[process.pid] = process
        return process

    def process(self, pid: int, life: Life) -> Process | None:
        """What /proc shows in one container: living ones and zombies."""
        found = self.processes.get(pid)
        return found if found and found.life == life and (found.alive or found.zombie) else None

    def carriers(self, token: str, life: Life) -> list[int]:
        return [
            process.pid
            for process in self.processes.values()
            if process.token == token and process.alive and process.life == life
        ]

    def reuse(self, pid: int) -> None:
        """A stranger comes to have a pid that somebody of ours had."""
        found = self.processes.get(pid)
        if found is None or not (found.alive or found.zombie):
            self.processes[pid] = Process(pid, int(self.boot * 100) + 1, self.life, "stranger")

    def reboot(self) -> None:
        """Every process dies, boot time begins again, pids are handed out from the start."""
        self.end_all()
        self.life = self._new_life()
        self.boot0 = self._booted[self.life.boot_id] = self.now
        self._pid = 1000
        self.processes.clear()

    def restart_container(self) -> None:
        self.end_all()
        self.life = Life(self.life.boot_id, *self._fresh_namespace())
        self.processes.clear()

    def move(self) -> None:
        """Whoever comes from now on lives in another container; what runs goes on in the old one."""
        self.life = Life(self.life.boot_id, *self._fresh_namespace())

    def _fresh_namespace(self) -> tuple[int, int]:
        fresh = self._new_life()
        return fresh.pid_namespace, int(self.boot * 100)

    def end_all(self) -> None:
        """At one instant: nobody reacts to the end of another."""
        doomed = list(self.processes.values())
        for process in doomed:
            process.alive = process.zombie = False
            process.stopped = False
            for hold in process.holds:
                hold.drop(process)

    # -- slots

    def lease(self, names: Iterable[str], holder: object) -> Hold | None:
        """All or none."""
        wanted = tuple(names)
        if any(self.leased(name) for name in wanted):
            return None
        hold = Hold(wanted, {holder})
        for name in wanted:
            self.slots[name] = hold
        return hold

    def leased(self, name: str) -> bool:
        hold = self.slots.get(name)
        return hold is not None and bool(hold.by)
