"""How fast a living run gets on, by its own progress signals; for forecasts, never for a verdict."""

from __future__ import annotations

from muster.judge.history import History, Pulse
from muster.ledger.forecast import Pace


def pace_of(history: History | None, elapsed_s: float, target: float | None, step: float | None = None) -> Pace:
    """Of the log with the newest step. `step`: of one that was read from its files, where no log shows one."""
    pulses = [pulse for pulse in history.pulses.values() if pulse.is_log] if history else []
    best = max((pulse for pulse in pulses if pulse.count is not None), key=lambda pulse: pulse.count or 0, default=None)
    if best is None:
        return Pace(elapsed_s, step, target)
    return Pace(elapsed_s, best.count, target, _speed(best))


def next_checkpoint_s(history: History | None, now: float) -> float | None:
    """Seconds until its next checkpoint, of one that has saved some and whose rhythm is known."""
    for pulse in history.pulses.values() if history else ():
        gap = pulse.cadence.usual if pulse.cadence.count >= 2 else pulse.every_s
        if pulse.kind == "checkpoint" and pulse.advanced is not None and gap:
            return max(0.0, pulse.advanced + gap - now)
    return None


def _speed(pulse: Pulse) -> float | None:
    """Steps a second, between its first advance and its last."""
    if pulse.origin is None or pulse.advanced is None or pulse.count is None:
        return None
    count, since = pulse.origin
    took = pulse.advanced - since
    return (pulse.count - count) / took if took > 0 and pulse.count > count else None
