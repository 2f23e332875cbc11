"""Looks for what lives on: of this campaign, of the others of the register, and of nobody's campaign."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from muster.app.campaign.disk_use import find_output_folders
from muster.app.campaign.registered_campaigns import describe_unfinished_work, visit_campaign
from muster.app.finish.power_off_rules import LivingRemains, NeighbourCampaign, OutputWriter
from muster.files.campaign_register import (
    REGISTER_FOLDER,
    UnreadEntry,
    list_register_entries,
    locate_registered_campaign,
)
from muster.files.muster_home import private_home, slots_home
from muster.files.process_identity import is_alive, muster_home_of_process
from muster.files.state_folder import attempt_folder
from muster.hosts.local.find_process import read_argv
from muster.hosts.local.living_runs import (
    OpenFile,
    find_living_orphans,
    is_shim_lock_held,
    is_tree_lock_held,
    list_open_files,
)
from muster.hosts.local.other_users import ancestor_pids, short_command_of_process
from muster.model.campaign_state import CampaignState
from muster.model.errors import MusterError

SHIM_LEAVES_S = 2.0  # a shim that has written how its run ended is gone a moment later
RECHECK_PAUSE_S = 0.02
SHIM_LOCK_SUFFIX = "/shim.lock"
_SWAP_ENDINGS = (".swp", ".swo", ".swx")  # of an editor


def find_remains_of_campaign(root: Path, state: CampaignState) -> tuple[LivingRemains, ...]:
    """Of every attempt and every step of the finish, whatever the record says of it."""
    found = [
        (name, folder, _look_for_remains(name, folder))
        for name, folder in folders_of_executions(root / ".muster", state)
    ]
    alive = [(name, folder, each) for name, folder, each in found if each.any]
    deadline = time.monotonic() + SHIM_LEAVES_S
    while any(_is_shim_leaving(each) for _, _, each in alive) and time.monotonic() < deadline:
        time.sleep(RECHECK_PAUSE_S)
        alive = [
            (name, folder, _look_for_remains(name, folder) if _is_shim_leaving(each) else each)
            for name, folder, each in alive
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


def _look_for_remains(name: str, folder: str) -> LivingRemains:
    try:
        return LivingRemains(
            name, is_tree_lock_held(folder), is_shim_lock_held(folder), tuple(find_living_orphans(folder))
        )
    except OSError as error:
        return LivingRemains(name, unread=error.strerror or str(error))


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


def find_writers_and_strays(campaigns: Mapping[Path, CampaignState]) -> tuple[list[OutputWriter], list[int]]:
    """Who writes below an output folder of these campaigns; and shims of campaigns that nobody knows.

    Raises OSError where /proc can't be read.
    """
    known = {
        os.path.realpath(folder)
        for root, state in campaigns.items()
        for folder in find_output_folders(state, str(root))
    }
    below = tuple(f"{folder}/" for folder in known)
    files = list_open_files(lambda path: path.startswith(below) or path.endswith(SHIM_LOCK_SUFFIX))
    shims = {each.pid for each in files if each.path.endswith(SHIM_LOCK_SUFFIX)}
    own = _own_command_pids()
    writers: dict[int, OutputWriter] = {}
    for each in files:
        if each.writes and each.path.startswith(below) and not _is_unimportant_writer(each, shims | own):
            writers.setdefault(each.pid, OutputWriter(each.pid, short_command_of_process(each.pid), each.path))
    states = tuple(f"{os.path.realpath(root)}/.muster/" for root in campaigns)
    strays = {each.pid for each in files if each.path.endswith(SHIM_LOCK_SUFFIX) and _is_stray_shim(each, states)}
    return [writers[pid] for pid in sorted(writers)], sorted(strays)


def _is_unimportant_writer(each: OpenFile, ours: Iterable[int]) -> bool:
    return each.pid in ours or each.path.endswith(_SWAP_ENDINGS)


def _is_stray_shim(each: OpenFile, states: tuple[str, ...]) -> bool:
    """A shim that no folder leads to: of a campaign that was deleted, or never registered. Of our home only."""
    if "/.muster/" not in each.path or (each.path.startswith(states) and not each.deleted):
        return False
    their = muster_home_of_process(each.pid)
    if their is None:  # the usual one, unless it can't be read because it has ended since
        return is_alive(each.pid)
    return Path(their) == slots_home()


def _own_command_pids() -> set[int]:
    """Processes of Muster itself, whoever waits for them, and who reads them through a pipe: `muster up | tee log`."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    found = {pid for pid in pids if _is_muster_command(read_argv(pid))}
    ends = {pid: tuple(_standard_stream(pid, fd) for fd in (0, 1, 2)) for pid in pids} if found else {}
    fresh = set(found)
    while fresh:
        written = {each for pid in fresh for each in ends[pid][1:] if each.startswith("pipe:")}
        fresh = {pid for pid, streams in ends.items() if streams[0] in written} - found
        found |= fresh
    for pid in list(found):
        found.update(ancestor_pids(pid))
    return found


def _standard_stream(pid: int, fd: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}")  # noqa: PTH115
    except OSError:
        return ""


def _is_muster_command(argv: tuple[str, ...]) -> bool:
    module = argv[argv.index("-m") + 1 :][:1] if "-m" in argv[:4] else ()
    named = any(each == "muster" or each.startswith("muster.") for each in module)
    return named or any(os.path.basename(word) == "muster" for word in argv[:2])  # noqa: PTH119
