"""What the controller's loop asks beside itself: gates, pruning, rounds, the finish, notices, tables, the guard."""

# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from muster.model.attempt import AttemptKey
from muster.model.campaign import Campaign
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision

MakeDecision = Callable[..., Decision]  # ActionRunner.decision: stamped with who, when and the epoch


@dataclass(frozen=True, slots=True)
class StopRequest:
    """An open attempt is to be stopped before its end."""

    cause: str  # pruned | gate_stop
    why: str
    only_running: bool = False  # not once its main process has ended: its result is there


@dataclass(frozen=True, slots=True)
class Observation:
    """What an extension says of the campaign now."""

    decisions: Sequence[Decision] = ()  # what happened and is not recorded yet
    stops: Mapping[AttemptKey, StopRequest] = field(default_factory=dict)
    unread: frozenset[AttemptKey] = frozenset()  # attempts that were not read to their end: what needs them waits


NOTHING_OBSERVED = Observation()
ExtensionResult = tuple[Sequence[Decision], bool]  # what to record before anything else; whether nothing is left to do


class ControllerExtension:
    """Every method does nothing until an extension says more. The loop asks its extensions in their order.

    None of them may wait: what is slow belongs in a thread. An OSError is the trouble of a turn, and the next turn
    tries again; but `publish` and `end_turn` keep theirs to themselves. Any other error ends the controller.
    """

    def configure(self, state: CampaignState) -> None:
        """Another state was loaded: a campaign file may have been taken in."""

    def observe(self, state: CampaignState, *, polling: bool) -> Observation:
        """In every turn, before anything is decided. `polling`: in this one every open attempt is looked at."""
        return NOTHING_OBSERVED

    def at_rest(self, state: CampaignState, *, complete: bool) -> ExtensionResult:
        """While nothing runs and nothing may start: the next step, once those before it have nothing left to do.

        It is asked again after what it returned was recorded. `complete`: every cell is settled.
        """
        return (), True

    def notify(self, state: CampaignState, decision: Decision) -> None:
        """A person should hear of this; it is recorded."""

    def publish(self, state: CampaignState) -> None:
        """Something was recorded: tables for people who grep. Not in every turn where it takes long."""

    def end_turn(self, state: CampaignState) -> None:
        """After every turn, also after one that failed."""

    def close(self) -> None:
        """The controller ends."""


class LazyObserver(ControllerExtension):
    """Loads an extension that observes, and all that it imports, once a campaign needs it."""

    def __init__(self, is_needed: Callable[[Campaign], bool], load: Callable[[], ControllerExtension]) -> None:
        self._is_needed, self._load = is_needed, load
        self._loaded: ControllerExtension | None = None

    def observe(self, state: CampaignState, *, polling: bool) -> Observation:
        if not self._is_needed(state.campaign):
            return NOTHING_OBSERVED
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded.observe(state, polling=polling)


@dataclass(slots=True)
class ScriptedExtension(ControllerExtension):
    """For tests: answers what it was given, and remembers what it was asked."""

    observed: Observation = NOTHING_OBSERVED
    steps: list[ExtensionResult] = field(default_factory=list)  # what `at_rest` answers, one by one; then: nothing left
    asked: list[str] = field(default_factory=list)

    def configure(self, state: CampaignState) -> None:
        self.asked.append("configure")

    def observe(self, state: CampaignState, *, polling: bool) -> Observation:
        self.asked.append("observe polling" if polling else "observe")
        return self.observed

    def at_rest(self, state: CampaignState, *, complete: bool) -> ExtensionResult:
        self.asked.append("at_rest complete" if complete else "at_rest")
        return self.steps.pop(0) if self.steps else ((), True)

    def notify(self, state: CampaignState, decision: Decision) -> None:
        self.asked.append(f"notify {decision.reason}")

    def publish(self, state: CampaignState) -> None:
        self.asked.append("publish")

    def end_turn(self, state: CampaignState) -> None:
        self.asked.append("end_turn")

    def close(self) -> None:
        self.asked.append("close")
