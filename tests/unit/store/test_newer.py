"""A store that meets what a newer Muster wrote: nothing is folded, and nothing of ours stands behind it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from muster.engine.ports.store import ControllerSuperseded
from muster.engine.store.sqlite_store import SqliteStore
from muster.model.decision import Decision
from muster.model.errors import STATE_FORMAT, NewerStateError

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))

from store_world import snapshot

LATER = b'{"kind":"teleport","who":"later","nobody_knows":1}\n'
LATER_EPOCH = b'{"kind":"epoch","who":"later","epoch":7,"data":{"epoch":7,"format":%d}}\n' % (STATE_FORMAT + 1)


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    made = SqliteStore(tmp_path)
    made.commit([
        Decision("epoch", "controller 1", epoch=1, data={"epoch": 1, "format": STATE_FORMAT}),
        Decision("campaign", "ada", data={"hash": snapshot(tmp_path), "env_file": ""}),
    ])  # fmt: skip
    return made


def log(store: SqliteStore) -> bytes:
    return (store.folder / "decisions.jsonl").read_bytes()


def later(store: SqliteStore, line: bytes) -> bytes:
    with open(store.folder / "decisions.jsonl", "ab") as file:
        file.write(line)
    return log(store)


@pytest.mark.parametrize("line", [LATER, LATER_EPOCH])
def test_a_controller_that_meets_it_ends(store: SqliteStore, line: bytes) -> None:
    store.epoch = 1
    before = later(store, line)
    events = len(store.events())
    for decisions in ([], [Decision("note", "controller 1", "still here", epoch=1)]):
        with pytest.raises(ControllerSuperseded, match="newer Muster"):
            store.commit(decisions)
    assert log(store) == before
    assert len(store.events()) == events


@pytest.mark.parametrize("line", [LATER, LATER_EPOCH])
def test_a_command_that_meets_it_says_so(store: SqliteStore, line: bytes) -> None:
    before = later(store, line)
    with pytest.raises(NewerStateError, match="nothing was changed"):
        store.commit([Decision("note", "ada", "too late")])
    with pytest.raises(NewerStateError):
        store.behind()
    store.close()
    with pytest.raises(NewerStateError):
        SqliteStore(store.folder)
    assert log(store) == before


def test_what_is_newer_behind_lines_that_are_known_is_found_before_anything_is_folded(store: SqliteStore) -> None:
    store.append(Decision("note", "ada", "of today"))
    later(store, LATER)
    events = len(store.events())
    with pytest.raises(NewerStateError):
        store.commit([])
    assert len(store.events()) == events


def test_nobody_writes_a_kind_that_it_does_not_know(store: SqliteStore) -> None:
    before = log(store)
    for write in (store.append, lambda each: store.commit([each])):
        with pytest.raises(ValueError, match="no kind of decision: 'teleport'"):
            write(Decision("teleport", "ada"))
    assert log(store) == before


def test_an_older_epoch_without_a_format_is_read(store: SqliteStore) -> None:
    later(store, b'{"kind":"epoch","who":"controller 2","epoch":2,"data":{"epoch":2}}\n')
    store.commit([])
    assert store.epoch_now() == 2
