"""Keeps the till of a campaign with a budget: what was spent, what is running, when the budget will be spent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from muster.engine.controller.watch_book import watch_name_of
from muster.engine.judge.run_evidence import progress_rate, seconds_to_checkpoint
from muster.engine.judge.signal_history import SignalHistory
from muster.engine.ports.clock import Clock
from muster.ledger.billed_spans import LedgerTime, all_slot_spans, held_seconds, ledger_time_of, seconds_without_lease
from muster.ledger.budget_forecast import BudgetState, ProgressRate
from muster.ledger.prices_and_accounts import declared_prices
from muster.ledger.running_cost import RunningCost
from muster.model.attempt import Attempt, AttemptKey, CellRecord
from muster.model.attempt_snapshot import AttemptSnapshot
from muster.model.campaign_state import CampaignState

OLD_LOOK_S = 2.0  # since the look: a machine that is busy takes tenths of a second
SOONEST_LOOK_S = 0.01  # a budget that is spent now is looked at a moment later, never at once again


class BudgetTracker:
    def __init__(self, clock: Clock, boot_id: str, state: CampaignState) -> None:
        self.clock, self.boot_id = clock, boot_id
        self.due: float | None = None  # boot time at which runs must be stopped
        self.last: BudgetState | None = None  # as it was told last
        self.outdated = False
        self.take_over(state)

    def take_over(self, state: CampaignState) -> None:
        """Another campaign text, or a new start: everything is added up again."""
        self.state = state
        self.till = self._count(state) if state.campaign.money and state.campaign.money.budget is not None else None
        self.due = self.last = None

    def _count(self, state: CampaignState) -> RunningCost | None:
        declared = declared_prices(state)
        return RunningCost(state, declared, all_slot_spans(state, self._now())) if declared else None

    def add(self, records: Iterable[CellRecord]) -> None:
        if self.till:
            self.till.add(records, self._now())

    def look_ahead(self, histories: Mapping[str, SignalHistory]) -> None:
        """After a poll: how far each run has come, and when it saves next."""
        if self.till is None:
            return
        now = self._now()
        running = [self.state.cells[cell].attempts[n - 1] for cell, n in self.till.open]
        paces = {attempt.key: self._pace(attempt, histories.get(watch_name_of(attempt)), now) for attempt in running}
        self.till.foresee(paces, now)

    def _pace(
        self, attempt: Attempt, history: SignalHistory | None, now: LedgerTime
    ) -> tuple[ProgressRate, float | None]:
        job = self.state.job(self.state.cells[attempt.cell].cell.job)
        elapsed = max(0.0, now.boot - attempt.claimed_boot) if attempt.boot_id == self.boot_id else 0.0
        return progress_rate(history, elapsed, job.steps), seconds_to_checkpoint(history, now.boot)

    def purse(self, sightings: Mapping[AttemptKey, AttemptSnapshot], looked: float) -> BudgetState | None:
        """`looked`: boot time before the look. Whoever was held up since then counts runs that may have ended: nothing
        is stopped for that, but looked at again. Once: where every look takes so long, the budget holds all the same.
        """
        if self.till is None:
            return None
        now = self._now()
        over, late = {}, {}
        for (cell, n), seen in sightings.items():
            attempt = self.state.cells[cell].attempts[n - 1]
            seconds = held_seconds(attempt, seen, now.boot) if seen.exit is not None or seen.host != "same" else None
            if seconds is not None:
                over[cell, n] = seconds
            else:
                late[cell, n] = seconds_without_lease(attempt, seen, now.boot)
        self.till.ended(over)
        self.till.begun(late)
        purse = self.till.purse(now)
        self.outdated = now.boot - looked > OLD_LOOK_S and not self.outdated
        self.last = purse = replace(purse, outdated=self.outdated)
        self.due = now.boot if self.outdated else self._next(purse, now.boot)
        return purse

    def _next(self, purse: BudgetState, boot: float) -> float | None:
        """`at_cap: stop`: nobody waits for the next poll."""
        if purse.money.at_cap != "stop" or not purse.runs or purse.spent_up:
            return None
        left = purse.left_s()
        return None if math.isinf(left) else boot + max(SOONEST_LOOK_S, left)

    def _now(self) -> LedgerTime:
        return ledger_time_of(self.state, self.clock.wall(), self.clock.boot(), self.boot_id)
