"""Cells that are named together."""

from __future__ import annotations

from collections.abc import Sequence


def group_cell_names(cells: Sequence[str]) -> list[str]:
    """Cells that differ in one value only, together: `train/v2_full/{0,1,3}`, as a shell would expand it."""
    rows: list[list[tuple[str, ...]]] = [[(part,) for part in cell.split("/")] for cell in dict.fromkeys(cells)]
    for back in range(1, max(map(len, rows), default=0)):  # the last value first; the job stays what it is
        merged: dict[object, list[tuple[str, ...]]] = {}
        for row in rows:
            at = len(row) - back
            key = (len(row), *row[:at], None, *row[at + 1 :]) if at > 0 else tuple(row)
            known = merged.get(key)
            if known is None:
                merged[key] = row
            elif at > 0:
                known[at] = (*known[at], *row[at])
        rows = list(merged.values())
    return ["/".join(part[0] if len(part) == 1 else f"{{{','.join(part)}}}" for part in row) for row in rows]
