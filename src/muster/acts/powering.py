"""The last step of the finish in the controller's turns: two looks, a countdown, the command. Nothing here waits."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from muster.acts import finish
from muster.acts.finish import PowerOff, Step
from muster.acts.shutdown import Looked, Vigil, waits_for_others
from muster.domain.decision import Decision
from muster.domain.state import CampaignState
from muster.ports.clock import Clock


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of the command."""

    ok: bool
    why: str


@dataclass(frozen=True, slots=True)
class Switch:
    """Looks round on the machine, and powers it off; both apart from us, for both may take long."""

    look: Callable[[], Future[Looked]]
    run: Callable[[str, CampaignState], Future[Ran]]
    pause_s: float  # between two looks


class Powering:
    """A new controller begins anew with the first look."""

    def __init__(self, switch: Switch, clock: Clock, decide: Callable[..., Decision]) -> None:
        self.switch, self.clock, self.decide = switch, clock, decide
        self._vigil: Vigil | None = None
        self._about: tuple[Any, ...] = ()
        self._looking: Future[Looked] | None = None
        self._running: Future[Ran] | None = None
        self._told: tuple[str, tuple[str, ...]] = ("", ())
        self._others: tuple[str, ...] = ()  # whom people were told of
        self._mark = ""
        self._command = ""  # ours: what stands in the log is a record, and is never executed

    def __call__(self, due: PowerOff, state: CampaignState) -> list[Decision]:
        if due.stage is not None:
            return self._go(due, state)
        about = (finish.key_of(state), due.step.what, due.step.countdown_s, state.finish.cancels, state.finish.wish)
        if self._vigil is None or about != self._about:
            self._vigil, self._about, self._looking = Vigil(self.switch.pause_s, due.step.countdown_s), about, None
            self._told, self._others = ("", ()), ()
        return self._watch(self._vigil, due, state)

    def _watch(self, vigil: Vigil, due: PowerOff, state: CampaignState) -> list[Decision]:
        now = self.clock.boot()
        if self._looking is not None:
            if not self._looking.done():
                return []
            seen, self._looking = _seen(self._looking), None
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

    def _news(self, vigil: Vigil, seen: Looked, due: PowerOff, state: CampaignState) -> list[Decision]:
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

    def _about_others(self, seen: Looked, state: CampaignState) -> list[Decision]:
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
            ran = Ran(False, str(error))
        self._running, self._mark = None, ""
        told = [self._stage("ended" if ran.ok else "failed", ran.why, due.step, state, reasons=[ran.why])]
        if not ran.ok:
            text = f"the machine could not be powered off: {ran.why}"
            told.append(self.decide("notice", text, data={"what": "FINISH"}))
        return told

    def _stage(self, what: str, reason: str, step: Step, state: CampaignState, **more: Any) -> Decision:
        data: Mapping[str, Any] = {"what": what, "key": finish.key_of(state), "command": step.what, **more}
        return self.decide("shutdown", reason, data=data)


def _seen(looked: Future[Looked]) -> Looked:
    try:
        return looked.result()
    except Exception as error:
        return Looked((f"it could not be looked at: {error}",))
