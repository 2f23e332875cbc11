"""examples/fish_school through Muster: a training that is killed in the middle goes on with the same gate."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.camp import Camp

EXAMPLE = Path(__file__).parents[2] / "examples" / "fish_school"
FLAGS = (
    "--num_envs 16 --n_steps 60 --samples 3000 --batch_size 512 --curriculum 5:8,8:22 --multi_eval_interval 3"
    " --multi_eval_probe_episodes 2 --eval_multi_episodes 4 --eval_multi_fish 10 --tail_force_reset_steps 30"
)
CAMPAIGN = f"""\
muster: 1
campaign: fish
axes: {{seed: [5]}}
slots: {{gpus: 0, cpus: 1}}
jobs:
  train:
    axes: [seed]
    steps: 30
    command: python train.py --artifacts {{out}} --seed {{seed}} --total_iterations {{steps}} {FLAGS}
    resume: python train.py --artifacts {{out}} --resume {{last.checkpoint}}
    progress: [{{jsonl: train.jsonl, step: iteration}}, {{checkpoint: checkpoint.npz}}]
    proof: {{step: {{min: "{{steps}}"}}, checkpoint: {{path: checkpoint.npz, saved_after: 90%}}, files: [gate_trace.jsonl]}}
"""


@pytest.fixture
def school(camp: Camp) -> Camp:
    for path in EXAMPLE.iterdir():
        if path.suffix in (".py", ".json", ".yaml"):
            shutil.copy(path, camp.root)
    camp.environment["PATH"] = f"{Path(sys.executable).parent}:{camp.environment['PATH']}"
    return camp


def test_a_training_killed_in_the_middle_goes_on_with_the_same_gate(school: Camp, tmp_path: Path) -> None:
    school.write(CAMPAIGN)
    school("up", "--detach", code=0)
    first, second = (school.folder("train/5", n) for n in (1, 2))
    rows = first / "out" / "train.jsonl"
    school.until(lambda: rows.exists() and rows.read_bytes().count(b"\n") >= 6, "iteration 6")
    os.kill(json.loads((first / "identity.json").read_text())["pid"], signal.SIGKILL)
    school("wait", "--timeout", "60s", code=3)
    school("retry", "train/5", "--because", "somebody killed it", code=0)
    school("wait", "--timeout", "60s", code=0)
    assert json.loads((first / "exit.json").read_text())["signal"] == signal.SIGKILL
    assert school.cells() == {"train/5": "DONE"}

    whole = tmp_path / "whole"
    command = [sys.executable, "train.py", "--artifacts", str(whole), "--seed", "5", "--total_iterations", "30"]
    subprocess.run([*command, *FLAGS.split()], cwd=school.root, check=True, capture_output=True)
    for name in ("gate_trace.jsonl", "eval_history.jsonl", "schedule_trace.json", "stage_summary.json"):
        assert (second / "out" / name).read_bytes() == (whole / name).read_bytes(), name
    begun = json.loads((second / "stdout.log").read_text().splitlines()[0].split()[1])
    assert begun > 1, "it went on from the checkpoint"


def test_its_campaigns_are_sound_but_for_what_they_show(school: Camp) -> None:
    (school.root / "v2").mkdir()
    shutil.copy(EXAMPLE / "v2" / "campaign.yaml", school.root / "v2")
    first = school("gates", "check", code=1).stdout
    assert "from 70 to 95 it is both" in first
    assert "the schedule has 120 iterations, the run 60" in first
    second = school("-C", "v2", "gates", "check", code=0).stdout
    assert "error" not in second
