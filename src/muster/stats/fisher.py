"""Fisher's exact test of two rates."""

from __future__ import annotations

from math import comb

_SAME = 1 + 1e-7  # chances that only rounding tells apart


def fisher_exact(failed: int, of: int, others_failed: int, others: int) -> float:
    """The two-sided p of `failed` in `of` against `others_failed` in `others`: all tables as unlikely as this one."""
    total = failed + others_failed
    ways = {k: comb(of, k) * comb(others, total - k) for k in range(max(0, total - others), min(of, total) + 1)}
    return sum(count for count in ways.values() if count <= ways[failed] * _SAME) / sum(ways.values())
