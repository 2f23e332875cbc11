"""A decision: who decided what, when and why. The database is folded from a list of them, `decisions.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Decision:
    """`kind` is one of

    epoch     a controller took over              start    an attempt was claimed
    campaign  a campaign text was taken in        settle   an attempt ended
    filter    what --only leaves out              adopt    a run that something else made was taken in
    intent    running or down                     end      a controller ended by itself
    finish    a step of the finish began or ended shutdown a wish to power off, its end, how far it has come
    gate      a gate over a run opened, fell back or bears no more failures, or such a word counts no more
    budget    how far it is used up was told      round    the variants of a loop's next round, or why there is none
    hold, release, retry, giveup, accept, stop, note: a person's word; found: what a person should hear of

    A kind that this version does not know is kept and has no effect.
    """

    kind: str
    who: str
    reason: str = ""
    cell: str | None = None
    attempt: int | None = None
    epoch: int | None = None  # of the controller that decided; None: a person
    at: str = ""  # wall time, for display
    boot: float = 0.0
    data: Mapping[str, Any] = field(default_factory=dict)
    ref: str | None = None  # by which its author asks what became of it


@dataclass(frozen=True, slots=True)
class Refusal:
    """A decision that came too late or against a rule: kept in the log, without effect."""

    decision: Decision
    because: str
