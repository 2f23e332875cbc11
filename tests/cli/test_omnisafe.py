"""The template `omnisafe` to its end, with a trainer that names its folders and reads its words as OmniSafe's does."""

from __future__ import annotations

import stat
import sys

from support.camp import Camp

TRAINER = """\
import argparse, time, zipfile
from pathlib import Path
parser = argparse.ArgumentParser()
for name in ("algo", "env-id", "device"):
    parser.add_argument("--" + name)
for name in ("total-steps", "torch-threads"):
    parser.add_argument("--" + name, type=int)
known, unknown = parser.parse_known_args()
custom = {key[2:]: float(value) if "." in value else int(value) for key, value in zip(unknown[::2], unknown[1::2])}
assert list(custom) == ["seed"], custom  # what the parser does not know must be a key of the algorithm's config
run = Path("runs") / f"{known.algo}-{{{known.env_id}}}" / f"seed-{custom['seed']:03d}-2026-11-16-10-00-00"
(run / "torch_save").mkdir(parents=True)
with zipfile.ZipFile(run / "torch_save" / "epoch-1.pt", "w") as file:
    file.writestr("archive/data.pkl", b"\\x80\\x02}.")
rows = ["Metrics/EpRet,Metrics/EpCost,Metrics/EpLen,TotalEnvSteps", f"{custom['seed']}.5,20,1000,{known.total_steps}"]
(run / "progress.csv").write_text("\\n".join(rows) + "\\n")
"""


def test_a_matrix(camp: Camp) -> None:
    camp("init", "omnisafe", code=0)
    file = camp.root / "campaign.yaml"
    text = file.read_text()
    changes = {
        "[PPO, PPOLag, CPO]": "[PPO, PPOLag]",
        "[0, 5, 10, 15, 20]": "[0, 5]",
        "saved_after: 90%": "saved_after: 1%",
    }
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    python = camp.root / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    camp.environment["PATH"] = f"{python.parent}:{camp.environment['PATH']}"
    (warning,) = [each for each in camp.json("check", "--quick", code=0)["warnings"] if "no file" in each["message"]]
    assert warning["message"].startswith(f"job train: there is no file {camp.root}/train_policy.py")
    (camp.root / "train_policy.py").write_text(TRAINER)
    assert not [each for each in camp.json("check", "--quick", code=0)["warnings"] if "no file" in each["message"]]
    camp("up", code=0)
    assert set(camp.cells().values()) == {"DONE"}
    (row,) = camp.folder("train/PPOLag/5").glob("out/runs/PPOLag-*/seed-005-*/progress.csv")
    assert "5.5" in row.read_text()
