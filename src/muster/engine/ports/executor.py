"""The ports that start and wake: the executor leases slots, starts shims and delivers stop requests; the waker sleeps
until something happened to an attempt, or somebody rang.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.model.attempt import Attempt, AttemptKey, Order
from muster.model.campaign import Slots
from muster.model.campaign_state import CampaignState
from muster.text.phrases import phrase
from muster.text.terminal_text import replace_unprintable


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


class OrderNotReady(Exception):
    """What an order needs is still being read: ask again in a moment."""


class OrderComposer(Protocol):
    """Builds attempt.json. Never waits for files that do not answer: raises OrderNotReady."""

    def compose(self, attempt: Attempt, state: CampaignState, lease: Lease) -> Order: ...

    def lacks(self, state: CampaignState) -> str:
        """Why no order of this campaign could be executed now; "": nothing is missing."""


@dataclass(frozen=True, slots=True)
class WakeReason:
    attempts: frozenset[AttemptKey] = frozenset()  # something happened to these
    log: bool = False  # somebody appended a decision


class Waker(Protocol):
    def watch(self, key: AttemptKey, pids: Iterable[int]) -> None:
        """Wake when one of these processes ends. Watching a pid twice is the same as once."""

    def forget(self, key: AttemptKey) -> None: ...

    def wait(self, timeout_s: float) -> WakeReason: ...

    def close(self) -> None: ...


def slot_from_name(name: str) -> Slot:
    if name.startswith("gpu"):
        return Slot(name, "gpu", int(name[3:].split(".", maxsplit=1)[0]))
    return Slot(name, "cpu")


def is_campaign_slot(wanted: Slots, name: str) -> bool:
    """Whether a campaign may use the slot of this name, as far as its file tells."""
    kind, number = name[:3], name[3:].partition(".")[0]
    if not number.isdigit():
        return False
    if kind == "cpu":
        return int(number) < wanted.cpus
    return kind == "gpu" and (wanted.gpus is None or int(number) in wanted.gpus)


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """Who took a lease last."""

    campaign: str  # its folder
    cell: str
    n: int
    token: str

    def __str__(self) -> str:
        """For people. Other users may have written it: nothing that a terminal would obey."""
        told = (
            phrase("hosts.lease_of_cell", cell=self.cell, campaign=self.campaign)
            if self.cell
            else phrase("hosts.lease_of_somebody")
        )
        return replace_unprintable(told[:300], "?")


class LeaseObstacle(LeaseHolder):
    """Something that is no lease lies where the lease should be; `campaign` is its path."""

    __slots__ = ()

    def __str__(self) -> str:
        told = phrase("hosts.holder_file_odd", campaign=self.campaign, quoted=shlex.quote(self.campaign))
        return replace_unprintable(told, "?")


class ClosedLease(LeaseObstacle):
    """A lease that this user may not even open; `campaign` is its path."""

    __slots__ = ()

    def __str__(self) -> str:
        shown = "".join(sign if sign.isprintable() else "?" for sign in shlex.quote(self.campaign))
        try:
            whose = f"uid {os.stat(self.campaign).st_uid}"  # noqa: PTH116 - nothing but a look
        except OSError:
            whose = phrase("hosts.somebody_else")
        return phrase("hosts.holder_file_foreign", shown=shown, whose=whose, geteuid=os.geteuid())
