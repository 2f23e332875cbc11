"""Holds every derived file against what it was made from."""

from __future__ import annotations

from pathlib import Path

from muster.acts.stamping import stamps
from muster.acts.verify import FileState, verify
from muster.observe.hashes import HashCache
from muster.wiring.basis import basis_now
from muster.wiring.desk import Desk


def verified(desk: Desk) -> list[FileState]:
    made = list(stamps(desk.root))
    if not made:
        return []
    now = basis_now(desk)
    hashes = HashCache(desk.state)
    found = [state for stamp in made for state in verify(stamp, now, lambda path: hashes.sha256(desk.root / path))]
    hashes.save()
    return found


def stale(root: Path) -> list[str]:
    """Every derived file that is not fresh, with the reason."""
    desk = Desk.open(root)
    try:
        return [f"{each.path} is {each.state}: {each.because}" for each in verified(desk) if each.state != "fresh"]
    finally:
        desk.close()
