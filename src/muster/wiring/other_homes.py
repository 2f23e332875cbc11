"""Whether another user runs Muster on this machine, with whom this one does not share its slots."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from muster.domain.errors import Mistake

PROGRAMS = (b"muster.wiring.controller", b"/muster/execute/guard.py", b"/muster/execute/shim.py")


def not_coordinated(proc: Path = Path("/proc")) -> list[Mistake]:
    """A note where it matters: with the usual home each user has slots of its own."""
    others = sorted(set(_other_users(proc)))
    if os.environ.get("MUSTER_HOME") or not others:
        return []
    named = ", ".join(f"uid {uid}" for uid in others)
    return [
        Mistake(
            f"Muster runs here for another user, too ({named}): each takes its own CPU slots, so both may use the same",
            hint="agree on a MUSTER_HOME that both may use (docs/modes.md tells how), or on who takes how many",
            level="note",
        )
    ]


def _other_users(proc: Path) -> Iterator[int]:
    for folder in proc.iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and (uid := folder.stat().st_uid) != os.geteuid():
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if any(word.endswith(PROGRAMS) for word in words):
                    yield uid
