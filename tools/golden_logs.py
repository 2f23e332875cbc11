"""Makes tests/fixtures/logs: decision logs of real campaigns, with the state that each folds to.

    python tools/golden_logs.py            makes those that are missing; one that is there is never touched
    PYTHONPATH=OLD/src python tools/golden_logs.py --suffix -0.1     by the Muster of another commit

Each is a folder: decisions.jsonl.gz, campaigns/, and state.json.gz, which tests/contract/test_golden_logs.py holds the
fold against for ever. The campaigns run in a folder for the moment; what is kept says /srv/demo, and names no machine.
"""

from __future__ import annotations

import argparse
import getpass
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from muster.engine.store.database_checks import dump_database
from muster.engine.store.sqlite_store import SqliteStore

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "tests" / "fixtures" / "logs"
NEUTRAL = "/srv/demo"
TRAIN = """\
import json, os, sys
config, out = json.load(open(sys.argv[1])), sys.argv[2]
if config.get("dies"):
    sys.exit(3)
with open(f"{out}/metrics.jsonl", "w") as log:
    for step in range(20):
        log.write(json.dumps({"step": step, "pi": config["reg"] / 10, "eval/success": config["reg"] / 3}) + "\\n")
"""
LOOP = """\
muster: 1
campaign: rounds
slots: {gpus: 0, cpus: 2}
jobs:
  train: {axes: [], command: "python3 train.py {config_file} {out}", retry: {max: 0}}
loop:
  job: train
  base: ["configs/*.json"]
  rounds: 3
  rules:
    - {when: last("pi") < 0.05, edit: ["reg@mul=1.5"], reason: mass too small, name: little}
  default: {edit: ["lam@mul=0.9"], reason: mild}
"""
EVALS = """\
import json, sys
with open(f"{sys.argv[2]}/evals.jsonl", "a") as log:
    for at, value in enumerate(json.loads(sys.argv[1])):
        log.write(json.dumps({"iter": at + 1, "stage": "main", "score": value}) + "\\n")
"""
GATES = """\
muster: 1
campaign: gated
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 1}
jobs:
  train: {axes: [seed], command: [python3, train.py, "[0.9, 0.4, 0.85, 0.9, 0.6, 0.3]", "{out}"]}
  next: {axes: [seed], needs: [train], command: "true"}
gates:
  rise:
    job: train
    read: {jsonl: evals.jsonl, step: iter}
    success: [{key: score, min: 0.8}]
    failure: [{key: score, below: 0.5}]
    required: 2
    tolerance: 1
    act: notify
"""
ADOPT = """\
muster: 1
campaign: taken-in
axes: {config: [a, b], seed: [0, 1, 2]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [config, seed]
    steps: 1000
    command: python3 train.py runs/made_{config}_x_{seed}
    output: runs/*_{config}_x_{seed}
    progress: [{jsonl: metrics.jsonl, step: step}]
    proof: {step: {min: "{steps}", within: 2%}}
"""
STEPS = """\
import json, os, sys
os.makedirs(sys.argv[1])
with open(f"{sys.argv[1]}/metrics.jsonl", "w") as log:
    log.write("".join(json.dumps({"step": step}) + "\\n" for step in range(0, 1001, 100)))
"""
BUDGET = """\
muster: 1
campaign: capped
axes: {seed: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
slots: {gpus: 0, cpus: 2}
money: {price: 3600, currency: CNY, budget: 2}
jobs:
  train: {axes: [seed], command: sleep 0.3}
"""
WORDS = """\
muster: 1
campaign: words
axes: {config: [a, b], seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [config, seed]
    command: /bin/sh -c 'test -e {config}.ok -o {seed} = 0'
  eval: {axes: [config, seed], needs: [train], command: "true"}
"""


