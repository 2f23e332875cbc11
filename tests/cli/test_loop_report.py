"""`muster loop report` with real processes: written after each round, fresh at the end, and nobody's round fails for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from support.camp import Camp

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "loop_summary.schema.json").read_text("utf-8"))
TRAIN = """\
import json, sys
config, out, seed = json.load(open(sys.argv[1])), sys.argv[2], int(sys.argv[3])
print("wandb: View run x at: https://wandb.ai/me/act/runs/seed%d" % seed, file=sys.stderr)
if config.get("dies"):
    sys.exit(3)
with open(f"{out}/metrics.jsonl", "w") as log:
    for step in range(20):
        row = {"step": step, "mass": config["reg"] / 10, "success": config["reg"] / 3 + seed / 100}
        log.write(json.dumps(row) + "\\n")
"""
CAMPAIGN = """\
muster: 1
campaign: rounds
language: zh
slots: {gpus: 0, cpus: 2}
jobs:
  train: {axes: [], command: "python3 train.py {config_file} {out} {seed}", retry: {max: 0}}
loop:
  job: train
  base: ["configs/*.json"]
  rounds: 2
  repeats: 2
  keep: {top: 1, by: last("success")}
  rules:
    - {when: last("mass") < 0.05, edit: ["reg@mul=1.5"], reason: mass too small, name: little}
