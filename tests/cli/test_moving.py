"""A finished campaign is moved, copied, taken home: every reading command tells the same of it, and all is fresh."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moving_world import finish, prepare, told

from support.camp import Camp

GOLDEN = Path(__file__).parent / "golden" / "absolute_paths.json"
FORMER = "/tmp/former"
READING = (
    ("status",), ("why", "eval/new/1"), ("why", "train/base/0"), ("cost",), ("record",), ("manifest",),
    ("logs", "eval/base/1"), ("plan",), ("docs", "audit", "paper.md"), ("docs", "update"), ("cost", "--report"),
    ("trace", "paper.md"), ("trace", "reports/decision.md", "--claim", "E1"),
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Camp]:
    """Made once; each test takes a copy of it, as a person would."""
    top = tmp_path_factory.mktemp("finished")
    (top / "home").mkdir()
    camp = Camp(top / "campaign", top / "home")
    camp.root.mkdir()
    prepare(camp.root)
    finish(camp)
    yield camp
    camp.clean_up()


def copied(camp: Camp, root: Path) -> Camp:
    subprocess.run(["cp", "-a", str(camp.root), str(root)], check=True)
    return at(camp, root)


def at(camp: Camp, root: Path) -> Camp:
    found = Camp(root, Path(camp.environment["MUSTER_HOME"]))
    found.environment = camp.environment
    return found


def alone(camp: Camp, root: Path) -> Camp:
    """A copy whose original is gone: it is told to lie elsewhere than the one that other tests need."""
    found = copied(camp, root)
    mark = json.loads((root / ".muster" / "place").read_text())
    (root / ".muster" / "place").write_text(json.dumps(mark | {"inode": 1}))
    return found


@pytest.fixture(scope="module")
def before(finished: Camp) -> dict[str, Any]:
    found = told(finished)
    assert set(found["states"].values()) == {"fresh"}
    return found


def states(camp: Camp) -> dict[str, str]:
    return {file["path"]: f"{file['state']} {file['because']}".strip() for file in camp.json("verify")["files"]}


def test_nothing_that_is_kept_names_the_folder(finished: Camp, before: dict[str, Any]) -> None:
    """But for the orders, which are executed; and where the campaign was taken in, which is told."""
    state = finished.root / ".muster"
    hashes = state / "hashes.json"  # of files that had not changed for two seconds when they were read
    until = time.monotonic() + 30
    while not hashes.exists() and time.monotonic() < until:
        time.sleep(0.25)
        told(finished)
    kept = [*state.glob("campaigns/*.json"), hashes, *finished.root.glob("reports/stamps/*.json")]
    lines = (state / "decisions.jsonl").read_text().splitlines()
    data = [json.loads(line)["data"] for line in lines]
    assert {each.pop("root") for each in data if "env_file" in each} == {str(finished.root)}
    outcomes = [each["outcome"] for each in data if "outcome" in each]
    assert all(not each["output"].startswith("/") for each in outcomes)
    for each in outcomes:
        each.pop("evidence")  # in words
    assert str(finished.root) not in json.dumps(data)
    for path in kept:
        kept_data = json.loads(path.read_text())
        if path.parent.name == "stamps":
            assert kept_data.pop("root") == str(finished.root)
            for cell in kept_data["basis"]["cells"].values():
                cell.pop("command")
        assert str(finished.root) not in json.dumps(kept_data), path


@pytest.mark.parametrize("name", ["moved", "with spaces and ünïcödé 文件夹", "with[a]glob*"])
def test_a_moved_campaign_is_the_same(finished: Camp, before: dict[str, Any], tmp_path: Path, name: str) -> None:
    first = alone(finished, tmp_path / "first")
    first.root.rename(tmp_path / name)
    camp = at(finished, tmp_path / name)
    assert set(states(camp).values()) == {"fresh"}
    assert told(camp) == before
    assert set(states(camp).values()) == {"fresh"}
    changed = camp.json("plan")
    assert not any(changed["changes"].values()), changed["changes"]


def test_every_reading_command_works_after_a_move(finished: Camp, before: dict[str, Any], tmp_path: Path) -> None:
    camp = alone(finished, tmp_path / "away")
    for command in READING:
        done = camp(*command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert str(finished.root) not in done.stdout + done.stderr, command
    assert set(states(camp).values()) == {"fresh"}


def test_a_link_to_the_folder(finished: Camp, before: dict[str, Any], tmp_path: Path) -> None:
    real = alone(finished, tmp_path / "real")
    (tmp_path / "link").symlink_to(real.root)
    done = real("-C", str(tmp_path / "link"), "verify", "--json", code=0)
    assert {file["state"] for file in json.loads(done.stdout)["files"]} == {"fresh"}
    real("-C", str(tmp_path / "link"), "report", code=0)
    assert told(real) == before


def test_a_copy_is_read_and_does_not_act(finished: Camp, before: dict[str, Any], tmp_path: Path) -> None:
    camp = copied(finished, tmp_path / "copy")
    log = (camp.root / ".muster" / "decisions.jsonl").read_bytes()
    assert set(states(camp).values()) == {"fresh"}
    assert told(camp) == before
    for command in (("up",), ("hold", "--because", "x"), ("retry", "eval/new/0", "--because", "x"), ("note", "a finding"), ("down",),
                    ("accept", "eval/new/0"), ("giveup", "eval/new/0", "--because", "x"), ("stop", "eval/new/0"), ("fsck",),
                    ("adopt", "code/outputs/*")):  # fmt: skip
        done = camp(*command)
        assert done.returncode == 1, (command, done.stdout, done.stderr)
        assert f"this folder is a copy: its state belongs to the campaign in {finished.root}" in done.stderr, command
    assert (camp.root / ".muster" / "decisions.jsonl").read_bytes() == log
    assert json.loads((camp.root / ".muster" / "place").read_text())["path"] == str(finished.root / ".muster")
    assert str(finished.root) in camp("status", code=0).stdout  # what it is a copy of


def test_a_copy_of_an_unfinished_campaign_starts_nothing(gated: Camp, tmp_path: Path) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    copy = copied(gated, tmp_path / "copy")
    assert copy.json("status")["cells"][0]["verdict"] == "RUNNING"
    copy("status")
    assert copy.controller() is None or copy.controller() == gated.controller()
    assert "this folder is a copy" in copy("stop", "train/0").stderr
    assert gated.cells()["train/0"] == "RUNNING"
    elsewhere = alone(gated, tmp_path / "elsewhere")  # as on another machine: the original can't be seen
    (elsewhere.root / ".muster" / "controller.lock").write_text("")
    log = (elsewhere.root / ".muster" / "decisions.jsonl").read_bytes()
    elsewhere("status")
    elsewhere("report")
    assert elsewhere.controller() is None
    assert (elsewhere.root / ".muster" / "decisions.jsonl").read_bytes() == log, "nobody asked it to act"


def test_who_decides_in_a_folder_that_was_brought_here_takes_it(finished: Camp, tmp_path: Path) -> None:
    camp = alone(finished, tmp_path / "mine")
    camp("note", "read at home", code=0)
    mark = json.loads((camp.root / ".muster" / "place").read_text())
    assert mark["path"] == str(camp.root / ".muster")
    assert mark["former"] == [str(finished.root / ".muster")]
    again = copied(camp, tmp_path / "again")
    assert "this folder is a copy" in again("note", "x", code=1).stderr


# -- files that are gone


AWAY = """\
muster: 1
campaign: away
axes: {config: [base, new], seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  eval:
    axes: [config, seed]
    command: /bin/sh eval.sh DATA/{config}-{seed} {config}-{seed}
    output: DATA/{config}-{seed}
    results: {score: {json: r.json, key: score}}
decision: {primary: {metric: score, better: higher}, baseline: base, delta: 0.3}
"""


def reported(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted((root / "reports").rglob("*")) if path.is_file()}


def test_a_report_is_not_lost_with_the_files_that_it_was_made_from(camp: Camp, tmp_path: Path) -> None:
    data = tmp_path / "network-disk"
    camp.write(AWAY.replace("DATA", str(data)))
    (camp.root / "eval.sh").write_text('mkdir -p "$1" && cp "$2.json" "$1/r.json"')
    for name, score in {"base-0": 1.25, "base-1": 2.5, "new-0": 3.75, "new-1": 6.5}.items():
        (camp.root / f"{name}.json").write_text(json.dumps({"score": score}))
    camp("up", code=0)
    camp("report")
    home = tmp_path / "taken home"
    camp.root.rename(home)
    camp.root.mkdir()  # commands of the fixture are given there
    away = at(camp, home)
    assert set(states(away).values()) == {"fresh"}, "the disk is still there"
    data.rename(tmp_path / "unmounted")
    was = reported(home)
    refused = away("report", code=1)
    assert f"eval/base/0: recorded at {data}/base-0/r.json; this campaign's folder is now {home}" in refused.stderr
    assert "it was left as it is" in refused.stderr
    assert reported(home) == was
    found = states(away)
    assert all(state.startswith("broken") for state in found.values())
    assert "Traceback" not in away("trace", "reports/decision.md").stderr
    for name in ("status", "cost", "record", "manifest"):
        away(name, code=0)
    shutil.rmtree(home / "reports")  # there is nothing to lose any more
    told = away("report", code=3)
    assert "INVALID" in told.stdout
    assert (
        f"recorded at {data}/base-0/r.json; this campaign's folder is now {home}; the file is not there" in told.stdout
    )
    assert "damaged" not in told.stdout + (home / "reports" / "decision.md").read_text()
    assert not [state for state in states(away).values() if state == "fresh"], "it rests on nothing that can be read"
    (tmp_path / "unmounted").rename(data)
    away("report")
    assert set(states(away).values()) == {"fresh"}
    (data / "new-1" / "r.json").write_text("{}")  # it is there, and there is no number in it
    assert f"{data}/new-1/r.json is there, and no score can be read from it" in away("report", code=1).stderr
    assert not [state for state in states(away).values() if state == "fresh"]


# -- a state of an earlier version, with absolute paths


def unpacked(root: Path, former: str, *, database: bool) -> dict[str, Any]:
    golden: dict[str, Any] = json.loads(GOLDEN.read_text())
    for name, file in golden["files"].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file["text"].replace("@ROOT@", former))
        os.utime(path, ns=(file["mtime_ns"], file["mtime_ns"]))
    if database:
        db = sqlite3.connect(root / ".muster" / "campaign.db")
        db.executescript(golden["database"].replace("@ROOT@", former))
        db.execute(f"PRAGMA user_version = {golden['user_version']}")
        db.close()
    told: dict[str, Any] = golden["told"]
    return told


@pytest.mark.parametrize("database", [True, False])
def test_a_state_with_absolute_paths(camp: Camp, database: bool) -> None:
    was = unpacked(camp.root, FORMER, database=database)  # without: folded anew from the same log
    assert was["states"].keys() == states(camp).keys()
    newer = "stale campaign.yaml changed: "  # a version that knows more keys than the one that made the stamps
    assert [state for state in states(camp).values() if state != "fresh" and not state.startswith(newer)] == []
    changes = camp.json("plan")["changes"]
    changes.pop("code_changed")  # a newer version knows more of the code than was written down then
    assert not any(changes.values()), "no definition changed"
    found = told(camp)
    assert set(found.pop("states").values()) == {"fresh"}
    assert found == {name: each for name, each in was.items() if name != "states"}
    camp("fsck", code=0)
    assert camp.json("report", code=0)["table"] == was["table"]


def test_the_same_state_where_it_was_made(camp: Camp) -> None:
    was = unpacked(camp.root, str(camp.root), database=False)
    assert told(camp)["table"] == was["table"]
    shutil.rmtree(camp.root / "reports")
    assert camp.json("report", code=0)["table"] == was["table"]
