"""Time comes in as a value. Boot time measures, wall time is for display.

How patient this process is belongs to it: tests shrink all floors at once by MUSTER_PACE; nobody else should.
"""

from __future__ import annotations

import os
import time
from typing import Protocol

from muster.engine.judge.signal_history import Thresholds


class Clock(Protocol):
    def boot(self) -> float:
        """Seconds of CLOCK_BOOTTIME: never jumps, counts suspend."""

    def wall(self) -> float:
        """Seconds since 1970; may jump."""


class SystemClock:
    def boot(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall(self) -> float:
        return time.time()


def monotonic_boottime() -> float:
    """Goes on while the machine sleeps: an answer from before a suspend is old."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


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
