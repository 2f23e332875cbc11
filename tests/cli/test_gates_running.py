"""Gates over runs while they run: what they tell, stop, prune and let start; a killed controller decides the same."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from support.camp import Camp

SCRIPT = """\
import json, os, sys
plan, out, gate = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
first = 0
if len(sys.argv) > 4:
    first = int(open(sys.argv[4]).read())
with open(f"{out}/evals.jsonl", "a", buffering=1) as log:
    for at, value in enumerate(plan):
        if at < first:
            continue
        if value == "die":
            if first:
                continue
            open(f"{out}/checkpoint", "w").write(str(at))
            os._exit(9)
        if value == "wait":
            open(gate).read()
            continue
        if isinstance(value, list):
            at, value = value
        log.write(json.dumps({"iter": at + 1, "stage": "main", "score": value}) + "\\n")
"""
CAMPAIGN = """\
muster: 1
campaign: gated
axes: {{seed: [0]}}
slots: {{gpus: 0, cpus: 1}}
jobs:
  train:
    axes: [seed]
    command: [{python}, train.py, '{plan}', "{{out}}", gate]
    resume: [{python}, train.py, '{plan}', "{{out}}", gate, "{{last.checkpoint}}"]
    progress: [{{checkpoint: checkpoint}}]
  next: {{axes: [seed], needs: [train], command: "true"}}
gates:
  rise:
    job: train
    read: {{jsonl: evals.jsonl, step: iter}}
    success: [{{key: score, min: 0.8}}]
    failure: [{{key: score, below: 0.5}}]
    required: 2
    tolerance: 1
    {more}
