"""Checkpoints that a pack left behind: what was known of each when it was packed stands for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from muster.domain.origins import Checkpoint
from muster.ports.plain_files import read_plain

FILE = "left_out.json"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """By the token of the attempt that saved it. Paths as they are recorded: relative to the campaign's folder."""

    checkpoints: Mapping[str, Checkpoint] = field(default_factory=dict)
    muster: int = 1

    def names(self, path: str) -> bool:
        """Whether it is one of them, or lies in one that is a folder."""
        return any(path == each.path or path.startswith(f"{each.path}/") for each in self.checkpoints.values())


def read_left_out(state: Path, here: Callable[[str], str]) -> LeftOut:
    """Nothing where this was never unpacked. `here`: where a recorded path leads to now."""
    try:
        found = msgspec.json.decode(read_plain(str(state / FILE)), type=LeftOut)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return LeftOut()
    return placed(found, here)


def placed(found: LeftOut, place: Callable[[str], str]) -> LeftOut:
    return replace(
        found, checkpoints={k: replace(each, path=place(each.path)) for k, each in found.checkpoints.items()}
    )
