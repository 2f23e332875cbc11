"""How patient this process is. Tests shrink all floors at once by MUSTER_PACE; nobody else should."""

from __future__ import annotations

import os

from muster.judge.floors import Floors

POLL_S = 5.0
SECOND_LOOK_S = 60.0


def poll_s() -> float:
    return float(os.environ.get("MUSTER_POLL_S", POLL_S))


def pace() -> float:
    return float(os.environ.get("MUSTER_PACE", "1"))


def second_look_s() -> float:
    """Between the two looks that must find nothing against powering off."""
    return SECOND_LOOK_S * pace()


def floors() -> Floors:
    times = pace()
    return Floors() if times == 1 and poll_s() == POLL_S else Floors.paced(times, poll_s())
