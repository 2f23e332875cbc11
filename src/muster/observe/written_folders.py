"""In which of many folders a living process may write: one look at all, before any is looked at closely."""

# ruff: noqa: PTH115, PTH120, PTH208 - texts, not paths: thousands of descriptors

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from muster.observe.find_process import OWN_PROGRAMS, argv_of, only_shows, paths_in, program
from muster.observe.left_runs import belongs_to
from muster.observe.open_files import open_files
from muster.observe.other_users import ancestors


def folders_in_use(folders: Collection[str]) -> list[str]:
    """Those (without links) of which a process has a file open for writing, or that its command or cwd names.

    And those right below a folder that a command names, for a trainer may be given that and name its own.
    """
    wanted = frozenset(folders)
    below: dict[str, list[str]] = {}
    for each_wanted in wanted:
        below.setdefault(os.path.dirname(each_wanted), []).append(each_wanted)
    found = {folder for each in open_files(lambda path: _above(path, wanted) is not None) if each.writes
             if (folder := _above(each.path, wanted))}  # fmt: skip
    for name in os.listdir("/proc"):
        if name.isdigit():
            cwd, named = _named(int(name))
            found.update(folder for path in (cwd, *named) if path and (folder := _above(path, wanted)))
            above = [path for path in named if path in below and path != cwd]
            if above and not _is_muster(argv := argv_of(int(name))) and not only_shows(argv):
                found.update(*(below[path] for path in above))
    return sorted(found)


def is_our_own(pid: int, state: str, known: Collection[str]) -> bool:
    """A run of the campaign with this .muster, or one of these tokens; Muster itself; or who reads what we say."""
    if _is_muster(argv_of(pid)):
        return True
    family = [pid, *ancestors(pid)]
    return _reads_us(pid) or any(belongs_to(each, state, known) for each in family)


def _above(path: str, wanted: Collection[str]) -> str | None:
    """The wanted folder that the path is, or lies in."""
    while path not in wanted:
        above = os.path.dirname(path)
        if above == path:
            return None
        path = above
    return path


def _is_muster(argv: Sequence[str]) -> bool:
    return program(argv) == "muster" or any("muster.wiring." in word or word.endswith(OWN_PROGRAMS) for word in argv)


def _named(pid: int) -> tuple[str, list[str]]:
    """Where it works, and what its command names; nothing where that can't be told."""
    try:
        cwd = os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return "", []
    return cwd, paths_in(argv_of(pid), cwd)


def _reads_us(pid: int) -> bool:
    """`muster up | tee runs/up.log`"""
    try:
        feed = os.readlink(f"/proc/{pid}/fd/0")
        return feed.startswith("pipe:") and feed in (os.readlink("/proc/self/fd/1"), os.readlink("/proc/self/fd/2"))
    except OSError:
        return False
