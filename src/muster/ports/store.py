"""The store: decisions in, the campaign's state out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.domain.attempt import CellRecord
from muster.domain.decision import Decision, Refusal
from muster.domain.state import CampaignState


@dataclass(frozen=True, slots=True)
class Event:
    """A decision as the event table keeps it; `void` says why it had no effect."""

    decision: Decision
    void: str | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    refused: tuple[Refusal, ...]  # of the decisions that were handed in
    seen: tuple[Event, ...]  # everything that was folded, other people's decisions too, in order


class Superseded(Exception):
    """A newer controller exists: this one must end at once."""


class Store(Protocol):
    def append(self, decision: Decision) -> None:
        """Durably in the log; it takes effect when the controller folds it."""

    def commit(self, decisions: Sequence[Decision]) -> Committed:
        """Log first (fsync), database second, in one transaction with all that others appended before."""

    def load(self) -> CampaignState | None:
        """All that was decided so far; None before the first campaign was taken in."""

    def records(self, cells: Iterable[str]) -> list[CellRecord]:
        """The current rows of some cells."""

    def events(self, cell: str | None = None) -> list[Event]:
        """Who decided what, when and why, oldest first."""

    def has_decided(self, kind: str) -> bool:
        """Whether a decision of this kind took effect, without reading all of them."""

    def became_of(self, ref: str) -> Event | None:
        """What became of a person's decision; None: not folded yet."""

    def behind(self) -> bool:
        """Whether the log holds decisions that the database has not seen."""

    def close(self) -> None: ...


class Ballast(Protocol):
    """Room laid by for the day the disk is full."""

    def lay(self) -> bool: ...

    def free(self) -> None: ...
