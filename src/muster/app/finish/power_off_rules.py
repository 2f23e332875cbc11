"""What forbids to power off, and the power-off as steps of the controller's turns: two looks, a countdown, the
command. Nothing here waits.

What can't be read counts as active: doubt costs money, a lost run costs more.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Literal

from muster.app.campaign.campaign_status import CellStatus, Status
from muster.app.campaign.finish_steps import FinishStep, PowerOff, matrix_state_key
from muster.engine.ports.clock import Clock
from muster.engine.ports.processes import LivingRemains, OutputWriter
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from muster.model.verdict import SETTLED_STATES


def find_power_off_refusals(
    status: Status, carriers: Mapping[str, Sequence[int]] | None, foreign: Mapping[int, str] | None
) -> list[str]:
    """Empty: nothing. `carriers`: attempt -> pids that carry its token; `foreign`: GPU -> who sits on it.

    None for either means that it could not be looked at, which is a reason of its own.
    """
    found = [_describe_unfinished_cell(cell) for cell in (*status.cells, *status.withdrawn) if not _is_cell_over(cell)]
    if carriers is None:
        found.append("whether a process of a run lives on can't be read")
    else:
        found += [f"{name}: pid {', '.join(map(str, pids))} of it lives on" for name, pids in carriers.items() if pids]
    if foreign is None:
        found.append("who uses the GPUs can't be read")
    else:
        found += [f"GPU {gpu} is in use: {who}" for gpu, who in foreign.items()]
    return found


def _is_cell_over(cell: CellStatus) -> bool:
    return cell.verdict.state in SETTLED_STATES and cell.record.open is None


def _describe_unfinished_cell(cell: CellStatus) -> str:
    return f"{cell.record.cell.id} is {cell.verdict.state}: {cell.verdict.reason}"


def describe_remains(remains: Iterable[LivingRemains]) -> list[str]:
    return [f"{each.name}: {_describe_living_part(each)}" for each in remains if each.any]


def _describe_living_part(each: LivingRemains) -> str:
    if each.unread:
        return f"whether something of it lives can't be read: {each.unread}"
    if each.tree_held:
        return "a process of it lives on: its tree.lock is held"
    if each.orphans:
        return f"pid {', '.join(map(str, each.orphans))}, which it left behind, lives on"
    return "its shim lives on: what it left behind may still work (shim.lock is held)"


@dataclass(frozen=True, slots=True)
class NeighbourCampaign:
    """Another campaign of this user's register."""

    name: str
    path: str
    unfinished: str = ""  # what is still to be done in it
    remains: tuple[LivingRemains, ...] = ()
    unread: str = ""  # why it can't be told


def describe_neighbours(neighbours: Iterable[NeighbourCampaign]) -> list[str]:
    found = []
    for each in neighbours:
        called = f"campaign {each.name} in {each.path}" if each.name else f"the campaign of {each.path}"
        named = shlex.quote(str(each.path))
        if each.unread:
            found.append(f"{called} can't be read: {each.unread}; fix it, or `muster ls --forget {named}`")
        if each.unfinished:
            ways = f"`muster -C {named} up` goes on with it, `muster -C {named} down` lets it be"
            found.append(f"{called} is not finished: {each.unfinished}; {ways}")
        found += [f"{called}: {reason}" for reason in describe_remains(each.remains)]
    return found


def describe_writers(writers: Iterable[OutputWriter]) -> list[str]:
    return [f"pid {each.pid} ({each.command}) writes {each.path}" for each in writers]


def waits_for_others(state: CampaignState) -> bool:
    return state.campaign.finish is None or state.campaign.finish.others == "wait"


@dataclass(frozen=True, slots=True)
class PowerOffFacts:
    """What a look over the machine found, besides the cells."""

    remains: tuple[LivingRemains, ...] = ()  # of this campaign
    neighbours: tuple[NeighbourCampaign, ...] = ()
    writers: tuple[OutputWriter, ...] = ()
    unread: tuple[str, ...] = ()  # what could not be looked at
    others: tuple[str, ...] = ()  # a sentence for each person who works here


@dataclass(frozen=True, slots=True)
class PowerOffCheck:
    """One look: all that stands against it, and who else works here, whether or not that does."""

    reasons: tuple[str, ...]
    others: tuple[str, ...] = ()


def check_power_off(facts: PowerOffFacts, before: Sequence[str] = (), *, waits: bool = True) -> PowerOffCheck:
    """`before`: what stands against it already. `waits`: for other people."""
    found = [*before, *describe_remains(facts.remains), *describe_neighbours(facts.neighbours)]
    found += [*describe_writers(facts.writers), *facts.unread, *(facts.others if waits else ())]
    return PowerOffCheck(tuple(found), facts.others)


@dataclass(frozen=True, slots=True)
class ShutdownCountdown:
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

    def saw(self, reasons: Sequence[str], now: float) -> ShutdownCountdown:
        if reasons:
            return ShutdownCountdown(self.pause_s, self.countdown_s, not_before=now + self.pause_s)
        if self.first is None:
            return replace(self, first=now)
        return replace(self, second=now) if self.second is None else replace(self, last=now)


@dataclass(frozen=True, slots=True)
class PowerOffOutcome:
    """What became of the command."""

    ok: bool
    why: str


