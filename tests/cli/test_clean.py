"""`muster clean`: shown first, recorded, crash-safe, and never what something rests on."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from muster.app.campaign.disk_use import KeptPaths, format_leftover_size
from muster.files.crash_points import CLEAN_POINTS
from support.camp import Camp

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "clean.schema.json").read_text())
# attempt 1 of seed 0 fails and leaves a file; of seed 1 it dies with a checkpoint that attempt 2 resumes from
TRAIN = """\
import json, os, sys
seed, out, attempt = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("a word of", seed, attempt)
open(f"{out}/weights.bin", "wb").write(b"w" * 5000)
json.dump({"score": seed + attempt / 10}, open(f"{out}/result.json", "w"))
if attempt == 1 and seed < 2 and sys.argv[4] == "a":
    if seed == 1:
        open(f"{out}/last.ckpt", "w").write("1")
    sys.exit(5)
"""
CAMPAIGN = """\
muster: 1
campaign: cleaned
axes: {config: [a, b], seed: [0, 1, 2, 3, 4]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [config, seed]
    command: python3 train.py {seed} {out} {attempt} {config}
    resume: python3 train.py {seed} {out} {attempt} {config}
    progress: [{checkpoint: last.ckpt}]
    results: {score: {json: result.json, key: score}}
decision: {primary: {metric: score, better: higher}, baseline: b}
"""


def checked(found: Any) -> Any:
    Draft202012Validator(SCHEMA).validate(found)
    return found


def names(found: Any) -> set[str]:
    return {f"{each['kind']} {each['cell']} {each['attempt']}" for each in found["leftovers"]}


@pytest.fixture
def used(camp: Camp) -> Camp:
    """Seed 0: failed, then DONE. Seed 1: failed, DONE by resuming from it. Seed 2: redone. 3: DONE. 4: redone."""
    (camp.root / "train.py").write_text(TRAIN)
    camp.write(CAMPAIGN)
    camp("up", code=3)
    camp("retry", "train/a/0", "train/a/1", "--because", "once more", code=0)
    camp("wait", code=0)
    camp("redo", "train/a/2", "--because", "a doubt", code=0)
    camp("wait", code=0)
    return camp


def test_what_can_go_is_shown_and_only_that_goes(used: Camp) -> None:
    used("report", "--exit-zero")
    used("redo", "train/a/4", "--because", "later than the report", code=0)
    used("wait", code=0)
    before = {path: path.read_bytes() for path in used.root.rglob("*") if path.is_file() and "lock" not in path.name}
    found = checked(used.json("clean", "--older-than", "0s", code=0))
    assert names(found) == {"failed train/a/0 1", "superseded train/a/2 1"}
    assert not found["deleted"]
    assert checked(used.json("clean", code=0))["leftovers"] == [], "nothing is a day old"
    told = used("clean", "--older-than", "0s", code=0).stdout
    assert re.search(r"train/a/0 attempt 1, written .* ago", told)
    assert "--older-than 0s --yes` deletes it" in told
    assert all(path.read_bytes() == data for path, data in before.items() if path.suffix in (".bin", ".log", ".json"))
    fresh = [each["state"] for each in used.json("verify")["files"]]

    done = checked(used.json("clean", "--older-than", "0s", "--yes", code=0))
    assert names(done) == names(found)
    assert done["freed"] == found["bytes"] > 10000
    gone = {str(path.relative_to(used.root)) for path in before if not path.exists()}
    listed = [str(Path(path).relative_to(used.root)) for each in found["leftovers"] for path in each["paths"]]
    assert gone
    assert all(any(path == each or path.startswith(f"{each}/") for each in listed) for path in gone)
    assert (used.folder("train/a/1") / "out" / "last.ckpt").exists(), "attempt 2 has resumed from it"
    assert (used.folder("train/a/4") / "out" / "weights.bin").exists(), "the report rests on it"
    assert (used.folder("train/a/0") / "exit.json").exists()
    assert [each["state"] for each in used.json("verify")["files"]] == fresh
    assert checked(used.json("clean", "--older-than", "0s", "--yes", code=0))["leftovers"] == []

    assert re.search(r"its output and logs: cleaned on \d{4}-\d\d-\d\d by ", used("why", "train/a/0", code=0).stdout)
    assert "cleaned on" in used.json("why", "train/a/0")["attempts"][0]["cleaned"]
    assert used.json("why", "train/a/0")["attempts"][1]["cleaned"] is None
    assert "were cleaned on" in used("logs", "train/a/0", "--attempt", "1", code=1).stderr
    used("fsck", code=0)
    assert "cleaned on" in used("why", "train/a/0", code=0).stdout
    used("record", code=0)
    used("pack", "all.tar.gz", code=0)


@pytest.mark.parametrize("point", CLEAN_POINTS)
def test_killed_in_the_middle(used: Camp, point: str) -> None:
    listed = used.json("clean", "--older-than", "0s", code=0)["leftovers"]
    paths = [path for each in listed for path in each["paths"]]
    others = {
        path: path.read_bytes()
        for path in (used.root / ".muster").rglob("*")
        if path.is_file() and path.name in ("weights.bin", "result.json", "exit.json", "attempt.json", "stdout.log")
        and not any(str(path).startswith(each) for each in paths)
    }  # fmt: skip
    used.environment["MUSTER_CRASH_AT"] = point
    assert used("clean", "--older-than", "0s", "--yes").returncode == -9
    del used.environment["MUSTER_CRASH_AT"]
    assert all(path.read_bytes() == data for path, data in others.items())
    assert len(used.decisions("clean")) == 3, "it was written down before anything went"
    assert any(Path(path).exists() for path in paths)
    used("clean", "--older-than", "0s", "--yes", code=0)
    assert not any(Path(path).exists() for path in paths)


def test_what_a_note_points_at_and_what_lives_stays(used: Camp) -> None:
    log = used.folder("train/a/0") / "stdout.log"
    used("note", "here it is", "--evidence", f"{log}:1", code=0)
    found = used.json("clean", "--older-than", "0s", code=0)
    kept = next(each for each in found["leftovers"] if each["cell"] == "train/a/0")
    assert str(log) not in kept["paths"]
    lock = os.open(used.folder("train/a/2") / "tree.lock", os.O_RDWR)
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        assert names(used.json("clean", "--older-than", "0s", code=0)) == {"failed train/a/0 1"}
    finally:
        os.close(lock)


def test_leftovers_that_nobody_names(used: Camp) -> None:
    state = used.root / ".muster"
    made = {
        "env/0123456789abcdef.json": "environment",
        "campaigns/0123456789abcdef.json": "snapshot",
        "diffs/0123456789ab.diff": "diff",
        ".intent.999999999": "temporary",
        "attempts/train/a/3/1/.exit.json.999999999": "temporary",
        "decisions.torn": "backup",
        "campaign.db.before-fsck": "backup",
    }
    young = state / "env" / "fedcba9876543210.json"
    ours = state / f".place.{os.getpid()}"
    for path in (*(state / name for name in made), young, ours):
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
        if path != young:
            os.utime(path, (1771600000, 1771600000))
    found = used.json("clean", "--older-than", "1h", code=0)
    seen = {str(Path(path).relative_to(state)): each["kind"] for each in found["leftovers"] for path in each["paths"]}
    assert seen == made
    used("clean", "--older-than", "1h", "--yes", code=0)
    assert young.exists()
    assert ours.exists(), "whoever writes it lives"
    assert used.json("status", code=0)["complete"]
    used("fsck", code=0)


def test_a_copy_may_look_and_not_clean(used: Camp, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(used.root, tmp_path / "copy", symlinks=True, ignore=shutil.ignore_patterns("bell"))
    assert names(used.json("-C", str(tmp_path / "copy"), "clean", "--older-than", "0s", code=0))
    assert "this folder is a copy" in used("-C", str(tmp_path / "copy"), "clean", "--yes", code=1).stderr


def test_paths_that_must_stay() -> None:
    kept = KeptPaths(["/c/out/a/result.json", "/c/logs", "/d"])
    assert [kept.touches(path) for path in ("/c/out", "/c/out/a/result.json", "/c/logs/x", "/d")] == [True] * 4
    assert [kept.touches(path) for path in ("/c/ou", "/c/out/b", "/c/logs2", "/e", "/c/out/a/result.json2")] == [
        False
    ] * 5


def test_sizes() -> None:
    assert [format_leftover_size(n) for n in (0, 999, 4000, 1.2e9, 5e12, 2e15)] == [
        "0 B", "999 B", "4.0 kB", "1.2 GB", "5.0 TB", "2000.0 TB",
    ]  # fmt: skip
