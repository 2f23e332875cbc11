"""A shim and its run in the made-up world, step by step as PROTOCOL.md has them.

Between two steps the world goes on: somebody may look, kill, stop or reboot. A step of a dead process never happens,
one of a stopped process waits until it may go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol
from zlib import crc32

from muster.model.attempt_snapshot import ExitRecord, ProcessIdentity
from simulator.campaign_folder import Folder, StopRequest
from simulator.campaign_runs import MadePlan
from simulator.world import Do, Hold, Life, Process, World

ROOM_S = 0.5
REVIVE_S = 30.0
DIES_WHILE_STOPPING = 4  # one shim of so many: between SIGTERM and SIGKILL
SIGTERM, SIGKILL = 15, 9


class Outside(Protocol):
    """What a shim needs besides its folder."""

    def plan_of(self, folder: Folder) -> MadePlan: ...

    def executed(self, folder: Folder, hold: Hold | None) -> None: ...

    def run_ended(self, folder: Folder) -> None: ...

    def ring(self, message: str) -> None: ...

    def revive(self, life: Life) -> None: ...


class Steps:
    """Steps of one process."""

    def __init__(self, world: World, process: Process) -> None:
        self.world, self.process = world, process
        self._waiting: list[Do] = []

    def soon(self, step: Do, delay: float | None = None) -> None:
        usual = self.world.random.uniform(0.0005, 0.004)
        if self.world.random.random() < 0.02:
            usual = self.world.random.uniform(0.05, 2.0)  # a busy machine
        self.world.after(usual if delay is None else delay, lambda: self._do(step))

    def _do(self, step: Do) -> None:
        if not self.process.alive:
            return
        if self.process.stopped:
            self._waiting.append(step)
            return
        step()

    def go_on(self) -> None:
        """SIGCONT."""
        self.process.stopped = False
        waiting, self._waiting = self._waiting, []
        for step in waiting:
            self.soon(step)


class Run:
    """The command, while it executes. Its own time stands still while it is stopped or the machine sleeps."""

    def __init__(self, world: World, folder: Folder, process: Process, plan: MadePlan, hold: Hold | None) -> None:
        self.world, self.folder, self.process, self.plan, self.hold = world, folder, process, plan, hold
        self.began = self.went_on = world.active
        self._paused = 0.0
        self._paused_at: float | None = None
        self._watch()

    @property
    def t(self) -> float:
        now = self.world.active if self._paused_at is None else self._paused_at
        return now - self.began - self._paused

    def stop(self) -> None:
        if self._paused_at is None:
            self._paused_at = self.world.active
            self.process.stopped = True

    def go_on(self) -> None:
        if self._paused_at is not None:
            self._paused += self.world.active - self._paused_at
            self._paused_at, self.went_on = None, self.world.active
            self.process.stopped = False

    def _watch(self) -> None:
        ending = self.plan.truth.ending
        if ending is None or not self.process.alive:
            return
        left = ending.at - self.t
        if left <= 1e-6 and not self.process.stopped:
            self.end(ending.code, ending.signal)
        else:
            self.world.after(max(left, 0.5 if self.process.stopped else 1e-6), self._watch)

    def signal(self, number: int) -> None:
        """As a stop request sends it: a stopped run is made to go on, so that it can act on it."""
        if not self.process.alive:
            return
        self.go_on()
        if number == SIGKILL:
            self.end(None, SIGKILL)
        elif (reaction := self.plan.on_term) is not None:
            after, code, by = reaction
            self.world.after(after, lambda: self.end(code, by))

    def end(self, code: int | None, signal: int | None) -> None:
        if not self.process.alive:
            return
        self.folder.how = (code, signal)
        for lasts, gpu, locks in self.plan.orphans:
            self._leave_behind(lasts, gpu, locks)
        self.folder.ended_at = self.world.now
        self.process.end()
        how = f"signal {signal}" if signal else f"exit {code}"
        self.world.say(f"{self.folder.key[0]}@{self.folder.key[1]} ended with {how} after {self.t:.0f} s")
        self._over()

    def _leave_behind(self, lasts: float, gpu: bool, locks: bool) -> None:
        orphan = self.world.spawn("orphan", self.process.token, self.process.life)
        orphan.gpu = gpu
        orphan.on_end.append(self._over)
        self.folder.others.append(orphan)
        if locks:  # a daemon that closes what it inherits lets go of the slot, too
            self.folder.tree.append(orphan)
            orphan.share(self.hold)
        self.world.after(lasts, orphan.end)

    def _over(self) -> None:
        if not self.folder.lives:
            self.folder.over_at = self.world.now


class Shim:
    def __init__(self, world: World, out: Outside, folder: Folder, hold: Hold | None, life: Life, dies_at: str) -> None:
        self.world, self.out, self.folder, self.hold = world, out, folder, hold
        self.dies_at = dies_at  # the step before which it is killed
        self.process = world.spawn("shim", life=life)
        self.process.share(hold)
        self.process.on_end.append(self._died)
        self.steps = Steps(world, self.process)
        self.child: Process | None = None
        self.plan: MadePlan | None = None
        self.gated = False
        self.stops: list[str] = []
        self._stop_epoch = -1
        self._kill_at: float | None = None
        self._again_s = 1.0
        self._lingers = False
        self._step("lock", self._lock)

    def _step(self, name: str, do: Callable[[], None], delay: float | None = None) -> None:
        def step() -> None:
            if self.dies_at == name:
                self.world.say(f"the shim of {self._name} is killed before {name}")
                self.process.end()
            else:
                do()

        self.steps.soon(step, delay)

    @property
    def _name(self) -> str:
        return f"{self.folder.key[0]}@{self.folder.key[1]}"

    # -- the one permission to execute, the child behind its gate

    def _lock(self) -> None:
        if self.folder.shim_locked or self.folder.order is None or self.folder.gone:
            self._leave()
            return
        self.folder.shim = self
        self.folder.named = (self.process.pid, self.process.ticks)
        self._step("started", self._start)

    def _start(self) -> None:
        if self._no_room(200, "started", self._start):
            return
        if self.folder.started is not None or self.folder.gone:
            self._leave()
            return
        assert self.folder.order is not None
        self.folder.started, self.folder.started_at = self.folder.order.token, self.world.now
        self._step("fork", self._fork)

    def _fork(self) -> None:
        assert self.folder.order is not None
        self.folder.synced = True
        child = self.world.spawn("run", self.folder.order.token, self.process.life)
        child.share(self.hold)
        child.on_end.append(self._child_ended)
        self.child = self.folder.main = child
        self.folder.tree.append(child)
        self._step("identity", self._identify)

    def _identify(self) -> None:
        if self._no_room(400, "identity", self._identify):
            return
        if self.folder.gone:
            self._leave()  # it can't say who it is, so the gate stays shut
            return
        child, life = self.folder.main, self.process.life
        assert child is not None
        self.folder.identity = ProcessIdentity(
            life.boot_id,
            life.pid_namespace,
            life.init_ticks,
            child.pid,
            child.ticks,
            self.process.pid,
            self.process.ticks,
            self.world.boot,
            self.world.wall,
        )
        self._step("gate", self._gate)

    def _gate(self) -> None:
        self.gated = True
        child = self.folder.main
        assert child is not None
        Steps(self.world, child).soon(self._exec)
        self.steps.soon(self._tend, 0.001)
        self.steps.soon(self._look_round, self._revive_s())

    def _exec(self) -> None:
        """In the child."""
        folder = self.folder
        assert folder.main is not None
        folder.execing = True
        plan = self.out.plan_of(folder)
        if folder.gone:  # `execing` can't be made
            plan = replace(plan, exec_error="No such file or directory: 'execing'")
        self.plan = plan
        if plan.exec_error is None:
            folder.executions += 1
            self.out.executed(folder, self.hold)
        run = folder.run = Run(self.world, folder, folder.main, plan, self.hold)
        if plan.exec_error is not None:
            run.end(127, None)

    # -- its end

    def _child_ended(self) -> None:
        self.out.run_ended(self.folder)
        if self.child is not None:
            self.child.zombie = self.process.alive
        if self.gated:
            self._step("exit", self._write_exit)

    def _write_exit(self) -> None:
        if self._no_room(3000, "exit", self._write_exit):
            return
        folder, world = self.folder, self.world
        assert folder.identity is not None
        ending = self.plan.truth.ending if self.plan else None
        natural = ending is not None and (ending.code, ending.signal) == folder.how
        after = ending.aftermath if ending is not None and natural and not self.stops else None
        left = tuple(process.pid for process in folder.others if process.alive)
        hidden = bool(left) and world.random.random() < 0.2  # the kernel does not list children: it can't be told
        folder.exit = ExitRecord(
            code=folder.how[0],
            signal=folder.how[1],
            at=world.wall,
            boot=world.boot,
            duration_s=world.boot - folder.identity.boot,
            exec_error=self.plan.exec_error if self.plan else None,
            stop_reason=self.stops[-1] if self.stops else None,
            orphans=None if hidden and folder.tree_locked else left,
            log=after.err if after else "",
            out=after.out if after else "",
            disk_free=after.disk_free if after else None,
            oom_kills=(after.oom_before, after.oom_after) if after else (None, None),
        )
        self._step("reap", self._reap)

    def _reap(self) -> None:
        if self.child is not None:
            self.child.zombie = False
        self._lingers = True
        for orphan in self.folder.others:
            orphan.on_end.append(lambda: self.steps.soon(self._linger))
        if any(process.alive for process in self.folder.others):
            self._ring()
        self._linger()

    def _linger(self) -> None:
        left = [process for process in self.folder.others if process.alive]
        if self.folder.released and self.hold is not None and not any(process.gpu for process in left):
            self.hold.unlock()
        if not left:
            if self.hold is not None:
                self.hold.unlock()
            if self.folder.others:
                self.folder.freed = self.world.boot
            self._ring()
            self._step("leave", self._leave)

    def _leave(self) -> None:
        self.out.revive(self.process.life)  # where nobody listens
        self.process.end()

    def _ring(self) -> None:
        self.out.ring(f"{self.folder.key[0]}\t{self.folder.key[1]}")

    def _died(self) -> None:
        folder = self.folder
        if folder.shim is not self:
            return
        folder.shim = None
        if self.child is None:
            return
        self.child.zombie = False
        if not self.gated:
            self.world.after(
                self.world.random.uniform(0.001, 0.05), lambda: end_unexecuted(self.world, folder, 125, None)
            )

    # -- requests

    def poke(self) -> None:
        self.steps.soon(self._tend)

    def _tend(self) -> None:
        if not self.gated:
            return  # it looks for requests once the run is on its way
        request = self.folder.stop
        if request is not None and request.epoch > self._stop_epoch:
            if self._kill_at is None:
                self._signal_tree(SIGTERM, request)
                self._kill_at = self.world.boot + request.grace_s
                if crc32(f"{self._name} {self.world.boot}".encode()) % DIES_WHILE_STOPPING == 0:  # draws nothing
                    self.dies_at = "kill"
                self._step("kill", self._tend, request.grace_s + 0.001)
            self._stop_epoch = request.epoch
        if request is not None and self._kill_at is not None and self.world.boot >= self._kill_at:
            self._kill_at = self.world.boot + self._again_s
            self.steps.soon(self._tend, self._again_s + 0.001)
            self._again_s = min(2 * self._again_s, 60.0)
            self._signal_tree(SIGKILL, request)
        if self._lingers:
            self._linger()

    def _signal_tree(self, number: int, request: StopRequest) -> None:
        if not self.folder.lives:
            return
        if not self._lingers:
            self.stops.append(request.reason)
        signal_tree(self.world, self.folder, number)

    def _look_round(self) -> None:
        """Now and then: a poke may have been lost, and the controller may have died."""
        self.out.revive(self.process.life)
        self._tend()
        self.steps.soon(self._look_round, self._revive_s())

    def _revive_s(self) -> float:
        return REVIVE_S * self.world.random.uniform(1.0, 1.5)

    def _no_room(self, size: int, name: str, again: Do) -> bool:
        """On a full disk the ballast goes first, then it waits: what it has to write is known to nobody else."""
        disk = self.world.disk
        try:
            disk.write(size)
            return False
        except OSError:
            delay = None if disk.ballast else ROOM_S
            disk.free()
            self._step(name, again, delay)
            return True


def end_unexecuted(world: World, folder: Folder, code: int | None, signal: int | None) -> None:
    """The child behind the gate: the gate closed without a word, or somebody killed it there."""
    if folder.main is not None and folder.run is None and folder.main.alive:
        folder.how = (code, signal)
        folder.ended_at = folder.over_at = world.now
        folder.main.end()


def signal_tree(world: World, folder: Folder, number: int) -> None:
    if folder.run is not None:
        folder.run.signal(number)
    else:
        end_unexecuted(world, folder, None, number)
    for orphan in folder.others:
        if orphan.alive and (number == SIGKILL or folder.run is None or folder.run.plan.on_term is not None):
            orphan.end()


def stop_without_shim(world: World, folder: Folder, life: Life, request: StopRequest) -> None:
    """What the executor has done where the shim is gone."""
    who = folder.identity
    if who is None or (who.boot_id, who.pid_namespace, who.init_ticks) != (
        life.boot_id,
        life.pid_namespace,
        life.init_ticks,
    ):
        return
    signal_tree(world, folder, SIGTERM)

    def kill() -> None:
        if folder.lives:
            signal_tree(world, folder, SIGKILL)
            world.after(1.0, kill)

    world.after(request.grace_s, kill)
