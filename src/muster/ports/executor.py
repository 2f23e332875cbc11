"""The executor: leases slots, starts shims, delivers stop requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.domain.attempt import Attempt
from muster.domain.order import Order
from muster.domain.state import CampaignState


@dataclass(frozen=True, slots=True)
class Slot:
    """A place to run: `cpu0`, `gpu6.0`."""

    name: str
    kind: str  # cpu | gpu
    gpu: int | None = None  # the physical index


@dataclass(frozen=True, slots=True)
class Lease:
    slots: tuple[Slot, ...]
    fds: tuple[int, ...] = ()


class Executor(Protocol):
    def slots(self) -> Sequence[Slot]:
        """The slots this campaign may use, whether free or not."""

    def lease(self, names: Sequence[str]) -> Lease | None:
        """All of them or none; None: somebody else has one. Never waits."""

    def give_back(self, lease: Lease) -> None: ...

    def keep(self, attempt: Attempt) -> Lease | None:
        """Of the slots of a living attempt those that nobody holds, for us to hold; None: the run holds its own."""

    def holder(self, names: Sequence[str]) -> str:
        """Who holds them, in words; "": nobody, or nobody knows."""

    def launch(self, order: Order, lease: Lease) -> None:
        """Writes attempt.json (the first one stays) and has a shim started, which takes the lease over.

        Never a second time where the files of the first launch are gone: the lease is given back.
        """

    def order(self, attempt: Attempt) -> Order | None:
        """attempt.json, if it was written."""

    def revoke(self, attempt: Attempt, reason: str) -> bool:
        """Wins `started` itself, so that no shim ever can; False: a shim was first, or its files are gone."""

    def restart(self) -> None:
        """Drops requests for shims that were not answered, and the leases that travel with them."""

    def stop(self, attempt: Attempt, *, epoch: int, reason: str, grace_s: float) -> None:
        """A stop request for the attempt's whole tree; carried out by its shim, or by us if that is gone."""

    def nudge(self, attempt: Attempt) -> None:
        """Lets a stopped shim go on."""

    def release(self, attempt: Attempt) -> None:
        """The cell is DONE: a leftover helper without a GPU no longer keeps the slot."""

    def tidy(self, attempt: Attempt) -> None:
        """Nobody saw its end: what a killed shim had begun to write goes."""

    def close(self) -> None: ...


class NotYet(Exception):
    """What an order needs is still being read: ask again in a moment."""


class Composer(Protocol):
    """Builds attempt.json. Never waits for files that do not answer: raises NotYet."""

    def compose(self, attempt: Attempt, state: CampaignState, lease: Lease) -> Order: ...

    def lacks(self, state: CampaignState) -> str:
        """Why no order of this campaign could be executed now; "": nothing is missing."""
