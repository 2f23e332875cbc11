"""Looks at a campaign without changing it: for every command that tells the truth."""

from __future__ import annotations

from dataclasses import replace

from muster.acts.status import ControllerStatus, Status, survey
from muster.domain.state import CampaignState
from muster.execute.paths import attempt_folder
from muster.observe.process import boot_id
from muster.ports.clock import iso
from muster.store.lock import STALE_S
from muster.wiring.desk import Desk


def look(desk: Desk, state: CampaignState | None = None) -> Status:
    loaded = state or desk.load()
    sightings = {}
    if attempts := loaded.open_attempts:
        from muster.wiring.looking import Looking

        looking = Looking(lambda cell, n: attempt_folder(desk.state, cell, n), desk.clock)
        looking.configure(loaded)
        sightings = looking.probe.look(attempts)
        alive = [attempt for attempt in attempts if sightings[attempt.key].main == "alive"]
        for attempt in alive:
            sightings[attempt.key] = replace(sightings[attempt.key], proof=looking.progress(attempt))
    return survey(
        loaded, sightings, controller_status(desk), wall=desk.clock.wall(), boot=desk.clock.boot(), boot_id=boot_id()
    )


def controller_status(desk: Desk) -> ControllerStatus:
    holder = desk.controller()
    if holder is None:
        return ControllerStatus(False)
    silent = desk.clock.boot() - holder.beat
    hung = silent if silent > STALE_S else None
    trouble = holder.trouble or (f"it has not beaten for {silent:.0f} s" if hung else "")
    return ControllerStatus(hung is None, holder.pid, iso(holder.since), hung, trouble)
