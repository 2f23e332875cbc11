"""The state of a campaign is lost in every way there is, and `muster fsck` brings it back. Faults 44 and 45."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.camp import Camp, until

QUICK = """\
muster: 1
campaign: quick
axes: {config: [a, b], seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [config, seed]
    command: /bin/sh -c 'echo ran >> "$MUSTER_OUT/../../count"; test {config}{seed} != b1'
"""


@pytest.fixture
def ended(camp: Camp) -> Camp:
    """Three cells DONE and one DEAD, the controller gone."""
    camp.write(QUICK)
    camp("up", code=3)
    until(lambda: camp.controller() is None)
    return camp


def truth(camp: Camp) -> dict[str, object]:
    """The status less what passes with time."""
    status = camp.json("status")
    for cell in status["cells"]:
        for item in cell["evidence"]:
            item.pop("age_s")
    return {key: status[key] for key in ("cells", "counts", "declared", "intent", "complete")}


def runs(camp: Camp) -> int:
    return sum(len(path.read_text().splitlines()) for path in (camp.root / ".muster").glob("attempts/**/count"))


def lose(camp: Camp, *names: str) -> None:
    for name in names:
        (camp.root / ".muster" / name).unlink(missing_ok=True)


@pytest.mark.parametrize("names", [("campaign.db",), ("campaign.db", "campaign.db-wal", "campaign.db-shm")])
def test_a_deleted_database_comes_back_by_itself(ended: Camp, names: tuple[str, ...]) -> None:
    before = truth(ended)
    lose(ended, *names)
    assert truth(ended) == before
    assert ended.json("status", code=3)["counts"]["DONE"] == 3
    assert runs(ended) == 4


def test_a_damaged_database_is_named_and_mended(ended: Camp) -> None:
    before = truth(ended)
    (ended.root / ".muster" / "campaign.db").write_bytes(b"\x00rubbish" * 1000)
    for command in ("status", "up", "plan", "adopt"):
        told = ended(command, code=1)
        assert "campaign.db is damaged: run `muster fsck`" in told.stderr
        assert "Traceback" not in told.stderr + told.stdout
    error = json.loads(ended("status", "--json", code=1).stderr)["error"]
    assert (error["code"], error["message"]) == ("damaged", "campaign.db is damaged: run `muster fsck`")
    told = ended("fsck", code=0).stdout
    assert "rebuilt: 4 cells, 4 attempts" in told
    assert "was damaged: file is not a database" in told
    assert truth(ended) == before
    assert (ended.root / ".muster" / "campaign.db.before-fsck").read_bytes().startswith(b"\x00rubbish")
    ended("up", code=3)
    assert runs(ended) == 4


def test_a_sound_state_is_rebuilt_the_same(ended: Camp) -> None:
    before = truth(ended)
    told = ended("fsck", code=0).stdout
    assert "the old campaign.db was sound; differences to the rebuilt one: 0" in told
    found = ended.json("fsck", code=0)
    assert (found["cells"], found["attempts"], found["differences"]) == (4, 4, [])
    assert truth(ended) == before


def test_a_lost_log_comes_back_from_the_database(ended: Camp) -> None:
    before = truth(ended)
    log = ended.root / ".muster" / "decisions.jsonl"
    whole = log.read_bytes()
    log.unlink()
    told = ended("status", code=1)
    assert "decisions.jsonl is gone, and there are attempts: run `muster fsck`" in told.stderr
    assert "came back, from the old campaign.db" in ended("fsck", code=0).stdout
    assert log.read_bytes() == whole
    assert truth(ended) == before


def test_a_broken_line_of_the_log(ended: Camp) -> None:
    log = ended.root / ".muster" / "decisions.jsonl"
    lose(ended, "campaign.db")
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:3], b'{"kind": "hal\n', *lines[3:]]))
    told = ended("status", code=1)
    assert "decisions.jsonl has a line that can't be read: run `muster fsck`" in told.stderr
    told = ended("fsck", code=0)
    assert 'line 4: {"kind": "hal' in told.stdout
    assert (ended.root / ".muster" / "decisions.torn").read_bytes() == b'{"kind": "hal\n'
    assert ended.json("status", code=3)["counts"]["DONE"] == 3


def test_only_the_folders_are_left(ended: Camp) -> None:
    """No log, no database: nothing that ran is run again, and how it ended is judged from the folders."""
    lose(ended, "campaign.db", "campaign.db-wal", "campaign.db-shm", "decisions.jsonl")
    for command in ("status", "up"):  # not "it has not been started": absence of a file proves nothing
        told = ended(command, code=1)
        assert "decisions.jsonl is gone, and there are attempts: run `muster fsck`" in told.stderr
    told = ended("fsck", code=0)
    assert "4 attempts were known only by their folders" in told.stdout
    ended("up", code=3)
    assert ended.cells() == {"train/a/0": "DONE", "train/a/1": "DONE", "train/b/0": "DONE", "train/b/1": "DEAD"}
    assert runs(ended) == 4


def test_starts_that_the_log_lost(ended: Camp) -> None:
    """The log of an earlier moment was put back, the database is gone: the folders know the rest."""
    log = ended.root / ".muster" / "decisions.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if b'"kind":"start"' in line)
    log.write_bytes(b"".join(lines[: first + 1]))
    lose(ended, "campaign.db")
    found = ended.json("fsck", code=0)
    assert len(found["recovered"]) == 3
    assert len(found["ended"]) == 4
    ended("up", code=3)
    assert ended.json("status")["counts"] | {"DONE": 3, "DEAD": 1} == ended.json("status")["counts"]
    assert runs(ended) == 4


def test_a_missing_snapshot_is_made_again_from_the_same_text(ended: Camp) -> None:
    before = truth(ended)
    (snapshot,) = (ended.root / ".muster" / "campaigns").glob("*.json")
    data = snapshot.read_bytes()
    snapshot.unlink()
    told = ended("status", code=1)
    assert "the campaign that was taken in can't be read" in told.stderr
    ended("fsck", code=0)
    assert snapshot.read_bytes() == data
    assert truth(ended) == before


def test_a_missing_snapshot_of_another_text_is_an_error_with_its_mend(ended: Camp) -> None:
    (snapshot,) = (ended.root / ".muster" / "campaigns").glob("*.json")
    snapshot.unlink()
    ended.write(QUICK.replace("[a, b]", "[a, b, c]"))
    told = ended("fsck", code=1)
    assert f"is missing: its cells can't be known without it\n  where: {snapshot}" in told.stderr
    assert "restore that file from a backup, or put campaign.yaml back as it was then" in told.stderr
    ended.write(QUICK)
    ended("fsck", code=0)


def test_a_controller_that_lives_is_not_disturbed(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    pid = gated.started("train/0")
    told = gated("fsck", code=1)
    assert "is at work; nothing was changed" in told.stderr
    assert "`muster down` first" in told.stderr
    gated("down", code=0)
    assert "rebuilt: 4 cells" in gated("fsck", code=0).stdout
    status = {cell["cell"]: cell for cell in gated.json("status")["cells"]}
    assert (status["train/0"]["verdict"], status["train/0"]["pid"]) == ("RUNNING", pid)
    gated("up", "--detach", code=0)
    gated.open(0)
    gated.open(1)
    gated("wait", code=0)
    assert set(gated.cells().values()) == {"DONE"}


def test_a_database_deleted_under_a_controller_that_lives(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    lose(gated, "campaign.db", "campaign.db-wal", "campaign.db-shm")
    told = gated("status")
    assert told.returncode in (1, 4), told
    assert "has not been started" not in told.stderr
    gated.open(0)
    gated.open(1)
    gated.ended("eval/0")
    gated.ended("eval/1")
    until(lambda: gated.controller() is None)
    assert set(gated.cells().values()) == {"DONE"}
    assert not list(Path(gated.root, ".muster").glob("attempts/**/2"))


def test_all_but_the_database_is_deleted(ended: Camp) -> None:
    """As by an `rm -rf` beside a controller, which made it anew in between."""
    before = ended.cells()
    for path in (ended.root / ".muster").iterdir():
        if path.name != "campaign.db":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert "run `muster fsck`" in ended("status", code=1).stderr
    assert "came back, from the old campaign.db" in ended("fsck", code=0).stdout
    assert ended.cells() == before


def test_an_empty_log_and_an_empty_database_tell_nothing(ended: Camp) -> None:
    """As when a command makes them beside an `rm -rf`: there must be a way on."""
    state = ended.root / ".muster"
    shutil.rmtree(state / "campaigns")
    lose(ended, "campaign.db", "campaign.db-wal", "campaign.db-shm")
    (state / "decisions.jsonl").write_bytes(b"")
    assert "run `muster fsck`" in ended("status", code=1).stderr
    assert "move that folder away, `muster up` anew" in ended("fsck", code=1).stderr
    (state / "attempts").rename(ended.root / "old")
    assert ended("up", "--detach", code=0)


def test_a_campaign_that_was_never_started(camp: Camp) -> None:
    camp.write(QUICK)
    told = camp("fsck", code=2)
    assert "this campaign has not been started" in told.stderr
    assert not (camp.root / ".muster").exists()
