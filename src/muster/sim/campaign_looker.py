"""Somebody asks for the status, whether there is a controller or not: what is shown must be true at that moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.acts.status import CellStatus, ControllerStatus, survey
from muster.controller.watches import Watches, lives, name_of
from muster.domain.state import CampaignState
from muster.domain.verdict import State
from muster.judge.history import note
from muster.sim.campaign_ports import Caller, SimMemory
from muster.sim.probe import SimProbe, SimSignals
from muster.sim.world import Violation

if TYPE_CHECKING:
    from muster.sim.campaign_scene import Scene


def look(scene: Scene) -> None:
    """As `muster status` looks: a reader of its own, and what the controller's looks add up to."""
    state, world = scene.state(), scene.world
    if state is None:
        return  # the database is gone, and a controller is about to fold the log
    me, began = Caller(world.life), world.now
    sightings = SimProbe(scene, me).look(state.open_attempts)
    watches = Watches(scene.floors, SimMemory(scene.memory, me))
    living = [(attempt, sightings[attempt.key]) for attempt in state.open_attempts if lives(sightings[attempt.key])]
    known, now = watches.remembered.histories, world.boot
    old = [
        (attempt, seen)
        for attempt, seen in living
        if name_of(attempt) not in known or now - known[name_of(attempt)].polled > scene.floors.late_s
    ]
    for attempt, seen in old:
        watch = watches.of(attempt, seen, state.job(state.cells[attempt.cell].cell.job))
        readings = SimSignals(scene, me).read([(attempt, seen)])
        if watch:
            note(watch.history, readings[attempt.key], seen.main_state, scene.floors)
    controller = ControllerStatus(bool(scene.brains))
    status = survey(
        state, sightings, controller, wall=world.wall, boot=now, boot_id=world.life.boot_id, watch_of=watches.of
    )
    if len(status.cells) != len(state.declared):
        raise Violation(f"the status shows {len(status.cells)} of {len(state.declared)} cells")
    if status.complete and status.exit not in (0, 4):
        raise Violation(f"all is done, and the status exits with {status.exit}")
    if me.life == world.life:  # else the machine went down in the middle of the look
        for cell in (*status.cells, *status.withdrawn):
            _check(scene, state, cell, began)


def _check(scene: Scene, state: CampaignState, cell: CellStatus, began: float) -> None:
    name, verdict = cell.record.cell.id, cell.verdict
    attempt = state.cells[name].open
    folder = scene.folders.get((name, attempt.n)) if attempt else None
    if folder is None:
        return
    if verdict.state in (State.DEAD, State.DONE) and folder.executing:
        raise Violation(f"the status shows {name} as {verdict.state} while it runs")
    over = folder.over_at is not None and folder.over_at < began and not folder.shim_locked
    if verdict.state in (State.RUNNING, State.QUIET, State.STALLED) and over:
        raise Violation(f"the status shows {name} as {verdict.state} although it is dead")
