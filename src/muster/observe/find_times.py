"""When files that come one after the other were saved: their times give ages and gaps, for what was not watched."""

# Paths are texts here, as in the rest of this room.
# ruff: noqa: PTH116, PTH118, PTH208

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Sequence
from itertools import pairwise

from muster.domain.look_facts import Dated
from muster.observe.checkpoints import saved_at

KEPT = 256
MOMENT_S = 1.0
_MOST_CHECKPOINTS = 64
FUTURE_S = 5.0
IN_THE_FUTURE = "its file time lies in the future: the clock was set, or another machine's clock is ahead"


def of_times(times: Sequence[float], now: float, since: float | None) -> Dated:
    """`since`: when the process began; what is older is another run's, and says nothing about this one's gaps."""
    if not times:
        return Dated()
    if max(times) > now + FUTURE_S:
        return Dated(None, (), IN_THE_FUTURE)
    own = sorted(at for at in times if since is None or at >= since)
    return Dated(max(own or times), gaps_of(own))


def gaps_of(times: Sequence[float]) -> tuple[float, ...]:
    """Between moments as looks a second apart would see them: ten files at once, or a copied folder, are one."""
    kept: list[float] = []
    for at in times:
        if not kept or at - kept[-1] >= MOMENT_S:
            kept.append(at)
    return tuple(after - before for before, after in pairwise(kept))[-KEPT:]


def of_file(dated: Dated, now: float) -> Dated:
    if dated.last is not None and dated.last > now + FUTURE_S:
        return Dated(None, dated.gaps, IN_THE_FUTURE)
    return dated


def newest_times(folder: str, ending: str) -> list[float]:
    """Of a crowded folder: those of the names that are most likely the newest, by number or by date."""
    try:
        names = [name for name in os.listdir(folder) if name.lower().endswith(ending)]
    except OSError:
        return []
    likely = {*heapq.nlargest(KEPT, names), *heapq.nlargest(KEPT, names, key=lambda name: (len(name), name))}
    return list(_times(os.path.join(folder, name) for name in likely))


def checkpoint_times(paths: Iterable[str]) -> list[float]:
    """Of files or folders; of very many the ones with the latest names."""
    likely = heapq.nlargest(_MOST_CHECKPOINTS, paths, key=lambda path: (len(path), path))
    found = []
    for path in likely:
        try:
            found.append(saved_at(path))
        except OSError:
            continue
    return found


def _times(paths: Iterable[str]) -> Iterable[float]:
    for path in paths:
        try:
            yield os.stat(path).st_mtime
        except OSError:
            continue
