"""Powering off needs proof that all is over; one doubt is enough against it."""

from typing import Any

import pytest

from muster.app.campaign.campaign_status import CellStatus, ControllerStatus, Status
from muster.app.campaign.disk_use import find_output_folders
from muster.app.campaign.registered_campaigns import describe_unfinished_work
from muster.app.finish.power_off_rules import (
    LivingRemains,
    NeighbourCampaign,
    describe_neighbours,
    describe_remains,
    find_power_off_refusals,
)
from muster.model.attempt import Attempt, CellRecord
from muster.model.campaign import Campaign, DeclaredFinish, Job
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import Cell
from muster.model.verdict import Verdict, VerdictState

STATE = CampaignState(Campaign("c", (), ()), "h", "", Intent(), 1)


def cell(name: str, state: VerdictState, *, open_: bool = False) -> CellStatus:
    attempt = Attempt(name, 1, "t", 1, ("cpu0",), "h", "", 0.0, "b")
    record = CellRecord(Cell(name, "train", ()), 0, attempts=(attempt,) if open_ else ())
    return CellStatus(record, Verdict(state, "because"), "")


def status(*cells: CellStatus, withdrawn: tuple[CellStatus, ...] = ()) -> Status:
    return Status(STATE, "", 0.0, "b", ControllerStatus(False), cells, withdrawn)


def test_48_all_done_or_given_up_and_nobody_left() -> None:
    assert (
        find_power_off_refusals(status(cell("a", VerdictState.DONE), cell("b", VerdictState.GIVEN_UP)), {"a@1": []}, {})
        == []
    )


@pytest.mark.parametrize(
    "state", [state for state in VerdictState if state not in (VerdictState.DONE, VerdictState.GIVEN_UP)]
)
def test_48_any_other_cell_is_named(state: VerdictState) -> None:
    assert find_power_off_refusals(status(cell("a", VerdictState.DONE), cell("b", state)), {}, {}) == [
        f"b is {state}: because"
    ]


def test_48_an_open_attempt_stands_against_it_whatever_it_is_called() -> None:
    assert find_power_off_refusals(status(cell("a", VerdictState.DONE, open_=True)), {}, {}) == ["a is DONE: because"]


def test_48_a_withdrawn_cell_that_still_runs_counts() -> None:
    found = find_power_off_refusals(
        status(cell("a", VerdictState.DONE), withdrawn=(cell("old", VerdictState.RUNNING, open_=True),)), {}, {}
    )
    assert found == ["old is RUNNING: because"]


def test_48_processes_and_gpus_in_use_are_named_and_what_cannot_be_read_counts_as_active() -> None:
    done = status(cell("a", VerdictState.DONE))
    assert find_power_off_refusals(done, {"a@1": [7, 8]}, {0: "2 processes use it"}) == [
        "a@1: pid 7, 8 of it lives on",
        "GPU 0 is in use: 2 processes use it",
    ]
    assert len(find_power_off_refusals(done, None, None)) == 2


def test_what_is_left_of_an_execution_stands_against_it_by_one_name() -> None:
    assert describe_remains([LivingRemains("a@1")]) == []
    assert describe_remains(
        [
            LivingRemains("a@1", shim_held=True),
            LivingRemains("b@1", shim_held=True, orphans=(59, 60)),
            LivingRemains("c@2", tree_held=True, shim_held=True, orphans=(7,)),
            LivingRemains("d@1", unread="Input/output error"),
        ]
    ) == [
        "a@1: its shim lives on: what it left behind may still work (shim.lock is held)",
        "b@1: pid 59, 60, which it left behind, lives on",
        "c@2: a process of it lives on: its tree.lock is held",
        "d@1: whether something of it lives can't be read: Input/output error",
    ]


def test_other_campaigns_stand_against_it_with_a_way_out() -> None:
    assert describe_neighbours([NeighbourCampaign("b", "/b")]) == []
    (left,) = describe_neighbours([NeighbourCampaign("b", "/b", unfinished="3 of 4 cells are not done")])
    assert left.startswith("campaign b in /b is not finished: 3 of 4 cells are not done; `muster -C /b up`")
    (unread,) = describe_neighbours([NeighbourCampaign("b", "/b", unread="Permission denied")])
    assert unread == "campaign b in /b can't be read: Permission denied; fix it, or `muster ls --forget /b`"
    (orphan,) = describe_neighbours([NeighbourCampaign("b", "/b", remains=(LivingRemains("train/0@1", orphans=(8,)),))])
    assert orphan == "campaign b in /b: train/0@1: pid 8, which it left behind, lives on"


def one_cell(**more: Any) -> CampaignState:
    state = CampaignState(Campaign("c", (), ()), "h", "", Intent(), 1)
    state.cells = {"a": CellRecord(Cell("a", "train", ()), 0, **more)}
    return state


def test_a_campaign_has_work_left_until_it_is_settled_or_put_down() -> None:
    assert describe_unfinished_work(one_cell(), 0.0) == "1 of 1 cells are not done"
    assert describe_unfinished_work(one_cell(given_up="enough"), 0.0) == ""
    for intent, said in ((Intent("held"), True), (Intent("down"), False), (Intent("held", before="down"), False)):
        state = one_cell()
        state.intent = intent
        assert bool(describe_unfinished_work(state, 0.0)) is said
    copying = one_cell(given_up="enough")
    copying.campaign = Campaign("c", (), (), finish=DeclaredFinish(run=("rclone copy",), shutdown=True))
    assert describe_unfinished_work(copying, 0.0) == "its finish is not done: run-1 is waiting"


@pytest.mark.parametrize(
    ("output", "cwd", "folder"),
    [
        ("{out}", None, "/c/.muster/attempts"),
        ("runs/*_{config}_{seed}", None, "/c/runs"),
        ("runs/{config}/{seed}", "/code", "/code/runs"),
        ("../runs/x{seed}", None, "/runs"),
        ("/data/all/{cell}", "/code", "/data/all"),
        ("*_{config}", None, "/c"),
        ("one", None, "/c/one"),
    ],
)
def test_below_which_folder_the_runs_of_a_job_write(output: str, cwd: str | None, folder: str) -> None:
    state = CampaignState(Campaign("c", (), (Job("train", (), (), output=output, cwd=cwd),)), "h", "", Intent(), 1)
    assert find_output_folders(state, "/c") == (folder,)
