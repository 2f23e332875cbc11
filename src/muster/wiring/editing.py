"""Gives a variant the time that it was made at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from muster.acts.edit import Made, make_variant
from muster.ports.clock import Clock, SystemClock, iso


def edited(
    base: Path,
    changes: Sequence[str],
    reason: str,
    out: Path | None,
    clock: Clock | None = None,
    *,
    tried: Mapping[str, str] | None = None,
) -> Made:
    return make_variant(base, changes, reason, iso((clock or SystemClock()).wall()), out, tried=tried)
