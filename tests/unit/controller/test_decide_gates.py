"""What gates let start, stop, and keep from ending."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_decide import ALIVE, DONE, attempt, dead, put, see, world

from muster.engine.controller.decide import End, Settle, Start, Stop
from muster.engine.ports.extension import StopRequest
from muster.model.attempt import Outcome
from muster.model.campaign import DeclaredGate, GateSource
from muster.model.campaign_state import CampaignState, GateRecord
from muster.model.verdict import VerdictState

RISE = DeclaredGate(job="train", read=GateSource(csv="evals.csv"), lets=("eval",))
OPEN = GateRecord(1, 4, "advance", 1, "2 successes in a row: on to phase 1")
SHUT = replace(OPEN, iteration=6, state="fall_back", phase=0)


def gated(*opened: str) -> CampaignState:
    """Every training is done, all but train/0; the gates of these stand open."""
    state = world()
    state = replace(state, campaign=replace(state.campaign, gates={"rise": RISE}))
    for cell in ("train/1", "train/2"):
        put(state, attempt(cell, outcome=Outcome(VerdictState.DONE)))
    put(state, attempt("train/0"))
    state.gates.update({cell: {"rise": OPEN} for cell in opened})
    return state


def left(*cells: str) -> frozenset[tuple[str, int]]:
    return frozenset((cell, 1) for cell in cells)


def test_an_open_gate_lets_its_job_start_once_all_of_the_run_was_read() -> None:
    state = gated("train/0", "train/1")
    actions = see(state, {"train/0": DONE}, unread=left("train/0"))
    assert isinstance(actions[0], Settle)
    assert [each.cell for each in actions if isinstance(each, Start)] == ["eval/1"]
    put(state, attempt("train/0", outcome=Outcome(VerdictState.DONE)))
    assert [each.cell for each in see(state) if isinstance(each, Start)] == ["eval/0", "eval/1"]


def test_a_campaign_does_not_end_before_its_runs_were_read() -> None:
    state = gated()
    put(state, attempt("train/0", outcome=Outcome(VerdictState.DONE)))
    assert see(state, unread=left("train/2")) == []
    (end,) = see(state)
    assert end == End(False, "nothing runs and nothing may start: 3 BLOCKED")


@pytest.mark.parametrize("record", [SHUT, replace(OPEN, attempt=2)], ids=["fell back", "of another attempt"])
def test_a_shut_gate_keeps_its_job_from_starting_and_from_being_retried(record: GateRecord) -> None:
    state = gated("train/1", "train/2")
    state.gates["train/1"]["rise"] = record
    put(state, attempt("eval/1", outcome=dead("host_reboot")))
    assert [each.cell for each in see(state) if isinstance(each, Start)] == ["eval/2"]
    state.gates["train/1"]["rise"] = OPEN
    assert [each.cell for each in see(state) if isinstance(each, Start)] == ["eval/1"]  # the one slot that is free


def test_a_gate_that_bears_no_more_stops_its_run_once() -> None:
    state = gated()
    stops = {("train/0", 1): [StopRequest("gate_stop", "why")]}
    (stop,) = (each for each in see(state, {"train/0": ALIVE}, stops=stops) if isinstance(each, Stop))
    assert (stop.cause, stop.reason) == ("gate_stop", "why")
    again = see(state, {"train/0": ALIVE}, stops=stops, stopping={("train/0", 1): stop})
    assert not any(isinstance(each, Stop) for each in again)
