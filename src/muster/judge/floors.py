"""Every floor, factor and count of the judge, as one value: tests and the simulator shrink it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Floors:
    poll_s: float = 5.0
    late_s: float = 12.0  # polls further apart than this were late: what happened in between is not learned from
    stale_s: float = 150.0  # readings older than this say nothing any more
    suspect_s: float = 30.0
    suspect_factor: float = 2.0  # x the 99th percentile of the signal's own gaps
    convict_s: float = 120.0
    convict_factor: float = 5.0  # x its longest gap, which fades slowly
    enough: int = 8  # gaps, before its own cadence is believed
    stranger_s: float = 2700.0  # conviction of a signal whose cadence nobody knows
    grace_s: float = 3600.0  # until the first progress
    active_s: float = 1800.0  # no conviction before this while it works as it usually does
    confirm: int = 3  # polls in a row
    confirm_stopped: int = 2
    idle_cpu: float = 0.002  # of a core; and one clock tick per look
    tick_s: float = 0.011
    idle_io: float = 1.0  # bytes a second, over `recent_s`: less is what is left of an earlier burst
    idle_gpu: float = 0.5  # percent
    alike: float = 0.1  # of its usual activity: less is another one
    recent_s: float = 60.0  # over which activity is judged: one quiet look proves nothing

    @classmethod
    def paced(cls, factor: float, poll_s: float) -> Floors:
        """All times shrunk by a factor, for tests with real processes."""
        base = cls()
        return cls(
            poll_s=poll_s,
            late_s=max(3 * poll_s, 1.0),
            stale_s=max(30 * poll_s, 10.0),
            suspect_s=base.suspect_s * factor,
            convict_s=base.convict_s * factor,
            stranger_s=base.stranger_s * factor,
            grace_s=base.grace_s * factor,
            active_s=base.active_s * factor,
            recent_s=base.recent_s * factor,
        )


STANDARD = Floors()
