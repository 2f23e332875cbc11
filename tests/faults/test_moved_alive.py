"""A campaign's folder is moved while its runs live: they can be ended from where it lies now, and how they ended is known."""

from __future__ import annotations

import json

import pytest
from fault_world import World, kill, ticks, until
from test_deleted_state import CELL, begin, delete, remembered

ENDING = {"stop": ("stop", CELL), "down": ("down", "--runs")}


@pytest.mark.parametrize("command", ENDING)
@pytest.mark.parametrize("what", ["alone", "and the attempts deleted", "and the attempts renamed"])
def test_a_run_of_a_moved_campaign_is_ended(world: World, what: str, command: str) -> None:
    pid = begin(world)
    remembered(world)
    move(world, what)
    done = world.muster(*ENDING[command], "--because", "enough", "--timeout", "20s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ticks(pid) is None
    dead = world.cell(CELL)
    assert (dead["verdict"], dead["cause"]) == ("DEAD", "user_stop")
    assert world.counted().of(CELL) == [1]


def test_the_shim_itself_sees_the_request(world: World) -> None:
    """Not the controller that is started to end it: what it has written of its steps lies where the request lay, and tells the reason."""
    pid = begin(world)
    kill(world.holder() or 0)
    world.reap()
    move(world, "alone")
    done = world.muster(*ENDING["down"], "--because", "enough", "--timeout", "20s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ticks(pid) is None
    told = json.loads((world.folder(CELL) / "exit.json").read_text())
    assert [step["reason"] for step in told["stops"]] == ["user_stop"]
    assert (world.folder(CELL) / "stopping.jsonl").exists()
    assert not (world.state / "lost").exists(), "nothing was deleted"


def move(world: World, what: str) -> None:
    old = world.root
    world.root = old.rename(old.with_name("elsewhere"))
    attempts = world.state / "attempts"
    if what == "and the attempts deleted":
        delete(attempts)
    elif what == "and the attempts renamed":
        attempts.rename(attempts.with_name("old"))
    until(lambda: not old.exists(), "nobody makes it anew")
