"""Where the state may lie: a local disk we can write to, in the folder it was made for."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

from muster.domain.errors import MusterError

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


def mark_place(state: Path) -> None:
    """Which folder this state belongs to: a copy of it must not act for the original's runs."""
    here = {"path": str(state.resolve()), "inode": state.stat().st_ino}
    with contextlib.suppress(OSError):
        if _marked(state) != here:
            (state / "place").write_text(json.dumps(here))
        if not (state / ".gitignore").exists():
            (state / ".gitignore").write_text("*\n")  # the recorded environment may hold secrets


def refuse_copy(state: Path) -> None:
    """A copy while the original is still there. One that was moved, or whose original is gone, is no copy."""
    mark = _marked(state)
    if mark is None or mark["path"] == str(state.resolve()) or mark["inode"] == state.stat().st_ino:
        return
    try:
        original = Path(mark["path"]).stat().st_ino == mark["inode"]
    except OSError:
        original = False
    if original:
        raise MusterError(
            f"this folder is a copy: its state belongs to the campaign in {Path(mark['path']).parent}",
            where=str(state),
            hint="ask there; or delete .muster here to make this a campaign of its own",
            code="copy",
        )


def _marked(state: Path) -> dict[str, Any] | None:
    try:
        mark = json.loads((state / "place").read_text())
        return {"path": str(mark["path"]), "inode": int(mark["inode"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None
