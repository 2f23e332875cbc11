"""The reference story whole: 17 of 20 trainings paid for, a two-seed table shown as the result; what it takes from there.

Real trainings of examples/safe_nav, shorter ones. The runs that something else made lie under runs/ and evals/.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from support.camp import Camp

SAFE_NAV = Path(__file__).parents[2] / "examples" / "safe_nav"
CONFIGS = ("baseline", "u_only", "cert_only", "full")
MISSING = [f"train/{config}/2" for config in CONFIGS[1:]]
STEPS, EPISODES = 1200, 16
PROXY = "shift.level=2 stands for out-of-distribution conditions"
SPRINT = f"""\
muster: 1
campaign: paper-sprint
language: zh
axes:
  config:
    baseline: {{args: "--config baseline"}}
    u_only: {{args: "--config u_only"}}
    cert_only: {{args: "--config cert_only"}}
    full: {{args: "--config full"}}
  seed: [0, 1, 2, 3, 4]
  split:
    id: {{args: "--split id"}}
    ood: {{args: "--split ood --shift.level 2", proxy: "{PROXY}"}}
slots: {{gpus: 0, cpus: 2}}
money: {{price: 1.98, currency: CNY, per: gpu, paid: 200}}
jobs:
  train:
    axes: [config, seed]
    steps: {STEPS}
    command: python train.py {{config.args}} --seed {{seed}} --steps {{steps}} --out runs/new_{{config}}_nav_{{seed}}
    output: runs/*_{{config}}_nav_{{seed}}
    progress: [{{jsonl: metrics.jsonl, step: step}}, {{checkpoint: checkpoint.npz}}]
    proof: {{step: {{min: "{{steps}}", within: 2%}}, checkpoint: {{path: checkpoint.npz, saved_after: 50%}}}}
  eval:
    axes: [config, seed, split]
    needs: [train]
    command: >-
      python eval.py --checkpoint {{train.output}}/checkpoint.npz {{split.args}} --episodes {EPISODES}
      --out evals/{{config}}_{{seed}}_{{split}}
    output: evals/{{config}}_{{seed}}_{{split}}
    results:
      score: {{json: result.json, key: score}}
      cost: {{json: result.json, key: cost}}
decision:
  primary: {{metric: score, split: ood, better: higher}}
  baseline: baseline
  limit: {{metric: cost, split: ood, max: 25}}
  delta: 0.3
report: {{columns: [id/score, ood/score, ood/cost], documents: [ppt.md]}}
finish: {{others: ignore}}  # whoever else works on this machine
"""


def train(root: Path, config: str, seed: int) -> None:
    out = root / "runs" / f"old_{config}_nav_{seed}"
    run(root, "train.py", "--config", config, "--seed", str(seed), "--steps", str(STEPS), "--out", str(out))


def evaluate(root: Path, config: str, seed: int, split: str) -> None:
    level = ["--shift.level", "2"] if split == "ood" else []
    checkpoint = next(root.glob(f"runs/*_{config}_nav_{seed}")) / "checkpoint.npz"
    out = root / "evals" / f"{config}_{seed}_{split}"
    run(root, "eval.py", "--checkpoint", str(checkpoint), "--split", split, *level, "--episodes", str(EPISODES),
        "--out", str(out))  # fmt: skip


def run(root: Path, *words: str) -> None:
    subprocess.run([sys.executable, *words], cwd=root, check=True, stdout=subprocess.DEVNULL)


def what_was_left(root: Path) -> None:
    """17 trainings, 16 evaluations of seeds 0 and 1, as somebody's scripts made them."""
    for file in SAFE_NAV.glob("*.py"):
        shutil.copy(file, root)
    trained = [(c, s) for c in CONFIGS for s in range(5) if f"train/{c}/{s}" not in MISSING]
    evaluated = [(c, s, split) for c in CONFIGS for s in (0, 1) for split in ("id", "ood")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda each: train(root, *each), trained))
        list(pool.map(lambda each: evaluate(root, *each), evaluated))


def old_numbers(root: Path) -> dict[tuple[str, str, str], tuple[float, float]]:
    found = {}
    for config in CONFIGS:
        for split in ("id", "ood"):
            rows = [json.loads((root / f"evals/{config}_{s}_{split}/result.json").read_text()) for s in (0, 1)]
            for metric in ("score", "cost"):
                values = [row[metric] for row in rows]
                found[config, split, metric] = (mean(values), stdev(values))
    return found


def slides(old: dict[tuple[str, str, str], tuple[float, float]]) -> str:
    """ppt.md as it was shown: a table of two seeds and a sentence that repeats some of it."""
    rows = "\n".join(
        f"| {c} | {old[c, 'id', 'score'][0]:.3f}±{old[c, 'id', 'score'][1]:.3f} "
        f"| {old[c, 'ood', 'score'][0]:.3f}±{old[c, 'ood', 'score'][1]:.3f} | {old[c, 'ood', 'cost'][0]:.2f} |"
        for c in CONFIGS
    )
    full = old["full", "ood", "score"]
    return f"""---
marp: true
---

# 第 3 页：主要结果（120k steps，2026-02-26）

| config | ID score(mean±std) | OOD score(mean±std) | OOD cost(mean) |
|---|---:|---:|---:|
{rows}

- 其中 full 的 OOD score 为 {full[0]:.3f}±{full[1]:.3f}，见表。
- 学习率 3e-4，批大小 256，共 4 个配置。

---

# 第 4 页：下一步
"""


def without_numbers(text: str) -> str:
    return re.sub(r"-?\d+(?:\.\d+)?", "#", text)


def changed_lines(before: str, after: str) -> list[tuple[str, str]]:
    return [(a, b) for a, b in zip(before.splitlines(), after.splitlines(), strict=True) if a != b]


@pytest.mark.xdist_group("sprint")
def test_the_sprint_from_17_of_20_to_a_decision(camp: Camp) -> None:
    root = camp.root
    what_was_left(root)
    ppt = root / "ppt.md"
    ppt.write_text(slides(old_numbers(root)), encoding="utf-8")
    before = ppt.read_text(encoding="utf-8")
    camp.write(SPRINT)

    # -- 17 + 16 are taken in, three are missing and named
    adopted = camp.json("adopt", code=0)
    assert len(adopted["adopted"]) == 33
    status = camp.json("status", code=3)
    missing = {c["cell"]: c["reason"] for c in status["cells"] if c["job"] == "train" and c["verdict"] != "DONE"}
    assert list(missing) == MISSING
    assert all(missing.values())
    blocked = [c for c in status["cells"] if c["verdict"] == "BLOCKED"]
    assert {c["cell"].rpartition("/")[0].replace("eval", "train") for c in blocked} == set(MISSING)

    # -- nothing is shown as the result yet, and nothing is shut down
    refused = camp.json("report", code=3)
    assert not [flag for flag in refused["flags"] if flag["level"] == "ERROR"]
    assert (refused["verdict"], refused["k"], refused["n"], refused["files"]) == ("INCOMPLETE", 16, 40, [])
    assert set(MISSING) <= set(refused["missing"])
    assert not list(root.glob("reports/**/*.md"))
    told = camp("report", code=3).stdout
    assert all(cell in told for cell in MISSING)
    assert "INCOMPLETE" in told
    assert camp("shutdown", "--dry-run", code=3).returncode == 3

    # -- the slides are bound by value and place; what is not a result stays alone
    bound = camp.json("docs", "bind", "ppt.md", "--yes", code=0)
    assert ppt.read_text(encoding="utf-8") == before
    assert len(bound["bound"]) == 4 * 3 + 1, bound

    # -- a partial report says so everywhere
    camp("report", "--partial", code=3)
    partial = list(root.glob("reports/**/*PARTIAL-16of40*"))
    assert any(path.name == "decision.PARTIAL-16of40.md" for path in partial)
    assert "PARTIAL 16/40" in next(p for p in partial if p.name.startswith("decision")).read_text(encoding="utf-8")
    assert "PARTIAL" in ppt.read_text(encoding="utf-8")

    # -- exactly what is missing is run
    camp("up", code=0)
    state = camp.json("status", code=0)
    ran = [c["cell"] for c in state["cells"] if (camp.folder(c["cell"], c["attempt"]) / "exit.json").exists()]
    assert [cell for cell in ran if cell.startswith("train")] == MISSING
    assert len([cell for cell in ran if cell.startswith("eval")]) == 24
    assert state["counts"]["DONE"] == 60

    # -- 40 of 40
    made = camp.json("report", code=0)
    assert (made["k"], made["n"], made["missing"]) == (40, 40, [])
    assert made["verdict"] in ("RECOMMEND", "EQUIVALENT", "NOT_ENOUGH_EVIDENCE"), made["flags"]
    assert made["documents"]["updated"] == ["ppt.md"]
    assert not list(root.glob("reports/**/*PARTIAL*"))
    check_tables(root, made)
    check_slides(before, ppt.read_text(encoding="utf-8"), made)
    decision = (root / "reports/decision.md").read_text(encoding="utf-8")
    assert PROXY in decision
    assert made["verdict"] in decision

    # -- the bill and the record
    cost = camp.json("cost", code=0)
    assert cost["unaccounted"] == pytest.approx(200 - cost["spent"])
    camp("cost", "--report", code=0)
    camp("record", code=0)
    assert "200" in (root / "reports/cost.md").read_text(encoding="utf-8")
    record = (root / "reports/record.md").read_text(encoding="utf-8")
    assert "adopt" in record or "接管" in record or "纳入" in record

    # -- all of it is fresh, and the machine may go
    verified = camp.json("verify", code=0)
    assert {file["state"] for file in verified["files"]} == {"fresh"}
    trace = camp.json("trace", "reports/decision.md", "--claim", "E1", code=0)
    assert trace["cells"]
    assert camp("shutdown", "--dry-run", code=0).returncode == 0


