"""What happened, as events: every change of a verdict, and a notice for each that a person should hear of."""

from __future__ import annotations

from collections.abc import Sequence

from muster.controller.actions import Settle, Tell
from muster.controller.carry import Carrier
from muster.domain.attempt import Attempt
from muster.domain.decision import Decision
from muster.domain.gates import GateEvent
from muster.domain.verdict import State, Verdict

Sort = tuple[str, str | None, str]
HEARD = frozenset({State.STALLED, State.UNKNOWN})


class News:
    def __init__(self, carrier: Carrier) -> None:
        self.carrier = carrier
        self._waiting: list[Decision] = []

    def take(self) -> list[Decision]:
        taken, self._waiting = self._waiting, []
        return taken

    def put_back(self, decisions: Sequence[Decision]) -> None:
        """They could not be written: they wait, in front of what came since."""
        self._waiting = [*decisions, *self._waiting]

    def changed(self, attempt: Attempt, before: Sort, verdict: Verdict) -> None:
        was, now = told(*before[:2]), told(verdict.state, verdict.kind)
        data = {"from": was, "to": now, "confidence": verdict.confidence}
        self._add("verdict", f"{was} -> {now}: {verdict.reason}", attempt, data)
        if verdict.state in HEARD or before[0] in HEARD:
            self._notice(f"{attempt.cell} is {now}, {verdict.confidence}: {verdict.reason}", now, attempt)

    def ended(self, settle: Settle, following: str) -> None:
        outcome = settle.outcome
        if outcome.verdict == State.DEAD:
            cause = f"({outcome.cause})" if outcome.cause else ""
            text = f"{settle.attempt.cell} is DEAD{cause}: {outcome.reason}; next: {following}"
            self._notice(text, "DEAD", settle.attempt)

    def held(self, reason: str) -> list[Decision]:
        self._notice(f"the campaign is held: {reason}", "HELD", None)
        return [self.carrier.decision("hold", reason)]

    def budget(self, tell: Tell) -> list[Decision]:
        self._notice(tell.reason, "BUDGET", None)
        return [self.carrier.decision("budget", tell.reason, data={"level": tell.level, "budget": tell.budget})]

    def lost(self, words: str) -> None:
        """Controllers before this one ended without a word."""
        self._notice(words, "CONTROLLER", None)

    def clock(self, step_s: float) -> list[Decision]:
        """Somebody set the machine's clock; both words together, or neither."""
        way = "forward" if step_s > 0 else "back"
        text = f"the clock of this machine was set {way} by {format_step(abs(step_s))}"
        more = "money, timeouts and stalls go by the time since it was switched on; times of files may mislead"
        data = {"step_s": step_s, "boot_id": self.carrier.boot_id}
        return [
            self.carrier.decision("clock", text, data=data),
            self.carrier.decision("notice", f"{text}: {more}", data={"what": "CLOCK"}),
        ]

    def gate(self, attempt: Attempt, event: GateEvent) -> list[Decision]:
        text = f"gate {event.gate} of {attempt.cell} at iteration {event.iteration}: {event.why}"
        data = {"gate": event.gate, "iteration": event.iteration, "state": event.state, "phase": event.phase}
        return [
            self.carrier.decision("gate", event.why, attempt=attempt, data=data),
            self.carrier.decision("notice", text, attempt=attempt, data={"what": "GATE"}),
        ]

    def _notice(self, text: str, what: str, attempt: Attempt | None) -> None:
        self._add("notice", text, attempt, {"what": what})

    def _add(self, kind: str, reason: str, attempt: Attempt | None, data: dict[str, str]) -> None:
        self._waiting.append(self.carrier.decision(kind, reason, attempt=attempt, data=data))


def format_step(seconds: float) -> str:
    for size, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"


def told(state: str, kind: str | None) -> str:
    return f"{state}({kind})" if kind else str(state)
