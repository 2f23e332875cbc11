"""Time comes in as a value. Boot time measures, wall time is for display."""

from __future__ import annotations

import time
from typing import Protocol


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
