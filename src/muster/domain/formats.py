"""Formats of what lies in `.muster`, and the word for a state that only a newer Muster knows.

Raise a number in the commit after which an older Muster would misread what is written: a new kind of decision, another
meaning of a field, a migration. A newer Muster reads all that older ones wrote; an older one refuses what is newer.
"""

from __future__ import annotations

from muster import __version__
from muster.domain.errors import MusterError

STATE_FORMAT = 2  # of decisions.jsonl; every epoch in it says the format it was written in, 1 where it says none
SNAPSHOT_FORMAT = 1  # of campaigns/<hash>.json
ORDER_FORMAT = 1  # of attempt.json; the shim has the number, too


class NewerState(MusterError):
    """Written by a newer Muster: whatever we did with it, we would do without knowing what it says."""

    code = "newer"


def newer_state(what: str, where: str) -> NewerState:
    return NewerState(
        f"this state is of a newer Muster: {what}; nothing was changed",
        where=where,
        hint=f"use the Muster that wrote it, or a newer one; this is {__version__}",
    )


def newer_order(told: int, where: str) -> NewerState:
    return newer_state(f"an attempt's order has format {told}, and this Muster knows {ORDER_FORMAT}", where)


def newer_snapshot(told: int, where: str) -> NewerState:
    return newer_state(f"a campaign was taken in with format {told}, and this Muster knows {SNAPSHOT_FORMAT}", where)
