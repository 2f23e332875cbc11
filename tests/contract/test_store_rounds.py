"""A loop's rounds in the store: each follows the one before, nothing is tried twice, and a log tells all of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from store_world import World, intent, settle

from muster.files import campaign_snapshots
from muster.model.campaign import Axis, AxisValue, Campaign, Job
from muster.model.cell import list_campaign_cells
from muster.model.decision import OUTRUN_REASON, Decision
from muster.model.variant import LoopRecord


@pytest.fixture(params=["disk", "memory"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    made = World(tmp_path / "state", request.param)
    bases = [{"name": name, "config": f"/{name}.json", "round": 1, "digest": f"d{name}"} for name in "ab"]
    first = made.campaign("ab")
    assert made.one(replace(first, data={**first.data, "bases": bases})) is None
    assert made.one(intent("running")) is None
    return made


def loop(world: World) -> LoopRecord:
    world.reopen().commit([])
    state = world.store.load()
    assert state is not None
    return state.loop


def test_the_bases_are_round_1(world: World) -> None:
    assert (loop(world).round, [each.name for each in loop(world).variants]) == (1, ["a", "b"])


def test_a_round_declares_its_variants(world: World) -> None:
    assert world.one(world.round(2, "abc", "c")) is None
    found = loop(world)
    assert (found.round, [each.name for each in found.of_round(2)], found.stopped) == (2, ["c"], "")
    state = world.store.load()
    assert state is not None
    assert [record.cell.id for record in state.declared] == ["train/a", "train/b", "train/c"]


def test_the_same_round_twice_has_no_effect(world: World) -> None:
    again = world.round(2, "abc", "c")
    assert world.decide(again, world.round(2, "abcd", "d"))[0] is None
    assert world.one(world.round(2, "abcd", "d")) == "round 2 does not follow round 2"
    assert [each.name for each in loop(world).variants] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("number", "variants", "why"),
    [(3, "c", "round 3 does not follow round 1"), (2, "a", "a was tried before"), (2, "", "it proposes nothing")],
)
def test_what_does_not_follow_is_refused(world: World, number: int, variants: str, why: str) -> None:
    assert world.one(world.round(number, "abc", *variants)) == why
    assert loop(world).round == 1


def test_a_proposal_for_another_campaign_is_refused(world: World) -> None:
    late = world.round(2, "abc", "c")
    assert world.one(world.campaign("ab", 2)) is None
    assert world.one(late) == "another campaign was taken in meanwhile"
    assert [each.name for each in loop(world).variants] == ["a", "b"], "variants outlive another campaign"


def test_a_stop_is_kept_until_somebody_says_up(world: World) -> None:
    stop = world.round(2, "ab")
    assert world.one(replace(stop, data={"round": 2, "after": stop.data["after"], "stopped": "no proposals"})) is None
    assert loop(world).stopped == "no proposals"
    assert world.one(intent("running")) is None
    assert (loop(world).stopped, loop(world).round) == ("", 1)


# -- bases that were fixed


def mending(world: World, **digests: str) -> Decision:
    """The campaign taken in once more, with other configs for these bases."""
    axis = Axis("variant", tuple(AxisValue(name, name) for name in "ab"))
    made = Campaign("c", (axis,), (Job("train", ("variant",), ("true", "{variant}")),))
    name = campaign_snapshots.save_snapshot(
        world.folder, "", made, {cell.id: f"h-{cell.id}" for cell in list_campaign_cells(made)}
    )
    mended = [{"name": each, "config": f"/{each}2.json", "round": 1, "digest": what} for each, what in digests.items()]
    data = {"hash": name, "env_file": "/env", "bases": [], "variants_seen": 2, "mended": mended}
    return Decision("campaign", "me", data=data)


def test_a_mended_base_keeps_its_name_and_its_place(world: World) -> None:
    assert world.decide(mending(world), world.start(), settle("DEAD")) == [None, None, None]
    assert world.one(mending(world, a="new")) is None
    first, second = loop(world).variants
    assert (first.name, first.digest, first.config) == ("a", "new", "/a2.json")
    assert second.digest == "db"


@pytest.mark.parametrize("ended", [True, False])
def test_a_base_with_a_run_that_rests_on_its_config_is_not_mended(world: World, ended: bool) -> None:
    assert world.decide(mending(world), world.start()) == [None, None]
    if ended:
        assert world.one(settle("DONE")) is None
    assert world.one(mending(world, a="new")) == OUTRUN_REASON
    assert world.one(mending(world, b="new")) is None
    assert [each.digest for each in loop(world).variants] == ["da", "new"]
