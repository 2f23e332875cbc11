"""The purser of a controller that was held up between its look and its decision."""

from __future__ import annotations

from dataclasses import dataclass

from muster.engine.controller.budget_tracker import OLD_LOOK_S, BudgetTracker
from muster.model.attempt import Attempt, CellRecord
from muster.model.campaign import Campaign, Job, Money, Slots
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells


@dataclass
class Hand:
    """A clock that is set by hand."""

    now: float = 100.0

    def boot(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1_790_000_000.0 + self.now

    def monotonic(self) -> float:
        return self.now


def state() -> CampaignState:
    money = Money(price=3600.0, budget=50.0, at_cap="stop")
    campaign = Campaign("c", (), (Job("train", (), ("true",)),), slots=Slots(gpus=(0,)), money=money)
    (cell,) = list_campaign_cells(campaign)
    running = Attempt(cell.id, 1, "t", 1, ("gpu0.0",), "h", "2026-11-16T00:00:10+00:00", 10.0, "boot")
    return CampaignState(campaign, "h", "", Intent(), 1, (), {cell.id: CellRecord(cell, 0, attempts=(running,))})


def test_nothing_is_stopped_by_an_old_look_but_by_the_next_one() -> None:
    clock = Hand()
    purser = BudgetTracker(clock, "boot", state())
    fresh = purser.purse({}, clock.now)
    assert fresh is not None
    assert (fresh.spent_up, fresh.outdated, len(fresh.to_stop(())[0])) == (True, False, 1)
    looked, clock.now = clock.now, clock.now + OLD_LOOK_S + 1
    old = purser.purse({}, looked)
    assert old is not None
    assert (old.outdated, old.to_stop(())[0], purser.due) == (True, [], clock.now)
    slow = purser.purse({}, clock.now - OLD_LOOK_S - 1)
    assert slow is not None
    assert (slow.outdated, len(slow.to_stop(())[0])) == (False, 1), (
        "where every look is slow, the budget holds all the same"
    )
