"""A verb takes values and returns values: a page or a tool can call it, and nothing is printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.load_campaign import read_campaign_file, submit_campaign
from muster.app.campaign.verbs.decide_for_cells import give_up_cells
from muster.app.campaign.verbs.hold_campaign import hold_campaign, release_campaign
from muster.app.campaign.verbs.retry_cells import retry_cells
from muster.app.campaign.verbs.stop_cells import request_stop
from muster.app.campaign.verbs.write_note import write_note
from muster.app.finish.take_down import take_down
from muster.model.errors import MusterError

TWO = """\
muster: 1
campaign: two
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 1}
jobs: {train: {axes: [seed], command: /bin/true}}
"""


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[CampaignHandle]:
    """A campaign that is down: no controller is started for it."""
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    (tmp_path / "campaign.yaml").write_text(TWO)
    made = CampaignHandle.create(tmp_path)
    submit_campaign(made, read_campaign_file(made.file), ())
    made.decide([made.person("intent", data={"intent": "down"})])
    yield made
    made.close()
    assert capsys.readouterr() == ("", "")


def test_cells_are_given_up_and_taken_up_again(desk: CampaignHandle) -> None:
    told: list[str] = []
    given_up = give_up_cells(desk, ["train/*"], "they diverge", told.append)
    assert given_up.accepted == ["train/0", "train/1"]
    assert not given_up.refused
    done = retry_cells(desk, ["train/1"], "a smaller step", told.append)
    (retried,) = done.retried
    assert (retried.cell, retried.tried, retried.attempt) == ("train/1", 0, None)
    assert retried.next == "the campaign is down; starts after `muster up`"
    assert told == []


def test_a_stop_says_of_each_cell_why_there_is_nothing_to_stop(desk: CampaignHandle) -> None:
    request = request_stop(desk, ["train/0"], None, lambda _: None)
    assert request.attempts == ()
    assert "it is not running, it is PENDING" in request.refused["train/0"]
    assert request_stop(desk, ["train/*"], None, lambda _: None).meant_nothing


def test_nothing_is_done_where_nothing_can_be_done(desk: CampaignHandle) -> None:
    with pytest.raises(MusterError, match="nothing to do"):
        retry_cells(desk, ["train/*"], "again", lambda _: None)


def test_a_hold_tells_what_was_before(desk: CampaignHandle) -> None:
    assert hold_campaign(desk, "the disk is full").before.kind == "down"
    assert hold_campaign(desk, "still").before.reason == "the disk is full"
    assert release_campaign(desk, "a larger disk", lambda _: None).state.intent.kind == "down"


def test_a_note_returns_what_it_is_about(desk: CampaignHandle) -> None:
    assert write_note(desk, "odd", "train/*", None) == ["train/0", "train/1"]
    assert write_note(desk, "odd", None, None) == []


def test_what_is_down_already_is_left_alone(desk: CampaignHandle) -> None:
    before = len(desk.store.events())
    done = take_down(desk, runs=True, because=None, limit_s=1.0, on_stopped=lambda _: None)
    assert done.was_down
    assert done.living == ()
    assert len(desk.store.events()) == before
