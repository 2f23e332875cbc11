"""What would run and why the rest would not, as a pure function of campaign and state."""

from __future__ import annotations

from dataclasses import replace

from muster.engine.plan.up_preview import UpPreview, preview_up, state_as_declared
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign import Axis, AxisValue, Campaign, Job
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from muster.model.verdict import Cause, VerdictState


def campaign(seeds: int = 3) -> Campaign:
    axis = Axis("seed", tuple(AxisValue(str(n), n) for n in range(seeds)))
    train = Job("train", ("seed",), ("train",))
    evaluate = Job("eval", ("seed",), ("eval",), needs=("train",))
    plots = Job("plots", (), ("plot",), needs=("eval",))
    return Campaign("c", (axis,), (train, evaluate, plots))


def hashes(made: Campaign, version: str = "h") -> dict[str, str]:
    return {cell.id: f"{version}-code" for cell in list_campaign_cells(made)}


def fresh(seeds: int = 3) -> CampaignState:
    made = campaign(seeds)
    return replace(state_as_declared(made, hashes(made), None), intent=Intent("running"))


def attempt(cell: str, outcome: Outcome | None, n: int = 1) -> Attempt:
    return Attempt(cell, n, f"{cell}{n}", 1, ("cpu0",), "h-code", "then", 0.0, "b", outcome=outcome)


def after(state: CampaignState, cell: str, outcome: Outcome | None) -> None:
    state.cells[cell] = replace(state.cells[cell], attempts=(attempt(cell, outcome),))


DONE = Outcome(VerdictState.DONE, reason="exit 0", duration_s=100.0)
DEAD = Outcome(VerdictState.DEAD, Cause("exit_code", "1"), reason="exit 1")


def run(found: UpPreview) -> list[str]:
    return [item.cell for item in found.would_run]


def later(found: UpPreview) -> list[str]:
    return [item.cell for item in found.others if item.later]


def test_a_campaign_that_was_never_started() -> None:
    made = campaign()
    found = preview_up(state_as_declared(made, hashes(made), None))
    assert run(found) == ["train/0", "train/1", "train/2"]
    assert [item.position for item in found.would_run] == [1, 2, 3]
    assert {item.why for item in found.would_run} == {"it has not run yet"}
    assert later(found) == ["eval/0", "eval/1", "eval/2", "plots"]
    assert {item.verdict for item in found.others} == {VerdictState.BLOCKED}


def test_what_is_done_and_what_follows() -> None:
    state = fresh()
    after(state, "train/0", DONE)
    found = preview_up(state)
    assert run(found) == ["train/1", "train/2", "eval/0"]  # the longest chain first
    assert later(found) == ["eval/1", "eval/2", "plots"]
    (done,) = [item for item in found.others if item.verdict == VerdictState.DONE]
    assert (done.cell, done.reason) == ("train/0", "exit 0")


def test_a_dead_cell_holds_back_what_needs_it() -> None:
    state = fresh()
    after(state, "train/1", DEAD)
    found = preview_up(state)
    assert run(found) == ["train/0", "train/2"]
    assert later(found) == ["eval/0", "eval/2"]  # the plots need all of eval
    dead = next(item for item in found.others if item.cell == "train/1")
    assert "muster retry" in dead.next


def test_what_runs_now_is_neither() -> None:
    state = fresh()
    after(state, "train/0", None)
    found = preview_up(state)
    assert run(found) == ["train/1", "train/2"]
    open_ = next(item for item in found.others if item.cell == "train/0")
    assert open_.verdict is None
    assert "eval/0" in later(found)


def test_a_filter_and_what_it_leaves_out() -> None:
    state = replace(fresh(), only=({"seed": ("0",)},))
    found = preview_up(state)
    assert run(found) == ["train/0"]
    assert later(found) == ["eval/0"]
    assert "left out by --only seed=0" in next(item.reason for item in found.others if item.cell == "train/1")


def test_held_and_given_up() -> None:
    state = fresh()
    state.cells["train/0"] = replace(state.cells["train/0"], given_up="no use")
    assert run(preview_up(state)) == ["train/1", "train/2"]
    assert "eval/0" not in later(preview_up(state))
    held = replace(state, intent=Intent("held", "look only"))
    assert run(preview_up(held)) == []
    assert later(preview_up(held)) == []
    assert len(preview_up(held).others) == 7


def test_every_declared_cell_is_named_once() -> None:
    state = fresh(5)
    after(state, "train/0", DONE)
    after(state, "train/1", DEAD)
    after(state, "train/2", None)
    found = preview_up(state)
    named = [*run(found), *(item.cell for item in found.others)]
    assert sorted(named) == sorted(cell.cell.id for cell in state.declared)


def test_another_text_keeps_what_was_done() -> None:
    before = fresh(3)
    after(before, "train/0", DONE)
    after(before, "train/1", DEAD)
    shorter = campaign(2)
    state = state_as_declared(shorter, hashes(shorter, "new"), before)
    assert [cell.cell.id for cell in state.declared] == ["train/0", "train/1", "eval/0", "eval/1", "plots"]
    assert not state.cells["train/2"].declared
    assert state.cells["train/0"].done
    found = preview_up(state)
    assert run(found) == ["train/1", "eval/0"]
    assert "changed since" in found.would_run[0].why
    grown = campaign(4)
    assert "train/3" in run(preview_up(state_as_declared(grown, hashes(grown), before)))


def test_a_cell_that_comes_back_is_declared_again() -> None:
    before = fresh(3)
    after(before, "train/2", DONE)
    short, long = campaign(2), campaign(3)
    withdrawn = state_as_declared(short, hashes(short), before)
    state = state_as_declared(long, hashes(long), withdrawn)
    assert isinstance(state.cells["train/2"], CellRecord)
    assert (state.cells["train/2"].declared, state.cells["train/2"].done) == (True, True)
