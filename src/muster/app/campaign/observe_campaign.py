"""Observes a campaign without changing it, for every command that reports its state. Definitions hold as the last
`up` took them in, whatever the files say now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import CellStatus, ControllerStatus, Status, build_status
from muster.engine.ports.store import STALE_LOCK_S
from muster.files.campaign_snapshots import load_campaign_snapshot
from muster.files.process_identity import read_boot_id
from muster.model.attempt import Attempt
from muster.model.calendar import format_iso_time
from muster.model.campaign import Campaign
from muster.model.campaign_state import CampaignState
from muster.model.errors import MusterError, UsageError
from muster.model.verdict import VerdictState
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names

if TYPE_CHECKING:
    from muster.app.campaign.last_report import ReportView
    from muster.engine.controller.watch_book import WatchBook
    from muster.engine.judge.liveness import WatchOf
    from muster.engine.ports.machine import Machine
    from muster.model.attempt_snapshot import AttemptSnapshot

MOST_NAMED_CELLS = 3
REDO_HINT = "campaign.redo_after_up"
RETRY_HINT = "campaign.retry_after_up"


def refuse_changed_definitions(desk: CampaignHandle, state: CampaignState, names: Sequence[str], hint: str) -> None:
    """A new attempt would run the old definition: nobody who has just fixed a file means that."""
    from muster.app.campaign.load_campaign import read_campaign_file, with_current_variants

    if not desk.file.is_file():
        raise UsageError(phrase("campaign.file_is_gone"), where=str(desk.file))
    now = _definition_hashes_now(
        desk, state, with_current_variants(read_campaign_file(desk.file), state).campaign, names
    )
    changed = [name for name in names if now.get(name) != state.cells[name].hash]
    if changed:
        raise UsageError(
            phrase("campaign.definition_changed_on_disk", cells=join_few_names(changed, MOST_NAMED_CELLS)),
            where=str(desk.file),
            hint=phrase(hint),
            code="not_taken_in",
        )


def with_next_by_file(desk: CampaignHandle, status: Status) -> Status:
    """Dead cells with what follows if `muster up` takes the files in that lie there now.

    Whoever has fixed a file and looks is not told to fix it. A file that can't be taken in changes nothing here.
    """
    dead = [
        each.record.cell.id for each in status.cells if each.verdict.state == VerdictState.DEAD and not each.startable
    ]
    if not dead or not desk.file.is_file():
        return status
    try:
        following = _next_steps_by_file(desk, status, dead)
    except (MusterError, OSError):
        return status
    return replace(status, cells=tuple(_cell_with_next(each, following) for each in status.cells))


def _cell_with_next(cell: CellStatus, following: Mapping[str, str]) -> CellStatus:
    then = following.get(cell.record.cell.id, cell.next)
    return cell if then == cell.next else replace(cell, next=phrase("campaign.file_changed_then", following=then))


def _next_steps_by_file(desk: CampaignHandle, status: Status, names: Sequence[str]) -> dict[str, str]:
    from muster.engine.plan.cell_standing import standing_of_cell
    from muster.engine.plan.up_preview import state_as_declared

    state, campaign = status.state, status.state.campaign
    text = desk.file.read_text(encoding="utf-8")
    if campaign.loop or load_campaign_snapshot(desk.state, state.campaign_hash).text != text:
        from muster.app.campaign.load_campaign import read_campaign_file, with_current_variants

        campaign = with_current_variants(read_campaign_file(desk.file, text), state).campaign
    known = {name: record.hash for name, record in state.cells.items()}
    now = known | _definition_hashes_now(desk, state, campaign, names)
    then = state_as_declared(campaign, now, state)
    needs = then.needs
    purse = status.spending.purse if status.spending else None
    return {
        name: standing_of_cell(then.cells[name], then, needs, purse).next for name in names if then.cells[name].declared
    }


def _definition_hashes_now(
    desk: CampaignHandle, state: CampaignState, campaign: Campaign, names: Collection[str]
) -> dict[str, str]:
    """Of the cells' definitions, with the code that was there when they were taken in: it is no part of a file."""
    from muster.app.campaign.cell_definitions import hash_definitions

    found = hash_definitions(campaign, str(desk.root), lambda _: {}, desk.store.origin(), frozenset(names))
    return {
        name: "-".join((now.partition("-")[0], *state.cells[name].hash.partition("-")[2:]))
        for name, now in found.items()
    }


def observe_campaign(desk: CampaignHandle, state: CampaignState | None = None, *, ledger: bool = False) -> Status:
    loaded = state or desk.load()
    sightings = {}
    watch_of: WatchOf = lambda *_: None  # noqa: E731
    if attempts := loaded.open_attempts:
        from muster.model.attempt_snapshot import ProofReading

        looking = desk.observer()
        looking.configure(loaded)
        sightings = looking.probe.look(attempts)
        alive = [attempt for attempt in attempts if sightings[attempt.key].lives]
        watches = build_watch_book(desk, loaded, [(attempt, sightings[attempt.key]) for attempt in alive])
        watch_of = watches.of
        for attempt in attempts:
            sightings[attempt.key] = watches.with_memory(attempt, sightings[attempt.key])
        for attempt in alive:
            known = watches.remembered.histories.get(f"{attempt.cell}@{attempt.n}")
            progress = ProofReading(None, (), known.output, known.step) if known and known.output else None
            progress = progress or looking.progress(attempt)
            sightings[attempt.key] = replace(sightings[attempt.key], proof=progress)
    found = build_status(
        loaded,
        sightings,
        read_controller_status(desk),
        wall=desk.clock.wall(),
        boot=desk.clock.boot(),
        boot_id=read_boot_id(),
        watch_of=watch_of,
        ledger=ledger,
        report=_last_report_view(desk, loaded),
        slot_holders=_other_slot_holders(desk.services.machine, loaded),
    )
    if found.going_on and not found.controller.alive and not desk.started_here():  # it costs a little
        found = replace(found, controller=replace(found.controller, started_here=False))
    return _with_disk_outlook(found, watches, alive) if attempts and alive else found


