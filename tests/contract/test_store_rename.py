"""`rename`: cells get another name and keep all that was done under the old one. What every store promises of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from store_world import World, about, settle

from muster.model.attempt import UnadoptedRun
from muster.model.decision import Decision


@pytest.fixture(params=["disk", "memory"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "state", request.param)
    made.begin()
    yield made
    made.store.close()


def test_attempts_reasons_gates_and_filters_move_with_the_name(world: World) -> None:
    world.decide(world.start(), settle("DEAD"), about("retry", reason="again"))
    world.decide(world.start(n=2, cause="exit_code(1)"), settle("DONE", n=2))
    world.one(Decision("filter", "me", data={"only": [{"config": ["a", "b"]}]}))
    gate = {"gate": "g", "iteration": 3, "state": "open", "phase": 1}
    assert world.one(Decision("gate", "c", "opened", "train/a", 2, data=gate)) is None
    world.decide(world.start("train/b"), settle("DEAD", "train/b"), about("giveup", "train/b", "enough"))
    assert world.decide(world.rename("a", "x"), about("note", "train/x")) == [None, None]
    assert world.one(world.rename("b", "y")) is None

    state = world.store.load()
    assert state is not None
    assert [record.cell.id for record in state.declared] == ["train/x", "train/y", "train/c"]
    assert list(state.cells) == ["train/x", "train/y", "train/c"]
    record = state.cells["train/x"]
    assert [attempt.key for attempt in record.attempts] == [("train/x", 1), ("train/x", 2)]
    assert [attempt.place for attempt in record.attempts] == [("train/a", 1), ("train/a", 2)]
    assert (record.done, record.formerly) == (True, ("train/a",))
    assert state.cells["train/y"].given_up == "enough"
    assert state.only == ({"config": ("x", "y")},)
    assert state.gates["train/x"]["g"].iteration == 3
    kinds = [event.decision.kind for event in world.store.events("train/x")]
    assert kinds == ["start", "settle", "retry", "start", "settle", "gate", "note"]
    assert {event.decision.cell for event in world.store.events("train/x")} == {"train/x"}
    assert world.one(world.start("train/x", 3, "again")) == "the cell is DONE already"
    assert world.dump() == world.refolded()


def test_runs_that_were_refused_move_with_the_name(world: World) -> None:
    run = {"path": "/runs/old", "started": 10.0, "ended": 70.0}
    assert world.one(Decision("refuse", "me", "no proof", "train/a", data=run)) is None
    assert world.one(Decision("refuse", "me", "still none", "train/a", data={**run, "ended": 75.0})) is None
    assert world.one(world.rename("a", "x")) is None
    state = world.store.load()
    assert state is not None
    assert state.refused == (UnadoptedRun("train/x", "/runs/old", 10.0, 75.0, "still none"),)
    assert not state.cells["train/x"].attempts  # it may start as before
    assert world.dump() == world.refolded()


def test_a_new_name_alone_is_no_new_definition(world: World) -> None:
    world.decide(replace(start := world.start(), data={**start.data, "hash": "h1-code"}), settle("DONE"))
    world.one(world.rename("a", "x"))
    (record,) = world.store.records(["train/x"])
    (attempt,) = record.attempts
    assert attempt.hash == "h1-code"
    assert record.hash_today(attempt) == "h3-code"


def test_a_later_attempt_lies_under_the_new_name(world: World) -> None:
    world.decide(world.start(), settle("DEAD"))
    world.one(world.rename("a", "x"))
    assert world.one(world.start("train/x", 2, "again")) is None
    (record,) = world.store.records(["train/x"])
    assert [attempt.place for attempt in record.attempts] == [("train/a", 1), ("train/x", 2)]


def test_and_back(world: World) -> None:
    world.decide(world.start(), settle("DONE"))
    assert world.one(world.rename("a", "x")) is None
    assert world.one(world.rename("x", "a")) is None
    (record,) = world.store.records(["train/a"])
    assert [attempt.place for attempt in record.attempts] == [("train/a", 1)]
    assert record.done
    assert world.one(world.campaign("abc")) is None
    assert world.dump() == world.refolded()


def test_what_stands_against_it(world: World) -> None:
    world.decide(world.start())
    assert "train/a is running" in (world.one(world.rename("a", "x")) or "")
    world.decide(settle("DONE"), world.start("train/b"), settle("DONE", "train/b"))
    assert "attempts of its own" in (world.one(world.rename("a", "b")) or "")
    assert "no cell has" in (world.one(world.rename("q", "x")) or "")
    stale = world.rename("a", "x")
    world.one(world.campaign("abcd"))
    assert "meanwhile" in (world.one(stale) or "")
    assert world.dump() == world.refolded()


def test_the_old_name_is_not_given_to_another(world: World) -> None:
    """Its folders are there: a first attempt of another cell would begin in the folder of an old one."""
    world.decide(world.start(), settle("DONE"))
    world.one(world.rename("a", "x"))
    assert world.one(world.campaign("abc")) == "train/a was renamed to train/x, and its old attempts keep their folders"
    state = world.store.load()
    assert state is not None
    assert [record.cell.id for record in state.declared] == ["train/x", "train/b", "train/c"]


def test_a_name_that_was_changed_by_hand_and_taken_in(world: World) -> None:
    world.decide(world.start(), settle("DONE"))
    world.one(world.campaign("xbc"))
    state = world.store.load()
    assert state is not None
    assert not state.cells["train/x"].done
    by_hand = world.rename("a", "x")
    assert world.one(replace(by_hand, data={**by_hand.data, "hash": state.campaign_hash})) is None
    (record,) = world.store.records(["train/x"])
    assert (record.declared, record.done) == (True, True)
    assert world.dump() == world.refolded()
