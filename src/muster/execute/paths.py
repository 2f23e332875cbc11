"""Where an attempt's facts lie."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1024)
def attempt_folder(state: Path, cell: str, n: int) -> Path:
    return state / "attempts" / cell / str(n)
