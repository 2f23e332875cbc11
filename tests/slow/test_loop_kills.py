"""A loop whose controller is killed a hundred times ends with the configs that it would have had anyway."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
KILLS = 100
ROUNDS = 12
TRAIN = """\
import json, sys, time
config, out = json.load(open(sys.argv[1])), sys.argv[2]
with open(f"{out}/metrics.jsonl", "w") as log:
    for step in range(10):
        log.write(json.dumps({"step": step, "mass": config["reg"] / 10, "success": config["reg"]}) + "\\n")
        log.flush()
        time.sleep(0.02)
"""
CAMPAIGN = f"""\
muster: 1
campaign: kills
slots: {{gpus: 0, cpus: 2}}
jobs:
  train: {{axes: [], command: "{sys.executable} train.py {{config_file}} {{out}}", retry: {{max: 9}}}}
loop:
  job: train
  base: ["configs/*.json"]
  rounds: {ROUNDS}
  rules:
    - {{when: last("mass") < 0.05, edit: ["reg@mul=1.5"], reason: mass too small}}
  default: {{edit: ["lam@mul=0.9"], reason: mild}}
"""


def muster(root: Path, *words: str, home: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    env |= {"MUSTER_HOME": str(home), "MUSTER_GRACE_S": "2", "NO_COLOR": "1", "MUSTER_REVIVE_S": "1"}
    return subprocess.run(
        [sys.executable, "-m", "muster", "-C", str(root), *words], env=env, capture_output=True, text=True, timeout=300
    )


def campaign(root: Path) -> Path:
    (root / "configs").mkdir(parents=True)
    (root / "train.py").write_text(TRAIN)
    (root / "campaign.yaml").write_text(CAMPAIGN)
    for name, reg in (("a", 0.02), ("b", 0.9), ("c", 0.1)):
        (root / "configs" / f"{name}.json").write_text(json.dumps({"reg": reg, "lam": 1.0, "name": name}))
    return root


def outcome(root: Path, home: Path) -> tuple[dict[str, str], list[tuple[int, list[str]]], str]:
    """Every cell's verdict, each round's variants as they were taken in, and why it stopped."""
    told = json.loads(muster(root, "status", "--json", home=home).stdout)
    cells = {cell["cell"]: cell["verdict"] for cell in told["cells"]}
    taken, stopped = [], ""
    for line in (root / ".muster" / "decisions.jsonl").read_text().splitlines():
        each = json.loads(line)
        if each["kind"] == "round":
            if each["data"].get("variants"):
                taken.append((each["data"]["round"], sorted(one["name"] for one in each["data"]["variants"])))
            stopped = each["data"].get("stopped", stopped)
    return cells, taken, stopped


def controller(root: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        pid = int(json.loads((root / ".muster" / "controller.lock").read_text().strip("\0 \n"))["pid"])
        return (
            pid if f"muster.bootstrap.controller_process\0{root}" in Path(f"/proc/{pid}/cmdline").read_text() else None
        )
    return None


def rough_ride(root: Path, home: Path, rng: random.Random) -> int:
    """Kills the controller at random moments while the loop lasts; how often."""
    assert muster(root, "loop", "run", "--detach", home=home).returncode == 0
    kills, over = 0, False
    while not over:
        time.sleep(rng.expovariate(12))
        pid = controller(root)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills += 1
        over = muster(root, "status", home=home).returncode == 0  # and revives it, as anybody's look does
    return kills


def test_a_hundred_kills_change_nothing(tmp_path: Path) -> None:
    rng, home = random.Random(5), tmp_path / "home"
    calm = campaign(tmp_path / "calm")
    assert muster(calm, "loop", "run", home=home).returncode == 0
    undisturbed = outcome(calm, home)
    assert undisturbed[2] == f"all {ROUNDS} rounds are done"
    kills = loops = 0
    while kills < KILLS:
        loops += 1
        rough = campaign(tmp_path / f"rough-{loops}")
        kills += rough_ride(rough, home, rng)
        assert outcome(rough, home) == undisturbed, "each round once, with the same variants"
        found = sorted(path.name for path in (rough / "loop").rglob("*.json"))
        assert found == sorted(path.name for path in (calm / "loop").rglob("*.json"))
    print(f"{kills} kills in {loops} loops of {ROUNDS} rounds")
