"""`reread`: a proof that failed after exit 0 is read again. The verdict stays; the reading counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from store_world import World, about, settle

from muster.model.decision import Decision


@pytest.fixture(params=["disk", "memory"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "state", request.param)
    made.begin()
    yield made
    made.store.close()


def unproven(world: World, cell: str = "train/a", code: int = 0, kind: str = "early_exit") -> None:
    ended = settle("DEAD", cell, kind=kind)
    outcome = {**ended.data["outcome"], "exit_code": code, "read_as": "old"}
    assert world.decide(world.start(cell), replace(ended, data={**ended.data, "outcome": outcome})) == [None, None]


def reread(world: World, holds: bool, cell: str = "train/a", n: int = 1, **more: Any) -> Decision:
    state = world.store.load()
    assert state is not None
    data = {
        "campaign": state.campaign_hash, "read_as": "new", "hash": "h2", "holds": holds, "reason": "read again",
        "results": {"acc": 0.5}, "output": None, "evidence": [],
    }  # fmt: skip
    return Decision("reread", "me", "read again", cell, n, data=data | more)


def test_a_reading_that_holds_makes_it_done_and_leaves_the_verdict(world: World) -> None:
    unproven(world)
    world.one(about("retry", reason="asked for before it was fixed"))
    assert world.one(reread(world, True)) is None
    (record,) = world.store.records(["train/a"])
    assert record.completed is not None
    assert record.completed.outcome is not None
    assert record.completed.outcome.verdict == "DEAD"
    assert record.completed.results == {"acc": 0.5}
    assert record.retry_because is None
    assert world.one(world.start(n=2, cause="again")) == "the cell is DONE already"
    assert "DONE" in (world.one(reread(world, False)) or "")
    assert world.dump() == world.refolded()


def test_one_that_does_not_hold_is_kept_and_changes_nothing_else(world: World) -> None:
    unproven(world)
    assert world.one(reread(world, False)) is None
    (record,) = world.store.records(["train/a"])
    assert not record.done
    assert record.last is not None
    assert record.last.reread is not None
    assert (record.last.reread.read_as, record.last.reread.holds) == ("new", False)
    assert world.one(reread(world, True, read_as="newer")) is None
    assert world.dump() == world.refolded()


def test_only_exit_0_with_a_proof_that_fails_is_read_again(world: World) -> None:
    unproven(world, code=1)
    assert "exit 0" in (world.one(reread(world, True)) or "")
    unproven(world, "train/b", kind="non_finite")
    assert "exit 0" in (world.one(reread(world, True, "train/b")) or "")
    unproven(world, "train/c")
    assert "not its last one" in (world.one(reread(world, True, "train/c", 2)) or "")
    assert "meanwhile" in (world.one(reread(world, True, "train/c", campaign="other")) or "")
    world.decide(about("retry", "train/c"), world.start("train/c", 2, "early_exit"))
    assert "running" in (world.one(reread(world, True, "train/c")) or "")
