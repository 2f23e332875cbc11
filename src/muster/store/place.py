"""Where the state may lie: a local disk we can write to, in the folder it was made for."""

from __future__ import annotations

import contextlib
import json
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from muster.domain.errors import MusterError
from muster.domain.whereabouts import Whereabouts, former_folder
from muster.ports.outside import outside_paths
from muster.ports.plain_files import open_plain, read_plain
from muster.ports.write_files import write_atomically

NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "sshfs",
    "ceph",
    "lustre",
    "gpfs",
    "glusterfs",
    "beegfs",
    "9p",
    "afs",
    "orangefs",
    "davfs",
)

LONGEST_LINE = 1 << 20  # of a log: its first
UNPACKED = "a pack"  # the name of no machine
_OCTAL = re.compile(r"\\([0-7]{3})")  # a space in a mount point is written \040


def refuse_bad_place(root: Path) -> None:
    state = root / ".muster"
    existing = state if state.exists() else root
    kind = file_system(existing)
    if any(kind == name or kind.startswith(name) or kind.endswith(f".{name}") for name in NETWORK):
        raise MusterError(
            f"the campaign's folder is on a network file system ({kind}), where locks and SQLite can't be trusted",
            where=str(existing),
            hint="keep campaign.yaml on a local disk and let `cwd:` and `output:` point to the network one",
            code="network_file_system",
        )
    if not os.access(existing, os.W_OK | os.X_OK):
        raise MusterError(
            "the campaign's folder can't be written",
            where=str(existing),
            hint="Muster keeps its state in .muster/ beside campaign.yaml; copy the campaign to a folder of yours",
            code="read_only",
        )


def file_system(path: Path, mounts: str | None = None) -> str:
    """The type of the mount that holds path, from /proc/self/mountinfo; "" where it can't be told."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
        except OSError:
            return ""
    best, kind = "", ""
    target = str(path.resolve())
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields, source = left.split(), right.split()
        if len(fields) < 5 or not source:
            continue
        point = _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), fields[4])
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, source[0]
    return kind


Standing = Literal["home", "moved", "copy"]


def whereabouts(state: Path, former: Iterable[str] = ()) -> Whereabouts:
    """Of the campaign whose state this is."""
    now = str(state.parent)
    real = os.path.realpath(now)
    others = dict.fromkeys(each for each in former if each not in (now, real))
    return Whereabouts(now, tuple(others), (real,) if real != now else (), outside_paths(state))


def former_folders(state: Path) -> tuple[str, ...]:
    """Where the campaign lay, as far as the mark in its state tells."""
    mark = _marked(state)
    return tuple(root for path in (*mark.former, mark.path) if (root := former_folder(path))) if mark else ()


def mark_place(state: Path) -> None:
    """Which folder this state belongs to: a copy of it must not act for the original's runs."""
    before = _marked(state)
    path = str(state.resolve())
    past = (*before.former, before.path) if before else ()
    former = tuple(dict.fromkeys(each for each in past if each != path))
    here = Mark(path, state.stat().st_ino, machine_name(), former)
    with contextlib.suppress(OSError):
        if before != here:
            _replace(state / "place", json.dumps(asdict(here)))
        if not (state / ".gitignore").exists():
            _replace(state / ".gitignore", "*\n")  # the recorded environment may hold secrets


def mark_unpacked(state: Path, folder: Path) -> None:
    """Before it gets to its folder. What a pack says of its place is a stranger's word: here it is at home nowhere."""
    told = _marked(state)
    if told is None or told.path == str(folder.resolve() / ".muster"):
        told = Mark(str(folder.resolve() / "a pack"), 0)
    _replace(state / "place", json.dumps(asdict(replace(told, machine=UNPACKED))))


def renew_mark(state: Path) -> bool:
    """After a plain `mv`: it is the same folder, and whoever copies it from now on copies it from here.

    Whether it had been moved.
    """
    mark = _marked(state)
    moved = mark and mark.machine in ("", machine_name()) and mark.path != str(state.resolve())
    if mark and moved and mark.inode == state.stat().st_ino:
        mark_place(state)
        return True
    return False


def standing(state: Path) -> Standing:
    """`home`: it was marked here, or renamed since. `copy`: the original is still there. Else it was brought here.

    A folder that was brought here from another machine, or whose original is gone, is nobody else's. Nothing goes on
    in it by itself, though: whoever copied it to look at it did not ask for that.
    """
    mark = _marked(state)
    if mark is None:
        return "home"
    here, inode = str(state.resolve()), state.stat().st_ino
    same_machine = mark.machine in ("", machine_name())
    if same_machine and (mark.path == here or mark.inode == inode):
        return "home"
    return "copy" if mark.path != here and _is_original(Path(mark.path), mark.inode, state) else "moved"


def refuse_copy(state: Path) -> None:
    """To act in a copy would be to act for the original's runs."""
    if standing(state) != "copy":
        return
    raise MusterError(
        f"this folder is a copy: its state belongs to the campaign in {brought_from(state)}, which is still there",
        where=str(state),
        hint="act there; here everything can be read and reported. "
        "To make this a campaign of its own delete its .muster",
        code="copy",
    )


def brought_from(state: Path) -> Path | None:
    """The campaign's folder that the mark names, if that is another."""
    mark = _marked(state)
    return Path(mark.path).parent if mark and mark.path != str(state.resolve()) else None


@dataclass(frozen=True, slots=True)
class Mark:
    path: str  # of .muster, without links
    inode: int
    machine: str = ""  # "": not known
    former: tuple[str, ...] = ()  # paths that it had before


def _marked(state: Path) -> Mark | None:
    try:
        mark = json.loads(read_plain(str(state / "place")))
        former = tuple(map(str, mark.get("former", ())))
        return Mark(str(mark["path"]), int(mark["inode"]), str(mark.get("machine", "")), former)
    except (OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_original(path: Path, inode: int, state: Path) -> bool:
    """A number of a file is used again when the file is gone: the log must begin as ours does, too."""
    try:
        return path.stat().st_ino == inode and read_beginning(path) == read_beginning(state)
    except OSError:
        return False


def read_beginning(state: Path) -> bytes:
    """The first line of its log. What a mark names may be anything: no link, no pipe, and no line without an end."""
    with open(open_plain(str(state / "decisions.jsonl")), "rb") as log:
        return log.readline(LONGEST_LINE)


def machine_name() -> str:
    """A name of this machine that is the same after it was started anew, and tells nobody which one it is."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError):
            if told := Path(path).read_text("utf-8").strip():
                return f"{zlib.crc32(told.encode()):08x}"
    return ""


def _replace(path: Path, text: str) -> None:
    write_atomically(path, text)
