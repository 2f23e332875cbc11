"""Looks for what lives on: of this campaign, of the others of the register, and of nobody's campaign."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from muster.app.campaign.disk_use import find_output_folders
from muster.app.campaign.registered_campaigns import describe_unfinished_work, visit_campaign
from muster.app.finish.power_off_rules import NeighbourCampaign
from muster.engine.ports.processes import LivingRemains, OutputWriter
from muster.engine.ports.services import installed_services
from muster.files.campaign_register import (
    REGISTER_FOLDER,
    UnreadEntry,
    list_register_entries,
    locate_registered_campaign,
)
from muster.files.muster_home import private_home
from muster.files.state_folder import attempt_folder
from muster.model.campaign_state import CampaignState
from muster.model.errors import MusterError

SHIM_LEAVES_S = 2.0  # a shim that has written how its run ended is gone a moment later
RECHECK_PAUSE_S = 0.02


def find_remains_of_campaign(root: Path, state: CampaignState) -> tuple[LivingRemains, ...]:
    """Of every attempt and every step of the finish, whatever the record says of it."""
    remains = installed_services().processes.remains
    found = [(name, folder, remains(name, folder)) for name, folder in folders_of_executions(root / ".muster", state)]
    alive = [(name, folder, each) for name, folder, each in found if each.any]
    deadline = time.monotonic() + SHIM_LEAVES_S
    while any(_is_shim_leaving(each) for _, _, each in alive) and time.monotonic() < deadline:
        time.sleep(RECHECK_PAUSE_S)
        alive = [
            (name, folder, remains(name, folder) if _is_shim_leaving(each) else each) for name, folder, each in alive
        ]
    return tuple(each for _, _, each in alive if each.any)


def _is_shim_leaving(each: LivingRemains) -> bool:
    return each.shim_held and not (each.tree_held or each.orphans or each.unread)


def folders_of_executions(folder: Path, state: CampaignState) -> Iterator[tuple[str, str]]:
    """Name and folder of each."""
    for record in state.cells.values():
        for attempt in record.attempts:
            if not attempt.adopted:
                yield f"{attempt.cell}@{attempt.n}", str(attempt_folder(folder, *attempt.place))
    for step in state.finish.steps.values():
        for n in range(1, step.n + 1):
            yield f"finish {step.step}", str(folder / "finish" / step.step / str(n))


# -- other campaigns


def find_neighbour_campaigns(root: Path, boot: float) -> tuple[list[NeighbourCampaign], dict[Path, CampaignState]]:
    """All campaigns of the register but this one; and those that could be read, by their folders."""
    found: list[NeighbourCampaign] = []
    states: dict[Path, CampaignState] = {}
    try:
        entries = list_register_entries(private_home())
    except OSError as error:
        return [NeighbourCampaign("", str(private_home() / REGISTER_FOLDER), unread=error.strerror or str(error))], {}
    for entry in entries:
        if isinstance(entry, UnreadEntry):
            found.append(NeighbourCampaign("", entry.path, unread=entry.why))
            continue
        place = locate_registered_campaign(entry)
        if place.standing == "unread":
            found.append(NeighbourCampaign(entry.name, entry.path, unread=place.why))
        if place.root is None or _is_same_folder(place.root, root):
            continue
        try:
            with visit_campaign(place.root) as desk:
                state = desk.load()
        except (OSError, MusterError, ValueError) as error:
            found.append(NeighbourCampaign(entry.name, str(place.root), unread=str(error)))
            continue
        states[place.root] = state
        name, left = state.campaign.name, describe_unfinished_work(state, boot)
        found.append(NeighbourCampaign(name, str(place.root), left, find_remains_of_campaign(place.root, state)))
    return found, states


def _is_same_folder(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


# -- open files


def find_writers_and_strays(campaigns: Mapping[Path, CampaignState]) -> tuple[Sequence[OutputWriter], Sequence[int]]:
    """Who writes below an output folder of these campaigns; and shims of campaigns that nobody knows.

    Raises OSError where /proc can't be read.
    """
    outputs = {
        os.path.realpath(folder)
        for root, state in campaigns.items()
        for folder in find_output_folders(state, str(root))
    }
    states = [f"{os.path.realpath(root)}/.muster" for root in campaigns]
    return installed_services().processes.writers_and_strays(outputs, states)
