"""fsck: whatever is left of the database, the rebuilt one is the fold of the log; what the log lost, folders supply."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_world import World, about, campaign, epoch, intent, settle

from muster.engine.ports.store import FsckReport, RebuildRequest
from muster.engine.store import decision_log
from muster.engine.store.database_checks import DatabaseDump, dump_database
from muster.engine.store.database_rebuild import list_missing_snapshots, rebuild_database, restore_missing_snapshot
from muster.engine.store.decision_log import FileDecisionLog
from muster.engine.store.sqlite_store import SqliteStore
from muster.files.campaign_snapshots import StoredSnapshot
from muster.model.attempt import Order
from muster.model.decision import Decision
from muster.model.errors import MusterError
from muster.text.phrases import speaking

ASKED = RebuildRequest("fsck by me", "now", 9.0)
FRAME, HEADER = 4096 + 24, 32  # of a write-ahead log


def fsck(folder: Path) -> FsckReport:
    return rebuild_database(folder, ASKED)


def tables(folder: Path) -> DatabaseDump:
    store = SqliteStore(folder)
    try:
        assert not store.behind()
        return dump_database(store.db)
    finally:
        store.close()


def fold(folder: Path) -> DatabaseDump:
    store = SqliteStore(folder, database=":memory:")
    store.commit([])
    found = dump_database(store.db)
    store.close()
    return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "state", "disk")
    made.begin()
    yield made
    made.store.close()


def history(world: World) -> list[list[Decision]]:
    """Commits as a controller makes them: several decisions at once."""
    return [
        [epoch(1)],
        [world.start("train/a", epoch=1), world.start("train/b", epoch=1)],
        [settle("DONE", "train/a", epoch=1), world.start("train/c", epoch=1)],
        [settle("DEAD", "train/b", epoch=1)],
        [about("retry", "train/b"), about("note", "train/a")],
        [world.start("train/b", 2, "exit_code(1)", 1), settle("DEAD", "train/c", epoch=1)],
        [about("hold", None), world.start("train/c", 2, "exit_code(1)", 1)],
        [about("release", None), epoch(2), settle("DONE", "train/b", 2, 2)],
        [about("accept", "train/c", attempt=1), world.campaign("abcd", 2)],
    ]


def order(world: World, cell: str, n: int = 1, cause: str | None = None, ended: bool = False) -> Order:
    """An attempt folder as the executor and the shim leave it."""
    folder = world.folder / "attempts" / cell / str(n)
    (folder / "out").mkdir(parents=True)
    made = Order(
        cell=cell, n=n, token=f"folder-{cell}-{n}", epoch=1, argv=("true",), cwd="/", env={}, env_file="", slots=("cpu1",),
        out=str(folder / "out"), output=str(folder / "out"), hash="h-then", claimed_at="then", claimed_boot=5.0,
        boot_id="b", retry_cause=cause, resumed_from=None, state=str(world.folder), bell="", ballast="", revive=(),
        revive_s=30.0, axes={}, code={},
    )  # fmt: skip
    (folder / "attempt.json").write_bytes(msgspec.json.encode(made))
    if ended:
        (folder / "exit.json").write_text(json.dumps({"token": made.token, "code": 0}))
    return made


# -- fault 44: a power cut in a commit


def copies(world: World, folder: Path) -> list[Path]:
    """The files as they lie on the disk after each commit; the -shm is memory and does not survive."""
    made = []
    for number, decisions in enumerate(history(world)):
        world.store.commit(decisions)
        copy = folder / str(number)
        copy.mkdir(parents=True)
        shutil.copytree(world.folder / "campaigns", copy / "campaigns")
        for name in ("campaign.db", "campaign.db-wal", "decisions.jsonl"):
            shutil.copy(world.folder / name, copy / name)
        made.append(copy)
    return made


def test_a_power_cut_after_every_commit_and_within_it(world: World, tmp_path: Path) -> None:
    world.store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    chance, checked = random.Random(44), 0
    for copy in copies(world, tmp_path / "copies"):
        expected = fold(copy)
        wal = (copy / "campaign.db-wal").read_bytes()
        last = HEADER + (len(wal) - HEADER) // FRAME * FRAME  # behind the last whole frame
        cuts = {0, 1, HEADER, last - FRAME, last - FRAME // 2, last - 1, last, len(wal)}
        cuts |= {HEADER + number * FRAME + chance.randrange(FRAME) for number in range(0, last // FRAME, 5)}
        for cut in sorted(cut for cut in cuts if 0 <= cut <= len(wal)):
            folder = tmp_path / "cut"
            shutil.copytree(copy, folder)
            (folder / "campaign.db-wal").write_bytes(wal[:cut])
            found = fsck(folder)
            assert (found.old, found.differences, found.restored) == ("sound", (), 0), (copy.name, cut)
            assert tables(folder) == expected, (copy.name, cut)
            shutil.rmtree(folder)
            checked += 1
    assert checked > 60


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    where=st.floats(0, 1, exclude_max=True),
    junk=st.binary(min_size=1, max_size=200),
    name=st.sampled_from(["campaign.db", "campaign.db-wal"]),
    length=st.one_of(st.none(), st.floats(0, 1)),
)
def test_any_damage_to_the_database_is_mended(
    damaged_once: Path, tmp_path: Path, where: float, junk: bytes, name: str, length: float | None
) -> None:
    folder = tmp_path / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(damaged_once, folder)
    data = bytearray((folder / name).read_bytes())
    at = int(where * len(data))
    data[at : at + len(junk)] = junk
    (folder / name).write_bytes(data if length is None else data[: int(length * len(data))])
    expected = fold(folder)
    found = fsck(folder)
    assert tables(folder) == expected
    assert found.unplaced == ()


@pytest.fixture(scope="module")
def damaged_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    world = World(folder / "state", "disk")
    world.begin()
    last = copies(world, folder / "copies")[-1]
    world.store.close()
    return last


# -- the database


def test_a_sound_database_does_not_differ(world: World) -> None:
    for decisions in history(world):
        world.store.commit(decisions)
    before = world.dump()
    log = (world.folder / "decisions.jsonl").read_bytes()
    world.store.close()
    found = fsck(world.folder)
    assert (found.old, found.differences, found.behind, found.torn, found.recovered) == ("sound", (), 0, (), ())
    assert (found.cells, found.attempts) == (4, 4)
    assert tables(world.folder) == before
    assert (world.folder / "decisions.jsonl").read_bytes() == log  # byte for byte
    left = {path.name for path in world.folder.glob("campaign.db*")}
    assert left == {"campaign.db", "campaign.db.before-fsck"}
    assert SqliteStore(world.folder).db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_differences_are_named(world: World) -> None:
    world.decide(world.start(), settle("DEAD"))
    world.store.db.execute("UPDATE cell SET given_up = 'by hand' WHERE id = 'train/b'")
    world.store.close()
    found = fsck(world.folder)
    assert found.differences == ("cell train/b: given_up was 'by hand', is None",)
    assert tables(world.folder) == fold(world.folder)


def test_decisions_that_were_not_folded_yet_are_no_difference(world: World) -> None:
    world.one(world.start())
    world.store.append(settle("DONE"))
    world.store.close()
    found = fsck(world.folder)
    assert (found.behind, found.differences) == (1, ())
    assert tables(world.folder)["attempt"]["train/a", 1]["verdict"] == "DONE"


def test_a_missing_or_empty_database(world: World) -> None:
    world.one(world.start())
    world.store.close()
    (world.folder / "campaign.db").unlink()
    assert fsck(world.folder).old == "missing"
    (world.folder / "campaign.db").write_bytes(b"")
    assert fsck(world.folder).old == "missing"
    assert tables(world.folder) == fold(world.folder)


def test_somebody_who_has_it_open_is_not_pulled_away_from(world: World) -> None:
    world.one(world.start())
    world.store.load()
    before = (world.folder / "campaign.db").stat().st_ino
    with pytest.raises(MusterError, match="in use"):
        fsck(world.folder)
    assert (world.folder / "campaign.db").stat().st_ino == before
    world.store.close()
    assert fsck(world.folder).old == "sound"


def test_the_intent_that_shims_obey_is_written_again(world: World) -> None:
    world.store.close()
    (world.folder / "intent").unlink()
    fsck(world.folder)
    assert (world.folder / "intent").read_text() == "running\n"


# -- the log


def test_broken_lines_are_set_aside_and_named(world: World) -> None:
    for decisions in history(world):
        world.store.commit(decisions)
    world.store.close()
    (world.folder / "campaign.db").unlink()  # else it would know what stood there
    log = world.folder / "decisions.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    note = next(number for number, line in enumerate(lines) if b'"kind":"note"' in line)
    lines[note] = b'{"kind":"no\x00\xff\r\r\n'
    log.write_bytes(b"".join(lines))
    found = fsck(world.folder)
    assert [line.partition(":")[0] for line in found.torn] == [f"line {note + 1}"]
    assert b"\x00\xff" in (world.folder / "decisions.torn").read_bytes()
    assert log.read_bytes() == b"".join(lines[:note] + lines[note + 1 :])
    assert tables(world.folder) == fold(world.folder)
    assert fsck(world.folder).torn == ()


@pytest.mark.parametrize("cut", [0.0, 0.3, 0.6, 0.99])
def test_what_the_log_lost_and_the_database_knows_is_put_back(world: World, cut: float) -> None:
    for decisions in history(world):
        world.store.commit(decisions)
    before = world.dump()
    world.store.close()
    log = world.folder / "decisions.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole[: int(len(whole) * cut)])
    found = fsck(world.folder)
    assert found.restored > 0
    assert found.differences == ()
    assert log.read_bytes() == whole
    assert tables(world.folder) == before


def test_a_line_in_the_middle_comes_back_in_its_place(world: World) -> None:
    for decisions in history(world):
        world.store.commit(decisions)
    world.store.close()
    log = world.folder / "decisions.jsonl"
    whole = log.read_bytes()
    lines = whole.splitlines(keepends=True)
    lines[4] = b"rubbish\n"
    log.write_bytes(b"".join(lines))
    found = fsck(world.folder)
    assert (len(found.torn), found.restored, found.differences) == (1, 1, ())
    assert log.read_bytes() == whole


def test_a_newer_versions_fields_survive(world: World) -> None:
    world.store.close()
    log = world.folder / "decisions.jsonl"
    extra = b'{"kind":"note","who":"tomorrow","colour":"blue"}\n'
    log.write_bytes(b"junk\n" + log.read_bytes() + extra)
    assert len(fsck(world.folder).torn) == 1
    assert log.read_bytes().endswith(extra)


def open_files(path: Path) -> int:
    links = [entry.readlink() for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    return links.count(path)


def test_an_appender_that_waits_while_the_log_is_replaced_writes_to_the_new_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.store.close()
    log = world.folder / "decisions.jsonl"
    log.write_bytes(log.read_bytes() + b"junk\n")
    waiting = threading.Thread(target=FileDecisionLog(log).append, args=([about("note")],))
    rewrite = decision_log._rewrite_log

    def slowly(path: Path, lines: Any) -> None:
        waiting.start()
        while open_files(log) < 2:  # until it has opened the log and waits for our lock
            time.sleep(0.001)
        rewrite(path, lines)

    monkeypatch.setattr(decision_log, "_rewrite_log", slowly)
    decision_log.repair_log(world.folder, [], [])
    waiting.join(10)
    assert [decision.kind for _, _, decision in FileDecisionLog(log).read(0)] == ["campaign", "intent", "note"]


def test_a_decision_that_stands_in_the_log_twice_is_no_obstacle(world: World) -> None:
    asked = Decision("note", "me", "seen", "train/a", ref="r1")
    world.decide(asked, asked)
    before, log = world.dump(), (world.folder / "decisions.jsonl").read_bytes()
    world.store.close()
    for _ in range(2):
        found = fsck(world.folder)
        assert (found.old, found.differences, found.restored) == ("sound", (), 0)
        assert tables(world.folder) == before
        assert (world.folder / "decisions.jsonl").read_bytes() == log


# -- the folders


def test_an_attempt_that_only_its_folder_knows_comes_back_open(world: World) -> None:
    order(world, "train/a", ended=True)
    order(world, "train/b")
    world.one(intent("down"))  # whatever is wanted now: it did start
    world.store.close()
    found = fsck(world.folder)
    assert found.recovered == ("train/a attempt 1", "train/b attempt 1")
    assert found.ended == ("train/a attempt 1",)
    rows = tables(world.folder)["attempt"]
    assert (rows["train/a", 1]["token"], rows["train/a", 1]["verdict"]) == ("folder-train/a-1", None)
    assert (rows["train/b", 1]["slots"], rows["train/b", 1]["claimed_at"]) == ('["cpu1"]', "then")
    assert tables(world.folder) == fold(world.folder)
    again = fsck(world.folder)
    assert (again.recovered, again.differences) == ((), ())


def test_what_was_recovered_is_recorded_in_english(world: World) -> None:
    order(world, "train/a", 1, ended=True)
    order(world, "train/a", 2, "exit_code(1)")
    world.store.close()
    with speaking("pseudo"):
        assert fsck(world.folder).recovered == ("⟦train/a attempt 1⟧", "⟦train/a attempt 2⟧")
    assert "⟦" not in (world.folder / "decisions.jsonl").read_text("utf-8")
    assert tables(world.folder) == fold(world.folder)
    assert "⟦" not in str(tables(world.folder))


def test_a_lost_start_whose_settlement_was_kept(world: World) -> None:
    """The log has the end of an attempt and a retry, and not its start."""
    lost = order(world, "train/a", 1)
    order(world, "train/a", 2, "exit_code(1)")
    retry = Decision("start", "controller", "", "train/a", 2, None, "at", 1.0, {
        "token": "folder-train/a-2", "slots": [], "hash": "h", "boot_id": "b", "retry_cause": "exit_code(1)"})  # fmt: skip
    refusals = world.decide(settle("DEAD", reason="as it was"), retry)
    assert all(refusals)
    world.store.close()
    found = fsck(world.folder)
    assert found.recovered == ("train/a attempt 1", "train/a attempt 2")
    rows = tables(world.folder)["attempt"]
    assert json.loads(rows["train/a", 1]["outcome"])["reason"] == "as it was"
    assert rows["train/a", 1]["token"] == lost.token
    assert (rows["train/a", 2]["verdict"], rows["train/a", 2]["retry_cause"]) == (None, "exit_code(1)")
    assert tables(world.folder) == fold(world.folder)


def test_a_retry_proves_that_the_attempt_before_it_had_ended(world: World) -> None:
    order(world, "train/a", 1, ended=True)
    order(world, "train/a", 2, "exit_code(1)")
    world.store.close()
    fsck(world.folder)
    rows = tables(world.folder)["attempt"]
    assert [rows["train/a", n]["verdict"] for n in (1, 2)] == ["DEAD", None]
    assert json.loads(rows["train/a", 1]["outcome"])["cause"]["kind"] == "unknown"


def test_a_lost_log_and_a_lost_database(world: World) -> None:
    world.one(world.campaign("abcd"))
    order(world, "train/a", ended=True)
    order(world, "train/d")
    world.store.close()
    for name in ("campaign.db", "decisions.jsonl"):
        (world.folder / name).unlink()
    with pytest.raises(MusterError, match="muster fsck"):
        SqliteStore(world.folder)  # or finished work would run again
    found = fsck(world.folder)
    assert found.recovered == ("train/a attempt 1", "train/d attempt 1")
    store = SqliteStore(world.folder)
    state = store.load()
    store.close()
    assert state is not None
    assert state.intent.kind == "down"
    assert len(state.declared) == 4


def test_folders_that_fit_nothing_are_named_and_left(world: World) -> None:
    order(world, "train/nowhere")
    order(world, "train/b", 2, "x")
    broken = world.folder / "attempts" / "train" / "c" / "1"
    broken.mkdir(parents=True)
    (broken / "attempt.json").write_text("{")
    world.one(world.start("train/a"))
    order(world, "train/a")  # another token
    log = (world.folder / "decisions.jsonl").read_bytes()
    world.store.close()
    found = fsck(world.folder)
    text = "\n".join(found.unplaced)
    assert "train/nowhere attempt 1: there is no such cell" in text
    assert "train/b attempt 2: attempt 2 does not follow 0" in text
    assert f"{broken}: attempt.json can't be read" in text
    assert "train/a attempt 1: its folder belongs to another attempt" in text
    assert len(found.unplaced) == 4
    assert (world.folder / "decisions.jsonl").read_bytes() == log


def test_files_of_the_runs_are_not_taken_for_attempts(world: World) -> None:
    world.one(world.start("train/a"))
    world.store.close()
    (row,) = [row for key, row in fold(world.folder)["attempt"].items() if key == ("train/a", 1)]
    made = order(world, "train/a")
    path = world.folder / "attempts/train/a/1"
    (path / "attempt.json").write_bytes(msgspec.json.encode(made).replace(made.token.encode(), row["token"].encode()))
    (path / "out" / "attempt.json").write_text("the run's own")
    assert fsck(world.folder).unplaced == ()


# -- snapshots


def test_a_missing_snapshot_is_named_with_the_mend(world: World) -> None:
    world.store.close()
    (snapshot,) = (world.folder / "campaigns").glob("*.json")
    data = snapshot.read_bytes()
    before = (world.folder / "campaign.db").read_bytes()
    snapshot.unlink()
    with pytest.raises(MusterError) as caught:
        fsck(world.folder)
    assert str(snapshot) == caught.value.where
    assert "backup" in caught.value.hint
    assert (world.folder / "campaign.db").read_bytes() == before
    assert list_missing_snapshots(world.folder) == [snapshot.stem]
    assert not restore_missing_snapshot(world.folder, snapshot.stem, StoredSnapshot("another text", campaign(), {}))
    assert not snapshot.exists()
    assert restore_missing_snapshot(world.folder, snapshot.stem, msgspec.json.decode(data, type=StoredSnapshot))
    assert snapshot.read_bytes() == data
    assert fsck(world.folder).old == "sound"
