"""When a loop's next round is due: after all of the last one, once for each state of the matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from muster.acts.finish import Begin, Nothing, Tend, key_of
from muster.acts.loop_view import loop_view
from muster.acts.rounds_due import due, most_rounds, overtaken, steps
from muster.domain.attempt import CellRecord
from muster.domain.campaign import Campaign, Job
from muster.domain.cell import all_cells
from muster.domain.finish import FinishRecord, StepRecord
from muster.domain.state import CampaignState, Intent
from muster.domain.variants import LoopRecord, Variant
from muster.plan.grow import grown

BASE = Variant("a", "/c/a.json", 1, "d1")
PLAIN = Campaign("c", (), (Job("train", (), ("train",)),), loop={"job": "train", "rounds": 3})


def state(record: LoopRecord = LoopRecord((BASE,), 1), step: StepRecord | None = None, **more: Any) -> CampaignState:  # noqa: B008
    campaign = grown(PLAIN, record.variants)
    cells = {cell.id: CellRecord(cell, at) for at, cell in enumerate(all_cells(campaign))}
    finish = FinishRecord({step.step: step} if step else {})
    return CampaignState(campaign, "h", "", Intent(), 1, (), cells, loop=record, finish=finish, **more)


def ran(of: CampaignState, **more: Any) -> StepRecord:
    return StepRecord("round-2", key_of(of), 1, "token", "2026-02-22T02:00:00+08:00", 1.0, "boot", **more)


def test_the_next_round_is_proposed_by_a_step_of_its_own() -> None:
    found = due(state())
    assert isinstance(found, Begin)
    assert (found.step.name, found.step.what, found.n) == ("round-2", "muster loop propose --take --round 2", 1)


def test_what_is_under_way_is_seen_to_its_end() -> None:
    assert isinstance(due(state(step=ran(state()))), Tend)


def test_a_step_whose_end_nobody_saw_is_done_again() -> None:
    found = due(state(step=ran(state(), ended="later", ok=None, lost=1)))
    assert isinstance(found, Begin)
    assert (found.n, found.lost) == (2, 1)


def test_one_that_failed_or_led_to_nothing_is_not_repeated_by_itself() -> None:
    for ok in (True, False):
        assert due(state(step=ran(state(), ended="later", ok=ok))) == Nothing(over=True)


def test_what_stopped_stays_stopped() -> None:
    assert due(state(LoopRecord((BASE,), 1, "no proposals"))) == Nothing(over=True)
    assert due(state(LoopRecord())) == Nothing(over=True)
    assert due(replace(state(), intent=Intent("down"))) == Nothing(over=True)


def test_a_filter_on_variants_keeps_a_round_back_and_no_end() -> None:
    filtered = ({"variant": ("a",)},)
    assert steps(replace(state(), only=filtered)) == []
    assert loop_view(replace(state(), only=filtered)).left_out  # type: ignore[union-attr]
    over = replace(state(), only=filtered, loop=LoopRecord((BASE,), round=3))
    assert [step.name for step in steps(over)] == ["round-4"], "it says that all rounds are done, and reports"
    assert not loop_view(over).left_out  # type: ignore[union-attr]


def test_a_person_may_ask_for_other_rounds_than_the_campaign() -> None:
    assert most_rounds(state()) == 3
    assert most_rounds(state(LoopRecord((BASE,), 1, most=7))) == 7


def test_a_step_that_still_writes_its_report_is_seen_to_its_end_before_the_next_begins() -> None:
    """Its round is decided, and the next one is over; or no further round comes."""
    two = LoopRecord((BASE, Variant("b", "/c/b.json", 2, "d2", "a")), 2)
    for record in (two, LoopRecord((BASE,), 1, "all rounds are done")):
        found = state(record, ran(state()))
        assert isinstance(due(found), Tend)
        assert overtaken(found, "round-2")
    over = state(two, ran(state(), ended="later", ok=False))
    assert isinstance(due(over), Begin)
    assert not overtaken(over, "round-3")
    assert not overtaken(over, "report")
