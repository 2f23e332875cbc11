"""`muster pack` and `unpack`: a finished campaign, unpacked elsewhere, reports, verifies and traces the same numbers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from support.camp import Camp

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
CAMPAIGN = """\
muster: 1
campaign: packed
axes: {config: [base, new], seed: [0, 1, 2, 3, 4]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [config, seed]
    cwd: ../elsewhere
    command: /bin/sh train.sh {config} {seed}
    output: runs/{config}_{seed}
    progress: [{jsonl: metrics.jsonl, step: step}, {checkpoint: model.bin}]
  eval:
    axes: [config, seed]
    needs: [train]
    command: /bin/sh eval.sh {config} {seed} {train.output}/model.bin {out}/result.json
    results: {score: {json: result.json, key: score}}
decision: {primary: {metric: score, better: higher}, baseline: base, delta: 0.3}
report: {documents: [paper.md]}
"""
TRAIN = """\
mkdir -p runs/$1_$2/replay
echo "weights of $1 $2" > runs/$1_$2/model.bin
echo "an array" > runs/$1_$2/replay/0.npz
case $1 in base) less=31;; *) less=47;; esac
for step in 1 2 3; do echo "{\\"step\\": $step, \\"score\\": $step.$2$less}"; done > runs/$1_$2/metrics.jsonl
"""
EVAL = """\
test -f "$3" || exit 9
case $1-$2 in
  base-0) score=5.1327;; base-1) score=5.4213;; base-2) score=4.8741;; base-3) score=5.6109;; base-4) score=5.0532;;
  new-0) score=7.3114;; new-1) score=6.9438;; new-2) score=7.1802;; new-3) score=7.5271;; new-4) score=6.8319;;