"""


def write(camp: Camp, plan: list[object], more: str = "act: notify") -> None:
    import sys

    (camp.root / "train.py").write_text(SCRIPT)
    os.mkfifo(camp.root / "gate")
    camp.write(CAMPAIGN.format(python=sys.executable, plan=json.dumps(plan), more=more))


@pytest.fixture
def quick(camp: Camp) -> Camp:
    camp.environment["MUSTER_POLL_S"] = "0.2"
    return camp


def trace(camp: Camp, n: int = 1) -> list[dict[str, object]]:
    lines = (camp.folder("train/0", n) / "gates" / "rise.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_what_a_gate_decides_is_recorded_told_and_explained(quick: Camp) -> None:
    write(quick, [0.9, 0.4, 0.85, 0.9, 0.6, 0.3])
    told = quick.root / "told.txt"
    with (quick.root / "campaign.yaml").open("a") as file:
        file.write(f"notify: [{{run: \"sh -c 'cat >> {told}'\"}}]\n")
    quick("up", code=0)
    (found,) = quick.decisions("gate")
    assert (found["cell"], found["reason"]) == ("train/0", "2 successes in a row: on to phase 1")
    assert found["data"] == {"gate": "rise", "iteration": 4, "state": "advance", "phase": 1}
    quick.until(lambda: told.exists() and "GATE" in told.read_text(), "the notice")
    head, *rows = trace(quick)
    assert head["settings"]["required"] == 2
    assert [row["state"] for row in rows] == ["hold", "failure_hold", "hold", "advance", "hold", "failure_hold"]
    why = quick("why", "train/0", code=0).stdout
    assert "rise: failure_hold in phase 1 at iteration 6 (main): failure: score 0.3 is below 0.5" in why
    assert quick.json("why", "train/0")["gates"]["rise"]["phase"] == 1
    assert "gate rise: 1 run, open in train/0 (phase 1)" in quick("status", code=0).stdout
    replayed = quick.json("gates", "replay", str(quick.folder("train/0") / "gates" / "rise.jsonl"))
    assert (replayed["opens"], replayed["differs"]) == (4, [])


def test_a_run_is_stopped_when_its_gate_bears_no_more(quick: Camp) -> None:
    write(quick, [0.9, 0.4, 0.3, "wait"], "act: stop")
    quick("up", code=3)
    found = quick.json("why", "train/0")
    assert (found["verdict"], found["cause"]) == ("DEAD", "gate_stop")
    assert "gate_stop is not retried by itself" in found["next"]
    (gate,) = quick.decisions("gate")
    assert gate["data"]["state"] == "failure_hold"
    assert "failure 2 in a row, 1 is borne here" in gate["reason"]


def test_a_pruned_cell_is_given_up_and_the_campaign_goes_on(quick: Camp) -> None:
    write(quick, [0.4, 0.3, "wait"], "act: prune")
    quick("up", code=3)
    assert quick.cells() == {"train/0": "GIVEN_UP", "next/0": "BLOCKED"}
    assert "pruned: gate rise at iteration 2" in quick.json("why", "train/0")["reason"]


def test_the_next_job_starts_only_where_the_gate_has_opened(quick: Camp) -> None:
    write(quick, [0.9, 0.9, 0.6], "lets: [next]")
    quick("up", code=0)
    assert quick.cells() == {"train/0": "DONE", "next/0": "DONE"}


@pytest.mark.parametrize("plan", [[0.9, 0.6, 0.9], [0.9, 0.9, 0.4, 0.4], []], ids=["shut", "fell back", "no rows"])
def test_a_shut_gate_keeps_the_next_job_from_starting_and_says_why(quick: Camp, plan: list[object]) -> None:
    write(quick, plan, "lets: [next]")
    quick("up", code=3)
    assert quick.cells() == {"train/0": "DONE", "next/0": "BLOCKED"}
    reason = quick.json("why", "next/0")["reason"]
    assert reason.startswith("needs the gate rise of train/0 to open, and it is shut")
    assert "needs the gate rise" in quick("status", code=3).stdout


def test_a_killed_controller_decides_the_same_and_tells_nothing_twice(quick: Camp) -> None:
    quick.environment["MUSTER_REVIVE_S"] = "0.5"
    write(quick, [0.9, 0.9, "wait", 0.4, 0.4], "lets: [next]")
    quick("up", "--detach")
    quick.until(lambda: quick.decisions("gate"), "the gate's decision")
    controller = quick.controller()
    assert controller
    os.kill(controller, signal.SIGKILL)
    quick.until(lambda: quick.controller() not in (None, controller), "the next controller")
    quick.until(lambda: len(trace(quick)) == 3, "its own trace")
    Path(quick.root / "gate").write_text("")
    quick("wait", code=3)
    assert [each["data"]["state"] for each in quick.decisions("gate")] == ["advance", "fall_back"]


def test_a_resumed_run_goes_on_with_its_streak(quick: Camp) -> None:
    write(quick, [0.9, "die", 0.9], "lets: [next]")
    quick("up", code=3)
    quick("retry", "train/0", "--because", "it was the test", code=0)
    quick("up", code=0)
    assert [row.get("iteration") for row in trace(quick, 2)] == [None, 1, 3]
    (found,) = quick.decisions("gate")
    assert (found["attempt"], found["data"]["iteration"]) == (2, 3)
    assert quick.cells() == {"train/0": "DONE", "next/0": "DONE"}


def test_a_run_that_was_resumed_at_its_very_end_lets_the_next_job_start(quick: Camp) -> None:
    write(quick, [0.9, 0.9, "die"], "lets: [next]")
    quick("up", code=3)
    quick("retry", "train/0", "--because", "it was the test", code=0)
    quick("up", code=0)
    assert quick.cells() == {"train/0": "DONE", "next/0": "DONE"}


def test_a_run_that_goes_back_behind_its_opened_gate_lets_nothing_start(quick: Camp) -> None:
    write(quick, [0.9, 0.9, "wait", [0, 0.6], [1, 0.6], [2, 0.6]], "lets: [next]")
    quick("up", "--detach")
    quick.until(lambda: quick.decisions("gate"), "the gate's decision")
    Path(quick.root / "gate").write_text("")
    quick("wait", code=3)
    assert [each["data"]["state"] for each in quick.decisions("gate")] == ["advance", "hold"]
    assert quick.cells() == {"train/0": "DONE", "next/0": "BLOCKED"}
    assert "counts no more" in quick.json("why", "next/0")["reason"]
    quick("fsck", code=0)
    assert quick.cells() == {"train/0": "DONE", "next/0": "BLOCKED"}


def test_a_gate_that_was_made_stricter_lets_nothing_start(quick: Camp) -> None:
    write(quick, [0.9, 0.9, 0.9], "lets: [next]")
    file = quick.root / "campaign.yaml"
    text = file.read_text()
    file.write_text(text.replace('command: "true"', 'command: "false"'))
    quick("up", code=3)
    file.write_text(text.replace("min: 0.8", "min: 0.95"))
    quick("up", code=3)
    assert quick.cells() == {"train/0": "DONE", "next/0": "DEAD"}
    assert "needs the gate rise of train/0 to open" in quick.json("why", "next/0")["next"]


def test_a_retry_in_the_same_folder_is_not_judged_by_the_rows_of_the_run_before(quick: Camp) -> None:
    write(quick, [0.4, 0.3, "wait"], "act: stop")
    shared = (
        (quick.root / "campaign.yaml")
        .read_text()
        .replace('"{out}"', "runs")
        .replace("axes: [seed]\n", "axes: [seed]\n    output: runs\n", 1)
    )
    (quick.root / "campaign.yaml").write_text(shared)
    (quick.root / "runs").mkdir()
    quick("up", code=3)
    assert quick.json("why", "train/0")["cause"] == "gate_stop"
    quick.write(shared.replace('[0.4, 0.3, "wait"]', "[0.9, 0.9]"))
    quick("up", code=0)
    assert quick.cells()["train/0"] == "DONE"


def test_rows_about_something_else_break_no_streak(quick: Camp) -> None:
    write(quick, [0.9, 0.9], "lets: [next]")
    script = (quick.root / "train.py").read_text()
    other = '        log.write(json.dumps({"iter": 10 * at + 1, "loss": 0.1}) + "\\n")\n'
    (quick.root / "train.py").write_text(script.replace('"iter": at + 1', '"iter": 10 * at + 5') + other)
    quick("up", code=0)
    assert quick.cells() == {"train/0": "DONE", "next/0": "DONE"}
    assert [row.get("iteration") for row in trace(quick)] == [None, 5, 15]
