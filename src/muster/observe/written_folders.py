"""In which of many folders a living process may write: one look at all, before any is looked at closely."""

# ruff: noqa: PTH115, PTH120, PTH208 - texts, not paths: thousands of descriptors

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from muster.observe.find_process import OWN_PROGRAMS, argv_of, paths_in, program
from muster.observe.left_runs import belongs_to
from muster.observe.open_files import open_files
from muster.observe.other_users import ancestors


def folders_in_use(folders: Collection[str]) -> list[str]:
    """Those (without links) of which a process has a file open for writing, or that its command or cwd names."""
    wanted = frozenset(folders)
    found = {folder for each in open_files(lambda path: _above(path, wanted) is not None) if each.writes
             if (folder := _above(each.path, wanted))}  # fmt: skip
    for name in os.listdir("/proc"):
        if name.isdigit():
            found.update(folder for path in _named(int(name)) if (folder := _above(path, wanted)))
    return sorted(found)


def is_our_own(pid: int, state: str, known: Collection[str]) -> bool:
    """A run of the campaign with this .muster, or one of these tokens; Muster itself; or who reads what we say."""
    argv = argv_of(pid)
    if program(argv) == "muster" or any("muster.wiring." in word or word.endswith(OWN_PROGRAMS) for word in argv):
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


def _named(pid: int) -> Iterator[str]:
    try:
        cwd = os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return
    yield cwd
    yield from paths_in(argv_of(pid), cwd)


def _reads_us(pid: int) -> bool:
    """`muster up | tee runs/up.log`"""
    try:
        feed = os.readlink(f"/proc/{pid}/fd/0")
        return feed.startswith("pipe:") and feed in (os.readlink("/proc/self/fd/1"), os.readlink("/proc/self/fd/2"))
    except OSError:
        return False
