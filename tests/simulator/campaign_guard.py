"""The guard in the made-up world: the real rules about what it does next and how long it waits, step by step.

It is a process like any other: it may be killed or stopped, alone or together with the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.hosts.local import guard
from simulator.campaign_shim import Steps
from simulator.world import Life, Violation

if TYPE_CHECKING:
    from simulator.campaign_scene import Scene

LATE_S = 60.0  # it takes a moment until a controller is loaded, and longer on a busy machine
WINDOW_S, MOST_STARTS = 600.0, 40  # more than that is a storm of revivals
CHECK_S = 20.0
NUDGE_S = 1.0


class SimGuard:
    def __init__(self, scene: Scene, life: Life) -> None:
        self.scene, self.world = scene, scene.world
        self.process = scene.world.spawn("guard", life=life)
        self.process.on_end.append(self._gone)
        self.steps = Steps(scene.world, self.process)
        self.losses = guard.ControllerLosses()
        self.since = self.world.boot
        self.start_at = 0.0
        self.steps.soon(self._look, scene.dice.uniform(0.0005, 0.004))

    def controller_came(self) -> None:
        self.since = self.world.boot

    def controller_gone(self, code: int | None) -> None:
        """Its pidfd fires."""
        lived_s = self.world.boot - self.since
        self.steps.soon(lambda: self._lost(lived_s, code), self.scene.dice.uniform(0.0005, 0.004))

    def _lost(self, lived_s: float, code: int | None) -> None:
        if not self.scene.attended and self.scene.wants_controller:
            self.losses.add(lived_s, code)
            self.start_at = self.world.boot + self.losses.pause_s
            self.steps.soon(self._act, self.losses.pause_s)

    def _look(self) -> None:
        self._act()
        self.steps.soon(self._look, guard.LOOK_S)

    def _act(self) -> None:
        scene = self.scene
        step = guard.next_guard_step(
            here=True,
            intent=scene.book.intent,
            attended=scene.attended,
            at_rest=not scene.attended and scene.at_rest,
            pause_s=self.start_at - self.world.boot,
        )
        if step == "leave":
            if scene.wants_controller and not scene.attended:
                raise Violation("the guard left although the campaign should go on and has no controller")
            self.world.say("the guard leaves")
            self.process.end()
        elif step == "start":
            self._start()

    def _start(self) -> None:
        scene = self.scene
        if not scene.wants_controller:
            raise Violation("the guard started a controller that nobody wants")
        scene.count("started by the guard")
        starts = scene.guard_starts
        starts.append(self.world.now)
        if len([at for at in starts if at > self.world.now - WINDOW_S]) > MOST_STARTS:
            raise Violation("the guard starts controllers again and again without a pause")
        scene.start_controller(scene.dice.uniform(0.05, 0.5), self.process.life)

    def _gone(self) -> None:
        if self.scene.guard is self:
            self.scene.guard = None


class Attendance:
    """Looks now and then whether somebody is there who should be."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.world = scene, scene.world
        self.alone = self.unguarded = 0.0  # since when; 0: it is not so
        self.world.after(CHECK_S, self._check)

    def _check(self) -> None:
        self.alone = self._since(self.alone, self._is_alone())
        self.unguarded = self._since(self.unguarded, self._is_unguarded())
        keeper = self.scene.guard
        over_s = self.world.boot - keeper.start_at if keeper else 0.0  # since its pause was over
        if self.alone and min(over_s, self.world.now - self.alone) > LATE_S:
            raise Violation("the guard does not start the controller again")
        if self.unguarded and self.world.now - self.unguarded > LATE_S:
            raise Violation("the controller does not start the guard again")
        self.world.after(CHECK_S, self._check)

    def _since(self, before: float, is_so: bool) -> float:
        return (before or self.world.now) if is_so else 0.0

    def _is_alone(self) -> bool:
        scene = self.scene
        able = scene.guard is not None and not scene.guard.process.stopped
        return able and scene.wants_controller and not scene.attended

    def _is_unguarded(self) -> bool:
        """A controller that works beside nobody; one that was held up may not have come to it yet."""
        scene = self.scene
        works = [brain for brain in scene.brains if brain.kept and not brain.stopped]
        rested = all(self.world.now - brain.disturbed > LATE_S for brain in works)
        return scene.guard is None and bool(works) and rested and scene.book.intent == "running"
