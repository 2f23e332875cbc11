"""When a loop's next round is due: after all of the last one, once for each state of the matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from muster.app.campaign.finish_steps import BeginStep, NothingDue, TendStep, matrix_state_key
from muster.app.campaign.loop_progress import (
    is_round_step_overtaken,
    next_round_action,
    rounds_at_most,
    steps_for_next_round,
    view_loop_progress,
)
from muster.model.attempt import CellRecord
from muster.model.campaign import Campaign, DeclaredLoop, Job
from muster.model.campaign_state import CampaignState, FinishRecord, FinishStepRecord, Intent
from muster.model.cell import list_campaign_cells
from muster.model.variant import LoopRecord, Variant, add_variants_to_campaign

BASE = Variant("a", "/c/a.json", 1, "d1")
PLAIN = Campaign("c", (), (Job("train", (), ("train",)),), loop=DeclaredLoop("train", (), rounds=3))

ONE_ROUND = LoopRecord((BASE,), 1)


def state(record: LoopRecord = ONE_ROUND, step: FinishStepRecord | None = None, **more: Any) -> CampaignState:
    campaign = add_variants_to_campaign(PLAIN, record.variants)
    cells = {cell.id: CellRecord(cell, at) for at, cell in enumerate(list_campaign_cells(campaign))}
    finish = FinishRecord({step.step: step} if step else {})
    return CampaignState(campaign, "h", "", Intent(), 1, (), cells, loop=record, finish=finish, **more)


def ran(of: CampaignState, **more: Any) -> FinishStepRecord:
    return FinishStepRecord(
        "round-2", matrix_state_key(of), 1, "token", "2026-02-22T02:00:00+08:00", 1.0, "boot", **more
    )


def test_the_next_round_is_proposed_by_a_step_of_its_own() -> None:
    found = next_round_action(state())
    assert isinstance(found, BeginStep)
    assert (found.step.name, found.step.what, found.n) == ("round-2", "muster loop propose --take --round 2", 1)


def test_what_is_under_way_is_seen_to_its_end() -> None:
    assert isinstance(next_round_action(state(step=ran(state()))), TendStep)


def test_a_step_whose_end_nobody_saw_is_done_again() -> None:
    found = next_round_action(state(step=ran(state(), ended="later", ok=None, lost=1)))
    assert isinstance(found, BeginStep)
    assert (found.n, found.lost) == (2, 1)


def test_one_that_failed_or_led_to_nothing_is_not_repeated_by_itself() -> None:
    for ok in (True, False):
        assert next_round_action(state(step=ran(state(), ended="later", ok=ok))) == NothingDue(over=True)


def test_what_stopped_stays_stopped() -> None:
    assert next_round_action(state(LoopRecord((BASE,), 1, "no proposals"))) == NothingDue(over=True)
    assert next_round_action(state(LoopRecord())) == NothingDue(over=True)
    assert next_round_action(replace(state(), intent=Intent("down"))) == NothingDue(over=True)


def test_a_filter_on_variants_keeps_a_round_back_and_no_end() -> None:
    filtered = ({"variant": ("a",)},)
    assert steps_for_next_round(replace(state(), only=filtered)) == []
    assert view_loop_progress(replace(state(), only=filtered)).left_out  # type: ignore[union-attr]
    over = replace(state(), only=filtered, loop=LoopRecord((BASE,), round=3))
    assert [step.name for step in steps_for_next_round(over)] == ["round-4"], (
        "it says that all rounds are done, and reports"
    )
    assert not view_loop_progress(over).left_out  # type: ignore[union-attr]


def test_a_person_may_ask_for_other_rounds_than_the_campaign() -> None:
    assert rounds_at_most(state()) == 3
    assert rounds_at_most(state(LoopRecord((BASE,), 1, most=7))) == 7


def test_a_step_that_still_writes_its_report_is_seen_to_its_end_before_the_next_begins() -> None:
    """Its round is decided, and the next one is over; or no further round comes."""
    two = LoopRecord((BASE, Variant("b", "/c/b.json", 2, "d2", "a")), 2)
    for record in (two, LoopRecord((BASE,), 1, "all rounds are done")):
        found = state(record, ran(state()))
        assert isinstance(next_round_action(found), TendStep)
        assert is_round_step_overtaken(found, "round-2")
    over = state(two, ran(state(), ended="later", ok=False))
    assert isinstance(next_round_action(over), BeginStep)
    assert not is_round_step_overtaken(over, "round-3")
    assert not is_round_step_overtaken(over, "report")
