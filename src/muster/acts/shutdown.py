"""What stands against powering off. What can't be read counts as active: doubt costs money, a lost run costs more."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from muster.acts.status import CellStatus, Status
from muster.domain.state import CampaignState
from muster.domain.verdict import SETTLED


def refusals(
    status: Status, carriers: Mapping[str, Sequence[int]] | None, foreign: Mapping[int, str] | None
) -> list[str]:
    """Empty: nothing. `carriers`: attempt -> pids that carry its token; `foreign`: GPU -> who sits on it.

    None for either means that it could not be looked at, which is a reason of its own.
    """
    found = [_cell(cell) for cell in (*status.cells, *status.withdrawn) if not _over(cell)]
    if carriers is None:
        found.append("whether a process of a run lives on can't be read")
    else:
        found += [f"{name}: pid {', '.join(map(str, pids))} of it lives on" for name, pids in carriers.items() if pids]
    if foreign is None:
        found.append("who uses the GPUs can't be read")
    else:
        found += [f"GPU {gpu} is in use: {who}" for gpu, who in foreign.items()]
    return found


def _over(cell: CellStatus) -> bool:
    return cell.verdict.state in SETTLED and cell.record.open is None


def _cell(cell: CellStatus) -> str:
    return f"{cell.record.cell.id} is {cell.verdict.state}: {cell.verdict.reason}"


@dataclass(frozen=True, slots=True)
class Remains:
    """What lives of one execution: of an attempt, or of a step of the finish."""

    name: str
    tree_held: bool = False  # its tree.lock: a process of it has inherited that
    shim_held: bool = False  # its shim.lock: a shim lives until all that the run left behind is gone
    orphans: tuple[int, ...] = ()  # of those that exit.json names, who lives
    unread: str = ""  # why it can't be told

    @property
    def any(self) -> bool:
        return bool(self.tree_held or self.shim_held or self.orphans or self.unread)


def remains_reasons(remains: Iterable[Remains]) -> list[str]:
    return [f"{each.name}: {_what_lives(each)}" for each in remains if each.any]


def _what_lives(each: Remains) -> str:
    if each.unread:
        return f"whether something of it lives can't be read: {each.unread}"
    if each.tree_held:
        return "a process of it lives on: its tree.lock is held"
    if each.orphans:
        return f"pid {', '.join(map(str, each.orphans))}, which it left behind, lives on"
    return "its shim lives on: what it left behind may still work (shim.lock is held)"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another campaign of this user's register."""

    name: str
    path: str
    unfinished: str = ""  # what is still to be done in it
    remains: tuple[Remains, ...] = ()
    unread: str = ""  # why it can't be told


def neighbour_reasons(neighbours: Iterable[Neighbour]) -> list[str]:
    found = []
    for each in neighbours:
        called = f"campaign {each.name} in {each.path}" if each.name else f"the campaign of {each.path}"
        named = shlex.quote(str(each.path))
        if each.unread:
            found.append(f"{called} can't be read: {each.unread}; mend it, or `muster ls --forget {named}`")
        if each.unfinished:
            ways = f"`muster -C {named} up` goes on with it, `muster -C {named} down` lets it be"
            found.append(f"{called} is not finished: {each.unfinished}; {ways}")
        found += [f"{called}: {reason}" for reason in remains_reasons(each.remains)]
    return found


@dataclass(frozen=True, slots=True)
class Writer:
    """A process that has a file below an output folder open for writing."""

    pid: int
    command: str
    path: str


def writer_reasons(writers: Iterable[Writer]) -> list[str]:
    return [f"pid {each.pid} ({each.command}) writes {each.path}" for each in writers]


def waits_for_others(state: CampaignState) -> bool:
    return str((state.campaign.finish or {}).get("others", "wait")) == "wait"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a look over the machine found, besides the cells."""

    remains: tuple[Remains, ...] = ()  # of this campaign
    neighbours: tuple[Neighbour, ...] = ()
    writers: tuple[Writer, ...] = ()
    unread: tuple[str, ...] = ()  # what could not be looked at
    others: tuple[str, ...] = ()  # a sentence for each person who works here


@dataclass(frozen=True, slots=True)
class Looked:
    """One look: all that stands against it, and who else works here, whether or not that does."""

    reasons: tuple[str, ...]
    others: tuple[str, ...] = ()


def standing_against(facts: Facts, before: Sequence[str] = (), *, waits: bool = True) -> Looked:
    """`before`: what stands against it already. `waits`: for other people."""
    found = [*before, *remains_reasons(facts.remains), *neighbour_reasons(facts.neighbours)]
    found += [*writer_reasons(facts.writers), *facts.unread, *(facts.others if waits else ())]
    return Looked(tuple(found), facts.others)


@dataclass(frozen=True, slots=True)
class Vigil:
    """The way to a power-off: a look, a pause, another look, a countdown, a last look. One doubt, and it begins anew.

    Times are boot times; the pause counts from the end of the first look.
    """

    pause_s: float
    countdown_s: float
    first: float | None = None  # when a look had found nothing against it
    second: float | None = None
    last: float | None = None
    not_before: float = 0.0  # after a refusal

    def move(self, now: float) -> Literal["look", "wait", "go"]:
        if self.last is not None:
            return "go"
        return "look" if now >= self.next_at else "wait"

    @property
    def next_at(self) -> float:
        if self.second is not None:
            return self.second + self.countdown_s
        return self.not_before if self.first is None else self.first + self.pause_s

    @property
    def counting(self) -> bool:
        return self.second is not None and self.last is None

    def saw(self, reasons: Sequence[str], now: float) -> Vigil:
        if reasons:
            return Vigil(self.pause_s, self.countdown_s, not_before=now + self.pause_s)
        if self.first is None:
            return replace(self, first=now)
        return replace(self, second=now) if self.second is None else replace(self, last=now)
