"""A healthy run whose W&B file is up to 15 s late, watched from its first to its last second: it is never called stalled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
TRAIN = """\
import sys, time, wandb
run = wandb.init(project="live", dir=sys.argv[1], mode="offline", settings=wandb.Settings(silent=True, x_disable_stats=True))
for step in range(1, 101):
    run.log({"loss": 1 / step}, step=step)
    time.sleep(0.5)
run.finish()
"""
CAMPAIGN = """\
muster: 1
campaign: live
slots: {gpus: 0, cpus: 1}
jobs:
  train:
    axes: []
    steps: 100
    command: PYTHON train.py {out}
    grace: 5s
    progress: [{wandb: wandb}]
    proof: {step: {min: "{steps}", within: 2%}}
"""


def test_it_is_never_stalled(tmp_path: Path) -> None:
    root, home = tmp_path / "campaign", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    (root / "train.py").write_text(TRAIN)
    (root / "campaign.yaml").write_text(CAMPAIGN.replace("PYTHON", sys.executable))
    environment = {**os.environ, "MUSTER_HOME": str(home), "HOME": str(home), "NO_COLOR": "1"}

    def muster(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "muster", *words], cwd=root, env=environment, capture_output=True, text=True, timeout=90
        )  # fmt: skip

    assert muster("up", "--detach").returncode == 0
    seen: list[tuple[float, str, float | None]] = []
    began = time.monotonic()
    while time.monotonic() < began + 120:
        status = json.loads(muster("status", "--json").stdout)
        (cell,) = status["cells"]
        seen.append((time.monotonic() - began, cell["verdict"], cell["step"]))
        if status["complete"]:
            break
        time.sleep(1)
    verdicts = {verdict for _, verdict, _ in seen}
    print("; ".join(f"{at:.0f} s {verdict} {step or 0:.0f}" for at, verdict, step in seen))
    assert verdicts <= {"PENDING", "RUNNING", "QUIET", "UNKNOWN", "DONE"}, verdicts
    assert seen[-1][1] == "DONE"
    steps = [step for _, verdict, step in seen if step and verdict != "DONE"]
    assert len(set(steps)) >= 2, "it is read while it runs, block by block"
    decisions = [json.loads(line) for line in (root / ".muster" / "decisions.jsonl").read_text().splitlines()]
    assert not [each for each in decisions if each["kind"] == "verdict" and "STALLED" in json.dumps(each)]
