"""A controller in the made-up world: the real loop and all that belongs to it, turn by turn.

At any call of a port it may be killed, stopped for a while, or kept from its work; the next one finds what it left.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from muster.engine.controller.action_runner import ActionRunner
from muster.engine.controller.loop import ControllerLoop, ControllerPorts, LoopTimings
from muster.engine.controller.watch_book import WatchBook
from muster.engine.judge.signal_history import Thresholds
from muster.engine.ports.executor import WakeReason
from muster.engine.ports.extension import ControllerExtension
from muster.hosts.local.launch_orders import LocalOrderComposer, OrderDefaults
from muster.model.attempt_snapshot import AttemptSnapshot
from muster.model.calendar import format_iso_time
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from muster.model.verdict import Verdict
from simulator.campaign_ports import Caller, Killed, SimBallast, SimClock, SimLock, SimMemory, SimWaker
from simulator.campaign_power import SimFinish
from simulator.campaign_store import SimStore
from simulator.executor import SimExecutor, close_requests
from simulator.probe import SimProbe, SimSignals
from simulator.world import Key, Life, Violation

if TYPE_CHECKING:
    from simulator.campaign_scene import Scene

Seen = Callable[[Mapping[Key, AttemptSnapshot], Mapping[Key, Verdict]], None]
NOWHERE = Path("/campaign")


class SimLoop(ControllerLoop):
    """The real one; whoever checks sees its verdicts."""

    seen: Seen

    def _judge(self, sightings: dict[Key, AttemptSnapshot]) -> dict[Key, Verdict]:
        verdicts = super()._judge(sightings)
        self.seen(sightings, verdicts)
        return verdicts


@dataclass(slots=True)
class Arm:
    """What happens to a controller when it comes to a point for the nth time; "" is any point."""

    what: str  # kill | stop | starve
    point: str
    count: int
    lasts: float = 0.0
    after: Callable[[], None] | None = None  # done when it has begun


@dataclass(slots=True, eq=False)
class Kept:
    """What a brain is made of once it has begun."""

    loop: SimLoop
    waker: SimWaker
    executor: SimExecutor
    store: SimStore


class Brain(Caller):
    def __init__(self, scene: Scene, number: int, life: Life) -> None:
        super().__init__(life)
        self.scene, self.world, self.number = scene, scene.world, number
        self.who = f"controller {number}"
        self.epoch = 0
        self.alive, self.stopped, self.stale = True, False, False
        self.failed = False  # it ended by itself, with an error
        self.due = self.disturbed = scene.world.now
        self.arms: list[Arm] = []
        self.kept: Kept | None = None
        self.turns = 0

    @property
    def poll_s(self) -> float:
        return self.scene.made.poll_s

    @property
    def wake_at(self) -> float:
        if self.stopped:
            return float("inf")
        return self.world.now if self.kept and self.kept.waker.awake else self.due

    def leases(self) -> list[str]:
        return [slot for hold in self.kept.executor.holds() for slot in hold.slots] if self.kept else []

    def known_cells(self) -> tuple[int, set[str]]:
        assert self.kept is not None
        loop = self.kept.loop
        return len(loop.state.cells), {record.cell.id for record in loop.agenda.cells}

    # -- what may happen at a call

    def at(self, point: str, *, stoppable: bool = True) -> None:
        rng = self.world.random
        if stoppable:
            busy = rng.uniform(0.05, 1.0) if rng.random() < 0.0005 else rng.uniform(0.0001, 0.001)
            self.world.spend(busy)
        if not self.alive:
            raise Killed
        for arm in self.arms:
            if arm.point in ("", point) and (stoppable or arm.what == "kill"):
                arm.count -= 1
                if arm.count <= 0:
                    self.arms.remove(arm)
                    self._strike(arm, point)
                    break

    def _strike(self, arm: Arm, point: str) -> None:
        self.world.say(f"{self.who}: {arm.what} at {point}" + (f" for {arm.lasts:.0f} s" if arm.lasts else ""))
        if arm.after:
            arm.after()
        if arm.what == "kill":
            self.scene.count(f"killed at {point}")
            self.alive = False
            raise Killed
        if arm.what == "starve":
            self.disturbed = self.world.now + arm.lasts  # for who looks at it meanwhile
            self.world.spend(arm.lasts)
        else:
            self._sleep(arm.lasts)
        self.disturbed = self.world.now
        if not self.alive:
            raise Killed

    def _sleep(self, seconds: float) -> None:
        """SIGSTOP in the middle of a turn: the world and other controllers go on."""
        before, self.stopped = self.scene.book.epoch, True
        self.scene.drive(self.world.now + seconds)
        self.stopped = False
        self.stale = self.stale or self.scene.book.epoch != before

    # -- turns

    def turn(self) -> None:
        self.turns += 1
        try:
            if self.kept is None:
                self._begin()
            else:
                self._turn(self.kept)
        except Killed:
            self.gone("was killed")
        except Violation:
            raise
        except Exception as error:
            raise Violation(f"the controller crashed: {error!r}\n{traceback.format_exc()}") from error

    def _begin(self) -> None:
        store = SimStore(self.scene.shelf, self, self.scene.checks)
        try:
            store.commit([])
            epoch = store.epoch_now() + 1
            now = format_iso_time(self.world.wall)
            taken = Decision(
                "epoch",
                self.who,
                "started",
                at=now,
                boot=self.world.boot,
                epoch=epoch,
                data={"epoch": epoch, "pid": self.number, "boot_id": self.life.boot_id},
            )
            store.commit([taken])
            store.epoch = self.epoch = epoch
            loaded = store.load()
        except OSError as error:  # the process ends with it; somebody starts another one later
            self.failed = True
            self.gone(f"could not begin: {error}")
            return
        assert loaded is not None  # it was taken in before anybody started a controller
        self.kept = self._build(store, loaded)
        self.scene.checks.minds[self] = self
        self.disturbed = self.world.now
        self._run(self.kept, WakeReason(log=True))

    def _build(self, store: SimStore, loaded: CampaignState) -> Kept:
        scene, world = self.scene, self.world
        clock, waker = SimClock(world), SimWaker(world, self)
        executor = SimExecutor(scene, self, loaded.campaign.slots)
        ballast = SimBallast(world, self)
        watches = WatchBook(scene.floors, SimMemory(scene.memory, self))
        around = OrderDefaults(NOWHERE, NOWHERE / ".muster", (), 30.0, lambda _: {}, lambda *_: None)
        carrier = ActionRunner(
            store,
            executor,
            clock,
            LocalOrderComposer(around),
            who=self.who,
            epoch=loaded.epoch,
            boot_id=self.life.boot_id,
            ballast=ballast,
        )
        lock, signals = SimLock(world, self), SimSignals(scene, self)
        ports = ControllerPorts(store, executor, SimProbe(scene, self), waker, clock, lock, signals)
        policy = LoopTimings(poll_s=self.poll_s, beat_s=self.poll_s)

        extensions = (BrainExtension(self, executor), SimFinish(scene, carrier))
        loop = SimLoop(ports, carrier, loaded, watches, policy, extensions)
        loop.seen = lambda sightings, verdicts: scene.checks.judged(self, sightings, verdicts)
        return Kept(loop, waker, executor, store)

    def _turn(self, kept: Kept) -> None:
        woken = kept.waker.awake
        self._run(kept, kept.waker.wait(0.0), woken=woken)

    def _run(self, kept: Kept, wake: WakeReason, *, woken: bool = True) -> None:
        loop = kept.loop
        polled = self.world.boot >= loop._next_poll
        self.world.spend(0.001)
        if not self.alive:
            raise Killed
        loop._turn(wake)
        self.scene.checks.turned(self, trouble=bool(loop.trouble), polled=polled, woken=woken)
        self.stale = False
        if loop.trouble:
            self.disturbed = self.world.now
        if loop._ended:
            loop._publish(at_once=True)
            self._leave()
        else:
            self.due = self.world.now + loop._patience()

    def _leave(self) -> None:
        if self.epoch < self.scene.book.epoch:
            self.scene.count("superseded")
            self.gone("gives way to a newer one")
            return
        self.scene.checks.ended(self)
        end = self.scene.book.end
        self.gone(f"ends: {end.reason if end else ''}")

    def gone(self, how: str) -> None:
        self.alive = False
        if self not in self.scene.brains:
            return
        self.world.say(f"{self.who} {how}")
        self.scene.brain_gone(self)
        if self.epoch == 0:  # it began because it had killed the one before, and died before it had an epoch
            for other in list(self.scene.brains):
                other.gone("was killed by its successor")
        if self.kept:
            for hold in self.kept.executor.every_hold():
                hold.drop(self)
        close_requests(self.scene, self)


@dataclass(frozen=True, slots=True)
class BrainExtension(ControllerExtension):
    brain: Brain
    executor: SimExecutor

    def configure(self, state: CampaignState) -> None:
        self.executor.configure(state.campaign.slots)

    def publish(self, _: CampaignState) -> None:
        self.brain.at("publish")

    def end_turn(self, state: CampaignState) -> None:
        if state.intent.kind == "running":
            self.brain.scene.want_guard(self.brain.life)


def floors(poll_s: float) -> Thresholds:
    return Thresholds(poll_s=poll_s, late_s=2.4 * poll_s)
