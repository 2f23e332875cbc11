"""What an older campaign declared, looked at under the names of today."""

from __future__ import annotations

from muster.app.facts.past_campaigns import CampaignSnapshot, read_past_campaigns
from muster.engine.ports.store import LoggedDecision
from muster.model.campaign import Axis, AxisValue, Campaign, Job
from muster.model.decision import Decision

JOB = Job("train", ("config",), ("t", "{config}"), exclude=({"config": "x"},), configs={"config large": "/c/1.json"})


def campaign(*names: str) -> Campaign:
    return Campaign("c", (Axis("config", tuple(AxisValue(name, name) for name in names)),), (JOB,))


def events(*decisions: Decision) -> list[LoggedDecision]:
    return [LoggedDecision(each) for each in decisions]


def test_campaigns_before_a_rename_have_the_new_name_and_the_same_definition() -> None:
    data = {"axis": "config", "old": "large", "new": "big", "hash": "two", "same": {"train/big": ["aaa", "bbb"]}}
    told = events(
        Decision("campaign", "me", data={"hash": "one"}),
        Decision("start", "c", cell="train/big", attempt=1),
        Decision("rename", "me", data=data),
        Decision("start", "c", cell="train/big", attempt=2),
    )
    known = {
        "one": CampaignSnapshot(campaign("base", "large"), {"train/large": "aaa-code", "train/base": "ccc-code"}),
        "two": CampaignSnapshot(campaign("base", "big"), {"train/big": "bbb-code", "train/base": "ccc-code"}),
    }
    past = read_past_campaigns(told, known.get)
    assert past.in_force() == {("train/big", 1): "one", ("train/big", 2): "two"}
    before, after = past.snapshots("one"), past.snapshots("two")
    assert before is not None
    assert after is not None
    assert [value.name for value in before.campaign.axis("config").values] == ["base", "big"]
    assert before.campaign.job("train").configs == {"config big": "/c/1.json"}
    assert before.hashes == after.hashes
