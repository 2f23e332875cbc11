"""Which files processes hold open: who writes into a folder, whose shim still waits."""

# ruff: noqa: PTH115, PTH208 - texts, not paths: thousands of descriptors

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

DELETED = " (deleted)"


@dataclass(frozen=True, slots=True)
class OpenFile:
    pid: int
    path: str  # as the kernel names it, without links
    deleted: bool
    writes: bool


def open_files(wanted: Callable[[str], bool]) -> list[OpenFile]:
    """Files that fit, of every process that we may look into. Raises OSError where /proc can't be read.

    Of the processes of others, and of those that hide from a debugger (agents of logins), nothing is told.
    """
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            found += _of(int(name), wanted)
    return found


def _of(pid: int, wanted: Callable[[str], bool]) -> list[OpenFile]:
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
        path = target.removesuffix(DELETED)
        if path.startswith("/") and wanted(path):
            told = OpenFile(pid, path, path != target, _writes(pid, fd))
            found.setdefault((path, told.writes), told)
    return list(found.values())


def _writes(pid: int, fd: str) -> bool:
    """What can't be read counts as writing."""
    try:
        with open(f"/proc/{pid}/fdinfo/{fd}") as file:
            flags = next(line for line in file if line.startswith("flags:"))
    except FileNotFoundError:
        return False
    except (OSError, StopIteration):
        return True
    return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
