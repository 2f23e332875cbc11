"""Looks at a campaign without changing it: for every command that tells the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from muster.acts.status import ControllerStatus, Status, survey
from muster.domain.attempt import Attempt
from muster.domain.state import CampaignState
from muster.execute.paths import attempt_folder
from muster.observe.process import boot_id
from muster.ports.clock import iso
from muster.store.lock import STALE_S
from muster.wiring.desk import Desk

if TYPE_CHECKING:
    from muster.acts.status import WatchOf
    from muster.controller.watches import Watches
    from muster.domain.sighting import Sighting


def look(desk: Desk, state: CampaignState | None = None, *, ledger: bool = False) -> Status:
    loaded = state or desk.load()
    sightings = {}
    watch_of: WatchOf = lambda *_: None  # noqa: E731
    if attempts := loaded.open_attempts:
        from muster.domain.sighting import ProofReading
        from muster.wiring.looking import Looking

        looking = Looking(lambda cell, n: attempt_folder(desk.state, cell, n), desk.clock)
        looking.configure(loaded)
        sightings = looking.probe.look(attempts)
        alive = [attempt for attempt in attempts if sightings[attempt.key].lives]
        watches = watched(desk, loaded, [(attempt, sightings[attempt.key]) for attempt in alive])
        watch_of = watches.of
        for attempt in attempts:
            sightings[attempt.key] = watches.with_memory(attempt, sightings[attempt.key])
        for attempt in alive:
            known = watches.remembered.histories.get(f"{attempt.cell}@{attempt.n}")
            progress = ProofReading(None, (), known.output, known.step) if known and known.output else None
            progress = progress or looking.progress(attempt)
            sightings[attempt.key] = replace(sightings[attempt.key], proof=progress)
    return survey(
        loaded, sightings, controller_status(desk), wall=desk.clock.wall(), boot=desk.clock.boot(), boot_id=boot_id(),
        watch_of=watch_of, ledger=ledger,
    )  # fmt: skip


def watched(desk: Desk, state: CampaignState, living: Sequence[tuple[Attempt, Sighting]]) -> Watches:
    """What the controller's looks add up to. Where nobody has looked lately we look ourselves, and convict nobody."""
    from muster.controller.watches import Watches, lives, name_of
    from muster.judge.history import note
    from muster.store.watches import WatchFile
    from muster.wiring.pace import floors

    watches = Watches(floors(), WatchFile(desk.state, boot_id()))
    now, late_s = desk.clock.boot(), watches.floors.late_s
    known = watches.remembered.histories
    alone = [
        (attempt, seen)
        for attempt, seen in living
        if lives(seen) and (name_of(attempt) not in known or now - known[name_of(attempt)].polled > late_s)
    ]
    if not alone:
        return watches
    from muster.observe.vitals import VitalsReader
    from muster.wiring.watching import Watching

    watching = Watching(lambda cell, n: attempt_folder(desk.state, cell, n), desk.clock, VitalsReader())
    watching.configure(state)
    readings = watching.read(alone)
    for attempt, seen in alone:
        watch = watches.of(attempt, seen, state.job(state.cells[attempt.cell].cell.job))
        if watch:
            note(watch.history, readings[attempt.key], seen.main_state, watches.floors)
    return watches


def controller_status(desk: Desk) -> ControllerStatus:
    holder = desk.controller()
    if holder is None:
        return ControllerStatus(False)
    silent = desk.clock.boot() - holder.beat
    hung = silent if silent > STALE_S else None
    trouble = holder.trouble or (f"it has not beaten for {silent:.0f} s" if hung else "")
    return ControllerStatus(hung is None, holder.pid, iso(holder.since), hung, trouble)
