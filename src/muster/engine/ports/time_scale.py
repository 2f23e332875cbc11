"""How patient this process is. Tests shrink all floors at once by MUSTER_PACE; nobody else should."""

from __future__ import annotations

import os

from muster.engine.judge.signal_history import Thresholds

POLL_S = 5.0
SECOND_LOOK_S = 60.0


def poll_seconds() -> float:
    return float(os.environ.get("MUSTER_POLL_S", POLL_S))


def time_scale() -> float:
    return float(os.environ.get("MUSTER_PACE", "1"))


def second_look_seconds() -> float:
    """Between the two looks that must find nothing against powering off."""
    return SECOND_LOOK_S * time_scale()


def thresholds_from_env() -> Thresholds:
    times = time_scale()
    return Thresholds() if times == 1 and poll_seconds() == POLL_S else Thresholds.paced(times, poll_seconds())
