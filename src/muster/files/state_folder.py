"""The layout and the place of `.muster`: attempt folders, where the state may lie (a local disk, in the folder it was
made for, this user's alone), and whether the campaign was moved or copied.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from muster.files.atomic_write import PRIVATE_FOLDER, write_atomically
from muster.files.safe_open import open_plain_file, read_plain_file
from muster.model.campaign_location import OUTSIDE_LIST, CampaignLocation, campaign_folder_in_path
from muster.model.errors import MusterError, UsageError
from muster.text.phrases import phrase


@lru_cache(maxsize=1024)
def attempt_folder(state: Path, cell: str, n: int) -> Path:
    return state / "attempts" / cell / str(n)


def read_outside_paths(state: Path) -> tuple[str, ...]:
    """Empty where this was never unpacked; what is damaged leads nowhere."""
    try:
        told = json.loads(read_plain_file(str(state / OUTSIDE_LIST)))
    except (OSError, ValueError, RecursionError):
        return ()
    return tuple(each for each in told if isinstance(each, str)) if isinstance(told, list) else ()


NETWORK_FILE_SYSTEMS = (
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

LONGEST_LOG_LINE = 1 << 20  # of a log: its first
UNPACKED_MACHINE = "a pack"  # the name of no machine
_OCTAL = re.compile(r"\\([0-7]{3})")  # a space in a mount point is written \040


def refuse_bad_state_folder(root: Path) -> None:
    state = root / ".muster"
    existing = state if state.exists() else root
    kind = file_system_type(existing)
    if any(kind == name or kind.startswith(name) or kind.endswith(f".{name}") for name in NETWORK_FILE_SYSTEMS):
        raise MusterError(
            phrase("files.network_file_system", kind=kind),
            where=str(existing),
            hint=phrase("files.keep_file_on_local_disk"),
            code="network_file_system",
        )
    if not os.access(existing, os.W_OK | os.X_OK):
        raise MusterError(
            phrase("files.folder_read_only"),
            where=str(existing),
            hint=phrase("files.copy_to_own_folder"),
            code="read_only",
        )


def file_system_type(path: Path, mounts: str | None = None) -> str:
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


StateFolderStanding = Literal["home", "moved", "copy"]


def locate_campaign(state: Path, former: Iterable[str] = ()) -> CampaignLocation:
    """Of the campaign whose state this is."""
    now = str(state.parent)
    real = os.path.realpath(now)
    others = dict.fromkeys(each for each in former if each not in (now, real))
    return CampaignLocation(now, tuple(others), (real,) if real != now else (), read_outside_paths(state))


def former_campaign_folders(state: Path) -> tuple[str, ...]:
    """Where the campaign lay, as far as the mark in its state tells."""
    mark = _read_place_mark(state)
    return tuple(root for path in (*mark.former, mark.path) if (root := campaign_folder_in_path(path))) if mark else ()


def mark_state_place(state: Path) -> None:
    """Which folder this state belongs to: a copy of it must not act for the original's runs."""
    before = _read_place_mark(state)
    path = str(state.resolve())
    past = (*before.former, before.path) if before else ()
    former = tuple(dict.fromkeys(each for each in past if each != path))
    here = PlaceMark(path, state.stat().st_ino, anonymous_machine_name(), former)
    with contextlib.suppress(OSError):
        if before != here:
            _replace_mark_file(state / "place", json.dumps(asdict(here)))
        if not (state / ".gitignore").exists():
            _replace_mark_file(state / ".gitignore", "*\n")  # the recorded environment may hold secrets


def mark_unpacked_state(state: Path, folder: Path) -> None:
    """Before it gets to its folder. What a pack says of its place is a stranger's word: here it is at home nowhere."""
    told = _read_place_mark(state)
    if told is None or told.path == str(folder.resolve() / ".muster"):
        told = PlaceMark(str(folder.resolve() / "a pack"), 0)
    _replace_mark_file(state / "place", json.dumps(asdict(replace(told, machine=UNPACKED_MACHINE))))


def renew_moved_mark(state: Path) -> bool:
    """After a plain `mv`: it is the same folder, and whoever copies it from now on copies it from here.

    Whether it had been moved.
    """
    mark = _read_place_mark(state)
    moved = mark and mark.machine in ("", anonymous_machine_name()) and mark.path != str(state.resolve())
    if mark and moved and mark.inode == state.stat().st_ino:
        mark_state_place(state)
        return True
    return False


def state_folder_standing(state: Path) -> StateFolderStanding:
    """`home`: it was marked here, or renamed since. `copy`: the original is still there. Else it was brought here.

    A folder that was brought here from another machine, or whose original is gone, is nobody else's. Nothing goes on
    in it by itself, though: whoever copied it to look at it did not ask for that.
    """
    mark = _read_place_mark(state)
    if mark is None:
        return "home"
    here, inode = str(state.resolve()), state.stat().st_ino
    same_machine = mark.machine in ("", anonymous_machine_name())
    if same_machine and (mark.path == here or mark.inode == inode):
        return "home"
    return "copy" if mark.path != here and _is_original_state(Path(mark.path), mark.inode, state) else "moved"


