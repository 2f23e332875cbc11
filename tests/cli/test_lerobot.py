"""The template `lerobot` to its end: a trainer as LeRobot is one, launched by `accelerate`, logging to real W&B files.

Both stand in for packages that need torch; what Muster sees of them (words, ports, folders, files) is theirs.
"""

from __future__ import annotations

import json
import os
import stat
import sys

from support.camp import Camp

ACCELERATE = """\
#!{python}
import os, socket, subprocess, sys
words = sys.argv[1:]
assert words[:4] == ["launch", "--num_processes", "1", "--main_process_port"] and words[5] == "-m", words
with socket.create_server(("127.0.0.1", int(words[4]))):  # as its rendezvous: a port that another run has is an error
    sys.exit(subprocess.run([sys.executable, *words[5:]]).returncode)
"""
TRAINER = """\
import json, os, sys
from pathlib import Path
named = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
config = json.loads(Path(named["config_path"]).read_text())
folder, steps = Path(named["output_dir"]), int(named["steps"])
if folder.exists():
    raise FileExistsError(f"Output directory {folder} already exists and resume is False.")
assert os.environ["WANDB_MODE"] == named["wandb.mode"] == "offline" and named["wandb.disable_artifact"] == "true"
folder.mkdir(parents=True)
import wandb
run = wandb.init(project="lerobot", dir=str(folder), mode=named["wandb.mode"], settings=wandb.Settings(silent=True))
rate = config["policy"]["optimizer_lr"]
for step in range(10, steps + 1, 10):
    run.log({"train/loss": 2.0 - rate * step, "train/grad_norm": 100.0 if rate > 2e-3 else 1.0}, step=step)
saved = folder / "checkpoints" / f"{steps:06d}" / "pretrained_model"
saved.mkdir(parents=True)
(saved / "train_config.json").write_text(json.dumps(config))
(folder / "checkpoints" / "last").symlink_to(f"{steps:06d}")
run.finish()
"""


def test_two_rounds(camp: Camp) -> None:
    camp("init", "lerobot", code=0)
    launcher = camp.root / "bin" / "accelerate"
    script = camp.root / "lerobot" / "scripts" / "lerobot_train.py"
    for file, text in ((launcher, ACCELERATE.format(python=sys.executable)), (script, TRAINER)):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    (camp.root / "configs").mkdir()
    for name, rate in (("slow", 1e-5), ("wild", 4e-3)):
        config = {"batch_size": 8, "policy": {"type": "act", "optimizer_lr": rate}}
        (camp.root / "configs" / f"{name}.json").write_text(json.dumps(config))
    file = camp.root / "campaign.yaml"
    text = file.read_text()
    changes = {
        "gpus: auto": "gpus: 0, cpus: 2", "steps: 2000": "steps: 200", "rounds: 3": "rounds: 2", "repeats: 2": "repeats: 1",
        "saved_after: 75%": "saved_after: 10%",  # most of so short a run is W&B's end
    }  # fmt: skip
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    camp.environment["PATH"] = os.pathsep.join([str(launcher.parent), camp.environment["PATH"]])
    home = camp.root / "home"
    home.mkdir()
    camp.environment["HOME"] = str(home)
    camp("loop", "run", code=0)
    assert set(camp.cells().values()) == {"DONE"}
    lines = (camp.root / ".muster" / "decisions.jsonl").read_text().splitlines()
    second, last = (each["data"] for each in map(json.loads, lines) if each["kind"] == "round")
    assert last["stopped"] == "all 2 rounds are done"
    made = {each["parent"]: each for each in second["variants"]}
    assert made["wild"]["reason"] == "gradients too large"
    assert made["slow"]["reason"] == "the loss does not fall"
    assert json.loads((camp.root / made["slow"]["config"]).read_text())["batch_size"] == 10
    output = camp.folder("train/wild") / "out"
    assert list(output.glob("wandb/offline-run-*/*.wandb"))
    assert not list(camp.root.glob("wandb"))
    assert not list(home.rglob("*wandb*"))