esac
echo "{\\"score\\": $score}" > "$4"
"""
PAPER = "| config | eval score |\n| --- | --- |\n| base | 5.22 |\n| new | 7.22 |\n"
SECRET = "hunter2-of-the-environment"


@pytest.fixture
def finished(camp: Camp) -> Camp:
    """Its trainings write outside of its folder."""
    elsewhere = camp.root.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "train.sh").write_text(TRAIN)
    (camp.root / "eval.sh").write_text(EVAL)
    (camp.root / "paper.md").write_text(PAPER)
    camp.write(CAMPAIGN)
    camp.environment["MY_API_TOKEN"] = SECRET
    camp("up", code=0)
    camp("report", code=0)
    camp("docs", "bind", "paper.md", "--yes", "--place", code=0)
    camp("report", code=0)
    return camp


def numbers(camp: Camp) -> dict[str, Any]:
    """What must be the same wherever it is asked."""
    trace = camp.json("trace", "reports/decision.md", code=0)
    report = camp.json("report", code=0)
    verify = camp.json("verify", code=0)
    return {
        "verdict": report["verdict"],
        "flags": report["flags"],
        "table": report["table"],
        "states": {file["path"]: file["state"] for file in verify["files"]},
        "files": {cell["cell"]: sorted(file["sha256"] for file in cell["files"]) for cell in trace["cells"]},
        "checkpoints": {cell["cell"]: (cell["checkpoint"] or {}).get("sha256") for cell in trace["cells"]},
        "paper": (camp.root / "paper.md").read_text(),
        "curves": (camp.root / "reports" / "decision.md").read_text().count("figures/"),
        "cells": camp.cells(),
    }


def unpacked(camp: Camp, pack: Path, folder: Path) -> Camp:
    told = fits(camp.json("unpack", str(pack), str(folder), code=0), "unpack")
    assert told["folder"] == str(folder.resolve())
    other = Camp(folder, Path(camp.environment["MUSTER_HOME"]))
    other.environment |= {name: value for name, value in camp.environment.items() if name != "MY_API_TOKEN"}
    return other


def fits(value: Any, name: str) -> Any:
    Draft202012Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_text())).validate(value)
    return value


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param([], id="without checkpoints"),
        pytest.param(["--with", "checkpoints"], marks=pytest.mark.slow, id="with checkpoints"),
    ],
)
def test_unpacked_elsewhere_it_tells_the_same(finished: Camp, tmp_path: Path, extra: list[str]) -> None:
    before = numbers(finished)
    pack = tmp_path / "home.tar.gz"
    made = fits(finished.json("pack", str(pack), *extra, code=0), "pack")
    assert (made["checkpoints"], len(made["left_out"])) == ((10, 0) if extra else (0, 10))
    assert made["outside"] == (20 if extra else 10)
    # the machine that it ran on is given back
    shutil.move(finished.root, tmp_path / "gone")
    shutil.move(finished.root.parent / "elsewhere", tmp_path / "gone")
    home = tmp_path / "home dir"
    home.mkdir()
    other = unpacked(Camp(home, tmp_path / "home"), pack, home / "sprint")

    verify = other.json("verify", code=0)  # before it is reported anew
    assert {file["state"] for file in verify["files"]} == {"fresh"}
    said = "not in this pack, recorded hash"
    assert all((said in file["because"]) != bool(extra) for file in verify["files"])
    assert numbers(other) == before
    assert fits(other.json("status", code=0), "status")["report"]["stale"] is False
    (cell,) = [
        cell for cell in other.json("trace", "reports/decision.md", code=0)["cells"] if cell["cell"] == "train/new/0"
    ]
    assert all(Path(file["path"]).is_relative_to(other.root) for file in cell["files"])
    everything = b"".join(path.read_bytes() for path in other.root.rglob("*") if path.is_file())
    assert SECRET.encode() not in everything
    assert not (other.root / ".muster" / "env").exists()
    assert not list(other.root.rglob("*.npz"))

    again = tmp_path / "again.tar.gz"  # what was unpacked can be packed
    other("pack", str(again), *extra, code=0)
    shutil.rmtree(other.root)
    third = unpacked(other_camp(tmp_path), again, tmp_path / "third")
    assert numbers(third) == before


def other_camp(tmp_path: Path) -> Camp:
    return Camp(tmp_path, tmp_path / "home")


def test_where_the_original_lives_the_unpacked_one_is_a_copy(finished: Camp, tmp_path: Path) -> None:
    finished("pack", str(tmp_path / "a.tar.gz"), code=0)
    other = unpacked(finished, tmp_path / "a.tar.gz", tmp_path / "there")
    log = (other.root / ".muster" / "decisions.jsonl").read_bytes()
    for command in (("up",), ("note", "x"), ("hold", "--because", "x")):
        assert "this folder is a copy" in other(*command, code=1).stderr
    assert (other.root / ".muster" / "decisions.jsonl").read_bytes() == log
    other("report", code=0)
    first = (tmp_path / "a.tar.gz").read_bytes()
    finished("pack", str(tmp_path / "a.tar.gz"), "--force", code=0)
    assert (tmp_path / "a.tar.gz").read_bytes() == first  # the same campaign, the same pack


def test_every_wrong_use_has_one_message_and_changes_nothing(finished: Camp, tmp_path: Path) -> None:
    pack = tmp_path / "a.tar.gz"
    finished("pack", str(pack), code=0)
    good = pack.read_bytes()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "cut.tar.gz").write_bytes(good[: len(good) // 2])
    (tmp_path / "changed.tar.gz").write_bytes(good[:5000] + bytes([good[5000] ^ 1]) + good[5001:])
    (tmp_path / "text.tar.gz").write_text("hello")
    before = sorted(tmp_path.rglob("*"))
    cases = [
        (("pack",), 2, "FILE"),
        (("pack", str(pack)), 2, "a.tar.gz exists"),
        (("pack", "a.zip"), 2, "does not end as a pack does"),
        (("pack", str(tmp_path / "none" / "a.tar.gz")), 2, "there is no folder"),
        (("pack", str(tmp_path / "b.tar.gz"), "--with", "weights"), 2, "--with weights: there is no such extra"),
        (("pack", str(tmp_path / "full")), 2, "does not end as a pack does"),
        (("unpack",), 2, "FILE"),
        (("unpack", str(tmp_path / "none.tar.gz")), 2, "there is no file"),
        (("unpack", str(tmp_path / "full")), 2, "does not end as a pack does"),
        (("unpack", str(tmp_path / "full"), str(tmp_path / "new")), 2, "this is no file"),
        (("unpack", str(pack), str(tmp_path / "full")), 2, "full is not empty"),
        (("unpack", str(pack), str(tmp_path / "none" / "there")), 2, "there is no folder"),
        (("unpack", str(pack), str(pack)), 2, "is no folder"),
        (("unpack", str(tmp_path / "cut.tar.gz"), str(tmp_path / "new")), 1, "the pack is not whole"),
        (("unpack", str(tmp_path / "changed.tar.gz"), str(tmp_path / "new")), 1, "the pack is not whole"),
        (("unpack", str(tmp_path / "text.tar.gz"), str(tmp_path / "new")), 1, "this is no pack of Muster"),
    ]
    for command, code, words in cases:
        done = finished(*command)
        assert done.returncode == code, (command, done.stdout, done.stderr)
        assert words in done.stderr, (command, done.stderr)
        assert "Traceback" not in done.stderr
        error = json.loads(finished(*command, "--json").stderr) if len(command) > 1 else None
        assert error is None or words in error["error"]["message"] or words in error["error"]["where"]
    assert sorted(tmp_path.rglob("*")) == before


def test_what_looks_like_a_secret_is_not_packed_unasked(finished: Camp, tmp_path: Path) -> None:
    finished.write(CAMPAIGN + "env: {WANDB_API_KEY: abc123}\n")
    told = finished("pack", str(tmp_path / "a.tar.gz"), code=1).stderr
    assert "line 19 of campaign.yaml looks like a secret" in told
    assert "abc123" not in told
    assert not (tmp_path / "a.tar.gz").exists()
    finished("pack", str(tmp_path / "a.tar.gz"), "--with", "secrets", code=0)


def test_while_runs_run_nothing_is_packed(gated: Camp, tmp_path: Path) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    assert "not over: train/0" in gated("pack", str(tmp_path / "a.tar.gz"), code=1).stderr
    assert not (tmp_path / "a.tar.gz").exists()


def test_a_pack_that_is_terminated_leaves_nothing(finished: Camp, tmp_path: Path) -> None:
    """The writing of it is held up until the signal has come."""
    target = tmp_path / "packs"
    target.mkdir()
    code = (
        "import os, sys, time; from pathlib import Path; from muster.app.overview import write_pack as pack\n"
        "def wait(*a):\n"
        f"    Path({str(tmp_path / 'begun')!r}).touch(); time.sleep(60)\n"
        "pack._write_tar_stream = lambda stream, *rest: (stream.write(b'x' * 100000), wait())\n"
        "from muster.faces.cli.common.entrypoint import run_command_line as leave; sys.exit(leave(sys.argv[1:]))\n"
    )
    words = [sys.executable, "-c", code, "pack", str(target / "a.tar.gz")]
    running = subprocess.Popen(words, cwd=finished.root, env=finished.environment)
    try:
        finished.until((tmp_path / "begun").exists, "the pack's beginning")
        (partial,) = target.iterdir()
        assert re.fullmatch(rf"\.a\.tar\.gz\.[0-9a-f]+\.{running.pid}", partial.name)
        os.kill(running.pid, signal.SIGTERM)
        assert running.wait(30) == 130
    finally:
        running.kill()
        running.wait()
    assert list(target.iterdir()) == []
