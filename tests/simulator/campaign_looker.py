"""Somebody asks for the status, whether there is a controller or not: what is shown must be true at that moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.app.campaign.campaign_status import CellStatus, ControllerStatus, build_status
from muster.engine.controller.watch_book import WatchBook, is_living_run, watch_name_of
from muster.engine.judge.signal_history import fold_readings
from muster.model.campaign_state import CampaignState
from muster.model.verdict import VerdictState
from simulator.campaign_ports import Caller, SimMemory
from simulator.probe import SimProbe, SimSignals
from simulator.world import Violation

if TYPE_CHECKING:
    from simulator.campaign_scene import Scene


def look(scene: Scene) -> None:
    """As `muster status` looks: a reader of its own, and what the controller's looks add up to."""
    state, world = scene.state(), scene.world
    if state is None:
        return  # the database is gone, and a controller is about to fold the log
    me, began = Caller(world.life), world.now
    sightings = SimProbe(scene, me).look(state.open_attempts)
    watches = WatchBook(scene.floors, SimMemory(scene.memory, me))
    living = [
        (attempt, sightings[attempt.key]) for attempt in state.open_attempts if is_living_run(sightings[attempt.key])
    ]
    known, now = watches.remembered.histories, world.boot
    old = [
        (attempt, seen)
        for attempt, seen in living
        if watch_name_of(attempt) not in known or now - known[watch_name_of(attempt)].polled > scene.floors.late_s
    ]
    for attempt, seen in old:
        watch = watches.of(attempt, seen, state.job(state.cells[attempt.cell].cell.job))
        readings = SimSignals(scene, me).read([(attempt, seen)])
        if watch:
            fold_readings(watch.history, readings[attempt.key], seen.main_state, scene.floors)
    controller = ControllerStatus(bool(scene.brains))
    status = build_status(
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
    if verdict.state in (VerdictState.DEAD, VerdictState.DONE) and folder.executing:
        raise Violation(f"the status shows {name} as {verdict.state} while it runs")
    over = folder.over_at is not None and folder.over_at < began and not folder.shim_locked
    if verdict.state in (VerdictState.RUNNING, VerdictState.QUIET, VerdictState.STALLED) and over:
        raise Violation(f"the status shows {name} as {verdict.state} although it is dead")