class Made:
    """A campaign that runs in a folder for the moment."""

    def __init__(self, scratch: Path) -> None:
        self.root, self.home = scratch / "campaign", scratch / "home"
        self.root.mkdir()
        self.environment = {"HOME": "/root", "LANG": "C.UTF-8", "MUSTER_HOME": str(self.home), "MUSTER_POLL_S": "0.2",
                            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "NO_COLOR": "1"}  # fmt: skip
        if path := os.environ.get("PYTHONPATH"):
            self.environment["PYTHONPATH"] = path

    def __call__(self, *arguments: str) -> None:
        """Whatever it answers: what was decided is in the log."""
        command = [sys.executable, "-m", "muster", *arguments]
        there = self.root if self.root.exists() else self.root.parent
        subprocess.run(command, check=False, cwd=there, env=self.environment, stdout=subprocess.DEVNULL, timeout=900)

    def write(self, **files: str) -> None:
        for name, text in files.items():
            path = self.root / name.replace("__", "/").replace("_yaml", ".yaml").replace("_py", ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def demo(made: Made) -> None:
    made.root.rmdir()
    made("demo", "campaign")


def loop(made: Made) -> None:
    made.write(campaign_yaml=LOOP, train_py=TRAIN)
    (made.root / "configs").mkdir()
    for name, more in {"a": {"reg": 0.2}, "b": {"reg": 0.9}, "c": {"reg": 0.5, "dies": True}}.items():
        (made.root / "configs" / f"{name}.json").write_text(json.dumps({"lam": 1.0, **more}))
    made("loop", "run")
    made("giveup", "*", "--because", "it dies of its config")
    made("up")


def gates(made: Made) -> None:
    made.write(campaign_yaml=GATES, train_py=EVALS)
    made("up")


def adopt(made: Made) -> None:
    made.write(campaign_yaml=ADOPT, train_py=STEPS)
    for config, seed in (("a", 0), ("a", 1), ("b", 0)):
        name = f"runs/20260221-000000_{config}_x_{seed}"
        subprocess.run([sys.executable, "train.py", name], cwd=made.root, check=True)
        for path in (made.root / name / "metrics.jsonl", made.root / name):
            os.utime(path, (1771600000, 1771600000))
    made("adopt")
    made("up")


def budget(made: Made) -> None:
    made.write(campaign_yaml=BUDGET)
    made("up")
    made.write(campaign_yaml=BUDGET.replace("budget: 2", "budget: 200"))
    made("up")


def words(made: Made) -> None:
    made.write(campaign_yaml=WORDS)
    made("up", "--only", "config=a")
    made("note", "a finding", "--cell", "train/a/1")
    made("retry", "train/a/1", "--because", "once more")
    made("wait")
    made("hold", "--because", "look first")
    made("up")
    made("release")
    made.write(campaign_yaml=WORDS)
    (made.root / "b.ok").touch()
    made("up")
    made("giveup", "train/a/1", "--because", "it never works")
    made("redo", "eval/b/0", "--because", "a doubt")
    made("wait")
    made("rename", "config", "b=better")
    made("down")


MADE: dict[str, Callable[[Made], None]] = {
    "demo": demo, "loop": loop, "gates": gates, "adopt": adopt, "budget": budget, "words": words,
}  # fmt: skip


def keep(state: Path, root: Path, target: Path) -> None:
    """The log and the snapshots, without a word about where and on whose machine they were made."""

    def scrubbed(data: bytes) -> bytes:
        for private, neutral in _neutral(root).items():
            data = data.replace(private.encode(), neutral.encode())
        return data

    log = scrubbed((state / "decisions.jsonl").read_bytes())
    (target / "campaigns").mkdir(parents=True)
    for path in (state / "campaigns").glob("*.json"):
        (target / "campaigns" / path.name).write_bytes(scrubbed(path.read_bytes()))
    (target / "decisions.jsonl.gz").write_bytes(gzip.compress(log, mtime=0))
    found = msgspec.json.format(msgspec.json.encode(fold_state(target)), indent=1)
    (target / "state.json.gz").write_bytes(gzip.compress(found, mtime=0))


def _neutral(root: Path) -> dict[str, str]:
    node, user = os.uname().nodename, getpass.getuser()
    return {
        str(root): NEUTRAL,
        str(root.parent): "/srv",
        str(Path(sys.executable).parent): "/usr/bin",
        str(ROOT): "/opt/muster",
        f"{user}@{node}": "person@machine",
        node: "machine",
    }


def fold_state(golden: Path) -> dict[str, Any]:
    """What a log folds to, as JSON: every table and the state that is loaded from them, as if it lay in /srv/demo."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "campaign" / ".muster"
        shutil.copytree(golden / "campaigns", folder / "campaigns")
        (folder / "decisions.jsonl").write_bytes(gzip.decompress((golden / "decisions.jsonl.gz").read_bytes()))
        store = SqliteStore(folder, database=":memory:")
        store.commit([])
        tables = {
            name: {json.dumps(key): row for key, row in rows.items()} for name, rows in dump_database(store.db).items()
        }
        for row in tables["event"].values():
            row.pop("data")  # as it stands in the log
        loaded = msgspec.to_builtins(store.load(), order="deterministic")
        store.close()
        text = json.dumps({"tables": tables, "state": loaded}, ensure_ascii=False)
        found: dict[str, Any] = json.loads(text.replace(str(folder.parent), NEUTRAL))
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MADE)}; default: all")
    parser.add_argument("--suffix", default="", help="of the folders' names")
    asked = parser.parse_args()
    for name in asked.names or MADE:
        target = TARGET / f"{name}{asked.suffix}"
        if target.exists():
            continue
        with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
            made = Made(Path(scratch))
            MADE[name](made)
            made("down", "--runs", "--because", "the log is made")
            keep(made.root / ".muster", made.root, target)
        print(f"{target}: {sum(path.stat().st_size for path in target.rglob('*') if path.is_file())} bytes")


if __name__ == "__main__":
    main()
