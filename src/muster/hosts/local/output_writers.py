"""Who writes below the output folders of campaigns, and which shims belong to no campaign that anybody knows."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from muster.engine.ports.processes import OutputWriter
from muster.files.muster_home import slots_home
from muster.files.process_identity import is_alive, muster_home_of_process
from muster.hosts.local.find_process import read_argv
from muster.hosts.local.living_runs import OpenFile, list_open_files
from muster.hosts.local.other_users import ancestor_pids, short_command_of_process

SHIM_LOCK_SUFFIX = "/shim.lock"
_SWAP_ENDINGS = (".swp", ".swo", ".swx")  # of an editor


def find_writers_and_strays(outputs: Collection[str], states: Collection[str]) -> tuple[list[OutputWriter], list[int]]:
    """Who writes below these folders; and shims of campaigns whose .muster is none of these. Both without links.

    Raises OSError where /proc can't be read.
    """
    below = tuple(f"{folder}/" for folder in outputs)
    files = list_open_files(lambda path: path.startswith(below) or path.endswith(SHIM_LOCK_SUFFIX))
    shims = {each.pid for each in files if each.path.endswith(SHIM_LOCK_SUFFIX)}
    own = _own_command_pids()
    writers: dict[int, OutputWriter] = {}
    for each in files:
        if each.writes and each.path.startswith(below) and not _is_unimportant_writer(each, shims | own):
            writers.setdefault(each.pid, OutputWriter(each.pid, short_command_of_process(each.pid), each.path))
    known = tuple(f"{state}/" for state in states)
    strays = {each.pid for each in files if each.path.endswith(SHIM_LOCK_SUFFIX) and _is_stray_shim(each, known)}
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
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
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
        return os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return ""


def _is_muster_command(argv: tuple[str, ...]) -> bool:
    module = argv[argv.index("-m") + 1 :][:1] if "-m" in argv[:4] else ()
    named = any(each == "muster" or each.startswith("muster.") for each in module)
    return named or any(os.path.basename(word) == "muster" for word in argv[:2])
