"""A run that was killed and resumed, with real processes: its history is that of a run which nobody killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.camp import Camp

# logs every 50 steps, saves every 200; the one that is called so is killed at step 950 of its first attempt
TRAIN = """\
import json, os, signal, sys
name, out, last = sys.argv[1], sys.argv[2], sys.argv[3:]
start = int(json.load(open(last[0]))["step"]) if last else 0
with open(f"{out}/metrics.jsonl", "a") as log:
    for step in range(start + 50, 1501, 50):
        log.write(json.dumps({"step": step, "train/loss": 1000 / step + step % 7, "eval": {"ret": step / 100}}) + "\\n")
        log.flush()
        if step % 200 == 0:
            json.dump({"step": step}, open(f"{out}/model_{step}.json", "w"))
        if name == "cut" and step == 950 and not last:
            os.kill(os.getpid(), signal.SIGKILL)
json.dump({"step": 1500}, open(f"{out}/model_1500.json", "w"))
"""
JOB = """\
    command: python3 train.py NAME {out}
    resume: python3 train.py NAME {out} {last.checkpoint}
    proof: {checkpoint: {path: "model_*.json"}, step: {min: 1500}}
    progress: [{jsonl: metrics.jsonl, step: step}]
    retry: {max: 1}
"""
MATRIX = f"""\
muster: 1
campaign: resumed
axes: {{config: [whole, cut], seed: [0]}}
slots: {{gpus: 0, cpus: 2}}
jobs:
  train:
    axes: [config, seed]
{JOB.replace("NAME", "{config}")}
    results:
      loss: {{jsonl: metrics.jsonl, key: train/loss, reduce: mean}}
      ret: {{jsonl: metrics.jsonl, key: eval.ret, reduce: max}}
decision: {{primary: {{metric: loss, better: lower}}, limit: {{metric: ret, max: 20}}, baseline: whole}}
"""
LOOP = f"""\
muster: 1
campaign: resumed
slots: {{gpus: 0, cpus: 2}}
jobs:
  train:
    axes: []
{JOB.replace("NAME", "{variant}")}
loop:
  job: train
  base: ["configs/*.json"]
  rounds: 1
  keep: {{by: 'window("train/loss", 10).mean', better: lower}}
  rules:
    - {{when: delta_pct("train/loss") > -2, edit: ["lr@mul=1.5"], reason: the loss does not fall, name: flat}}
  default: {{edit: ["lr@mul=0.8"], reason: mild}}
"""


def go_on(camp: Camp, cell: str) -> None:
    camp("retry", cell, "--because", "it was killed", code=0)
    camp.json("wait", "--timeout", "60s", code=0)


def keys_of(camp: Camp, cell: str) -> Any:
    return camp.json("metrics", cell, code=0)["keys"]


@pytest.fixture
def matrix(camp: Camp) -> Camp:
    (camp.root / "train.py").write_text(TRAIN)
    camp.write(MATRIX)
    camp("up")
    go_on(camp, "train/cut/0")
    assert (camp.root / ".muster/attempts/train/cut/0/2/out/metrics.jsonl").exists(), "it was resumed"
    return camp


def test_metrics_results_and_curves_are_those_of_a_run_that_nobody_killed(matrix: Camp) -> None:
    assert keys_of(matrix, "train/cut/0") == keys_of(matrix, "train/whole/0")
    told = matrix("metrics", "train/cut/0", code=0).stdout
    assert "it was resumed 1 x; rows of attempt 1 count up to step 800 (3 rows after that were run again)" in told
    log = (matrix.root / ".muster" / "decisions.jsonl").read_text().splitlines()
    ended = [each["data"]["outcome"] for each in map(json.loads, log) if each["kind"] == "settle"]
    results = [each["results"] for each in ended if each["verdict"] == "DONE"]
    assert len(results) == 2
    assert results[0] == pytest.approx(results[1])

    matrix("report")
    stamp = json.loads((matrix.root / "reports/stamps/report.json").read_text())
    files = [path for path in stamp["basis"]["cells"]["train/cut/0"]["files"] if path.endswith("metrics.jsonl")]
    assert [Path(path).parts[-3] for path in sorted(files)] == ["1", "2"]
    captions = "".join(path.read_text() for path in (matrix.root / "reports").rglob("*.md"))
    assert "no learning curve" not in captions
    assert {path.name for path in (matrix.root / "reports/figures").glob("learning_*.png")} == {
        "learning_loss.png", "learning_ret.png",
    }  # fmt: skip

    first = matrix.root / ".muster/attempts/train/cut/0/1/out/metrics.jsonl"
    first.write_text(first.read_text().replace("1000", "1001", 1) + "\n")
    assert "train/cut/0/1/out/metrics.jsonl" in matrix("verify").stdout


def test_why_says_that_it_was_resumed_and_from_what(matrix: Camp) -> None:
    saved = matrix.root / ".muster/attempts/train/cut/0/1/out/model_800.json"
    told = matrix("why", "train/cut/0", code=0).stdout
    assert f"resumed, it did not begin anew: from {saved}" in told
    assert told.count("it did not begin anew") == 1
    attempts = matrix.json("why", "train/cut/0", code=0)["attempts"]
    assert [each["resumed_from"] for each in attempts] == [None, str(saved)]


def test_what_is_gone_is_told(matrix: Camp) -> None:
    (matrix.root / ".muster/attempts/train/cut/0/1/out/metrics.jsonl").unlink()
    told = matrix("metrics", "train/cut/0", code=0).stdout
    assert "the history before step 850 is not there: attempt 1 left no row that can be read" in told


def test_no_rule_fires_and_no_score_is_better_because_a_run_was_killed(camp: Camp) -> None:
    (camp.root / "train.py").write_text(TRAIN)
    (camp.root / "configs").mkdir()
    for name in ("whole", "cut"):
        (camp.root / "configs" / f"{name}.json").write_text(json.dumps({"lr": 0.1, "name": name}))
    camp.write(LOOP)
    camp("loop", "run")
    go_on(camp, "train/cut")
    for name in ("whole", "cut"):
        rules = camp.json("loop", "explain", name, code=0)["rules"]
        assert [each["outcome"] for each in rules if each["rule"] == "flat"] == ["false"], rules
    told = camp("loop", "explain", "cut", code=0).stdout
    assert "train/cut: it was resumed 1 x; rows of attempt 1 count up to step 800" in told
    summary = camp.json("loop", "report", code=0)
    scores = {each["name"]: each["score"]["mean"] for each in summary["variants"]}
    assert scores["cut"] == pytest.approx(scores["whole"])
    assert "it was resumed 1 x" in (camp.root / "reports/loop/summary.md").read_text()
