"""What lives: runs of a campaign whose state does not know them, files that processes hold open, locks of shims and
trees, orphans.

A run is known by what it carries and holds: its token and its output in the environment, its log as stdout or stderr.
One that dropped all of these can't be known.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.engine.ports.processes import LeftRun, LivingRemains
from muster.files.own_processes import is_own_program
from muster.files.process_identity import read_boot_id, read_process
from muster.hosts.local.find_process import (
    only_shows,
    paths_in_command,
    program_of_command,
    read_argv,
    read_link_or_none,
)
from muster.hosts.local.other_users import ancestor_pids
from muster.hosts.local.process_tree import TICKS_PER_S
from muster.readers.attempt_facts import is_lock_file_held, read_fact_bytes, read_fact_object


def find_left_runs(state: Path, known: Collection[str]) -> list[LeftRun]:
    """Of the campaign with this .muster, but those whose tokens are known; a shim, which carries none, comes last."""
    places = _attempt_places(state)
    found = (run for pid in _all_pids() if (run := _left_run_of_process(pid, places)))
    return sorted((run for run in found if run.token not in known), key=lambda run: (run.cell, not run.token, run.pid))


def belongs_to_campaign(pid: int, state: str, known: Collection[str]) -> bool:
    """Whether it is a run of the campaign with this .muster, or carries one of these tokens."""
    return (
        _carried_token_and_output(pid)[0] in known
        or _left_run_of_process(pid, _attempt_places(Path(state))) is not None
    )


def _attempt_places(state: Path) -> set[str]:
    return {f"{place}/attempts/" for place in (state.absolute(), state.resolve())}


def _all_pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _left_run_of_process(pid: int, places: Collection[str]) -> LeftRun | None:
    token, out = _carried_token_and_output(pid)
    for path in (out, *_output_links(pid)):
        for place in places:
            cell, _, rest = path.removeprefix(place).rpartition("/") if path.startswith(place) else ("", "", "")
            cell, _, n = cell.rpartition("/")
            if cell and rest and n.isdigit() and _is_alive_quietly(pid):
                return LeftRun(pid, cell, int(n), token)
    return None


def _carried_token_and_output(pid: int) -> tuple[str, str]:
    """The token and the output in its environment."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return "", ""
    named = dict(word.partition(b"=")[::2] for word in words if word.startswith(b"MUSTER_"))
    return os.fsdecode(named.get(b"MUSTER_ATTEMPT", b"")), os.fsdecode(named.get(b"MUSTER_OUT", b""))


def _output_links(pid: int) -> Iterator[str]:
    for fd in (1, 2):
        if target := read_link_or_none(f"/proc/{pid}/fd/{fd}"):
            yield target


def _is_alive_quietly(pid: int) -> bool:
    try:
        found = read_process(pid)
    except OSError:
        return False
    return found is not None and found.state not in "ZX"


DELETED_SUFFIX = " (deleted)"


@dataclass(frozen=True, slots=True)
class OpenFile:
    pid: int
    path: str  # as the kernel names it, without links
    deleted: bool
    writes: bool


def list_open_files(wanted: Callable[[str], bool]) -> list[OpenFile]:
    """Files that fit, of every process that we may look into. Raises OSError where /proc can't be read.

    Of the processes of others, and of those that hide from a debugger (agents of logins), nothing is told.
    """
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            found += _open_files_of_process(int(name), wanted)
    return found


def _open_files_of_process(pid: int, wanted: Callable[[str], bool]) -> list[OpenFile]:
    try:
        fds = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return []
    found: dict[tuple[str, bool], OpenFile] = {}
    for fd in fds:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:  # closed by now
            continue
        path = target.removesuffix(DELETED_SUFFIX)
        if path.startswith("/") and wanted(path):
            told = OpenFile(pid, path, path != target, _may_write_descriptor(pid, fd))
            found.setdefault((path, told.writes), told)
    return list(found.values())


def _may_write_descriptor(pid: int, fd: str) -> bool:
    """What can't be read counts as writing."""
    try:
        with open(f"/proc/{pid}/fdinfo/{fd}") as file:
            flags = next(line for line in file if line.startswith("flags:"))
    except FileNotFoundError:
        return False
    except (OSError, StopIteration):
        return True
    return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY


_NO_ORPHANS = b'"orphans": []'
SLACK_S = 0.05  # start times are kept in hundredths of a second


def is_tree_lock_held(folder: str) -> bool:
    """The kernel holds it while a process of the run lives, also one that /proc hides. Raises OSError."""
    return is_lock_file_held(folder + "/tree.lock")


def is_shim_lock_held(folder: str) -> bool:
    """A shim lives as long as anything that its run left behind, with or without its token. Raises OSError."""
    return is_lock_file_held(folder + "/shim.lock")


def look_for_remains(name: str, folder: str) -> LivingRemains:
    try:
        return LivingRemains(
            name, is_tree_lock_held(folder), is_shim_lock_held(folder), tuple(find_living_orphans(folder))
        )
    except OSError as error:
        return LivingRemains(name, unread=error.strerror or str(error))


def find_living_orphans(folder: str) -> tuple[int, ...]:
    """Of the processes that exit.json names, who lives: where their shim was killed, nobody else knows of them.

    A pid that was given to another process since began after that exit. Raises OSError.
    """
    data = read_fact_bytes(folder + "/exit.json")
    if data is None or _NO_ORPHANS in data:
        return ()
    told = read_fact_object(folder + "/exit.json") or {}
    identity = read_fact_object(folder + "/identity.json") or {}
    pids, ended = told.get("orphans"), told.get("boot")
    if identity.get("boot_id") != read_boot_id() or not isinstance(pids, list) or not isinstance(ended, int | float):
        return ()
    return tuple(pid for pid in pids if isinstance(pid, int) and _is_alive_since(pid, ended))


def _is_alive_since(pid: int, boot: float) -> bool:
    found = read_process(pid)
    return found is not None and found.state not in "ZX" and found.ticks / TICKS_PER_S <= boot + SLACK_S


def find_folders_in_use(folders: Collection[str]) -> list[str]:
    """Those (without links) of which a process has a file open for writing, or that its command or cwd names.

    And those right below a folder that a command names, for a trainer may be given that and name its own.
    """
    wanted = frozenset(folders)
    below: dict[str, list[str]] = {}
    for each_wanted in wanted:
        below.setdefault(os.path.dirname(each_wanted), []).append(each_wanted)
    found = {
        folder
        for each in list_open_files(lambda path: _wanted_folder_above(path, wanted) is not None)
        if each.writes
        if (folder := _wanted_folder_above(each.path, wanted))
    }
    for name in os.listdir("/proc"):
        if name.isdigit():
            cwd, named = _paths_named_by_process(int(name))
            found.update(folder for path in (cwd, *named) if path and (folder := _wanted_folder_above(path, wanted)))
            above = [path for path in named if path in below and path != cwd]
            if above and not _is_muster(argv := read_argv(int(name))) and not only_shows(argv):
                found.update(*(below[path] for path in above))
    return sorted(found)


def is_own_process(pid: int, state: str, known: Collection[str]) -> bool:
    """A run of the campaign with this .muster, or one of these tokens; Muster itself; or who reads what we say."""
    if _is_muster(read_argv(pid)):
        return True
    family = [pid, *ancestor_pids(pid)]
    return _reads_our_output(pid) or any(belongs_to_campaign(each, state, known) for each in family)


def _wanted_folder_above(path: str, wanted: Collection[str]) -> str | None:
    """The wanted folder that the path is, or lies in."""
    while path not in wanted:
        above = os.path.dirname(path)
        if above == path:
            return None
        path = above
    return path


def _is_muster(argv: Sequence[str]) -> bool:
    return program_of_command(argv) == "muster" or is_own_program(argv)


def _paths_named_by_process(pid: int) -> tuple[str, list[str]]:
    """Where it works, and what its command names; nothing where that can't be told."""
    try:
        cwd = os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return "", []
    return cwd, paths_in_command(read_argv(pid), cwd)


def _reads_our_output(pid: int) -> bool:
    """`muster up | tee runs/up.log`"""
    try:
        feed = os.readlink(f"/proc/{pid}/fd/0")
        return feed.startswith("pipe:") and feed in (os.readlink("/proc/self/fd/1"), os.readlink("/proc/self/fd/2"))
    except OSError:
        return False
