"""The newest word of each gate over an attempt, from the traces that the controller keeps in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muster.ports.regular_files import open_regular

TRACES = "gates"
TAIL_BYTES = 64 << 10
TOLD = (
    "iteration",
    "stage",
    "phase",
    "state",
    "streak",
    "required",
    "failures",
    "tolerance",
    "broke",
    "missing",
    "why",
)


def newest_rows(folder: Path) -> dict[str, Mapping[str, Any]]:
    """By gate; nothing where there is none, or none that can be read."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in sorted((folder / TRACES).glob("*.jsonl")):
        row = _last_row(path)
        if row:
            found[path.stem] = {name: row.get(name) for name in TOLD}
    return found


def _last_row(path: Path) -> dict[str, Any] | None:
    import json

    try:
        with open_regular(path) as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and "iteration" in row:
            return row
    return None
