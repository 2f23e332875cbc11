"""Why this user can take no slot at all, so that every cell would wait for ever: their folder is closed."""

from __future__ import annotations

import contextlib
import os
import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ClosedSlots:
    why: str
    hint: str

    def __str__(self) -> str:
        return f"{self.why}. To mend it: {self.hint}"


def closed_slots(folder: Path) -> ClosedSlots | None:
    """None: it can be used or made."""
    at = next((path for path in (folder, *folder.parents) if os.path.exists(path)), Path("/"))  # noqa: PTH110 - never raises
    if at.is_dir() and os.access(at, os.W_OK | os.X_OK, effective_ids=True):
        return None
    if at == folder and _holds_usable(folder):
        return None
    what = "you may not write to it" if at.is_dir() else "it is no folder"
    if at == folder:
        return ClosedSlots(f"slots can't be made in {folder}: {what}", _hint(f"chmod 1777 {shlex.quote(str(folder))}"))
    what = f"you may not write to {at}" if at.is_dir() else f"{at} is no folder"
    return ClosedSlots(
        f"{folder}, where slots are taken, does not exist and can't be made: {what}",
        _hint(f"mkdir -m 1777 {shlex.quote(str(folder))}"),
    )


def _hint(command: str) -> str:
    if not os.environ.get("MUSTER_HOME"):
        return "set MUSTER_HOME to a folder that you may write to"
    return (
        f"ask the owner of this MUSTER_HOME for `{command}`, or set MUSTER_HOME to a folder of your own, "
        "which does not coordinate with theirs"
    )


def _holds_usable(folder: Path) -> bool:
    """For a lock it is enough to be allowed to read."""
    with contextlib.suppress(OSError):
        return any(os.access(path, os.R_OK, effective_ids=True) for path in folder.iterdir())
    return False
