"""`muster rename` on real processes. Every run counts itself in a file that Muster knows nothing of."""

from __future__ import annotations

from collections import Counter

import pytest

from support.camp import Camp

SIZES = """\
# sizes: large is what the paper has
muster: 1
campaign: sizes
axes:
  config:
    base: {args: "1"}
    large: {args: "3"}   # the large one
  seed: [0, 1]
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [config, seed]
    exclude: [{config: large, seed: 1}]
    command: sh t.sh {cell} {out} {config} {config.args} c/{config}.json
    results: {score: {json: "{config}.json", key: score}}
decision: {primary: {metric: score, better: higher}, baseline: base, factors: {base: {w: 1}, large: {w: 3}}}
report: {columns: [train/score]}
"""
RENAMED = (
    SIZES.replace("    large: {", "    big: {")
    .replace("{config: large,", "{config: big,")
    .replace(" large: {w", " big: {w")
)


@pytest.fixture
def sizes(camp: Camp) -> Camp:
    (camp.root / "t.sh").write_text('echo "$1" >> count\necho "{\\"score\\": $4}" > "$2/$3.json"\n')
    (camp.root / "c").mkdir()
    for name in ("base", "large"):
        (camp.root / "c" / f"{name}.json").write_text('{"lr": 1}')
    camp.write(SIZES)
    camp("up", code=0)
    return camp


def counted(camp: Camp) -> Counter[str]:
    return Counter((camp.root / "count").read_text().split())


def mv(camp: Camp) -> None:
    (camp.root / "c" / "large.json").rename(camp.root / "c" / "big.json")


def test_what_is_done_is_kept_under_the_new_name(sizes: Camp) -> None:
    sizes("report")
    before = counted(sizes)
    refused = sizes("rename", "config", "large=big", code=2).stderr
    assert "mv c/large.json c/big.json" in refused
    assert (sizes.root / "campaign.yaml").read_text() == SIZES
    mv(sizes)
    told = sizes("rename", "config", "large=big", "--because", "as the paper calls it", code=0).stdout
    assert "config large is big now: 1 cell keeps what is done: train/big/0" in told
    assert "later runs of train are given big, by {config} in the command" in told
    assert (sizes.root / "campaign.yaml").read_text() == RENAMED, "only the name was edited"
    derived = sizes.json("verify")["files"]
    assert {each["state"] for each in derived} == {"stale"}, "its inputs are known, by another name"
    assert all(
        "train/large/0 is called train/big/0 now" in each["because"] for each in derived if "main" in each["path"]
    )
    assert not any("came in" in each["because"] for each in derived)
    status = sizes.json("status")
    assert [cell["cell"] for cell in status["cells"]] == ["train/base/0", "train/base/1", "train/big/0"]
    assert status["complete"]
    assert not any(cell["outdated"] for cell in status["cells"])
    assert "definition" not in sizes("plan", code=0).stdout
    sizes("up", code=0)
    assert counted(sizes) == before, "nothing ran again"
    assert not any(cell["outdated"] for cell in sizes.json("status")["cells"])

    why = sizes.json("why", "train/big/0")
    assert why["formerly"] == ["train/large/0"]
    assert [each["what"] for each in why["decisions"]][:1] == ["start"]
    assert str(sizes.folder("train/large/0")) in why["attempts"][0]["log"]
    assert "formerly train/large/0" in sizes("why", "train/big/0").stdout
    assert sizes("logs", "train/big/0", code=0).returncode == 0
    report = sizes.json("report")
    assert {row["config"]: row["values"] for row in report["table"]} == {"base": [1.0, 1.0], "big": [3.0]}
    assert not [flag for flag in report["flags"] if "definition" in flag["message"]], report["flags"]
    traced = sizes.json("trace", "reports/tables/main.md")
    assert [cell["formerly"] for cell in traced["cells"] if cell["cell"] == "train/big/0"] == [["train/large/0"]]
    assert "renamed the config large to big" in sizes("record", "--out", "-").stdout
    assert sizes.json("manifest", code=0)
    (decision,) = sizes.decisions("rename")
    assert (decision["data"]["old"], decision["data"]["new"]) == ("large", "big")
    sizes("down")
    told = sizes("fsck", code=0).stdout
    assert "differences to the rebuilt one: 0" in told
    assert "3 cells, 3 attempts" in told
    assert set(sizes.cells().values()) == {"DONE"}


def test_a_name_that_was_changed_by_hand_is_recognised(sizes: Camp) -> None:
    mv(sizes)
    sizes.write(RENAMED)
    told = sizes("rename", "config", "large=big", code=0).stdout
    assert "campaign.yaml has the new name already" in told
    sizes("up", code=0)
    assert max(counted(sizes).values()) == 1
    assert "it was renamed before" in sizes("rename", "config", "large=big", code=0).stdout
    sizes.write(SIZES)  # as after a crash between record and file
    assert "was renamed to train/big/0" in sizes("up", code=2).stderr
    assert "campaign.yaml has the new name now" in sizes("rename", "config", "large=big", code=0).stdout
    assert (sizes.root / "campaign.yaml").read_text() == RENAMED
    sizes("up", code=0)
    assert max(counted(sizes).values()) == 1


def test_and_where_up_has_taken_it_in_already(sizes: Camp) -> None:
    mv(sizes)
    sizes("hold", "--because", "not yet", code=0)
    sizes("release", code=0)
    sizes.write(RENAMED)
    sizes("up", "--only", "config=base", code=3)
    assert sizes.cells()["train/big/0"] == "PENDING"
    sizes("rename", "config", "large=big", code=0)
    assert sizes.cells()["train/big/0"] == "DONE"
    sizes("up", code=0)
    assert max(counted(sizes).values()) == 1


def test_a_redo_under_the_new_name_and_back_again(sizes: Camp) -> None:
    mv(sizes)
    sizes("rename", "config", "large=big", code=0)
    sizes("redo", "train/big/0", "--because", "once more", code=0)
    sizes.json("wait", "--timeout", "60s", code=0)
    assert counted(sizes)["train/big/0"] == 1
    assert [each["log"] for each in sizes.json("why", "train/big/0")["attempts"]] == [
        str(sizes.folder("train/large/0") / "stdout.log"),
        str(sizes.folder("train/big/0", 2) / "stdout.log"),
    ]


def test_wrong_names_change_nothing(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    text = (gated.root / "campaign.yaml").read_text()
    assert "train/0 is running" in gated("rename", "seed", "0=7", code=1).stderr
    assert "has a value '1' already" in gated("rename", "seed", "0=1", code=2).stderr
    assert "values are 0, 1" in gated("rename", "seed", "5=7", code=2).stderr
    assert "did you mean seed?" in gated("rename", "sed", "0=7", code=2).stderr
    assert "is not OLD=NEW" in gated("rename", "seed", "07", code=2).stderr
    assert (gated.root / "campaign.yaml").read_text() == text
    assert sorted(gated.cells()) == ["eval/0", "eval/1", "train/0", "train/1"]
    for name in (0, 1):
        gated.open(name)
    gated.json("wait", "--timeout", "60s", code=0)
    assert gated.json("rename", "seed", "0=7", code=0)["edited"]
    assert sorted(gated.cells().items()) == [(f"{job}/{n}", "DONE") for job in ("eval", "train") for n in (1, 7)]
