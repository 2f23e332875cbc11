"""This user's campaigns on this machine, for `muster ls` and for powering off: lists the register, drops entries,
says which campaigns still have work to do.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from muster.app.campaign.campaign_handle import CampaignHandle, campaign_not_started
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.finish_steps import build_finish_view, describe_step_standing, is_matrix_settled
from muster.app.campaign.observe_campaign import observe_campaign
from muster.engine.ports.clock import Clock, SystemClock
from muster.engine.ports.extension import ControllerExtension
from muster.engine.ports.services import installed_services
from muster.files.campaign_ownership import enter_register, find_foreign_owner
from muster.files.campaign_register import (
    REGISTER_FOLDER,
    RegisterEntry,
    UnreadEntry,
    forget_register_entry,
    has_entry,
    list_register_entries,
    locate_registered_campaign,
)
from muster.files.muster_home import private_home
from muster.model.campaign_state import CampaignState
from muster.model.errors import MusterError, UsageError
from muster.text.phrases import join_phrases, phrase

RegisterStanding = Literal["there", "moved", "gone", "unread"]


@dataclass(frozen=True, slots=True)
class ListedCampaign:
    """One campaign of the register, as it was found."""

    id: str
    name: str
    path: str  # where it lies now; of one that is gone: where it lay
    standing: RegisterStanding
    status: Status | None = None  # None: there is none to look at
    why: str = ""  # why it can't be read
    before: str = ""  # of a renamed one: where it lay

    @property
    def state(self) -> str:
        """complete, running, finishing, held, down, stopped; of what can't be looked at: gone, unread."""
        if self.status is None:
            return "gone" if self.standing == "gone" else "unread"
        return campaign_state_word(self.status)

    @property
    def verdict(self) -> str:
        """Of its last report; empty: there is none."""
        return self.status.report.found.verdict if self.status and self.status.report else ""


def campaign_state_word(found: Status) -> str:
    if found.complete and not found.going_on:
        return "stopped" if found.finish and found.finish.failed else "complete"
    if found.state.intent.kind != "running":
        return found.state.intent.kind
    if not found.going_on:
        return "stopped"
    return "finishing" if found.complete else "running"


def describe_unfinished_work(state: CampaignState, boot: float) -> str:
    """What is still to be done in a campaign that nobody put down; empty: nothing."""
    if state.intent.wants_down:
        return ""
    left = sum(not (record.done or record.given_up is not None) for record in state.declared)
    if left or state.open_attempts:
        return phrase("campaign.cells_not_done", left=left or len(state.open_attempts), declared=len(state.declared))
    if not is_matrix_settled(state):
        return phrase("campaign.loop_not_at_end")
    view = build_finish_view(state, boot)
    undone = [describe_step_standing(each) for each in view.undone] if view else []
    return phrase("campaign.finish_not_done", steps=join_phrases(", ", undone)) if undone else ""


def listed_campaign_as_json(each: ListedCampaign) -> dict[str, Any]:
    """One element of `muster ls --json`: a contract."""
    found = each.status
    return {
        "id": each.id,
        "campaign": each.name,
        "path": each.path,
        "standing": each.standing,
        "state": each.state,
        "controller": bool(found and found.controller.alive),
        "done": found.counts["DONE"] if found else None,
        "declared": len(found.cells) if found else None,
        "verdict": each.verdict or None,
        "before": each.before or None,
        "why": each.why or None,
    }


class RegisterKeeper(ControllerExtension):
    """Keeps a living controller's campaign in the register: where that is deleted, `muster ls` would show nothing."""

    def __init__(self, folder: Path, clock: Clock, every_s: float) -> None:
        self.folder, self.clock, self.every_s = folder, clock, every_s  # `folder`: .muster
        self._next = clock.boot() + every_s

    def end_turn(self, state: CampaignState) -> None:
        """One look at the entry when it is due."""
        if self.clock.boot() < self._next:
            return
        self._next = self.clock.boot() + self.every_s
        with contextlib.suppress(OSError, UsageError):  # UsageError: there is no home
            if not has_entry(private_home(), self.folder):
                enter_register(self.folder, state.campaign.name, self.clock.wall())


@contextlib.contextmanager
def visit_campaign(root: Path) -> Iterator[CampaignHandle]:
    """A campaign as it is, for a look from elsewhere: nothing of it is fixed, marked or folded."""
    state = root / ".muster"
    clock, services = SystemClock(), installed_services()
    storage = services.storage
    whose = find_foreign_owner(root)
    lock = storage.read_only_lock(state, clock) if whose else storage.lock(state, clock)
    store = storage.open_from_log(state) if whose else storage.open(state, lock)
    try:
        if store.behind():  # a crash left something unfolded, or its controller is about to fold it
            store.close()
            store = storage.open_from_log(state)
        if store.load() is None:
            raise campaign_not_started(root)
        yield CampaignHandle(root, store, lock, clock, services, whose)
    finally:
        store.close()


def list_campaigns() -> list[ListedCampaign]:
    """Every campaign of the register, by path. Raises OSError where the register itself can't be read."""
    return [_list_one_campaign(entry) for entry in list_register_entries(private_home())]


def _list_one_campaign(entry: RegisterEntry | UnreadEntry) -> ListedCampaign:
    if isinstance(entry, UnreadEntry):
        return ListedCampaign(entry.id, "", entry.path, "unread", why=entry.why)
    place = locate_registered_campaign(entry)
    if place.root is None:
        return ListedCampaign(entry.id, entry.name, entry.path, place.standing, why=place.why)
    before = entry.path if place.standing == "moved" else ""
    try:
        with visit_campaign(place.root) as desk:
            status = observe_campaign(desk)
    except (OSError, MusterError, ValueError) as error:
        return ListedCampaign(entry.id, entry.name, str(place.root), "unread", why=str(error), before=before)
    return ListedCampaign(entry.id, status.state.campaign.name, str(place.root), place.standing, status, before=before)


def forget_campaign(what: str) -> RegisterEntry | UnreadEntry:
    """Drops a campaign by its path or its id; one that a controller works on stays."""
    known = list_register_entries(private_home())
    path = str(Path(what).resolve())
    found = [each for each in known if each.id == what or each.path in (what, path)]
    if not found:
        raise _unknown_campaign_error(what, known)
    for entry in found:
        _refuse_working_campaign(entry)
        forget_register_entry(private_home(), entry)
    return found[0]


def _unknown_campaign_error(what: str, known: list[RegisterEntry | UnreadEntry]) -> UsageError:
    import difflib

    names = [name for each in known for name in (each.id, each.path)]
    near = difflib.get_close_matches(what, names, 1)
    hint = phrase("campaign.did_you_mean", near=near[0]) if near else phrase("campaign.ls_shows_paths")
    return UsageError(
        phrase("campaign.not_in_register", what=what), where=str(private_home() / REGISTER_FOLDER), hint=hint
    )


def _refuse_working_campaign(entry: RegisterEntry | UnreadEntry) -> None:
    place = locate_registered_campaign(entry) if isinstance(entry, RegisterEntry) else None
    if place and place.root and installed_services().storage.lock(place.root / ".muster", SystemClock()).held():
        raise UsageError(
            phrase("campaign.controller_would_register_again"),
            where=str(place.root),
            hint=phrase("campaign.down_there_first", folder=shlex.quote(str(place.root))),
        )
