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
    from muster.acts.report_verdict import ReportView
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

        looking = Looking.of_desk(desk)
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
    found = survey(
        loaded, sightings, controller_status(desk), wall=desk.clock.wall(), boot=desk.clock.boot(), boot_id=boot_id(),
        watch_of=watch_of, ledger=ledger, report=_report(desk, loaded), slot_holders=_slot_holders(loaded),
    )  # fmt: skip
    if found.going_on and not found.controller.alive and not desk.started_here():  # it costs a little
        found = replace(found, controller=replace(found.controller, started_here=False))
    return _with_disk(found, watches, alive) if attempts and alive else found


def _with_disk(found: Status, watches: Watches, alive: Sequence[Attempt]) -> Status:
    """Whether the disk lasts until the campaign ends; only while something runs."""
    from muster.acts.disk import disk_view, ends_in_s, large_logs
    from muster.controller.watches import name_of

    remembered = watches.remembered
    view = disk_view(remembered.disk, None)
    view = replace(view, ends_in_s=ends_in_s(found.state)) if view else None
    living = {name_of(each) for each in alive}
    histories = {name: each for name, each in remembered.histories.items() if name in living}
    return replace(found, disk=view, large_logs=large_logs(histories, found.boot))


def _slot_holders(state: CampaignState) -> list[str]:
    """Runs of other campaigns on slots that this one may use, where something of it waits."""
    if state.intent.kind != "running" or all(record.open or record.done for record in state.declared):
        return []
    from muster.execute.slots import Closed, SlotHouse, home, is_slot_of

    ours = {attempt.token for attempt in state.open_attempts}
    try:
        held = SlotHouse(home() / "slots").holders()
    except PermissionError:
        return [f"slots are held by {Closed(str(home() / 'slots'), '', 0, '')}"]
    except OSError:
        return []
    wanted = state.campaign.slots
    others = {name: who for name, who in held.items() if who.token not in ours and is_slot_of(wanted, name)}
    return [f"{name} is held by {who}" for name, who in others.items()]


def _report(desk: Desk, state: CampaignState) -> ReportView | None:
    if not (desk.root / "reports" / "stamps").is_dir():
        return None
    from muster.acts.report_verdict import report_view  # a campaign without a report needs none of it

    return report_view(desk.root, state, lambda: _accepted(desk))


def _accepted(desk: Desk) -> str:
    """As stamps have it. Most campaigns have no accepted flag, and nobody reads a long log for that."""
    if not desk.store.has_decided("flag"):
        return ""
    from muster.acts.accepted import accepted_flags
    from muster.acts.stamping import digest_of_flags

    return digest_of_flags(tuple(accepted_flags(desk.store.events())))


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
        return ControllerStatus(False, trouble=_lost(desk))
    silent = desk.clock.boot() - holder.beat
    hung = silent if silent > STALE_S else None
    trouble = holder.trouble or (f"it has not beaten for {silent:.0f} s" if hung else "")
    return ControllerStatus(hung is None, holder.pid, iso(holder.since), hung, trouble)


def _lost(desk: Desk) -> str:
    """What the guard says of a controller that does not stay; "": nothing, or there is no guard."""
    if not (desk.state / "guard.json").exists():
        return ""
    from muster.execute.guards import guard_pid, read_words

    words = read_words(desk.state)
    if words is None or not words.worth_telling or guard_pid(desk.state) is None:
        return ""
    log = desk.state / "controller.log"
    return f"{words.how}; the guard starts it again at {iso(words.next)[11:19]}; {log} says more"
