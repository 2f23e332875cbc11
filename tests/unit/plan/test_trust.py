"""Failures that are not the cells' own, in the order in which they ended: wall times tell no order."""

from dataclasses import replace

import pytest

from muster.engine.plan.scheduling import find_failing_slots, recently_ended_attempts, why_everything_fails
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign import Campaign
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import Cell
from muster.model.verdict import Cause, VerdictState


def ended(cell: str, order: int, kind: str | None = "exit_code", slot: str = "cpu0", at: str = "") -> Attempt:
    state = VerdictState.DEAD if kind else VerdictState.DONE
    outcome = Outcome(state, Cause(kind) if kind else None, order=order)
    return Attempt(cell, 1, f"{cell}{order}", 1, (slot,), "h", at, 0.0, "b", outcome=outcome)


def state_of(attempts: list[Attempt], forgiven: int = 0) -> CampaignState:
    cells = {a.cell: CellRecord(Cell(a.cell, "train", ()), 0, True, "h", (a,)) for a in attempts}
    state = CampaignState(Campaign("c", (), ()), "hash", "", Intent("running"), 1, (), cells)
    return replace(state, forgiven=forgiven)


def test_ended_ones_come_in_the_order_in_which_they_ended() -> None:
    """Whatever zones and clocks their times are in."""
    attempts = [ended("b", 2, at="2026-01-01T09:00:00+00:00"), ended("a", 1, at="2026-01-01T16:00:00+08:00")]
    assert [each.cell for each in recently_ended_attempts(state_of(attempts))] == ["a", "b"]
    assert [each.cell for each in recently_ended_attempts(state_of(attempts, forgiven=1))] == ["b"]


def test_five_cells_in_a_row_hold_and_a_success_breaks_the_row() -> None:
    deaths = [ended(f"c{n}", n) for n in range(5)]
    assert why_everything_fails(deaths)
    assert why_everything_fails(deaths[:4]) is None
    assert why_everything_fails([*deaths[:3], ended("d", 9, None), *deaths[3:]]) is None
    assert why_everything_fails([ended("c0", n) for n in range(9)]) is None


@pytest.mark.parametrize("kind", ["signal", "host_reboot", "user_stop"])
def test_what_says_nothing_about_the_machine_does_not_count(kind: str) -> None:
    assert why_everything_fails([ended(f"c{n}", n, kind) for n in range(9)]) is None


def test_a_slot_on_which_all_dies_while_others_succeed() -> None:
    recent = [
        ended("g0", 0, None, "cpu1"),
        *(ended(f"c{n}", n, slot="cpu0") for n in range(3)),
        ended("g", 9, None, "cpu1"),
    ]
    assert find_failing_slots(recent) == {}
    recent.insert(3, ended("g2", 8, None, "cpu1"))
    assert set(find_failing_slots(recent)) == {"cpu0"}
    assert find_failing_slots([each for each in recent if each.completed]) == {}


def test_a_lost_gpu_takes_all_of_its_slots_along() -> None:
    recent = [ended("a", 1, None, "gpu0.1"), ended("b", 2, "gpu_lost", "gpu0.0"), ended("c", 3, None, "gpu1.0")]
    assert set(find_failing_slots(recent)) == {"gpu0.0", "gpu0.1"}
