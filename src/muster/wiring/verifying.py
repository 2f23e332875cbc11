"""Holds every derived file against what it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from muster.acts.docs_stamp import bound_numbers_changed
from muster.acts.stamping import stamps
from muster.acts.verify import FileState, verify
from muster.observe.hashes import HashCache
from muster.report.stamp import Stamp
from muster.wiring.basis import basis_now
from muster.wiring.desk import Desk


def verified(desk: Desk) -> list[FileState]:
    made = list(stamps(desk.root))
    return states_of(desk, made) if made else []


def states_of(desk: Desk, made: Sequence[Stamp]) -> list[FileState]:
    now, hashes = basis_now(desk), HashCache(desk.state)

    def hash_of(path: str) -> str | None:
        return hashes.sha256(desk.root / path)

    def edited(path: str) -> str:
        return bound_numbers_changed(desk.root / path)

    found = [state for stamp in made for state in verify(stamp, now, hash_of, edited)]
    hashes.save()
    return found


def stale(root: Path) -> list[str]:
    """Every derived file that is not fresh, with the reason."""
    desk = Desk.open(root)
    try:
        return [f"{each.path} is {each.state}: {each.because}" for each in verified(desk) if each.state != "fresh"]
    finally:
        desk.close()