def _with_disk_outlook(found: Status, watches: WatchBook, alive: Sequence[Attempt]) -> Status:
    """Whether the disk lasts until the campaign ends; only while something runs."""
    from muster.app.campaign.disk_use import build_disk_outlook, estimate_campaign_end_s, find_large_logs
    from muster.engine.controller.watch_book import watch_name_of

    remembered = watches.remembered
    view = build_disk_outlook(remembered.disk, None)
    view = replace(view, ends_in_s=estimate_campaign_end_s(found.state)) if view else None
    living = {watch_name_of(each) for each in alive}
    histories = {name: each for name, each in remembered.histories.items() if name in living}
    return replace(found, disk=view, large_logs=find_large_logs(histories, found.boot))


def _other_slot_holders(machine: Machine, state: CampaignState) -> list[str]:
    """Runs of other campaigns on slots that this one may use, where something of it waits."""
    if state.intent.kind != "running" or all(record.open or record.done for record in state.declared):
        return []
    from muster.engine.ports.executor import ClosedLease, is_campaign_slot
    from muster.files.muster_home import slots_home

    ours = {attempt.token for attempt in state.open_attempts}
    try:
        held = machine.slot_holders()
    except PermissionError:
        return [phrase("campaign.slots_held", holder=ClosedLease(str(slots_home() / "slots"), "", 0, ""))]
    except OSError:
        return []
    wanted = state.campaign.slots
    others = {name: who for name, who in held.items() if who.token not in ours and is_campaign_slot(wanted, name)}
    return [phrase("campaign.slot_held_by", slot=name, who=who) for name, who in others.items()]


def _last_report_view(desk: CampaignHandle, state: CampaignState) -> ReportView | None:
    if not (desk.root / "reports" / "stamps").is_dir():
        return None
    from muster.app.campaign.last_report import read_report_view  # a campaign without a report needs none of it

    return read_report_view(desk.root, state, lambda: _accepted_flags_digest(desk))


def _accepted_flags_digest(desk: CampaignHandle) -> str:
    """As stamps have it. Most campaigns have no accepted flag, and nobody reads a long log for that."""
    if not desk.store.has_decided("flag"):
        return ""
    from muster.app.campaign.accepted_flags import find_accepted_flags
    from muster.app.campaign.campaign_digests import digest_accepted_flags

    return digest_accepted_flags(tuple(find_accepted_flags(desk.store.events())))


def build_watch_book(
    desk: CampaignHandle, state: CampaignState, living: Sequence[tuple[Attempt, AttemptSnapshot]]
) -> WatchBook:
    """What the controller's looks add up to. Where nobody has looked lately we look ourselves, and convict nobody."""
    from muster.engine.controller.watch_book import WatchBook, is_living_run, watch_name_of
    from muster.engine.judge.signal_history import fold_readings
    from muster.engine.ports.clock import thresholds_from_env

    watches = WatchBook(thresholds_from_env(), desk.services.storage.watch_book(desk.state, read_boot_id()))
    now, late_s = desk.clock.boot(), watches.floors.late_s
    known = watches.remembered.histories
    alone = [
        (attempt, seen)
        for attempt, seen in living
        if is_living_run(seen)
        and (watch_name_of(attempt) not in known or now - known[watch_name_of(attempt)].polled > late_s)
    ]
    if not alone:
        return watches
    watching = desk.services.host.signals(desk.state, desk.clock)
    watching.configure(state)
    readings = watching.read(alone)
    for attempt, seen in alone:
        watch = watches.of(attempt, seen, state.job(state.cells[attempt.cell].cell.job))
        if watch:
            fold_readings(watch.history, readings[attempt.key], seen.main_state, watches.floors)
    return watches


def read_controller_status(desk: CampaignHandle) -> ControllerStatus:
    holder = desk.controller()
    if holder is None:
        return ControllerStatus(False, trouble=_describe_lost_controller(desk))
    silent = desk.clock.boot() - holder.beat
    hung = silent if silent > STALE_LOCK_S else None
    trouble = holder.trouble or (phrase("campaign.controller_not_beaten", silent=silent) if hung else "")
    return ControllerStatus(hung is None, holder.pid, format_iso_time(holder.since), trouble)


def _describe_lost_controller(desk: CampaignHandle) -> str:
    """What the guard says of a controller that does not stay; "": nothing, or there is no guard."""
    if not (desk.state / "guard.json").exists():
        return ""
    words = desk.services.host.guard_trouble(desk.state)
    if words is None:
        return ""
    log = desk.state / "controller.log"
    return phrase("campaign.guard_starts_again", trouble=words.how, at=format_iso_time(words.next)[11:19], log=log)
