"""Two versions of Muster at one campaign: both ways they understand each other, or say so and change nothing."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muster.faces.cli.common.command_line import COMMANDS
from muster.faces.cli.common.entrypoint import run_command_line
from muster.model.errors import STATE_FORMAT
from support.camp import Camp, alive, until

SOURCE = Path(__file__).parents[2] / "src" / "muster"
BEFORE_THE_MOVE = "8e4c3836f765b3ae31eb6eabbe0d4f2e0c2e83b1"  # the last commit with the old layout
BEFORE_FORMATS = "3eb268292f3a0ff8daddb9c2ee789d01a5da6392"  # the last commit whose epochs say no format
QUICK = """\
muster: 1
campaign: quick
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs:
  train: {axes: [seed], command: /bin/true}
"""
# what each command needs to be called at all; those that open no campaign's state are missing
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "check": (), "plan": (), "up": ("--detach",), "status": (), "why": ("train/0",), "wait": (), "logs": ("train/0",),
    "metrics": ("train/0",), "stop": ("train/0",), "down": (), "hold": ("--because", "x"), "release": (),
    "retry": ("train/0", "--because", "x"), "redo": ("train/0", "--because", "x"),
    "giveup": ("train/0", "--because", "x"), "accept": ("train/0", "--because", "x"),
    "flag": ("accept", "X", "--because", "x"), "note": ("x",), "rename": ("seed", "0=1"), "adopt": (), "report": (),
    "trace": ("reports/x",), "verify": (), "record": (), "manifest": (), "pack": ("x.tar.gz",), "cost": (),
    "loop": ("propose",), "gates": ("check",), "journal": ("new",), "shutdown": ("--dry-run",), "fsck": (),
    "clean": (),
}  # fmt: skip
STATELESS = {"demo", "init", "schema", "look", "unpack", "docs", "edit", "ls", "gates", "journal"}


def tree(root: Path) -> dict[str, str]:
    """Every file below it with its content; what SQLite lays beside a database while it is open is gone again."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


def newer_database(state: Path) -> None:
    db = sqlite3.connect(state / "campaign.db")
    db.execute("PRAGMA user_version = 99")
    db.close()


def appended(state: Path, decision: dict[str, Any]) -> None:
    with open(state / "decisions.jsonl", "a") as log:
        log.write(json.dumps(decision) + "\n")


def newer_epoch(state: Path) -> None:
    appended(state, {"kind": "epoch", "who": "later", "epoch": 900, "data": {"epoch": 900, "format": 99}})


def newer_kind(state: Path) -> None:
    appended(state, {"kind": "teleport", "who": "later"})


def newer_folded_epoch(state: Path) -> None:
    """As a newer Muster leaves it: in the log and in the database."""
    newer_epoch(state)
    db = sqlite3.connect(state / "campaign.db")
    with db:
        db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('format', '99')")
        size = (state / "decisions.jsonl").stat().st_size
        db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('applied', ?)", (str(size),))
    db.close()


def newer_snapshot(state: Path) -> None:
    for path in (state / "campaigns").glob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))


NEWER = (newer_database, newer_epoch, newer_kind, newer_folded_epoch, newer_snapshot)


@pytest.fixture
def done(camp: Camp) -> Camp:
    camp.write(QUICK)
    camp("up", code=0)
    until(lambda: camp.controller() is None, "its controller has ended")
    return camp


