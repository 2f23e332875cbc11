"""A loop's campaign that was moved: its rounds are explained and reported as before, and go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.camp import Camp

TRAIN = """\
import json, sys
config, out = json.load(open(sys.argv[1])), sys.argv[2]
with open(f"{out}/metrics.jsonl", "w") as log:
    for step in range(20):
        log.write(json.dumps({"step": step, "ot": {"pi_sum": config["reg"] / 10}}) + "\\n")
"""
CAMPAIGN = """\
muster: 1
campaign: rounds
slots: {gpus: 0, cpus: 2}
jobs:
  train: {axes: [], command: "python3 train.py {config_file} {out}", retry: {max: 0}}
loop:
  job: train
  base: ["configs/*.json"]
  rounds: ROUNDS
  rules:
    - {when: last("ot.pi_sum") < 0.05, edit: ["reg@mul=1.5"], reason: mass too small, name: little}
"""


def told(camp: Camp, cell: str) -> list[Any]:
    """What must be the same wherever the folder lies."""
    camp("loop", "report", code=0)
    summary = json.loads((camp.root / "reports" / "loop" / "summary.json").read_text())
    for key in ("at", "as_of"):
        summary.pop(key, None)
    metrics = camp("metrics", cell, code=0).stdout.replace(str(camp.root), "").partition("the last value is")[0]
    return [summary, camp("loop", "explain", cell, code=0).stdout.replace(str(camp.root), ""), metrics]


def test_a_loop_that_was_moved(camp: Camp, tmp_path: Path) -> None:
    (camp.root / "configs").mkdir()
    (camp.root / "configs" / "a.json").write_text(json.dumps({"reg": 0.2}))
    (camp.root / "train.py").write_text(TRAIN)
    camp.write(CAMPAIGN.replace("ROUNDS", "2"))
    camp("up", code=0)
    cell = next(iter(camp.cells()))
    before = told(camp, cell)
    camp.root.rename(tmp_path / "moved")
    camp.root.mkdir()  # commands of the fixture are given there
    moved = Camp(tmp_path / "moved", Path(camp.environment["MUSTER_HOME"]))
    assert {file["state"] for file in moved.json("verify", code=0)["files"]} == {"fresh"}
    assert told(moved, cell) == before
    assert not any(moved.json("plan")["changes"].values())
    moved.write(CAMPAIGN.replace("ROUNDS", "3"))
    moved("up", code=0)
    rounds = [each["data"] for each in moved.decisions("round") if each["data"].get("variants")]
    configs = [one["config"] for each in rounds for one in each["variants"]]
    assert len(configs) == 2
    assert all((moved.root / config).is_file() and not config.startswith("/") for config in configs)
    moved.clean_up()
