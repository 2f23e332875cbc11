"""Ends attempts and writes their end down where no controller does it: one that is down may have none."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from msgspec import to_builtins

from muster.domain.attempt import Attempt
from muster.domain.campaign import Slots
from muster.domain.decision import Decision
from muster.domain.sighting import Sighting
from muster.domain.state import CampaignState
from muster.domain.verdict import Verdict
from muster.execute.local import LocalExecutor
from muster.execute.paths import attempt_folder
from muster.judge.attempt import judge_attempt, outcome_of
from muster.wiring.desk import Desk
from muster.wiring.looking import Looking

Key = tuple[str, int]
Seen = tuple[Attempt, Sighting, Verdict]
LOOK_S = 0.05
RECORD_S = 5.0  # a live controller records an end within this
UNSTARTED_S = 2.0  # a shim that was asked for comes within this, or nobody asked for it


class Stopping:
    """Watches open attempts from a command; acts only while no controller lives."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.looking = Looking(lambda cell, n: attempt_folder(desk.state, cell, n), desk.clock)
        self.executor = LocalExecutor(desk.state, Slots(gpus=(), cpus=0))  # it leases nothing here
        self._asked: set[Key] = set()
        self._unstarted: dict[Key, float] = {}

    def until_ended(self, keys: Collection[Key], timeout_s: float) -> list[Attempt]:
        """Until these attempts have ended and it is recorded; returns those that have not when the time is up."""
        deadline = time.monotonic() + timeout_s
        while True:
            state = self.desk.load()
            left = [attempt for attempt in state.open_attempts if attempt.key in keys]
            if left and self.desk.controller() is None:
                seen = self._look(left, state)
                if not self._record(seen):
                    self.carry_out(seen)
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(LOOK_S)

    def record_ended(self, cells: Collection[str]) -> CampaignState:
        """Attempts that have ended are recorded before anybody decides about their cells."""
        deadline = time.monotonic() + RECORD_S
        while True:
            state = self.desk.load()
            seen = self._look([attempt for attempt in state.open_attempts if attempt.cell in cells], state)
            ending = [each for each in seen if each[2].final or each[2].kind == "ending"]
            if not ending or time.monotonic() > deadline:
                return state
            if self.desk.controller() is None:
                self._record(seen)
            time.sleep(LOOK_S)

    def ask(self, attempts: Sequence[Attempt]) -> None:
        """The stop requests, if no controller is there to write them."""
        if self.desk.controller() is None:
            self.carry_out(self._look(attempts, self.desk.load()))

    def _look(self, attempts: Sequence[Attempt], state: CampaignState) -> list[Seen]:
        self.looking.configure(state)
        seen = self.looking.probe.look(attempts)
        return [
            (
                each,
                seen[each.key],
                judge_attempt(each, seen[each.key], state.campaign.job(state.cells[each.cell].cell.job)),
            )
            for each in attempts
        ]

    def _record(self, seen: Sequence[Seen]) -> bool:
        ended = [each for each in seen if each[2].final]
        if not ended:
            return False
        self.desk.decide([self._settled(*each) for each in ended])  # refused if somebody was first: written once
        for attempt, sighting, _ in ended:
            if sighting.tree_lives:
                self.executor.release(attempt)
        return True

    def _settled(self, attempt: Attempt, seen: Sighting, verdict: Verdict) -> Decision:
        outcome = outcome_of(verdict, seen)
        data = {"outcome": to_builtins(outcome), "ended_boot": seen.exit.boot if seen.exit else None}
        decision = self.desk.person("settle", outcome.reason, cell=attempt.cell, attempt=attempt.n, data=data)
        return replace(decision, who=f"pid {os.getpid()}")

    def carry_out(self, seen: Sequence[Seen]) -> None:
        """As the controller would, and under its lock, so that none can come in between."""
        left = [(a, sighting) for a, sighting, verdict in seen if not verdict.final and a.key not in self._asked]
        if not left or self.desk.lock.held() or not self.desk.lock.take():
            return
        try:
            epoch = self.desk.store.epoch_now()
            self.desk.lock.beat(epoch)
            for attempt, sighting in left:
                if sighting.started == "no" and not sighting.shim_locked:
                    self._fence(attempt, sighting)
                    continue
                self.executor.folder(*attempt.key).mkdir(parents=True, exist_ok=True)
                self.executor.stop(attempt, epoch=epoch, reason="user_stop", grace_s=grace_s())
                self._asked.add(attempt.key)
        finally:
            self.desk.lock.give_back()

    def _fence(self, attempt: Attempt, seen: Sighting) -> None:
        """Claimed, and no shim has come: from now on none can."""
        since = self._unstarted.setdefault(attempt.key, seen.boot)
        if seen.boot - since > UNSTARTED_S:
            self.executor.revoke(attempt)


def grace_s() -> float:
    return float(os.environ.get("MUSTER_GRACE_S", "10"))