@pytest.mark.parametrize("make_newer", NEWER, ids=lambda each: each.__name__)
def test_every_command_refuses_a_newer_state(
    done: Camp, make_newer: Callable[[Path], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_HOME", done.environment["MUSTER_HOME"])
    monkeypatch.delenv("MUSTER_ATTEMPT", raising=False)
    make_newer(done.root / ".muster")
    before = tree(done.root)
    assert set(ARGUMENTS) | STATELESS >= set(COMMANDS), "a new command: what does it do with a newer state?"
    let_through = []
    for command in (name for name in COMMANDS if name in ARGUMENTS and name not in STATELESS):
        code = run_command_line(["-C", str(done.root), command, *ARGUMENTS[command]])
        said = capsys.readouterr().err
        if code != 1 or said.count("this state is of a newer Muster") != 1 or "nothing was changed" not in said:
            let_through.append((command, code, said))
        assert tree(done.root) == before, command
    assert let_through == []


def test_fsck_and_a_controller_and_a_shim_refuse_it_too(done: Camp) -> None:
    newer_epoch(done.root / ".muster")
    before = tree(done.root)
    command = [sys.executable, "-m", "muster.bootstrap.controller_process", str(done.root)]
    ended = subprocess.run(command, env=done.environment, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, "newer Muster" in ended.stderr, "Traceback" in ended.stderr) == (3, True, False)
    assert {name: each for name, each in tree(done.root).items() if name != ".muster/controller.lock"} == {
        name: each for name, each in before.items() if name != ".muster/controller.lock"
    }
    assert "newer" in done("status", "--json", code=1).stderr

    folder = done.root / ".muster" / "attempts" / "train" / "9"
    folder.mkdir()
    (folder / "attempt.json").write_text('{"muster": 99}')
    shim = [sys.executable, "-I", "-S", str(SOURCE / "hosts" / "local" / "shim.py"), "run", str(folder)]
    assert subprocess.run(shim, timeout=60, start_new_session=True).returncode == 1
    assert "of a newer Muster" in (folder / "stderr.log").read_text()
    assert not (folder / "started").exists()


def test_an_order_of_a_newer_muster(done: Camp) -> None:
    order = done.folder("train/0") / "attempt.json"
    order.write_text(json.dumps({**json.loads(order.read_text()), "muster": 99}))
    before = tree(done.root)
    for command in (("record",), ("fsck",)):
        assert "an attempt's order has format 99" in done(*command, code=1).stderr
        assert tree(done.root) == before


def test_a_pack_with_a_newer_log_is_not_unpacked(done: Camp, tmp_path: Path) -> None:
    later = Version(done, tmp_path / "later", STATE_FORMAT + 1)
    later.muster("note", "from a later version", code=0)
    later.muster("pack", str(tmp_path / "later.tar.gz"), code=0)
    said = done("unpack", str(tmp_path / "later.tar.gz"), str(tmp_path / "new"), code=1).stderr
    assert "this state is of a newer Muster" in said
    assert not (tmp_path / "new").exists()


# -- two versions side by side


class Version:
    """A copy of this package that has another format, or the package of another commit; its own process each time."""

    def __init__(self, camp: Camp, folder: Path, number: int | None) -> None:
        self.camp, self.folder = camp, folder
        if number is None:
            return
        shutil.copytree(SOURCE, folder / "muster", ignore=shutil.ignore_patterns("__pycache__"))
        formats = folder / "muster" / "model" / "errors.py"
        text, count = re.subn(r"(?m)^STATE_FORMAT = \d+", f"STATE_FORMAT = {number}", formats.read_text())
        assert count == 1
        formats.write_text(text)
        about = folder / "muster" / "__init__.py"
        about.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "0.0.{number}"', about.read_text()))

    def with_migration(self) -> Version:
        """Its database has a column more."""
        path = self.folder / "muster" / "engine" / "store" / "sql" / "9000_later.sql"
        path.write_text("ALTER TABLE cell ADD COLUMN later TEXT;\n")
        return self

    def muster(self, *args: str, code: int | None = None) -> subprocess.CompletedProcess[str]:
        before = dict(self.camp.environment)
        self.camp.environment["PYTHONPATH"] = str(self.folder)
        try:
            return self.camp(*args, code=code)
        finally:
            self.camp.environment = before


def loaded_from(pid: int, folder: Path) -> bool:
    return f"PYTHONPATH={folder}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


@pytest.mark.parametrize("migrates", [False, True])
def test_a_newer_command_and_the_controller_of_an_older_one(gated: Camp, tmp_path: Path, migrates: bool) -> None:
    """`status` reads and changes nothing. What decides ends the old controller and goes on; the runs notice nothing."""
    later = Version(gated, tmp_path / "later", STATE_FORMAT + 1)
    if migrates:
        later.with_migration()
    gated("up", "--detach", code=0)
    run, old = gated.started("train/0"), gated.controller()
    assert old is not None
    found = later.muster("status", code=4).stdout
    assert f"controller {old} of an older Muster" in found
    assert gated.controller() == old
    assert gated.cells()["train/0"] == "RUNNING", "the older command still can read it, too"

    later.muster("note", "after the upgrade", code=0)
    assert not alive(old)
    until(lambda: gated.controller() is not None, "a controller of the newer version")
    assert loaded_from(gated.controller() or 0, tmp_path / "later")
    taken = [each for each in gated.decisions("epoch") if "of an older Muster" in each["reason"]]
    assert [each["data"]["format"] for each in taken] == [STATE_FORMAT + 1]
    assert alive(run)

    refused = gated("note", "from the older one", code=1).stderr
    assert "this state is of a newer Muster" in refused
    assert [each["reason"] for each in gated.decisions("note")] == ["after the upgrade"]
    for name in (0, 1):
        gated.open(name)
    assert later.muster("wait", "--timeout", "60s", code=0).returncode == 0
    assert len(gated.decisions("start")) == 4, "nothing ran twice"
    later.muster("fsck", code=0)


def test_an_older_controller_that_a_shim_calls_does_nothing(gated: Camp, tmp_path: Path) -> None:
    earlier = Version(gated, tmp_path / "earlier", STATE_FORMAT - 1)
    earlier.muster("up", "--detach", code=0)
    gated.started("train/0")
    old = gated.controller()
    gated("note", "by the newer one", code=0)
    until(lambda: gated.controller() not in (None, old), "a controller of this version")
    epochs = len(gated.decisions("epoch"))
    os.kill(gated.controller() or 0, 9)
    until(lambda: gated.controller() is None, "nobody is there")
    environment = {**gated.environment, "PYTHONPATH": str(tmp_path / "earlier")}
    command = [sys.executable, "-m", "muster.wiring.controller", str(gated.root)]  # as a shim of the earlier one would
    assert subprocess.run(command, env=environment, capture_output=True, timeout=60).returncode == 3
    assert len(gated.decisions("epoch")) == epochs
    for name in (0, 1):
        gated.open(name)
    assert gated("status", code=4).returncode == 4
    assert gated("wait", "--timeout", "60s", code=0).returncode == 0


def unpack_commit(commit: str, folder: Path) -> None:
    """`muster` of that commit in the folder."""
    made = subprocess.run(["git", "-C", str(SOURCE.parents[1]), "archive", commit, "src/muster"], capture_output=True)
    if made.returncode:
        pytest.skip("a shallow clone has no older commits")
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder), "--strip-components=1"], input=made.stdout, check=True)


