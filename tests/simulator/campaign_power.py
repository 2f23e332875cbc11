"""The end of a simulated campaign that asks for a power-off, on a machine where others may not be done yet.

The way to it is the real one; its looks see what a real one sees. Whether it was right the world itself tells.
"""

from __future__ import annotations

import random
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from muster.app.campaign import finish_steps
from muster.app.finish.power_off_rules import (
    NeighbourCampaign,
    PowerOffCheck,
    PowerOffFacts,
    PowerOffOutcome,
    PowerOffStep,
    PowerSwitch,
    check_power_off,
)
from muster.engine.controller.action_runner import ActionRunner
from muster.engine.ports.extension import ControllerExtension, ExtensionResult
from muster.engine.ports.processes import LivingRemains
from muster.model.campaign_state import CampaignState
from simulator.campaign_folder import Folder
from simulator.campaign_ports import SimClock
from simulator.world import Violation, World

if TYPE_CHECKING:
    from simulator.campaign_scene import Scene

T = TypeVar("T")
PAUSE_S = 60.0
LONGEST_S = 1800.0  # that another campaign takes to its end


@dataclass(slots=True)
class Register:
    """The other campaigns of this user: until when each has work to do, and until when what it left behind works."""

    world: World
    done_at: dict[str, float] = field(default_factory=dict)
    gone_at: dict[str, float] = field(default_factory=dict)

    @classmethod
    def drawn(cls, world: World, name: str, around_s: float) -> Register:
        """Drawn apart: the rest of the story stays as it was. They end about when this campaign does."""
        own, made = random.Random(f"register of {name}"), cls(world)
        for number in range(own.choice((0, 0, 1, 2))):
            other, ends = f"other{number}", max(0.0, around_s + own.uniform(-LONGEST_S, LONGEST_S))
            made.done_at[other] = ends
            made.gone_at[other] = ends + own.choice((0.0, 0.0, own.uniform(1.0, LONGEST_S)))
        return made

    def neighbours(self) -> tuple[NeighbourCampaign, ...]:
        return tuple(self._neighbour(name) for name in self.done_at)

    def _neighbour(self, name: str) -> NeighbourCampaign:
        left = "some cells are not done" if self.world.now < self.done_at[name] else ""
        lives = self.world.now < self.gone_at[name]
        return NeighbourCampaign(name, f"/{name}", left, (LivingRemains("train@1", shim_held=True),) if lives else ())


class SimFinish(ControllerExtension):
    """A finish of nothing but the power-off."""

    def __init__(self, scene: Scene, carrier: ActionRunner) -> None:
        self.scene, self.clock = scene, SimClock(scene.world)
        self.powering = PowerOffStep(PowerSwitch(self._look, self._run, PAUSE_S), self.clock, carrier.decision)

    def at_rest(self, state: CampaignState, *, complete: bool) -> ExtensionResult:
        if not complete:
            return (), True
        due = finish_steps.next_finish_action(state)
        if isinstance(due, finish_steps.PowerOff):
            return self.powering(due, state), False
        return (), not isinstance(due, finish_steps.NothingDue) or due.over

    def _look(self) -> Future[PowerOffCheck]:
        remains = tuple(_remains(folder) for folder in self.scene.folders.values())
        return _at_once(check_power_off(PowerOffFacts(remains=remains, neighbours=self.scene.register.neighbours())))

    def _run(self, _: str, __: CampaignState) -> Future[PowerOffOutcome]:
        self.scene.count("powered off")
        self.scene.world.say("the machine is powered off")
        lives = [f"{folder.key[0]}@{folder.key[1]}" for folder in self.scene.folders.values() if folder.lives]
        if lives:
            raise Violation(f"the machine is powered off while {lives[0]} or what it left behind lives")
        for each in self.scene.register.neighbours():
            if each.unfinished or each.remains:
                raise Violation(f"the machine is powered off while {each.name} is not done")
        return _at_once(PowerOffOutcome(True, "off"))


def _remains(folder: Folder) -> LivingRemains:
    name = f"{folder.key[0]}@{folder.key[1]}"
    named = folder.exit.orphans or () if folder.exit else ()
    seen = [each for each in folder.others if each.alive and (each.token or each.pid in named)]
    alive = tuple(process.pid for process in seen)
    return LivingRemains(name, folder.tree_locked, folder.shim_locked, alive)


def _at_once(value: T) -> Future[T]:
    future: Future[T] = Future()
    future.set_result(value)
    return future
