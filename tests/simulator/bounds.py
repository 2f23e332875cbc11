"""How soon a stall must be told: by the gaps that looks at these moments could see, and the rules' own figures."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from muster.engine.judge.signal_history import Thresholds
from simulator.run import Run, Veil
from simulator.timeline import Style, Track


@dataclass(slots=True)
class Seen:
    """One signal as an ideal watcher knows it, in the stage that it is in."""

    name: str
    gaps: int = 0
    longest: float = 0.0
    advanced: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """Seconds from the stall to its verdict, polls apart."""

    seconds: float
    strict: bool  # an idle tree and a learned cadence: the figure of the rules


def seen_by(run: Run, polls: Sequence[float], late_s: float) -> list[Seen]:
    """`polls`: those since the watcher began to remember."""
    veils = [veil for veil in run.veils if veil.what in ("marks", "torn", "all")]
    own = [run.own(t) for t in polls]
    return [_seen(track, polls, own, veils, run, late_s) for track in run.tracks]


def _seen(
    track: Track, polls: Sequence[float], own: Sequence[float], veils: Sequence[Veil], run: Run, late_s: float
) -> Seen:
    seen, stage = Seen(track.signal.name), ""
    before = last = None
    torn, first, at = True, True, -math.inf
    for t, now in zip(polls, own, strict=True):
        veil = next((veil for veil in veils if veil.start <= t < veil.end), None)
        torn = torn or t - at > late_s or (veil is not None and veil.what != "torn")
        at = t
        if veil is not None and veil.what != "torn" and not first:
            continue
        index = bisect_right(track.times, run.own(veil.start) if veil else now) - 1
        value = track.values[index] if index >= 0 else track.signal.began_at
        label = track.stage_at(track.times[index]) if track.stages and index >= 0 else ""
        if label and label != stage:
            stage, torn, seen = label, True, Seen(track.signal.name, advanced=seen.advanced)
        if value is not None and not first and (before is None or value > before):
            if last is not None and not torn:
                seen.gaps, seen.longest = seen.gaps + 1, max(seen.longest, t - last)
            last, torn, seen.advanced = t, False, True
        before, first = value if value is not None else before, False
    return seen


def bound_of(seen: Sequence[Seen], style: Style, floors: Thresholds, *, idle: bool, known: bool) -> Bound:
    """`idle`: nothing of it works, and readings show that. `known`: it was watched from its start, or for an hour."""
    moving = [each for each in seen if each.advanced]
    learned = [each for each in moving if each.gaps >= floors.enough]
    if not moving:
        return Bound(max(floors.grace_s, floors.convict_factor * (style.prior_first_s or 0.0)), False)
    if idle and known and len(learned) == len(moving):
        longest = max(each.longest for each in learned)
        return Bound(max(floors.convict_s, floors.convict_factor * longest), True)
    floor = floors.active_s if known and len(learned) == len(moving) else floors.stranger_s
    if not idle and len(moving) < len(seen):
        floor = max(floor, floors.grace_s)  # a busy run may be about to move a signal for the first time
    gaps = [*(each.longest for each in moving), *style.prior.values(), *(s.every_s or 0.0 for s in style.signals)]
    gaps += [period for _, period in style.clocks if period <= 1.25 * max(gaps)]
    return Bound(max(floor, floors.convict_factor * max(gaps)), False)
