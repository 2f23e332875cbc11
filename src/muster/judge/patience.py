"""How long each signal may be silent: before it is suspected, and before it is convicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from muster.judge.cadence import Cadence
from muster.judge.floors import Floors
from muster.judge.history import History, Pulse


@dataclass(frozen=True, slots=True)
class Prior:
    """What sibling cells with the same code showed, where a run has not shown enough itself."""

    longest: Mapping[str, float] = field(default_factory=dict)  # signal -> its longest gap
    first_s: float | None = None  # the slowest first progress


NO_PRIOR = Prior()


@dataclass(frozen=True, slots=True)
class Limits:
    suspect_s: float
    convict_s: float
    rests_on: str  # its own cadence, siblings, `every:`, a clock in its config, nothing


def limits(pulse: Pulse, history: History, prior: Prior, floors: Floors, *, idle: bool) -> Limits:
    """What its writer keeps back for a while is no silence of the run."""
    found = _known_limits(pulse, history, prior, floors, idle=idle)
    return replace(found, suspect_s=found.suspect_s + pulse.delay_s, convict_s=found.convict_s + pulse.delay_s)


def _known_limits(pulse: Pulse, history: History, prior: Prior, floors: Floors, *, idle: bool) -> Limits:
    cadence = pulse.cadence
    if not history.whole and history.polled - history.watched < floors.grace_s:
        return _stranger(cadence, floors, "watched for too short a time")
    if cadence.count >= floors.enough:
        return _limits(cadence.quantile(0.99), cadence.longest, "by its own cadence", floors)
    known, rests_on = _hint(pulse, history, prior)
    base = max(known, cadence.longest)
    if known or (idle and cadence.count):  # an idle tree does not save the checkpoint that it may be waited for
        return _limits(base, base, rests_on or "by the few gaps it has shown", floors)
    return _stranger(cadence, floors, "no cadence is known yet")


def _stranger(cadence: Cadence, floors: Floors, rests_on: str) -> Limits:
    suspect = floors.stranger_s / floors.convict_factor * floors.suspect_factor
    convict = max(floors.stranger_s, floors.convict_factor * cadence.longest)
    return Limits(max(floors.suspect_s, suspect), convict, rests_on)


def _limits(usual: float, longest: float, rests_on: str, floors: Floors) -> Limits:
    suspect = max(floors.suspect_s, floors.suspect_factor * usual)
    return Limits(suspect, max(floors.convict_s, floors.convict_factor * longest, suspect), rests_on)


def _hint(pulse: Pulse, history: History, prior: Prior) -> tuple[float, str]:
    if pulse.signal in prior.longest:
        return prior.longest[pulse.signal], "by sibling cells with the same code"
    if pulse.every_s is not None:
        return pulse.every_s, "by the declared `every:`"
    clock = clock_of(pulse, history)
    return (clock[1], f"by a clock in its own config, {clock[0]}") if clock else (0.0, "")


def clock_of(pulse: Pulse, history: History) -> tuple[str, float] | None:
    """The period in its config that its gaps follow as seconds: `log_every: 1000` is often no number of steps."""
    if not pulse.is_log or not pulse.cadence.count:
        return None
    gap = pulse.cadence.usual
    near = [(abs(gap - period), name, period) for name, period in history.clocks if 0.8 <= gap / period <= 1.25]
    return min(near)[1:] if near else None


def grace(job_grace_s: float | None, prior: Prior, floors: Floors) -> float:
    return max(job_grace_s or 0.0, floors.convict_factor * (prior.first_s or 0.0), floors.grace_s)
