"""Any sequence of decisions, sensible or not: the promises hold after each, and the log folds to the same database."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_world import CELLS, World, about, epoch, intent, settle

from muster.engine.ports.store import ControllerSuperseded
from muster.model.attempt import CellRecord
from muster.model.decision import Decision

cells = st.sampled_from([*CELLS, "train/d", "train/nowhere"])
attempts = st.integers(1, 3)
causes = st.sampled_from([None, "exit_code(1)"])
epochs = st.sampled_from([None, None, 1, 2, 3])

moves = st.one_of(
    st.tuples(st.just("start"), cells, attempts, causes, epochs),
    st.tuples(st.just("start"), cells, attempts, causes, epochs),
    st.tuples(st.just("settle"), cells, attempts, st.sampled_from(["DONE", "DEAD", "DEAD"]), epochs),
    st.tuples(st.just("settle"), cells, attempts, st.sampled_from(["DONE", "DEAD", "DEAD"]), epochs),
    st.tuples(st.just("adopt"), cells, attempts, causes),
    st.tuples(st.sampled_from(["retry", "redo", "giveup", "stop", "note"]), cells),
    st.tuples(st.just("accept"), cells, attempts),
    st.tuples(st.sampled_from(["hold", "release"])),
    st.tuples(st.just("intent"), st.sampled_from(["running", "running", "down"])),
    st.tuples(st.just("campaign"), st.sampled_from(["abc", "ab", "bcd"]), st.integers(1, 2)),
    st.tuples(st.just("filter"), st.sampled_from(["a", "b"])),
    st.tuples(st.just("round"), st.integers(1, 3), st.sampled_from(["abc", "bcd"]), st.sampled_from("vw")),
    st.tuples(st.just("epoch"), st.integers(1, 3)),
    st.tuples(st.just("rename"), st.sampled_from("abd"), st.sampled_from("abde")),
)
batches = st.lists(st.tuples(st.booleans(), st.lists(moves, min_size=1, max_size=4)), max_size=25)


def decision(world: World, move: tuple[Any, ...]) -> Decision:
    match move:
        case ("start", cell, n, cause, number):
            return world.start(cell, n, cause, number)
        case ("settle", cell, n, verdict, number):
            return settle(verdict, cell, n, number)
        case ("adopt", cell, n, cause):
            return world.adopt(cell, n, cause)
        case ("accept", cell, n):
            return about("accept", cell, attempt=n)
        case ("intent", kind):
            return intent(kind)
        case ("campaign", names, version):
            return world.campaign(names, version)
        case ("filter", name):
            return Decision("filter", "me", data={"only": [{"config": [name]}]})
        case ("round", number, names, variant):
            return world.round(number, names, variant)
        case ("epoch", number):
            return epoch(number)
        case ("rename", old, new):
            return world.rename(old, new)
        case (kind, cell):
            return about(kind, cell)
        case (kind,):
            return about(kind, None)
    raise AssertionError(move)


class Promises:
    """What was seen once stays true."""

    def __init__(self) -> None:
        self.verdicts: dict[str, str] = {}  # by token: a cell may be renamed
        self.cells: set[str] = set()

    def check(self, world: World) -> None:
        state = world.store.load()
        if state is None:
            return
        former = {name for record in state.cells.values() for name in record.formerly}
        assert {*state.cells, *former} >= self.cells, "a cell was lost"
        places = [attempt.place for record in state.cells.values() for attempt in record.attempts]
        assert len(set(places)) == len(places), "two attempts in one folder"
        self.cells = set(state.cells)
        declared = {f"train/{value.name}" for value in state.campaign.axes[0].values}
        assert {record.cell.id for record in state.declared} == declared, "the declared matrix is the truth"
        for record in state.cells.values():
            self.check_cell(record)
        tokens = {attempt.token for record in state.cells.values() for attempt in record.attempts}
        assert tokens >= self.verdicts.keys(), "an attempt was lost"

    def check_cell(self, record: CellRecord) -> None:
        numbers = [attempt.n for attempt in record.attempts]
        assert numbers == list(range(1, len(numbers) + 1))
        assert sum(attempt.open for attempt in record.attempts) <= 1, "two open attempts"
        assert sum(attempt.completed for attempt in record.attempts) <= 1, "two completed attempts"
        assert not (record.open and record.completed), "finished work runs again"
        for attempt in record.attempts:
            assert attempt.n == 1 or attempt.retry_cause, "a retry without a cause"
            if attempt.outcome:
                verdict = self.verdicts.setdefault(attempt.token, str(attempt.outcome.verdict))
                assert verdict == attempt.outcome.verdict, "a verdict was changed"
            else:
                assert attempt.token not in self.verdicts, "a verdict was taken back"


def run(world: World, steps: list[tuple[bool, list[tuple[Any, ...]]]]) -> None:
    promises = Promises()
    world.begin()
    for commit, chosen in steps:
        made = [decision(world, move) for move in chosen]
        if commit:
            world.store.commit(made)
        else:
            for one in made:
                world.store.append(one)
        promises.check(world)
    world.store.commit([])
    promises.check(world)
    assert world.dump() == world.refolded()
    assert len(world.store.events()) == len(list(world.log.read(0))), "a decision left no event"


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@given(batches)
@settings(max_examples=200, deadline=None)
def test_in_memory(snapshots: Path, steps: list[tuple[bool, list[tuple[Any, ...]]]]) -> None:
    world = World(snapshots, "memory")
    run(world, steps)
    world.store.close()


@given(batches)
@settings(max_examples=15, deadline=None)
def test_on_disk(steps: list[tuple[bool, list[tuple[Any, ...]]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder, "state"), "disk")
        run(world, steps)
        before = world.dump()
        fresh = world.reopen()
        assert not fresh.behind()
        assert world.dump() == before
        fresh.close()


@given(st.lists(st.tuples(st.sampled_from([0, 1]), moves), max_size=25))
@settings(max_examples=15, deadline=None)
def test_two_writers_interleaved(steps: list[tuple[int, tuple[Any, ...]]]) -> None:
    """A controller of epoch 10 and one of epoch 11 that took over: the old one writes in vain, the log stays one."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder, "state"), "disk")
        world.begin()
        world.one(epoch(10))
        old = world.open()
        old.epoch = 10
        world.one(epoch(11))
        world.store.epoch = 11
        promises = Promises()
        for who, move in steps:
            if who:
                world.store.commit([decision(world, move)])
            else:
                with pytest.raises(ControllerSuperseded):
                    old.commit([decision(world, move)])
            promises.check(world)
        old.close()
        world.store.commit([])
        assert world.dump() == world.refolded()
        world.store.close()