"""


@pytest.fixture
def loop(camp: Camp) -> Camp:
    (camp.root / "configs").mkdir()
    (camp.root / "train.py").write_text(TRAIN)
    (camp.root / "configs" / "a.json").write_text('{"reg": 0.2}')
    (camp.root / "configs" / "b.json").write_text('{"reg": 0.1, "dies": true}')
    camp.write(CAMPAIGN)
    return camp


def summary(camp: Camp) -> Any:
    told = json.loads((camp.root / "reports" / "loop" / "summary.json").read_text("utf-8"))
    Draft202012Validator(SCHEMA).validate(told)
    return told


def test_the_report_is_there_when_the_loop_has_stopped(loop: Camp) -> None:
    loop("loop", "run", code=3)
    told = summary(loop)
    assert told["stopped"] == "all 2 rounds are done"
    assert told["over"]
    assert [(each["name"], each["round"], each["score"]["n"]) for each in told["variants"][:2]] == [
        ("a", 1, 2),
        ("b", 1, 0),
    ]
    (made,) = told["variants"][2:]
    assert [each["source"] for each in told["variants"]] == ["configs/a.json", "configs/b.json", None]
    assert (made["parent"], made["by"], made["edits"]) == ("a", "little", ["reg@mul=1.5"])
    assert told["best"]["variant"] == made["name"]
    assert told["best"]["against"]["base"] == "a"
    assert made["gain"] == pytest.approx(0.1 / 3)
    assert made["runs"][1]["metrics"]["success"]["last"] == pytest.approx(0.11)
    assert (loop.root / made["runs"][0]["output"] / "metrics.jsonl").exists()
    assert made["runs"][1]["wandb"] == "https://wandb.ai/me/act/runs/seed1"
    assert [each["cell"] for each in told["trouble"]] == ["train/b/0", "train/b/1"]
    assert "exited with 3" in told["trouble"][0]["because"]
    (rule,) = told["rules"]
    assert (rule["rule"], rule["made"], rule["scored"]) == ("little", 1, 1)
    text = (loop.root / "reports" / "loop" / "summary.md").read_text("utf-8")
    assert f"**目前最好：`{made['name']}`**" in text
    assert "**循环已停止**：全部 2 轮已完成。" in text
    assert all((loop.root / name).stat().st_size for name in told["files"])
    assert {Path(name).name for name in told["files"]} == {
        "summary.md", "summary.json", "lineage.svg", "best_so_far.png", "best_so_far.svg", "best_so_far.pdf",
    }  # fmt: skip
    assert {each["state"] for each in loop.json("verify", code=0)["files"]} == {"fresh"}
    again = loop.json("loop", "report", code=0)
    assert {key: again[key] for key in again if key != "as_of"} == {key: told[key] for key in told if key != "as_of"}
    said = loop("loop", "report", code=0).stdout
    assert f'best so far: {made["name"]}: last("success") = 0.105 ± 0.0071 (2 seeds)' in said
    assert "2 runs failed or left no history; they are named in the report" in said


def test_the_report_leads_to_its_runs_and_is_stale_when_a_history_changed(loop: Camp) -> None:
    loop("loop", "run", code=3)
    text = (loop.root / "reports" / "loop" / "summary.md").read_text("utf-8")
    assert "PARTIAL" not in text  # that runs died is told; no later report will have more of them
    found = loop.json("trace", "reports/loop/summary.md", code=0)
    cells = {each["cell"]: each for each in found["cells"]}
    assert set(cells) == set(loop.cells())
    assert (found["state"], found["k"], found["n"]) == ("fresh", len(cells), len(cells))
    for name, cell in cells.items():
        paths = {Path(each["path"]).name: each["sha256"] for each in cell["files"]}
        died = name.startswith("train/b/")  # what it printed is all that there is of it
        assert ("metrics.jsonl" in paths, "stderr.log" in paths) == (not died, died)
        assert any(each.endswith(".json") for each in paths)  # its config
        assert all(len(digest) == 64 for digest in paths.values())
        assert (cell["attempt"], cell["command"].split()[:2]) == (1, ["python3", "train.py"])
    told = loop("trace", "reports/loop/summary.md", code=0).stdout
    assert "and 1 more cell" not in told
    assert "--claim" not in told
    log = loop.folder("train/a/1") / "out" / "metrics.jsonl"
    with log.open("a") as file:
        file.write('{"step": 20, "success": 1.0}\n')
    states = loop.json("verify", code=1)["files"]
    assert {each["state"] for each in states} == {"stale"}
    assert all(f"train/a/1: {log} was changed" in each["because"] for each in states)
    loop("loop", "report", code=0)
    config = next(each["path"] for each in cells["train/a/0"]["files"] if each["path"].endswith(".json"))
    Path(config).write_text('{"reg": 0.3}')
    assert {each["state"] for each in loop.json("verify", code=1)["files"]} == {"stale"}


@pytest.mark.slow  # the first test here is its sibling in CI
def test_one_run_that_failed_is_told_as_one(loop: Camp) -> None:
    loop.write(CAMPAIGN.replace("repeats: 2", "repeats: 1").replace("{seed}", "0"))
    loop("loop", "run", code=3)
    assert "1 run failed or left no history; it is named in the report" in loop("loop", "report", code=0).stdout


@pytest.mark.slow  # the first test here is its sibling in CI
def test_a_round_does_not_fail_for_its_report(loop: Camp) -> None:
    (loop.root / "reports").write_text("a file stands here")
    loop("loop", "run", code=3)
    assert len(loop.cells()) == 6
    steps = sorted((loop.root / ".muster" / "finish").glob("round-*/*/stderr.log"))
    assert [path.parts[-3] for path in steps] == ["round-2", "round-3"]
    assert all("the loop's report was not written" in path.read_text() for path in steps)
    told = loop("loop", "report", code=1).stderr
    assert "a file stands where a folder belongs" in told
    assert "Traceback" not in told
    (loop.root / "reports").unlink()
    loop("loop", "report", code=0)
    assert summary(loop)["round"] == 2


def test_without_a_loop_there_is_none(camp: Camp) -> None:
    camp.write("muster: 1\ncampaign: c\njobs: {t: {command: /bin/true}}\nslots: {gpus: 0}\n")
    assert "has not been started" in camp("loop", "report", code=2).stderr
    camp("up", code=0)
    assert "this campaign has no loop" in camp("loop", "report", code=2).stderr
    assert not (camp.root / "reports" / "loop").exists()