@dataclass(frozen=True, slots=True)
class PowerSwitch:
    """Looks round on the machine, and powers it off; both apart from us, for both may take long."""

    look: Callable[[], Future[PowerOffCheck]]
    run: Callable[[str, CampaignState], Future[PowerOffOutcome]]
    pause_s: float  # between two looks


class PowerOffStep:
    """A new controller begins anew with the first look."""

    def __init__(self, switch: PowerSwitch, clock: Clock, decide: Callable[..., Decision]) -> None:
        self.switch, self.clock, self.decide = switch, clock, decide
        self._vigil: ShutdownCountdown | None = None
        self._about: tuple[Any, ...] = ()
        self._looking: Future[PowerOffCheck] | None = None
        self._running: Future[PowerOffOutcome] | None = None
        self._told: tuple[str, tuple[str, ...]] = ("", ())
        self._others: tuple[str, ...] = ()  # whom people were told of
        self._mark = ""
        self._command = ""  # ours: what stands in the log is a record, and is never executed

    def __call__(self, due: PowerOff, state: CampaignState) -> list[Decision]:
        if due.stage is not None:
            return self._go(due, state)
        about = (matrix_state_key(state), due.step.what, due.step.countdown_s, state.finish.cancels, state.finish.wish)
        if self._vigil is None or about != self._about:
            self._vigil, self._about, self._looking = (
                ShutdownCountdown(self.switch.pause_s, due.step.countdown_s),
                about,
                None,
            )
            self._told, self._others = ("", ()), ()
        return self._watch(self._vigil, due, state)

    def _watch(self, vigil: ShutdownCountdown, due: PowerOff, state: CampaignState) -> list[Decision]:
        now = self.clock.boot()
        if self._looking is not None:
            if not self._looking.done():
                return []
            seen, self._looking = _result_of_check(self._looking), None
            self._vigil = vigil = vigil.saw(seen.reasons, now)
            if told := self._news(vigil, seen, due, state):
                return told
        match vigil.move(now):
            case "look":
                self._looking = self.switch.look()
            case "go":
                self._mark, self._command = secrets.token_hex(8), due.step.what
                more = {"mark": self._mark, "cancels": state.finish.cancels}
                return [self._stage("began", f"`{due.step.what}`", due.step, state, **more)]
            case _:
                pass
        return []

    def _news(
        self, vigil: ShutdownCountdown, seen: PowerOffCheck, due: PowerOff, state: CampaignState
    ) -> list[Decision]:
        """What is worth a record: a change of what stands against it, and the countdown."""
        reasons = seen.reasons
        what = "refused" if reasons else "counting" if vigil.counting else "clear" if vigil.last is None else ""
        if not what or (what, reasons) == self._told:
            return []
        self._told = (what, reasons)
        lasts = vigil.countdown_s if what == "counting" else vigil.pause_s
        said = {"refused": "; ".join(reasons), "clear": "nothing stands against it; a second look follows"}.get(
            what, f"in {lasts:.0f} s"
        )
        told = [self._stage(what, said, due.step, state, reasons=list(reasons), countdown_s=lasts)]
        if what == "counting":
            text = f"the machine is powered off in {lasts:.0f} s; `muster shutdown --cancel` stops it"
            text += f". It does not wait for others: {'; '.join(seen.others)}" if seen.others else ""
            told.append(self.decide("notice", text, data={"what": "SHUTDOWN"}))
        return told + self._about_others(seen, state)

    def _about_others(self, seen: PowerOffCheck, state: CampaignState) -> list[Decision]:
        """Once for the same people: somebody pays for a machine that waits for them."""
        if not waits_for_others(state) or seen.others == self._others:
            return []
        self._others = seen.others
        if not seen.others:
            return []
        text = f"the machine stays on for others: {'; '.join(seen.others)}. It is powered off when they have gone; "
        text += "`finish: {others: ignore}` and `muster up` do not wait for them"
        return [self.decide("notice", text, data={"what": "SHUTDOWN"})]

    def _go(self, due: PowerOff, state: CampaignState) -> list[Decision]:
        """It is recorded. Only who recorded it runs it: a later controller can't know whether it was run."""
        assert due.stage is not None
        if not self._mark or due.stage.mark != self._mark:
            why = "it began, and nobody saw its end: it is not repeated by itself"
            return [self._stage("unclear", why, due.step, state)]
        if self._running is None:
            self._running = self.switch.run(self._command, state)
        if not self._running.done():
            return []
        try:
            ran = self._running.result()
        except Exception as error:
            ran = PowerOffOutcome(False, str(error))
        self._running, self._mark = None, ""
        told = [self._stage("ended" if ran.ok else "failed", ran.why, due.step, state, reasons=[ran.why])]
        if not ran.ok:
            text = f"the machine could not be powered off: {ran.why}"
            told.append(self.decide("notice", text, data={"what": "FINISH"}))
        return told

    def _stage(self, what: str, reason: str, step: FinishStep, state: CampaignState, **more: Any) -> Decision:
        data: Mapping[str, Any] = {"what": what, "key": matrix_state_key(state), "command": step.what, **more}
        return self.decide("shutdown", reason, data=data)


def _result_of_check(looked: Future[PowerOffCheck]) -> PowerOffCheck:
    try:
        return looked.result()
    except Exception as error:
        return PowerOffCheck((f"it could not be looked at: {error}",))
