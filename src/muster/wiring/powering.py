"""The last step of the finish in the controller's turns: two looks, a countdown, the command. Nothing here waits."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from muster.acts import finish
from muster.acts.finish import PowerOff, Step
from muster.acts.shutdown import Vigil
from muster.domain.decision import Decision
from muster.domain.state import CampaignState
from muster.ports.clock import Clock
from muster.wiring.apart import apart
from muster.wiring.pace import second_look_s
from muster.wiring.shutting import Ran, environment_of, execute, own_environment

LOOK_S = 1800.0  # to see whether all derived files are fresh may take long


class Powering:
    """A new controller begins anew with the first look."""

    def __init__(self, root: Path, clock: Clock, decide: Callable[..., Decision]) -> None:
        self.root, self.clock, self.decide = root, clock, decide
        self._vigil: Vigil | None = None
        self._about: tuple[Any, ...] = ()
        self._looking: Future[list[str]] | None = None
        self._running: Future[Ran] | None = None
        self._told: tuple[str, tuple[str, ...]] = ("", ())
        self._mark = ""

    def __call__(self, due: PowerOff, state: CampaignState) -> list[Decision]:
        if due.stage is not None:
            return self._go(due, state)
        about = (finish.key_of(state), due.step.what, due.step.countdown_s, state.finish.cancels, state.finish.wish)
        if self._vigil is None or about != self._about:
            self._vigil, self._about, self._looking = Vigil(second_look_s(), due.step.countdown_s), about, None
            self._told = ("", ())
        return self._watch(self._vigil, due, state)

    def _watch(self, vigil: Vigil, due: PowerOff, state: CampaignState) -> list[Decision]:
        now = self.clock.boot()
        if self._looking is not None:
            if not self._looking.done():
                return []
            reasons, self._looking = _reasons(self._looking), None
            self._vigil = vigil = vigil.saw(reasons, now)
            if told := self._news(vigil, reasons, due, state):
                return told
        match vigil.move(now):
            case "look":
                self._looking = apart(lambda: ask(self.root))
            case "go":
                self._mark = secrets.token_hex(8)
                more = {"mark": self._mark, "cancels": state.finish.cancels}
                return [self._stage("began", f"`{due.step.what}`", due.step, state, **more)]
            case _:
                pass
        return []

    def _news(self, vigil: Vigil, reasons: list[str], due: PowerOff, state: CampaignState) -> list[Decision]:
        """What is worth a record: a change of what stands against it, and the countdown."""
        what = "refused" if reasons else "counting" if vigil.counting else "clear" if vigil.last is None else ""
        if not what or (what, tuple(reasons)) == self._told:
            return []
        self._told = (what, tuple(reasons))
        lasts = vigil.countdown_s if what == "counting" else vigil.pause_s
        said = {"refused": "; ".join(reasons), "clear": "nothing stands against it; a second look follows"}.get(
            what, f"in {lasts:.0f} s"
        )
        told = [self._stage(what, said, due.step, state, reasons=reasons, countdown_s=lasts)]
        if what == "counting":
            text = f"the machine is powered off in {lasts:.0f} s; `muster shutdown --cancel` stops it"
            told.append(self.decide("notice", text, data={"what": "SHUTDOWN"}))
        return told

    def _go(self, due: PowerOff, state: CampaignState) -> list[Decision]:
        """It is recorded. Only who recorded it runs it: a later controller can't know whether it was run."""
        assert due.stage is not None
        if not self._mark or due.stage.mark != self._mark:
            why = "it began, and nobody saw its end: it is not repeated by itself"
            return [self._stage("unclear", why, due.step, state)]
        if self._running is None:
            self._running = apart(lambda: execute(due.step.what, self.root, environment_of(state)))
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


def _reasons(looked: Future[list[str]]) -> list[str]:
    try:
        return looked.result()
    except Exception as error:
        return [f"it could not be looked at: {error}"]


def ask(root: Path) -> list[str]:
    """What stands against it now, by a process of its own: a look is heavy, and drivers and files may hang."""
    argv = [sys.executable, "-m", "muster", "-C", str(root), "shutdown", "--dry-run", "--quick", "--json"]
    done = subprocess.run(
        argv, env=own_environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=LOOK_S, check=False
    )
    if done.returncode not in (0, 3):
        said = done.stderr.decode("utf-8", "replace")[-500:]
        return [f"it could not be looked at: `muster shutdown --dry-run` ended with {done.returncode}: {said}"]
    found = [str(reason) for reason in json.loads(done.stdout)["reasons"]]
    return found or (["it could not be looked at: it was refused without a reason"] if done.returncode else [])
