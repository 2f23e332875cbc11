"""Looks for what lives on: of this campaign, of the others of the register, and of nobody's campaign."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from muster.acts.output_folders import output_folders
from muster.acts.register import unfinished
from muster.acts.shutdown import Neighbour, Remains, Writer
from muster.domain.errors import MusterError
from muster.domain.state import CampaignState
from muster.execute.paths import attempt_folder
from muster.execute.slots import home, own_home
from muster.observe import remains
from muster.observe.find_process import argv_of
from muster.observe.open_files import OpenFile, open_files
from muster.observe.other_users import ancestors, command_of
from muster.observe.process import home_of, lives
from muster.store import register
from muster.store.register import Unread
from muster.wiring.registering import visited

LEAVES_S = 2.0  # a shim that has written how its run ended is gone a moment later
BLINK_S = 0.02
SHIM_LOCK = "/shim.lock"
_SWAP = (".swp", ".swo", ".swx")  # of an editor


def remains_of(root: Path, state: CampaignState) -> tuple[Remains, ...]:
    """Of every attempt and every step of the finish, whatever the record says of it."""
    found = [(name, folder, _look(name, folder)) for name, folder in executions(root / ".muster", state)]
    alive = [(name, folder, each) for name, folder, each in found if each.any]
    deadline = time.monotonic() + LEAVES_S
    while any(_leaving(each) for _, _, each in alive) and time.monotonic() < deadline:
        time.sleep(BLINK_S)
        alive = [(name, folder, _look(name, folder) if _leaving(each) else each) for name, folder, each in alive]
    return tuple(each for _, _, each in alive if each.any)


def _leaving(each: Remains) -> bool:
    return each.shim_held and not (each.tree_held or each.orphans or each.unread)


def executions(folder: Path, state: CampaignState) -> Iterator[tuple[str, str]]:
    """Name and folder of each."""
    for record in state.cells.values():
        for attempt in record.attempts:
            if not attempt.adopted:
                yield f"{attempt.cell}@{attempt.n}", str(attempt_folder(folder, *attempt.place))
    for step in state.finish.steps.values():
        for n in range(1, step.n + 1):
            yield f"finish {step.step}", str(folder / "finish" / step.step / str(n))


def _look(name: str, folder: str) -> Remains:
    try:
        return Remains(
            name, remains.tree_held(folder), remains.shim_held(folder), tuple(remains.living_orphans(folder))
        )
    except OSError as error:
        return Remains(name, unread=error.strerror or str(error))


# -- other campaigns


def neighbours(root: Path, boot: float) -> tuple[list[Neighbour], dict[Path, CampaignState]]:
    """All campaigns of the register but this one; and those that could be read, by their folders."""
    found: list[Neighbour] = []
    states: dict[Path, CampaignState] = {}
    try:
        entries = register.entries(own_home())
    except OSError as error:
        return [Neighbour("", str(own_home() / register.FOLDER), unread=error.strerror or str(error))], {}
    for entry in entries:
        if isinstance(entry, Unread):
            found.append(Neighbour("", entry.path, unread=entry.why))
            continue
        place = register.place(entry)
        if place.standing == "unread":
            found.append(Neighbour(entry.name, entry.path, unread=place.why))
        if place.root is None or _same(place.root, root):
            continue
        try:
            with visited(place.root) as desk:
                state = desk.load()
        except (OSError, MusterError, ValueError) as error:
            found.append(Neighbour(entry.name, str(place.root), unread=str(error)))
            continue
        states[place.root] = state
        name, left = state.campaign.name, unfinished(state, boot)
        found.append(Neighbour(name, str(place.root), left, remains_of(place.root, state)))
    return found, states


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


# -- open files


def opened(campaigns: Mapping[Path, CampaignState]) -> tuple[list[Writer], list[int]]:
    """Who writes below an output folder of these campaigns; and shims of campaigns that nobody knows.

    Raises OSError where /proc can't be read.
    """
    known = {os.path.realpath(folder) for root, state in campaigns.items()
             for folder in output_folders(state, str(root))}  # fmt: skip
    below = tuple(f"{folder}/" for folder in known)
    files = open_files(lambda path: path.startswith(below) or path.endswith(SHIM_LOCK))
    shims = {each.pid for each in files if each.path.endswith(SHIM_LOCK)}
    own = _own_commands()
    writers: dict[int, Writer] = {}
    for each in files:
        if each.writes and each.path.startswith(below) and not _unimportant(each, shims | own):
            writers.setdefault(each.pid, Writer(each.pid, command_of(each.pid), each.path))
    states = tuple(f"{os.path.realpath(root)}/.muster/" for root in campaigns)
    strays = {each.pid for each in files if each.path.endswith(SHIM_LOCK) and _is_stray(each, states)}
    return [writers[pid] for pid in sorted(writers)], sorted(strays)


def _unimportant(each: OpenFile, ours: Iterable[int]) -> bool:
    return each.pid in ours or each.path.endswith(_SWAP)


def _is_stray(each: OpenFile, states: tuple[str, ...]) -> bool:
    """A shim that no folder leads to: of a campaign that was deleted, or never registered. Of our home only."""
    if "/.muster/" not in each.path or (each.path.startswith(states) and not each.deleted):
        return False
    their = home_of(each.pid)
    if their is None:  # the usual one, unless it can't be read because it has ended since
        return lives(each.pid)
    return Path(their) == home()


def _own_commands() -> set[int]:
    """Processes of Muster itself, whoever waits for them, and who reads them through a pipe: `muster up | tee log`."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    found = {pid for pid in pids if _is_muster(argv_of(pid))}
    ends = {pid: tuple(_stream(pid, fd) for fd in (0, 1, 2)) for pid in pids} if found else {}
    fresh = set(found)
    while fresh:
        written = {each for pid in fresh for each in ends[pid][1:] if each.startswith("pipe:")}
        fresh = {pid for pid, streams in ends.items() if streams[0] in written} - found
        found |= fresh
    for pid in list(found):
        found.update(ancestors(pid))
    return found


def _stream(pid: int, fd: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}")  # noqa: PTH115
    except OSError:
        return ""


def _is_muster(argv: tuple[str, ...]) -> bool:
    module = argv[argv.index("-m") + 1 :][:1] if "-m" in argv[:4] else ()
    named = any(each == "muster" or each.startswith("muster.") for each in module)
    return named or any(os.path.basename(word) == "muster" for word in argv[:2])  # noqa: PTH119