def refuse_copied_state(state: Path) -> None:
    """To act in a copy would be to act for the original's runs."""
    if state_folder_standing(state) != "copy":
        return
    raise MusterError(
        phrase("files.folder_is_copy", folder=original_campaign_folder(state)),
        where=str(state),
        hint=phrase("files.act_in_original"),
        code="copy",
    )


def original_campaign_folder(state: Path) -> Path | None:
    """The campaign's folder that the mark names, if that is another."""
    mark = _read_place_mark(state)
    return Path(mark.path).parent if mark and mark.path != str(state.resolve()) else None


@dataclass(frozen=True, slots=True)
class PlaceMark:
    path: str  # of .muster, without links
    inode: int
    machine: str = ""  # "": not known
    former: tuple[str, ...] = ()  # paths that it had before


def _read_place_mark(state: Path) -> PlaceMark | None:
    try:
        mark = json.loads(read_plain_file(str(state / "place")))
        former = tuple(map(str, mark.get("former", ())))
        return PlaceMark(str(mark["path"]), int(mark["inode"]), str(mark.get("machine", "")), former)
    except (OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_original_state(path: Path, inode: int, state: Path) -> bool:
    """A number of a file is used again when the file is gone: the log must begin as ours does, too."""
    try:
        return path.stat().st_ino == inode and read_log_beginning(path) == read_log_beginning(state)
    except OSError:
        return False


def read_log_beginning(state: Path) -> bytes:
    """The first line of its log. What a mark names may be anything: no link, no pipe, and no line without an end."""
    with open(open_plain_file(str(state / "decisions.jsonl")), "rb") as log:
        return log.readline(LONGEST_LOG_LINE)


def anonymous_machine_name() -> str:
    """A name of this machine that is the same after it was started anew, and tells nobody which one it is."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError):
            if told := Path(path).read_text("utf-8").strip():
                return f"{zlib.crc32(told.encode()):08x}"
    return ""


def _replace_mark_file(path: Path, text: str) -> None:
    write_atomically(path, text)


BELL_NAME = "bell"  # the one pipe, which nobody reads by waiting


def refuse_links_in_state(state: Path) -> None:
    """Muster makes none there. Through one that came with a folder it would write where somebody else wants it to.

    Nor does it make pipes and the like, which every reader would wait for.
    """
    if state.is_symlink():
        raise _linked_state_error(phrase("files.state_is_link"), state)
    with contextlib.suppress(OSError), os.scandir(state) as found:
        for each in found:
            if each.is_symlink():
                raise _linked_state_error(phrase("files.state_entry_is_link", name=each.name), Path(each.path))
            if not (
                each.is_file(follow_symlinks=False) or each.is_dir(follow_symlinks=False) or each.name == BELL_NAME
            ):
                raise _odd_entry_error(each.name, Path(each.path))


def _odd_entry_error(name: str, path: Path) -> UsageError:
    return UsageError(
        phrase("files.state_entry_is_odd", name=name),
        where=str(path),
        hint=phrase("files.see_where_it_comes_from"),
        code="odd_state",
    )


def _linked_state_error(what: str, path: Path) -> UsageError:
    try:
        target = os.readlink(path)  # noqa: PTH115 - bytes that are no text survive
    except OSError:
        target = ""
    return UsageError(
        phrase("files.would_write_elsewhere", what=what, target=f"{target!a}")
        if target
        else phrase("files.would_write_there", what=what),
        where=str(path),
        hint=phrase("files.move_link_target"),
        code="linked_state",
    )


def close_state_permissions(state: Path) -> None:
    """Nobody else may enter it, whatever lies in it: one that an older Muster made is closed by whom it belongs to.

    Not one that everybody may write to: who knows who did. `campaign_ownership` refuses it.
    """
    with contextlib.suppress(OSError):
        facts = state.lstat()
        open_to = facts.st_mode & 0o077
        if stat.S_ISDIR(facts.st_mode) and open_to and not open_to & stat.S_IWOTH and facts.st_uid == os.geteuid():
            state.chmod(PRIVATE_FOLDER)


def ring_bell(bell: Path, message: str = "log") -> bool:
    """False: nobody listens."""
    try:
        fd = os.open(bell, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        os.write(fd, f"{message}\n".encode())
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


SIDECAR_SUFFIX = ".muster.json"


def has_started_state(root: Path) -> bool:
    state = root / ".muster"
    return (state / "campaign.db").exists() or (state / "decisions.jsonl").exists()


def damaged_state_error(what: str, detail: str = "") -> MusterError:
    hint = phrase("files.fsck_rebuilds_state")
    return MusterError(phrase("files.run_fsck", what=what), where=detail, hint=hint, code="damaged")
