"""Gates in the store: the newest word of each over a cell, the same from the log alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_world import World, epoch, settle

from muster.model.campaign_state import GateRecord
from muster.model.decision import Decision


@pytest.fixture(params=["disk", "memory"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "state", request.param)
    made.begin()
    made.decide(epoch(1), made.start(epoch=1), made.start("train/b", epoch=1))
    yield made
    made.store.close()


def gate(iteration: int, state: str, phase: int, *, cell: str = "train/a", n: int = 1, name: str = "rise") -> Decision:
    data = {"gate": name, "iteration": iteration, "state": state, "phase": phase}
    return Decision("gate", "controller", "why", cell, n, 1, "at", 3.0, data)


def known(world: World, cell: str = "train/a") -> dict[str, GateRecord]:
    world.reopen().commit([])
    state = world.store.load()
    assert state is not None
    assert world.dump() == world.refolded()
    return dict(state.gates.get(cell, {}))


def test_the_newest_word_of_each_gate_over_each_cell_counts(world: World) -> None:
    assert known(world) == {}  # as in a log that is older than gates
    others = gate(7, "advance", 1, cell="train/b"), gate(3, "failure_hold", 0, name="fall")
    assert world.decide(gate(4, "advance", 1), *others, gate(6, "fall_back", 0)) == [None] * 4
    assert known(world) == {"rise": GateRecord(1, 6, "fall_back", 0, "why"),
                            "fall": GateRecord(1, 3, "failure_hold", 0, "why")}  # fmt: skip
    assert known(world, "train/b") == {"rise": GateRecord(1, 7, "advance", 1, "why")}


def test_a_word_that_was_told_before_has_no_effect(world: World) -> None:
    assert world.decide(gate(4, "advance", 1), gate(4, "advance", 1)) == [None, "it was told before"]


def test_a_run_that_went_back_is_known_to_have(world: World) -> None:
    assert world.decide(gate(40, "advance", 1), gate(12, "hold", 0)) == [None, None]
    assert known(world)["rise"] == GateRecord(1, 12, "hold", 0, "why")


def test_an_older_attempt_says_nothing_of_a_later_one(world: World) -> None:
    world.decide(settle("DEAD", epoch=1), world.start(n=2, cause="exit_code(1)", epoch=1))
    assert world.decide(gate(2, "advance", 1, n=2), gate(40, "fall_back", 0)) == [None, "a later attempt was told of"]
    assert known(world)["rise"] == GateRecord(2, 2, "advance", 1, "why")


def test_a_gate_over_no_cell_is_refused(world: World) -> None:
    assert world.one(gate(4, "advance", 1, cell="train/x")) is not None
