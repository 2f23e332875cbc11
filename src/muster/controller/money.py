"""Keeps the till of a campaign with a budget: what was spent, what is running, when the budget will be spent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from muster.controller.watches import name_of
from muster.domain.attempt import Attempt, CellRecord
from muster.domain.sighting import Sighting
from muster.domain.state import CampaignState
from muster.judge.history import History
from muster.judge.pace import next_checkpoint_s, pace_of
from muster.ledger.budget import Purse
from muster.ledger.forecast import Pace
from muster.ledger.prices import prices
from muster.ledger.spans import Now, held, late_s, now_of, spans
from muster.ledger.till import Till
from muster.ports.clock import Clock

Key = tuple[str, int]
OLD_S = 2.0  # since the look: a machine that is busy takes tenths of a second
SOON_S = 0.01  # a budget that is spent now is looked at a moment later, never at once again


class Purser:
    def __init__(self, clock: Clock, boot_id: str, state: CampaignState) -> None:
        self.clock, self.boot_id = clock, boot_id
        self.due: float | None = None  # boot time at which runs must be stopped
        self.last: Purse | None = None  # as it was told last
        self.outdated = False
        self.take_over(state)

    def take_over(self, state: CampaignState) -> None:
        """Another campaign text, or a new start: everything is added up again."""
        self.state = state
        self.till = self._count(state) if state.campaign.money and state.campaign.money.budget is not None else None
        self.due = self.last = None

    def _count(self, state: CampaignState) -> Till | None:
        declared = prices(state)
        return Till(state, declared, spans(state, self._now())) if declared else None

    def add(self, records: Iterable[CellRecord]) -> None:
        if self.till:
            self.till.add(records, self._now())

    def look_ahead(self, histories: Mapping[str, History]) -> None:
        """After a poll: how far each run has come, and when it saves next."""
        if self.till is None:
            return
        now = self._now()
        running = [self.state.cells[cell].attempts[n - 1] for cell, n in self.till.open]
        paces = {attempt.key: self._pace(attempt, histories.get(name_of(attempt)), now) for attempt in running}
        self.till.foresee(paces, now)

    def _pace(self, attempt: Attempt, history: History | None, now: Now) -> tuple[Pace, float | None]:
        job = self.state.job(self.state.cells[attempt.cell].cell.job)
        elapsed = max(0.0, now.boot - attempt.claimed_boot) if attempt.boot_id == self.boot_id else 0.0
        return pace_of(history, elapsed, job.steps), next_checkpoint_s(history, now.boot)

    def purse(self, sightings: Mapping[Key, Sighting], looked: float) -> Purse | None:
        """`looked`: boot time before the look. Whoever was held up since then counts runs that may have ended: nothing
        is stopped for that, but looked at again. Once: where every look takes so long, the budget holds all the same.
        """
        if self.till is None:
            return None
        now = self._now()
        over, late = {}, {}
        for (cell, n), seen in sightings.items():
            attempt = self.state.cells[cell].attempts[n - 1]
            seconds = held(attempt, seen, now.boot) if seen.exit is not None or seen.host != "same" else None
            if seconds is not None:
                over[cell, n] = seconds
            else:
                late[cell, n] = late_s(attempt, seen, now.boot)
        self.till.ended(over)
        self.till.begun(late)
        purse = self.till.purse(now)
        self.outdated = now.boot - looked > OLD_S and not self.outdated
        self.last = purse = replace(purse, outdated=self.outdated)
        self.due = now.boot if self.outdated else self._next(purse, now.boot)
        return purse

    def _next(self, purse: Purse, boot: float) -> float | None:
        """`at_cap: stop`: nobody waits for the next poll."""
        if purse.money.at_cap != "stop" or not purse.runs or purse.spent_up:
            return None
        left = purse.left_s()
        return None if math.isinf(left) else boot + max(SOON_S, left)

    def _now(self) -> Now:
        return now_of(self.state, self.clock.wall(), self.clock.boot(), self.boot_id)