def test_the_last_version_without_formats(gated: Camp, tmp_path: Path) -> None:
    """The real one, where this clone has its history: its campaign is taken over and goes on."""
    unpack_commit(BEFORE_FORMATS, tmp_path / "old")
    earlier = Version(gated, tmp_path / "old", None)
    earlier.muster("up", "--detach", code=0)
    run, old = gated.started("train/0"), gated.controller()
    assert "of an older Muster" in gated("status", code=4).stdout
    assert gated.controller() == old
    gated("note", "after the upgrade", code=0)
    until(lambda: gated.controller() not in (None, old), "a controller of this version")
    assert alive(run)
    for name in (0, 1):
        gated.open(name)
    assert gated("wait", "--timeout", "60s", code=0).returncode == 0
    assert len(gated.decisions("start")) == 4
    gated("fsck", code=0)


def test_an_upgrade_under_a_living_campaign_of_the_old_layout(gated: Camp, tmp_path: Path) -> None:
    """Its guard knows modules by their old names, and starts the new controller by them."""
    place = tmp_path / "place"
    unpack_commit(BEFORE_THE_MOVE, place)
    earlier = Version(gated, place, None)
    earlier.muster("up", "--detach", code=0)
    run, old = gated.started("train/0"), gated.controller()
    shutil.rmtree(place / "muster")
    shutil.copytree(SOURCE, place / "muster", ignore=shutil.ignore_patterns("__pycache__"))
    assert f"controller {old}" in gated("status", code=4).stdout
    os.kill(old or 0, 9)
    until(lambda: gated.controller() not in (None, old), "a controller that the old guard has started")
    command = Path(f"/proc/{gated.controller()}/cmdline").read_bytes().split(b"\0")
    assert b"muster.wiring.controller" in command
    assert loaded_from(gated.controller() or 0, place)
    assert alive(run)
    for name in (0, 1):
        gated.open(name)
    assert gated("wait", "--timeout", "60s", code=0).returncode == 0
    assert len(gated.decisions("start")) == 4, "nothing ran twice"
    gated("fsck", code=0)