def check_tables(root: Path, made: dict[str, Any]) -> None:
    with (root / "reports/tables/main.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    by_name = {(row["config"], row["column"]): row for row in rows}
    for config in CONFIGS:
        for split in ("id", "ood"):
            values = [
                json.loads((root / f"evals/{config}_{s}_{split}/result.json").read_text())["score"] for s in range(5)
            ]
            row = by_name[config, f"{split}/score"]
            assert float(row["mean"]) == pytest.approx(mean(values))
            assert float(row["sd"]) == pytest.approx(stdev(values))
            assert row["n"] == "5"
            told = next(t for t in made["table"] if (t["config"], t["split"], t["metric"]) == (config, split, "score"))
            assert sorted(told["values"].values() if isinstance(told["values"], dict) else told["values"]) == sorted(
                values
            )


def check_slides(before: str, after: str, made: dict[str, Any]) -> None:
    """Nothing but numbers changed, only where results stand, and they are those of five seeds."""
    assert without_numbers(after) == without_numbers(before)
    told = {(row["config"], row["split"], row["metric"]): row for row in made["table"]}
    changed = changed_lines(before, after)
    assert all(line.startswith("| ") or "其中 full" in line for line, _ in changed)
    for config in CONFIGS:
        line = next(line for line in after.splitlines() if line.startswith(f"| {config} "))
        score, cost = told[config, "ood", "score"], told[config, "ood", "cost"]
        assert f"{score['mean']:.3f}±{score['sd']:.3f}" in line
        assert f"| {cost['mean']:.2f} |" in line
    assert "2026-02-26" in after
    assert "3e-4" in after


# -- weights that were never trained

UNTRAINED = """\
import argparse, json, sys, time
from pathlib import Path
from settings import CONFIGS, resolve
from train import Training

parser = argparse.ArgumentParser()
parser.add_argument("--config"); parser.add_argument("--seed", type=int); parser.add_argument("--out", type=Path)
args = parser.parse_args()
run = Training(resolve(args.config, args.seed))
args.out.mkdir(parents=True, exist_ok=True)
run.save(args.out / "checkpoint.npz")  # the period of the next save is longer than the run
began = time.time()
with (args.out / "metrics.jsonl").open("w") as log:
    while run.step < 600 or time.time() - began < 3:
        run.advance()
        run.summarise()
        print(json.dumps({"step": min(run.step, 600)}), file=log, flush=True)
"""
START = f"""\
muster: 1
campaign: start
axes:
  config: {{baseline: {{args: "--config baseline"}}, u_only: {{args: "--config u_only"}}, full: {{args: "--config full"}}}}
  seed: [0, 1]
slots: {{gpus: 0, cpus: 2}}
jobs:
  train:
    axes: [config, seed]
    steps: 600
    command: python untrained.py {{config.args}} --seed {{seed}} --out {{out}}
    progress: [{{jsonl: metrics.jsonl, step: step}}, {{checkpoint: checkpoint.npz}}]
    proof: {{step: {{min: "{{steps}}"}}, checkpoint: {{path: checkpoint.npz}}}}
  eval:
    axes: [config, seed]
    needs: [train]
    command: python eval.py --checkpoint {{train.output}}/checkpoint.npz --split id --episodes {EPISODES} --out {{out}}
    results: {{score: {{json: result.json, key: score}}}}
decision:
  primary: {{metric: score, better: higher}}
  baseline: baseline
"""


@pytest.mark.slow  # tests/cli/test_upstream_trainer.py has an untrained checkpoint in CI
@pytest.mark.xdist_group("sprint")
def test_checkpoints_that_were_saved_at_the_start_are_no_result(camp: Camp) -> None:
    for file in SAFE_NAV.glob("*.py"):
        shutil.copy(file, camp.root)
    (camp.root / "untrained.py").write_text(UNTRAINED)
    camp.write(START)
    camp("up", code=0)
    made = camp.json("report", code=3)
    assert made["verdict"] == "INVALID"
    early = [flag for flag in made["flags"] if flag["code"] == "early_checkpoint"]
    assert sorted(cell for flag in early for cell in flag["cells"]) == sorted(
        f"train/{config}/{seed}" for config in ("baseline", "u_only", "full") for seed in (0, 1)
    )
    assert all("untrained weights" in flag["message"] for flag in early)
    decision = (camp.root / "reports/decision.md").read_text(encoding="utf-8")
    assert "INVALID" in decision
    assert "untrained" in decision

    # the proof that asks when it was saved refuses such a run
    camp.write(
        START.replace("path: checkpoint.npz}}", "path: checkpoint.npz, saved_after: 90%}}").replace("start", "again")
    )
    other = camp.root / ".muster"
    shutil.rmtree(other)
    camp("up", "--only", "seed=0", "--only", "config=full", code=3)
    cell = camp.json("why", "train/full/0")
    assert (cell["verdict"], cell["cause"]) == ("DEAD", "early_exit")
