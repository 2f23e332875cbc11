"""Powering off needs proof that all is over; one doubt is enough against it."""

import pytest

from muster.acts.shutdown import refusals
from muster.acts.status import CellStatus, ControllerStatus, Status
from muster.domain.attempt import Attempt, CellRecord
from muster.domain.campaign import Campaign
from muster.domain.cell import Cell
from muster.domain.state import CampaignState, Intent
from muster.domain.verdict import State, Verdict

STATE = CampaignState(Campaign("c", (), ()), "h", "", Intent(), 1)


def cell(name: str, state: State, *, open_: bool = False) -> CellStatus:
    attempt = Attempt(name, 1, "t", 1, ("cpu0",), "h", "", 0.0, "b")
    record = CellRecord(Cell(name, "train", ()), 0, attempts=(attempt,) if open_ else ())
    return CellStatus(record, Verdict(state, "because"), "")


def status(*cells: CellStatus, withdrawn: tuple[CellStatus, ...] = ()) -> Status:
    return Status(STATE, "", 0.0, "b", ControllerStatus(False), cells, withdrawn)


def test_48_all_done_or_given_up_and_nobody_left() -> None:
    assert refusals(status(cell("a", State.DONE), cell("b", State.GIVEN_UP)), {"a@1": []}, {}) == []


@pytest.mark.parametrize("state", [state for state in State if state not in (State.DONE, State.GIVEN_UP)])
def test_48_any_other_cell_is_named(state: State) -> None:
    assert refusals(status(cell("a", State.DONE), cell("b", state)), {}, {}) == [f"b is {state}: because"]


def test_48_an_open_attempt_stands_against_it_whatever_it_is_called() -> None:
    assert refusals(status(cell("a", State.DONE, open_=True)), {}, {}) == ["a is DONE: because"]


def test_48_a_withdrawn_cell_that_still_runs_counts() -> None:
    found = refusals(status(cell("a", State.DONE), withdrawn=(cell("old", State.RUNNING, open_=True),)), {}, {})
    assert found == ["old is RUNNING: because"]


def test_48_processes_and_gpus_in_use_are_named_and_what_cannot_be_read_counts_as_active() -> None:
    done = status(cell("a", State.DONE))
    assert refusals(done, {"a@1": [7, 8]}, {0: "2 processes use it"}) == [
        "a@1: pid 7, 8 of it lives on",
        "GPU 0 is in use: 2 processes use it",
    ]
    assert len(refusals(done, None, None)) == 2
