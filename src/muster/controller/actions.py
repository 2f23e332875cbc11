"""What the controller can decide to do. Each is written down with its reason before it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.domain.attempt import Attempt, Outcome


@dataclass(frozen=True, slots=True)
class Start:
    """Lease the slots, claim the cell, have a shim started."""

    cell: str
    n: int
    slots: tuple[str, ...]
    retry_cause: str | None
    reason: str
    rests_on: Mapping[str, int] = field(default_factory=dict)  # needed cell -> its attempt that counts


@dataclass(frozen=True, slots=True)
class Settle:
    """Record how an attempt ended. `release`: a helper of it lives on and must not keep the slot."""

    attempt: Attempt
    outcome: Outcome
    freed: float  # when its slot was free again
    release: bool = False


@dataclass(frozen=True, slots=True)
class Relaunch:
    """A claimed attempt that no shim has started: start one for the same attempt, or fence it if its slot is taken."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Fence:
    """A claimed attempt that no shim has started: none may any more. `stop`: because a person wants it stopped."""

    attempt: Attempt
    reason: str
    stop: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    attempt: Attempt
    cause: str  # user_stop | budget_stop | timeout | stalled | pruned | gate_stop
    reason: str
    shim: bool = True  # there is one to carry it out, as far as is known; else the executor does


@dataclass(frozen=True, slots=True)
class Nudge:
    """A stopped shim must go on: it alone can write the exit down."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class HoldAll:
    """Everything fails: nothing more starts until a person has looked."""

    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """Nothing is open and nothing may start: the controller's work is over."""

    complete: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Tell:
    """The budget: how far it is used up. Each level is told once."""

    level: str
    budget: float
    reason: str


Action = Start | Settle | Relaunch | Fence | Stop | Nudge | HoldAll | Tell | End
