"""A trainer as upstream ones are: it names its own folder below one `--logdir` for all, logs environment steps, and saves a
pickle that holds the agent's step. Four runs were made by hand: one is good, one was killed, one saved its weights at the
start only, one lives. Of two configs one name is the beginning of the other.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.camp import Camp

STEPS, REPEAT = 250, 5
TRAINER = """
import argparse, json, os, pickle, sys, time
parse = argparse.ArgumentParser()
for name in ("configs", "method", "task", "seed", "logdir", "run.steps", "save_at", "stop_at", "until", "after"):
    parse.add_argument(f"--{name}")
args = vars(parse.parse_args())
steps, stop, repeat = int(args["run.steps"]), int(args["stop_at"] or 10**9), 5

def wait(path):
    while path and not os.path.exists(path):
        time.sleep(0.02)

wait(args["after"])
stamp = time.strftime("%Y%m%d-%H%M%S")
out = f"{args['logdir']}/{stamp}_{args['method']}_{args['task']}_{args['seed']}"
os.makedirs(out)
with open(out + "/config.yaml", "w") as file:
    file.write(f"method: {args['method']}\\nseed: {args['seed']}\\ntask: {args['task']}\\n")
    file.write(f"env:\\n  dmc:\\n    repeat: 2\\n  toy:\\n    repeat: {repeat}\\nrun:\\n  steps: {steps}\\n")

def log(row):
    with open(out + "/metrics.jsonl", "a") as file:
        file.write(json.dumps(row) + "\\n")

def save(step):
    with open(out + "/checkpoint.tmp", "wb") as file:
        pickle.dump({"step": step, "agent": {"w": [0.1 * step] * 50}, "_timestamp": time.time()}, file)
    os.replace(out + "/checkpoint.tmp", out + "/checkpoint.ckpt")

score = len(args["method"]) + 0.3 * int(args["seed"])
for step in range(10, steps + 1, 10):
    time.sleep(0.02)
    log({"step": step * repeat, "episode/score": score + step / 1000})
    if not args["save_at"] or step == int(args["save_at"]):
        save(step)
    if step >= stop:
        print("stopped", flush=True)
        time.sleep(1000)
print("trained", flush=True)
while args["until"] and not os.path.exists(args["until"]):  # its last evaluations
    log({"step": steps * repeat, "eval/score": score})
    time.sleep(0.05)
