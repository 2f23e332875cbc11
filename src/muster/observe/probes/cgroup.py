"""The memory cgroup of a process: how often the kernel killed in it, its limit, its use. None: can't be read."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

NO_LIMIT = 1 << 60  # v1 writes "none" as the largest number of whole pages


class Mount(NamedTuple):
    point: str
    root: str  # the group that is shown at the mount point: a container sees a part of the hierarchy
    v2: bool


class Group(NamedTuple):
    folder: str
    top: str  # no further up than this
    v2: bool


def group_of(pid: int, proc: str = "/proc") -> Group | None:
    """Where a process's memory is counted; machines with both hierarchies count it in one of them."""
    lines = _text(f"{proc}/{pid}/cgroup").splitlines()
    named = [line.split(":", 2)[1:] for line in lines if line.count(":") >= 2]
    for v2 in (False, True):
        for controllers, path in named:
            if (not controllers) if v2 else ("memory" in controllers.split(",")):
                found = _found(path, v2, mounts(proc))
                if found:
                    return found
    return None


def _found(path: str, v2: bool, places: tuple[Mount, ...]) -> Group | None:
    for mount in places:
        inner = _inside(path, mount.root)
        if mount.v2 != v2 or inner is None:
            continue
        group = Group((mount.point + inner).rstrip("/"), mount.point, v2)
        while not os.access(f"{group.folder}/{_events(group)}", os.R_OK):
            if not v2 or group.folder == group.top:
                break
            group = _above(group)  # in v2 memory is counted in the nearest group for which it is switched on
        else:
            return group
    return None


def _inside(path: str, root: str) -> str | None:
    """The path below the mount's root; None: it is not shown there."""
    if "/.." in path or not (root in ("/", path) or path.startswith(root + "/")):
        return None
    return path if root == "/" else path[len(root) :]


def oom_kills(group: Group) -> int | None:
    """How many processes the kernel has killed in it for want of memory, since it was made."""
    for line in _text(f"{group.folder}/{_events(group)}").splitlines():
        key, _, number = line.partition(" ")
        if key == "oom_kill" and number.isdecimal():
            return int(number)
    return None


def disk_free(path: str) -> int | None:
    """Bytes that we may still write where the path is, or will be. A file system that hangs hangs whoever asks."""
    place = Path(path)
    for folder in (place, *place.parents):
        try:
            found = os.statvfs(folder)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError):
            return None
        return found.f_bavail * found.f_frsize
    return None


@cache
def mounts(proc: str = "/proc") -> tuple[Mount, ...]:
    """Where cgroups that count memory are mounted; that does not change while we live."""
    found = []
    for line in _text(f"{proc}/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2" or (kind[0] == "cgroup" and "memory" in kind[2].split(",")):
            found.append(Mount(_plain(fields[4]), _plain(fields[3]), kind[0] == "cgroup2"))
    return tuple(found)


def _above(group: Group) -> Group:
    return group._replace(folder=group.folder.rpartition("/")[0])


def _events(group: Group) -> str:
    return "memory.events" if group.v2 else "memory.oom_control"


def _limit(group: Group) -> int | None:
    found = _number(group, "memory.max" if group.v2 else "memory.limit_in_bytes")
    return found if found is not None and found < NO_LIMIT else None


def _number(group: Group, name: str) -> int | None:
    text = _text(f"{group.folder}/{name}").strip()
    return int(text) if text.isdecimal() else None


def _plain(text: str) -> str:
    """Blanks and the like are written as octal numbers there."""
    return text.encode("latin-1", "replace").decode("unicode_escape") if "\\" in text else text


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
