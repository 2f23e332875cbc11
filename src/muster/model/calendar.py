"""The calendar of a campaign: wall time as it was when a boot was first seen, carried on by boot time.

Somebody may set the machine's clock at any moment, by a year or by a minute. Within a boot only boot time tells how
long something took; between two boots there is nothing but the wall clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

CLOCK_STEP_S = 10.0  # a clock that is only kept right moves by less between two looks


@dataclass(frozen=True, slots=True)
class ClockRecord:
    """What the decisions say of the machine's clocks."""

    offsets: Mapping[str, float] = field(default_factory=dict)  # boot id -> wall less boot time when it was first seen
    seen: tuple[str, float] | None = None  # boot id and offset as they were told last: another offset is a step
    boot_id: str = ""  # in which the newest decision was made; "": a log of an older version

    def place(self, boot_id: str, boot: float, wall: float) -> float:
        """On the calendar. Of a boot that nobody saw begin, what the wall clock said."""
        offset = self.offsets.get(boot_id)
        return wall if offset is None else boot + offset

    def step(self, boot_id: str, boot: float, wall: float) -> float:
        """By how much the clock was set since it was told last; 0: it was not."""
        if self.seen is None or self.seen[0] != boot_id:
            return 0.0
        moved = wall - boot - self.seen[1]
        return moved if abs(moved) >= CLOCK_STEP_S else 0.0


NO_CLOCK_RECORD = ClockRecord()


def seconds_of_iso_time(text: str | None) -> float | None:
    """Since 1970; None: it is no time."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except (ValueError, OverflowError):
        return None


def format_iso_time(wall: float) -> str:
    """Local time with its zone, to the millisecond."""
    return datetime.fromtimestamp(wall).astimezone().isoformat(timespec="milliseconds")