"""
CAMPAIGN = f"""\
muster: 1
campaign: upstream
axes: {{config: [dreamer, dreamer_vector], seed: [0, 1]}}
slots: {{gpus: 0, cpus: 2}}
money: {{price: 3600, currency: CNY}}
jobs:
  train:
    axes: [config, seed]
    steps: {STEPS}
    command: {sys.executable} train.py --configs {{config}} --method {{config}} --task toy_point --seed {{seed}}
      --logdir runs/ --run.steps {{steps}} --after go
    output: runs/*_{{config}}_toy_point_{{seed}}
    progress:
      - {{jsonl: metrics.jsonl, step: step, scale: 0.2}}
      - {{checkpoint: checkpoint.ckpt}}
    proof: {{step: {{min: "{{steps}}", within: 4%}}, checkpoint: {{path: checkpoint.ckpt, saved_after: 80%}}}}
    results: {{score: {{jsonl: metrics.jsonl, key: episode/score, reduce: last}}}}
decision: {{primary: {{metric: score, better: higher}}, baseline: dreamer, checkpoint: last}}
"""


class Hand:
    """Runs that a person started."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.started: list[subprocess.Popen[str]] = []

    def start(self, method: str, seed: int, word: str, *more: str) -> subprocess.Popen[str]:
        """Waits until it says `word`."""
        run = subprocess.Popen(
            [sys.executable, "train.py", "--configs", method, "--method", method, "--task", "toy_point", "--seed",
             str(seed), "--logdir", "runs/", "--run.steps", str(STEPS), *more],
            cwd=self.root, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self.started.append(run)
        assert run.stdout
        assert run.stdout.readline() == f"{word}\n"
        return run

    def folder(self, method: str, seed: int) -> str:
        (found,) = self.root.glob(f"runs/*_{method}_toy_point_{seed}")
        return str(found.relative_to(self.root))

    def clean_up(self) -> None:
        for run in self.started:
            run.kill()
            run.wait()
            assert run.stdout
            run.stdout.close()


@pytest.fixture
def hand(camp: Camp) -> Iterator[Hand]:
    (camp.root / "train.py").write_text(TRAINER)
    (camp.root / "runs").mkdir()
    camp.write(CAMPAIGN)
    made = Hand(camp.root)
    yield made
    made.clean_up()


def by_cell(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["cell"]: each for each in found["cells"]}


def test_every_verdict_is_right(camp: Camp, hand: Hand) -> None:
    hand.start("dreamer", 0, "trained").wait()
    killed = hand.start("dreamer", 1, "stopped", "--stop_at", "120")
    hand.start("dreamer_vector", 0, "trained", "--save_at", "10").wait()
    alive = hand.start("dreamer_vector", 1, "trained", "--until", "over")
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    good, dead, untrained, living = (
        hand.folder(*each) for each in (("dreamer", 0), ("dreamer", 1), ("dreamer_vector", 0), ("dreamer_vector", 1))
    )

    # look: the life of one is not the life of the others, and 600 logged steps are 120 of 250
    looks = camp.json("look", dead, good, living, "--for", "2s", code=4)
    assert [(each["verdict"], each["kind"], each["pid"]) for each in looks[:2]] == [
        ("UNKNOWN", None, None), ("UNKNOWN", "reached", None),
    ]  # fmt: skip
    assert (looks[0]["step"], looks[0]["logged_step"], looks[0]["target"]) == (120, 600, 250)
    assert "may be complete" not in json.dumps(looks[0])
    assert looks[2]["verdict"] in ("RUNNING", "QUIET")
    assert looks[2]["pid"] == alive.pid

    # adopt: only what is over and proven; the rest is named, and what it took is written down
    wrong = CAMPAIGN.replace("scale: 0.2", "scale: 0.5")
    camp.write(wrong)
    told = camp.json("adopt", "--dry-run", code=1)
    assert told["adopted"] == []
    assert "`env.toy.repeat` in config.yaml is 5: `scale: 0.2`" in refusal(told, good)
    camp.write(CAMPAIGN)
    told = camp.json("adopt", code=3)
    assert [each["cell"] for each in told["adopted"]] == ["train/dreamer/0"]
    assert "last step 600 x 0.2 = 120, wanted 240 of 250" in refusal(told, dead)
    assert "it holds step 10 of 250 (4 %)" in refusal(told, untrained)
    assert refusal(told, living).startswith(f"it is still running: pid {alive.pid} ")
    assert told["spent"] == 2
    assert camp.json("adopt", code=1)["spent"] == 0  # each counts once
    assert "train/dreamer/0 is DONE, presumed: adopted" in camp("why", "train/dreamer/0", code=0).stdout
    assert camp.json("cost", code=0)["by_cause"]["refused"] > 0

    # an attempt that has made no folder yet has no step, whatever older folders hold
    (camp.root / "over").touch()
    alive.wait()
    assert [each["cell"] for each in camp.json("adopt", code=3)["adopted"]] == ["train/dreamer_vector/1"]
    camp("up", "--detach", code=0)
    camp.until(lambda: camp.json("status")["counts"]["RUNNING"] == 2, "both runs")
    cells = by_cell(camp.json("status", code=4))
    for name in ("train/dreamer/1", "train/dreamer_vector/0"):
        assert (cells[name]["step"], cells[name]["output"]) == (None, None)
    (camp.root / "go").touch()
    camp("wait", "--timeout", "30s", code=0)
    done = by_cell(camp.json("status", code=0))
    assert {name: (each["verdict"], each["confidence"]) for name, each in done.items()} == {
        "train/dreamer/0": ("DONE", "presumed"), "train/dreamer/1": ("DONE", "proven"),
        "train/dreamer_vector/0": ("DONE", "proven"), "train/dreamer_vector/1": ("DONE", "presumed"),
    }  # fmt: skip
    assert done["train/dreamer/1"]["output"] != str(camp.root / dead)

    # report: sound, and it names what was refused
    made = camp.json("report")
    assert made["verdict"] == "NOT_ENOUGH_EVIDENCE"
    assert [flag["code"] for flag in made["flags"] if flag["level"] == "ERROR"] == []
    assert {row["config"]: row["n"] for row in made["table"]} == {"dreamer": 2, "dreamer_vector": 2}
    decision = (camp.root / "reports" / "decision.md").read_text()
    assert "2 runs that something else made were found and not taken in" in decision
    assert "holds 100 % of its training's steps" in (camp.root / "reports" / "defence.md").read_text()
    camp("record", code=0)
    assert f"did not take in the run `{camp.root / dead}`" in (camp.root / "reports" / "record.md").read_text()
    camp("cost", "--report", code=0)
    assert "`muster adopt` found it and did not take it in" in (camp.root / "reports" / "cost.md").read_text()


def refusal(told: dict[str, Any], folder: str) -> str:
    (found,) = (each["reason"] for each in told["refused"] if each["what"].endswith(folder))
    return str(found)
