"""Where the runs of a campaign run, as commands and the finish use it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from muster.engine.ports.clock import Clock
from muster.engine.ports.executor import Lease
from muster.engine.ports.probe import Probe, ProofReader, RunSignals
from muster.engine.ports.store import Store
from muster.model.attempt import Attempt, Order
from muster.model.attempt_snapshot import ProofReading
from muster.model.campaign_state import CampaignState
from muster.text.phrases import join_phrases, phrase

TOLD_FROM = 3  # controllers lost in a row that a person should hear of; and again at twice as many


@dataclass(frozen=True, slots=True)
class GuardReport:
    """What a guard wrote down of controllers that it lost."""

    times: int  # in a row that did not live long
    failed: int  # of these the last ones that ended by themselves, and failed
    code: int | None
    said: str  # the last line of controller.log
    next: float  # wall: when it starts the next one

    @property
    def worth_telling(self) -> bool:
        return self.failed > 0 or self.times >= TOLD_FROM

    @property
    def how(self) -> str:
        if self.code is None:
            return phrase("hosts.ended_without_word", times=self.times)
        times = phrase("hosts.times_in_a_row", failed=self.failed) if self.failed > 1 else phrase("hosts.failed_once")
        told = phrase("hosts.failed_with_exit_code", times=times, code=self.code)
        return join_phrases(": ", (told, self.said)) if self.said else told


class RunObserver(Protocol):
    """Eyes on the attempts of one campaign; `configure` comes first."""

    @property
    def probe(self) -> Probe: ...
    @property
    def proofs(self) -> ProofReader: ...
    def configure(self, state: CampaignState) -> None: ...
    def progress(self, attempt: Attempt) -> ProofReading:
        """How far a living run is, for people who look."""


class LivingSignals(RunSignals, Protocol):
    def configure(self, state: CampaignState) -> None:
        """Comes first."""


class StepExecutor(Protocol):
    """Runs the commands of the finish under shims, each in a folder of its own and without a slot."""

    @property
    def probe(self) -> Probe: ...
    def folder(self, cell: str, n: int) -> Path: ...
    def launch(self, order: Order, lease: Lease) -> None: ...
    def nudge(self, attempt: Attempt) -> None: ...
    def stop(self, attempt: Attempt, *, epoch: int, reason: str, grace_s: float) -> None: ...


class RunHost(Protocol):
    """`state` is the .muster of a campaign."""

    def observer(self, state: Path, store: Store, clock: Clock) -> RunObserver:
        """For a command, which looks and remembers nothing for others."""

    def signals(self, state: Path, clock: Clock) -> LivingSignals: ...

    def steps(self, state: Path, clock: Clock) -> StepExecutor: ...

    def guard_command(self, state: Path) -> tuple[str, ...]:
        """Starts a guard, which starts a controller and starts it again."""

    def guard_lives(self, state: Path) -> bool: ...

    def guard_trouble(self, state: Path) -> GuardReport | None:
        """What a living guard says of a controller that does not stay; None: nothing that is worth telling."""
