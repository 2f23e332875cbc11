"""Files of the state that somebody else damaged: each is taken for none or refused in words. Found by tests/fuzz."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from muster.app.campaign.campaign_code import load_code_book
from muster.app.finish.power_off import read_recorded_environment
from muster.engine.ports.clock import SystemClock
from muster.engine.ports.store import RebuildRequest
from muster.engine.store import database_rebuild
from muster.engine.store.controller_files import ControllerLock, WatchBookFile
from muster.engine.store.database_checks import refuse_newer_format
from muster.engine.store.sqlite_store import SqliteStore
from muster.files import campaign_snapshots, state_folder
from muster.files.json_codec import MOST_DEPTH
from muster.hosts.local.guard_keeper import read_guard_report
from muster.hosts.local.launch_orders import LaunchBook
from muster.model.attempt import Order
from muster.model.errors import MusterError
from muster.readers.attempt_facts import read_order

LOCK = {"pid": 1, "ticks": 5, "epoch": 3, "since": 1.0, "beat": 5.5}
WORDS = {"times": 3, "failed": 1, "code": 2, "said": "x", "next": 1.5}
NESTED = b"[" * 100_000
ASKED = RebuildRequest("me", "2026-01-01T00:00:00+08:00", 1.0)
NO_UTF8 = b'{"kind": "\xff\xfe"}\n'


@pytest.mark.parametrize("missing", [*LOCK])
def test_a_lock_that_lacks_a_word_is_held_by_nobody_we_know(tmp_path: Path, missing: str) -> None:
    lock = ControllerLock(tmp_path, SystemClock())
    lock.path.write_text(json.dumps({key: value for key, value in LOCK.items() if key != missing}))
    assert lock.holder() is None
    lock.path.write_text(json.dumps(LOCK | {missing: float("inf") if missing not in ("since", "beat") else "x"}))
    assert lock.holder() is None
    lock.path.write_text(json.dumps(LOCK))
    assert (found := lock.holder()) is not None
    assert (found.epoch, found.beat, found.alive) == (3, 5.5, False)


@pytest.mark.parametrize("data", [json.dumps(WORDS | {"times": float("inf")}).encode(), NESTED, b"\xff"])
def test_damaged_words_of_a_guard_are_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "guard.json").write_bytes(data)
    assert read_guard_report(tmp_path) is None


@pytest.mark.parametrize("data", [b'{"path": "/x", "inode": Infinity}', NESTED, b"\xff"])
def test_a_damaged_mark_of_the_place_is_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "place").write_bytes(data)
    assert state_folder.original_campaign_folder(tmp_path) is None


@pytest.mark.parametrize("data", [NO_UTF8, b'{"/x": {"code": ' + NESTED])
def test_what_can_be_learned_again_is_taken_for_none(tmp_path: Path, data: bytes) -> None:
    for name in ("code.json", "watch.json", "launched"):
        (tmp_path / name).write_bytes(data + b"\n")
    assert load_code_book(tmp_path) == {}
    assert WatchBookFile(tmp_path, "b").load().histories == {}
    book = LaunchBook(tmp_path / "launched")
    assert not list(book.known())
    book.close()


@pytest.mark.parametrize("data", [NO_UTF8, b'{"kind": "note", "who": "me", "data": {"a": ' + NESTED + b"\n"])
def test_a_line_of_the_log_that_is_no_decision_is_refused_in_words(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "decisions.jsonl").write_bytes(data)
    with pytest.raises(MusterError):
        SqliteStore.of_log(tmp_path).load()
    assert len(database_rebuild.rebuild_database(tmp_path, ASKED).torn) == 1


BIG = 10**30


@pytest.mark.parametrize("number", [BIG, -BIG, 2**53 + 1])
@pytest.mark.parametrize("field", ["attempt", "epoch"])
def test_a_number_that_no_attempt_and_no_epoch_has_is_damage(tmp_path: Path, field: str, number: int) -> None:
    line = {"kind": "note", "who": "me", "data": {}, field: number}
    (tmp_path / "decisions.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(MusterError):
        SqliteStore.of_log(tmp_path).load()
    assert len(database_rebuild.rebuild_database(tmp_path, ASKED).torn) == 1


@pytest.mark.parametrize("depth", [100, MOST_DEPTH - 2, MOST_DEPTH, 500, 900, *range(960, 1000, 3)])
def test_a_decision_of_any_depth_is_read_or_damage(tmp_path: Path, depth: int) -> None:
    data = '{"a":' * depth + "1" + "}" * depth
    (tmp_path / "decisions.jsonl").write_text(f'{{"kind": "note", "who": "me", "data": {data}}}\n')
    good = depth < MOST_DEPTH
    with contextlib.nullcontext() if good else pytest.raises(MusterError):
        assert len(SqliteStore.of_log(tmp_path).events()) == 1
    assert len(database_rebuild.rebuild_database(tmp_path, ASKED).torn) == (not good)


@pytest.mark.parametrize("value", [BIG, {"a": 1}, [[1]], "x\0y", 1.5, None])
@pytest.mark.parametrize(
    ("kind", "name"),
    [("epoch", "epoch"), ("campaign", "env_file"), ("campaign", "root"), ("campaign", "hash"), ("filter", "only"),
     ("start", "slots"), ("start", "token"), ("start", "boot_id"), ("settle", "ended_boot"), ("settle", "outcome")],
)  # fmt: skip
def test_data_that_no_column_holds_has_no_effect(tmp_path: Path, kind: str, name: str, value: object) -> None:
    """One of a log that is whole, changed: everybody who reads it goes on, or says what is wrong."""
    logs = Path(__file__).parents[2] / "fixtures" / "logs" / "adopt-0.1"
    shutil.copytree(logs / "campaigns", tmp_path / "campaigns")
    lines = [json.loads(line) for line in gzip.decompress((logs / "decisions.jsonl.gz").read_bytes()).splitlines()]
    if kind not in [line["kind"] for line in lines]:
        lines.append({"kind": kind, "who": "me", "data": {}})
    changed = next(line for line in lines if line["kind"] == kind)
    changed["data"][name] = [value] if name in ("slots", "only") else value
    (tmp_path / "decisions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with contextlib.suppress(MusterError):
        store = SqliteStore.of_log(tmp_path)
        store.load()
        store.events()
    with contextlib.suppress(MusterError):
        database_rebuild.rebuild_database(tmp_path, ASKED)


def test_an_attempt_with_a_number_that_no_database_holds_is_not_recovered(tmp_path: Path) -> None:
    folder = tmp_path / "attempts" / "a" / str(BIG)
    folder.mkdir(parents=True)
    order = Order(
        "a", BIG, "t", 1, (), "", {}, "", (), "", "", "h", "2026", 1.0, "b", None, None, "", "", "", (), 1.0, {}, {}
    )
    (folder / "attempt.json").write_bytes(msgspec.json.encode(order))
    assert [len(each) for each in database_rebuild._read_attempt_orders(tmp_path)] == [0, 1]


@pytest.mark.parametrize("data", ["x", "[" * 5000, "9" * 5000, "[]", b"\xff"])
def test_an_old_database_that_says_no_json_is_damaged(tmp_path: Path, data: object) -> None:
    (tmp_path / "decisions.jsonl").write_text('{"kind": "note", "who": "me"}\n')
    store = SqliteStore(tmp_path)
    store.commit([])
    store.db.execute("DROP TRIGGER event_is_final")
    store.db.execute("UPDATE event SET data = ?", (data,))
    store.close()
    assert database_rebuild.rebuild_database(tmp_path, ASKED).old.startswith("damaged: ")


def test_a_snapshot_that_is_no_utf8_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "campaigns").mkdir()
    (tmp_path / "campaigns" / "abc.json").write_bytes(b'{"text": "\xff"}')
    with pytest.raises(MusterError, match="can't be read"):
        campaign_snapshots.load_snapshotted_campaign(tmp_path, "abc")


@pytest.mark.parametrize("wrong", [{"axes": ["none"]}, {"needs": ["none"]}, {"axes": ["config", "config"]}])
def test_a_snapshot_whose_jobs_have_unknown_names_is_refused_in_words(tmp_path: Path, wrong: dict[str, Any]) -> None:
    logs = Path(__file__).parents[2] / "fixtures" / "logs" / "adopt-0.1"
    (whole,) = (logs / "campaigns").iterdir()
    snapshot = json.loads(whole.read_text())
    snapshot["campaign"]["jobs"][0] |= wrong
    (tmp_path / "campaigns").mkdir()
    (tmp_path / "campaigns" / "abc.json").write_text(json.dumps(snapshot))
    with pytest.raises(MusterError, match="axes or needs"):
        campaign_snapshots.snapshot_cell_rows(tmp_path, "abc")


@pytest.mark.parametrize("told", ["9" * 5000, int("9" * 30), "999"])
def test_a_format_of_any_length_is_newer(told: object) -> None:
    with pytest.raises(MusterError, match="this Muster knows"):
        refuse_newer_format(told, "x")


@pytest.mark.parametrize("data", [NESTED, b"[1]", b'{"PATH": 5}', b"\xff"])
def test_a_damaged_environment_is_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "env.json").write_bytes(data)
    state: Any = SimpleNamespace(env_file=str(tmp_path / "env.json"))
    assert read_recorded_environment(state) is None


@pytest.mark.parametrize("data", [b'{"cell": "\xff"}', b'{"cell": ' + NESTED, b"\x8f"])
def test_a_damaged_order_is_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "attempt.json").write_bytes(data)
    assert read_order(tmp_path) is None
