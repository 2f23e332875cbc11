"""What becomes of a file that was fixed: nobody runs the old definition under a new reason, and a base is used again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.camp import Camp

CAMPAIGN = """\
muster: 1
campaign: fixed
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  train: {axes: [seed], command: "/bin/sh -c 'exit 3' {seed}", retry: {max: 0}}
"""


def command_of(camp: Camp, cell: str, n: int) -> list[str]:
    found = json.loads((camp.folder(cell, n) / "attempt.json").read_text())["argv"]
    return list(found)


def test_a_retry_never_runs_the_old_definition_under_a_new_reason(camp: Camp) -> None:
    camp.write(CAMPAIGN)
    camp("up", code=3)
    camp.write(CAMPAIGN.replace("exit 3", "exit 0"))
    told = camp("retry", "train/0", "--because", "fixed", code=2).stderr
    assert "train/0 would run the old definition; nothing was changed" in told
    assert "`muster up` takes it in" in told
    assert not camp.folder("train/0", 2).exists()
    for cell in (camp.json("why", "train/0"), camp.json("status", code=3)["cells"][0]):
        assert cell["next"] == (
            "campaign.yaml has changed: `muster up` takes it in; then: to be retried: its command, config or code "
            "changed since"
        )
    assert "not retried by itself" not in camp("status", code=3).stdout + camp("plan", code=0).stdout
    camp("up", code=0)
    assert "exit 0" in command_of(camp, "train/0", 2)


def test_a_retry_with_a_file_that_is_broken_or_gone_changes_nothing(camp: Camp) -> None:
    camp.write(CAMPAIGN)
    camp("up", code=3)
    camp.write(CAMPAIGN.replace("axes: [seed]", "axis: [seed]"))
    assert "unknown key 'axis'" in camp("retry", "train/0", "--because", "fixed", code=2).stderr
    assert "not retried by itself" in camp.json("why", "train/0")["next"]
    (camp.root / "campaign.yaml").unlink()
    assert "campaign.yaml is gone" in camp("retry", "train/0", "--because", "fixed", code=2).stderr
    assert not camp.folder("train/0", 2).exists()


def test_a_mended_result_key_is_no_reason_to_repeat_the_old_one(camp: Camp) -> None:
    (camp.root / "r.json").write_text('{"acc": 1}')
    text = CAMPAIGN.replace("'exit 3'", "'cp r.json {out}'")
    text = text.replace("retry:", "results: {acc: {json: r.json, key: wrong}}, retry:")
    camp.write(text)
    camp("up", code=3)
    assert "fix `proof:` or `results:`" in camp.json("why", "train/0")["next"]
    camp.write(text.replace("key: wrong", "key: acc"))
    found = camp.json("why", "train/0")["next"]
    assert found.startswith("campaign.yaml has changed: `muster up` takes it in; then")
    camp("up", code=0)
    assert not camp.folder("train/0", 2).exists(), "it was read again, not run again"


# -- bases of a loop

TRAIN = """\
import json, sys
config, out = json.load(open(sys.argv[1])), sys.argv[2]
if config.get("dies"):
    sys.exit(3)
with open(f"{out}/metrics.jsonl", "w") as log:
    for step in range(20):
        log.write(json.dumps({"step": step, "mass": config["reg"] / 10}) + "\\n")
"""
LOOP = """\
muster: 1
campaign: rounds
slots: {gpus: 0, cpus: 2}
jobs:
  train: {axes: [], command: "python3 train.py {config_file} {out}", retry: {max: 0}}
loop:
  job: train
  base: ["configs/*.json"]
  rounds: 2
  default: {edit: ["reg@mul=0.9"], reason: mild}
"""


@pytest.fixture
def loop(camp: Camp) -> Camp:
    (camp.root / "configs").mkdir()
    (camp.root / "train.py").write_text(TRAIN)
    camp.write(LOOP)
    base(camp, dies=True)
    return camp


def base(camp: Camp, **values: Any) -> None:
    (camp.root / "configs" / "act.json").write_text(json.dumps({"reg": 0.5, **values}))


def test_a_base_that_never_ran_well_is_used_as_it_was_mended(loop: Camp) -> None:
    """Its name, its place in the lineage and its dead attempt stay; the campaign does not stay stopped short."""
    told = loop("loop", "run", code=3).stdout
    assert "no round 2" in told
    base(loop, reg=0.5)
    assert "train/act would run the old definition" in loop("retry", "train/act", "--because", "x", code=2).stderr
    assert "`muster up` takes it in" in loop.json("why", "train/act")["next"]
    said = loop("loop", "run", code=0)
    assert "configs/act.json was fixed: act runs with it, for it never had a good run" in said.stdout + said.stderr
    assert command_of(loop, "train/act", 2) != command_of(loop, "train/act", 1)
    assert set(loop.cells().values()) == {"DONE"}
    assert len(loop.cells()) == 2, "a round came of it"
    found = {each["name"]: each for each in loop.json("loop", "report", code=0)["variants"]}
    assert found["act"]["source"] == "configs/act.json"
    base(loop, reg=0.7)
    told = loop("loop", "run", "--rounds", "3", code=0).stderr
    assert "configs/act.json has changed since it was taken in: act stays as it was" in told
