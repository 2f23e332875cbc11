"""A small finished campaign with every way in which a cell gets DONE: run, adopted, accepted; outputs in both places."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from support.camp import Camp

CAMPAIGN = """\
muster: 1
campaign: moving
axes: {config: [base, new], seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [config, seed]
    cwd: code
    command: /bin/sh train.sh {config} {seed}
    output: outputs/{config}_s{seed}_*
    proof: {files: [model.txt]}
    progress: [{checkpoint: model.txt}]
  eval:
    axes: [config, seed]
    needs: [train]
    command: /bin/sh eval.sh {config} {seed} {train.output}/model.txt {out}/result.json
    results: {score: {json: result.json, key: score}}
decision:
  primary: {metric: score, better: higher}
  baseline: base
  delta: 0.3
report:
  documents: [paper.md]
"""
TRAIN = """\
folder=outputs/$1_s$2_$$
mkdir -p "$folder"
echo "$1 $2 weights" > "$folder/model.txt"
"""
# the evaluation of new/1 fails in its teardown only: a person accepts it
EVAL = """\
test -f "$3" || exit 9
cp "data/$1-$2.json" "$4"
test "$1-$2" != new-1
"""
SCORES = {"base": (5.1, 5.42), "new": (7.31, 6.94)}
PAPER = "# Results\n\n| config | eval score |\n| --- | --- |\n| base | 5.26 ± 0.23 |\n| new | 7.12 ± 0.26 |\n"


def prepare(root: Path) -> None:
    (root / "data").mkdir()
    (root / "code").mkdir()
    (root / "code" / "train.sh").write_text(TRAIN)
    (root / "eval.sh").write_text(EVAL)
    for config, scores in SCORES.items():
        for seed, score in enumerate(scores):
            (root / "data" / f"{config}-{seed}.json").write_text(json.dumps({"score": score}))
    (root / "paper.md").write_text(PAPER)
    (root / "campaign.yaml").write_text(CAMPAIGN)
    before = root / "code" / "outputs" / "base_s0_by_hand"  # trained before there was a campaign
    before.mkdir(parents=True)
    (before / "model.txt").write_text("base 0 weights\n")


def finish(camp: Camp) -> None:
    """Adopts what was there, runs the rest, accepts what failed in its teardown, reports, binds the paper."""
    camp("adopt", "code/outputs/base_s0_*", code=0)
    camp("up", code=3)
    camp("accept", "eval/new/1", "--because", "it failed in its teardown only", code=0)
    camp.until(lambda: camp.json("status")["complete"], "the end")
    camp("docs", "bind", "paper.md", code=0)
    for command in (("report",), ("record",), ("cost", "--report")):
        camp(*command, code=0)


def _words(command: str, root: Path) -> list[str]:
    return [word.replace(str(root), "") for word in shlex.split(command)]


def told(camp: Camp) -> dict[str, Any]:
    """What must be the same wherever the folder lies."""
    report = camp.json("report", code=0)
    verify = camp.json("verify", code=0)
    trace = camp.json("trace", "reports/decision.md", code=0)
    return {
        "verdict": report["verdict"],
        "table": report["table"],
        "cells": camp.cells(),
        "states": {file["path"]: file["state"] for file in verify["files"]},
        "files": {cell["cell"]: sorted(file["sha256"] for file in cell["files"]) for cell in trace["cells"]},
        "checkpoints": {cell["cell"]: (cell["checkpoint"] or {}).get("sha256") for cell in trace["cells"]},
        "commands": {cell["cell"]: _words(cell["command"], camp.root) for cell in trace["cells"]},
        "paper": (camp.root / "paper.md").read_text(),
    }
