"""A decision: who decided what, when and why. The database is folded from a list of them, `decisions.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal[
    "epoch",  # a controller took over; data: pid, ticks
    "campaign",  # a campaign text was taken in; data: hash, env_file, with_up (refused while held)
    "filter",  # what --only leaves out; data: only, left_out, with_up
    "intent",  # running | down; data: intent
    "hold", "release",
    "start",  # an attempt was claimed; data: the attempt
    "settle",  # an attempt ended; data: the outcome; where known ended_at, ended_boot, held_until_boot, boot_id
    "retry", "giveup", "accept", "stop", "note",
    "adopt",  # a run that something else made; data: attempt and outcome
    "end",  # a controller ended by itself; data: complete
    "found",  # something a person should hear of
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decision:
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
