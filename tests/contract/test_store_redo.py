"""`redo`: a DONE cell runs again, its completed attempt stays and counts no more. What every store promises of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from store_world import World, about, epoch, settle

from muster.engine.ports.store import RebuildRequest
from muster.engine.store.database_rebuild import rebuild_database
from muster.engine.store.sql_files import list_migrations
from muster.engine.store.sqlite_store import SqliteStore, _split_statements
from muster.model.decision import Decision


@pytest.fixture(params=["disk", "memory"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "state", request.param)
    made.begin()
    yield made
    made.store.close()


def done(world: World, cell: str = "train/a") -> None:
    assert world.decide(world.start(cell), settle("DONE", cell)) == [None, None]


def test_the_old_attempt_stays_and_the_cell_runs_once_more(world: World) -> None:
    done(world)
    assert world.one(about("redo", reason="the reward had the wrong sign")) is None
    (record,) = world.store.records(["train/a"])
    assert (record.done, record.open, record.redo_because) == (False, None, "the reward had the wrong sign")
    assert record.attempts[0].outcome is not None
    assert record.attempts[0].outcome.verdict == "DONE"
    assert record.current == ()
    assert world.one(world.start(n=2)) is not None, "a redo without a cause"
    assert world.one(world.start(n=2, cause="a person asked")) is None
    assert world.one(world.start(n=3, cause="twice")) is not None
    assert world.one(settle("DONE", n=2)) is None
    (record,) = world.store.records(["train/a"])
    assert record.completed is not None
    assert record.completed.n == 2
    assert [attempt.superseded for attempt in record.attempts] == ["the reward had the wrong sign", None]
    assert world.one(world.start(n=3, cause="again")) == "the cell is DONE already"
    assert world.dump() == world.refolded()


def test_only_what_is_done_declared_and_not_running_is_redone(world: World) -> None:
    assert world.one(about("redo", "train/b")) == "it has not run yet"
    assert world.one(about("redo", "train/nowhere")) == "there is no such cell"
    world.decide(world.start("train/b"))
    assert "it is running" in (world.one(about("redo", "train/b")) or "")
    world.decide(settle("DEAD", "train/b"))
    assert "muster retry" in (world.one(about("redo", "train/b")) or "")
    done(world)
    assert world.one(about("redo")) is None
    assert "not DONE" in (world.one(about("redo")) or ""), "twice"
    done(world, "train/c")
    world.one(world.campaign("ab"))
    assert "no longer declared" in (world.one(about("redo", "train/c")) or "")


def test_what_rests_on_it_is_redone_first_and_does_not_run(world: World) -> None:
    """b rests on a: a DONE cell never rests on a superseded attempt, whatever comes between two decisions."""
    done(world)
    done(world, "train/b")
    of_a = replace(about("redo"), data={"needed_by": ["train/b"]})
    assert "must be redone, too" in (world.one(of_a) or "")
    assert world.decide(about("redo", "train/b"), of_a) == [None, None]
    world.decide(world.start("train/a", 2, "redo"), settle("DONE", "train/a", 2))
    world.decide(world.start("train/b", 2, "redo"))
    assert "train/b is running on it" in (world.one(of_a) or "")


def test_a_start_that_rests_on_a_superseded_attempt_is_refused(world: World) -> None:
    done(world)
    behind = world.start("train/b")
    behind = replace(behind, data={**behind.data, "rests_on": {"train/a": 1}})
    assert world.decide(about("redo"), behind) == [
        None,
        "attempt 1 of train/a, which it needs, does not count any more",
    ]


def test_another_campaign_came_between(world: World) -> None:
    done(world)
    state = world.store.load()
    assert state is not None
    asked = replace(about("redo"), data={"campaign": state.campaign_hash, "needed_by": []})
    world.one(world.campaign("abcd"))
    assert world.one(asked) == "another campaign was taken in meanwhile"


def test_a_redo_behind_a_hold_starts_nothing_until_release(world: World) -> None:
    done(world)
    world.one(about("hold", None))
    assert world.one(about("redo")) is None
    assert "held" in (world.one(world.start(n=2, cause="redo")) or "")
    world.one(about("release", None))
    assert world.one(world.start(n=2, cause="redo")) is None


def test_a_redone_cell_can_be_given_up_and_taken_up_again(world: World) -> None:
    done(world)
    world.one(about("redo"))
    assert world.one(about("accept", attempt=1)) == "attempt 1 was superseded: because"
    assert world.one(about("giveup")) is None
    assert world.one(about("retry")) is None
    assert world.one(world.start(n=2, cause="redo")) is None


def test_only_a_completed_attempt_can_be_superseded(world: World) -> None:
    world.decide(world.start(), settle("DEAD"))
    with pytest.raises(sqlite3.IntegrityError, match="only a completed attempt"):
        world.store.db.execute("UPDATE attempt SET superseded = 'x'")


def test_an_old_database_migrates_and_fsck_folds_the_same(tmp_path: Path) -> None:
    """Written by the first version, opened by this one: nothing is lost, and the fold agrees."""
    folder = tmp_path / "state"
    folder.mkdir()
    old = sqlite3.connect(folder / "campaign.db", isolation_level=None)
    for statement in _split_statements(dict(list_migrations())[1]):
        old.execute(statement)
    old.execute("PRAGMA user_version = 1")
    old.close()
    world = World(folder, "disk")
    world.begin()
    done(world)
    history: list[Decision] = [about("redo"), world.start(n=2, cause="redo"), settle("DONE", n=2), epoch(3)]
    assert world.decide(*history) == [None] * 4
    before = world.dump()
    world.store.close()
    found = rebuild_database(folder, RebuildRequest("fsck by me", "now", 9.0))
    assert (found.old, found.differences) == ("sound", ())
    world.store = SqliteStore(folder)
    assert world.dump() == before
    world.store.close()
