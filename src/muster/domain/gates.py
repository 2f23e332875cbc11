"""What was found of a gate over a run: told and recorded when something changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GateEvent:
    gate: str
    iteration: int
    state: str  # advance | fall_back | failure_hold: more failures than are borne | hold: an earlier one counts no more
    phase: int  # after it
    why: str


@dataclass(frozen=True, slots=True)
class GateRecord:
    """The newest event of a gate over a cell."""

    attempt: int
    iteration: int
    state: str
    phase: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class GateNews:
    """What gates say now of the attempts that they watch."""

    events: Sequence[tuple[str, int, GateEvent]] = ()  # cell, attempt, what happened and is not recorded yet
    stops: Mapping[tuple[str, int], tuple[str, str]] = field(default_factory=dict)  # attempts to stop: cause, why
    left: frozenset[tuple[str, int]] = frozenset()  # attempts that were not read to their end yet


NO_NEWS = GateNews()
