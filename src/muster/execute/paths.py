"""Where an attempt's facts lie."""

from __future__ import annotations

from pathlib import Path


def attempt_folder(state: Path, cell: str, n: int) -> Path:
    return state / "attempts" / cell / str(n)
