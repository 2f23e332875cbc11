"""What people did before a report: whether the decision was declared before its results, and what they vouched for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.app.campaign.campaign_status import ControllerStatus, Status, build_status
from muster.app.facts.build_report_facts import ReportInputs, build_report_facts, find_accepted_cells
from muster.app.facts.past_campaigns import CampaignSnapshot, count_done_at_decision_change, read_past_campaigns
from muster.app.facts.report_facts import AcceptedCell
from muster.engine.ports.store import LoggedDecision
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign import Campaign
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from muster.model.decision import Decision
from muster.model.verdict import VerdictState
from muster.spec import read_campaign

TEXT = """\
muster: 1
campaign: c
axes: {config: [base, new], seed: [0, 1]}
jobs:
  train: {axes: [config, seed], command: a}
  eval: {axes: [config, seed], needs: [train], command: b, results: {score: {json: r.json, key: score}}}
  plots: {axes: [], needs: [eval], command: c}
decision: {primary: {metric: score, better: higher}, baseline: base, delta: 0.3}
"""
SPLIT = (
    TEXT.replace("axes: {", "axes: {split: [id, ood], ", 1)
    .replace("eval: {axes: [config,", "eval: {axes: [split, config,")
    .replace("metric: score,", "metric: score, split: ood,")
)


def campaign(text: str = TEXT) -> Campaign:
    return read_campaign(text, file="campaign.yaml", folder="/home/me/c").campaign


NOW = campaign()
KNOWN = {
    "now": NOW,
    "noted": replace(NOW, decision=NOW.decision and replace(NOW.decision, notes=("said later",))),
    "other": campaign(TEXT.replace("0.3", "0.1")),
    "read": campaign(TEXT.replace("key: score", "key: better")),
    "none": replace(NOW, decision=None),
    "split": campaign(SPLIT),
}


def events(*told: str) -> list[LoggedDecision]:
    """`=now`: that campaign was taken in; `eval/base/0`: that cell ended as DONE; `-` before it: as DEAD."""
    found = []
    for each in told:
        if each.startswith("="):
            decision = Decision("campaign", "controller", data={"hash": each[1:]})
        else:
            verdict = "DEAD" if each.startswith("-") else "DONE"
            decision = Decision("settle", "controller", cell=each.lstrip("-"), data={"outcome": {"verdict": verdict}})
        found.append(LoggedDecision(decision))
    return found


@pytest.mark.parametrize(
    ("told", "changed"),
    [
        (["=now", "eval/base/0", "eval/base/1"], 0),
        (["=noted", "eval/base/0", "=now"], 0),  # a note decides nothing
        (["=other", "eval/base/0", "-eval/base/1", "train/new/0", "=now", "eval/new/0"], 1),
        (["=none", "eval/base/0", "eval/base/1"], 2),  # not taken in yet
        (["=now", "eval/base/0", "=other", "eval/base/1", "=now"], 2),
        (["=read", "eval/base/0", "=now"], 1),  # other numbers under the same name
        (["=lost", "eval/base/0", "=now"], 1),  # what can't be read vouches for nothing
    ],
)
def test_cells_that_were_done_when_the_decision_changed(told: list[str], changed: int) -> None:
    assert changed_at(NOW, events(*told)) == changed
    assert changed_at(KNOWN["none"], events(*told)) == 0


def changed_at(now: Campaign, told: list[LoggedDecision]) -> int:
    return count_done_at_decision_change(
        now, told, read_past_campaigns(told, lambda name: CampaignSnapshot(KNOWN[name]) if name in KNOWN else None)
    )


@pytest.mark.parametrize(
    ("axis", "old", "new", "text"),
    [
        ("config", "base", "plain", SPLIT.replace("[base", "[plain").replace(": base", ": plain")),
        ("split", "ood", "far", SPLIT.replace("ood", "far")),
    ],
)
def test_a_name_that_was_changed_changes_no_decision(axis: str, old: str, new: str, text: str) -> None:
    told = events("=split", "eval/base/0", "eval/base/1")
    data = {"axis": axis, "old": old, "new": new, "hash": "renamed", "same": {}}
    told.append(LoggedDecision(Decision("rename", "me", data=data)))
    assert changed_at(campaign(text), told) == 0
    assert changed_at(campaign(text.replace("0.3", "0.1")), told) == 2


def status(accepted: dict[str, str]) -> Status:
    cells = {}
    for at, cell in enumerate(list_campaign_cells(NOW)):
        word = accepted.get(cell.id)
        results: Any = {"score": 1.0 + at / 7} if cell.job == "eval" else {}
        outcome = Outcome(VerdictState.DEAD if word else VerdictState.DONE, results=results)
        tries = (Attempt(cell.id, 1, "t", 1, (), "", "", 0.0, "", outcome=outcome, accepted=word),)
        cells[cell.id] = CellRecord(cell, at, attempts=tries)
    state = CampaignState(NOW, "h", "", Intent(), 1, (), cells)
    return build_status(state, {}, ControllerStatus(False), wall=0.0, boot=0.0, boot_id="")


def test_what_a_person_vouched_for_is_among_the_facts() -> None:
    found = status({"eval/new/1": "exit 1 came from the logger", "train/base/0": "seen", "plots": "no matter"})
    said = [
        LoggedDecision(Decision("accept", "me@box", "exit 1 came from the logger", "eval/new/1", 1)),
        LoggedDecision(Decision("accept", "you@box", "later", "train/base/0", 1), void="it is DONE"),
    ]
    told = tuple(find_accepted_cells(found, said))
    assert told == (
        AcceptedCell("train/base/0", 1, "", "seen"),
        AcceptedCell("eval/new/1", 1, "me@box", "exit 1 came from the logger"),
        AcceptedCell("plots", 1, "", "no matter"),
    )
    assert (
        build_report_facts(found, ReportInputs({}, accepted=told)).accepted == told[:2]
    )  # plots are no part of the matrix
