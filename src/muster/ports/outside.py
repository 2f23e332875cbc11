"""Which paths outside of a campaign's folder came with it in a pack: `muster unpack` brought them into its state."""

from __future__ import annotations

import json
from pathlib import Path

from muster.domain.whereabouts import OUTSIDE_LIST
from muster.ports.plain_files import read_plain


def outside_paths(state: Path) -> tuple[str, ...]:
    """Empty where this was never unpacked; what is damaged leads nowhere."""
    try:
        told = json.loads(read_plain(str(state / OUTSIDE_LIST)))
    except (OSError, ValueError, RecursionError):
        return ()
    return tuple(each for each in told if isinstance(each, str)) if isinstance(told, list) else ()
