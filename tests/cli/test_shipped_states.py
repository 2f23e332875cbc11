"""A state that came with a folder and belongs to whoever looks at it: what lies in it ends, stops and deletes nothing."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sqlite3
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.app.campaign import campaign_handle
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.load_campaign import read_runnable_campaign, submit_campaign
from muster.engine.ports.clock import SystemClock
from muster.engine.store import controller_files
from muster.faces.cli.common.entrypoint import run_command_line
from muster.model.errors import STATE_FORMAT
from support.camp import Camp

CAMPAIGN = """\
muster: 1
campaign: shipped
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs: {train: {axes: [seed], command: "true"}}
"""
LOOKS = (["status"], ["why", "train/0"], ["plan"], ["check", "--quick"], ["ls"], ["wait", "--timeout", "1s"])
STATE_FILES = (
    "intent", "place", "controller.lock", "guard.lock", "guard.json", "decisions.jsonl", "campaign.db", "watch.json",
    "launched", "registered", "outside.json", "code.json", "env", "campaigns",
)  # fmt: skip
PATIENCE_S = 60


@pytest.fixture
def state(camp: Camp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Taken in by somebody else: our register does not know it."""
    for name, value in (("MUSTER_HOME", camp.environment["MUSTER_HOME"]), ("MUSTER_GUARD", "off"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MUSTER_ATTEMPT", raising=False)
    camp.write(CAMPAIGN)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("MUSTER_HOME", str(tmp_path / "home of another machine"))
        made = CampaignHandle.create(camp.root)
        submit_campaign(made, read_runnable_campaign(made.file), ())
        made.close()
    before = signal.signal(signal.SIGALRM, _too_long)
    yield camp.root / ".muster"
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


class Waits(BaseException):
    """For something that never comes."""


def _too_long(*_: object) -> None:
    raise Waits


def asked(camp: Camp, capsys: pytest.CaptureFixture[str], words: list[str]) -> str:
    """What a command says, that must come to an end."""
    signal.alarm(PATIENCE_S)
    run_command_line(["-C", str(camp.root), *words])
    signal.alarm(0)
    told = capsys.readouterr()
    assert "unexpected" not in told.err + told.out, (words, told)
    return told.err + told.out


# -- the database


def lay_journal(database: Path, target: Path) -> None:
    """As a transaction over several databases leaves it that was cut off: SQLite deletes the file that it names."""
    for path in (database, *(Path(f"{database}-{suffix}") for suffix in ("wal", "shm", "journal"))):
        path.unlink(missing_ok=True)
    with sqlite3.connect(database) as db:
        db.execute("CREATE TABLE meta (key, value)")
    db.close()
    page = struct.unpack(">H", database.read_bytes()[16:18])[0]
    magic = bytes.fromhex("d9d505f920a163d7")
    header = magic + struct.pack(">IIIII", 0, 0, database.stat().st_size // page, 512, page)
    name = os.fsencode(target)
    last = struct.pack(">I", (1 << 30) // page + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    Path(f"{database}-journal").write_bytes(header.ljust(512, b"\0") + last)


def test_the_trap_of_the_journal_works(state: Path, tmp_path: Path) -> None:
    victim = tmp_path / "precious"
    victim.write_text("mine")
    lay_journal(state / "campaign.db", victim)
    with sqlite3.connect(state / "campaign.db") as db:
        db.execute("SELECT * FROM meta").fetchall()
    db.close()
    assert not victim.exists()


@pytest.mark.parametrize("known", [False, True], ids=["brought here", "started here"])
def test_no_file_is_deleted_that_a_database_names(
    camp: Camp, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], known: bool
) -> None:
    if known:
        camp("up", code=0)
    victim = tmp_path / "precious"
    acts = (["note", "seen"], ["fsck"])
    for words in (["status"], *acts) if known else (*LOOKS, *acts):
        victim.write_text("mine")
        lay_journal(state / "campaign.db", victim)
        asked(camp, capsys, words)
        assert victim.exists(), words


def test_a_database_that_came_along_is_not_asked(camp: Camp, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A view that never ends in a table's place; `up` folds the log anew."""
    with sqlite3.connect(state / "campaign.db") as db:
        db.execute("DROP TABLE meta")
        endless = "WITH RECURSIVE n(key, value) AS (SELECT '', '' UNION ALL SELECT key, value FROM n)"
        db.execute(f"CREATE VIEW meta AS {endless} SELECT * FROM n")
    db.close()
    for words in LOOKS:
        asked(camp, capsys, words)
    camp("up", code=0)
    assert camp.cells() == {"train/0": "DONE"}


def test_who_waits_for_what_was_brought_here_sees_what_is_decided_meanwhile(camp: Camp, state: Path) -> None:
    opened = CampaignHandle.open(camp.root)
    assert opened.load().intent.kind == "running"
    camp("down", code=0)
    assert opened.load().intent.kind == "down"
    opened.close()


# -- the locks


@pytest.mark.parametrize("how", ["older", "hung", "note"])
def test_nobody_is_killed_whom_a_lock_names(camp: Camp, state: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Whoever sent the folder holds the lock, which names a process of ours."""
    monkeypatch.setattr(campaign_handle, "CONTROLLER_PATIENCE_S", 0.1)
    monkeypatch.setattr(controller_files, "_take_flock", lambda _: False)
    innocent = subprocess.Popen(["sleep", "600"])
    try:
        ours = controller_files.ControllerLock(state, SystemClock())
        ticks = int(Path(f"/proc/{innocent.pid}/stat").read_text().rpartition(")")[2].split()[19])
        format_ = STATE_FORMAT if how == "hung" else 1
        about = {"pid": innocent.pid, "ticks": ticks, "epoch": 9, "since": 1.0, "beat": 1.0, "format": format_}
        ours.path.write_text(json.dumps(about))
        with open(ours.path) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            found = ours.hung()
            assert found is not None
            assert found.alive
            if how == "note":
                run_command_line(["-C", str(camp.root), "note", "seen"])
            else:
                assert not (ours.take_from(found) if how == "older" else ours.take_over(0.0))
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


# -- what can be waited for


def test_nobody_waits_for_a_pipe_in_the_state(camp: Camp, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in STATE_FILES:
        path, kept = state / name, state.parent / "kept"
        if path.exists():
            path.rename(kept)
        os.mkfifo(path)
        try:
            told = asked(camp, capsys, ["status"])
        finally:
            path.unlink()
        assert f"{name} in .muster is neither a file nor a folder" in told
        assert "fix:" in told
        if kept.exists():
            kept.rename(path)


def test_nobody_waits_for_what_the_mark_of_the_place_names(
    camp: Camp, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pipe", "endless"):
        theirs = tmp_path / name
        theirs.mkdir()
        if name == "pipe":
            os.mkfifo(theirs / "decisions.jsonl")
        else:
            (theirs / "decisions.jsonl").symlink_to("/dev/zero")
        mark = {"path": str(theirs), "inode": theirs.stat().st_ino, "machine": ""}
        (state / "place").write_text(json.dumps(mark))
        assert "shipped" in asked(camp, capsys, ["status"])


# -- what a pack would carry away


@pytest.mark.parametrize("by", ["path", "link"])
def test_a_pack_takes_no_file_of_ours_that_a_shipped_campaign_names(
    camp: Camp, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    key = tmp_path / "id_rsa"
    key.write_text("mine")
    (camp.root / "notes.md").symlink_to(key)
    for path in (state / "campaigns").glob("*.json"):
        told = json.loads(path.read_text())
        told["campaign"]["report"] = {"documents": [str(key) if by == "path" else "notes.md"]}
        path.write_text(json.dumps(told))
    said = asked(camp, capsys, ["pack", str(tmp_path / "p.tar.gz")])
    assert f"it names files outside of its folder: {key}" in said
    assert not (tmp_path / "p.tar.gz").exists()
