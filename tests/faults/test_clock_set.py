"""Fault 34: somebody sets the machine's clock. A rented machine's bill does not move, nothing is stopped, it is told."""

import json
import sys

import pytest
from fault_world import World, ticks, until

DAY_S = 86400.0
WAIT = "while [ ! -e go ]; do sleep 0.02; done"
# no test may set the clock of its machine: that of the controller is shifted, in its own process
SHIFTED = """
import sys, time
real = time.time
def shifted():
    with open({shift!r}) as file:
        return real() + float(file.read() or 0)
time.time = shifted
from muster.bootstrap.controller_process import main
sys.exit(main([{root!r}]))
"""


def sets_clock(world: World, seconds: float) -> None:
    partial = world.root / "shift.new"
    partial.write_text(str(seconds))
    partial.replace(world.root / "shift")


def told(world: World, kind: str) -> list[str]:
    lines = (world.state / "decisions.jsonl").read_text().splitlines()
    return [decision["reason"] for line in lines if (decision := json.loads(line))["kind"] == kind]


def test_33_a_clock_that_is_set_stops_nothing_and_bills_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.pace(monkeypatch, 0.1, 0.1)
    money = "money: {price: 3600, currency: CNY, per: machine, budget: 1000, at_cap: stop}"  # one a second
    job = "  train: {axes: [seed], timeout: 1h, command: 'sh job.sh {cell} {attempt}'}\n"
    world.campaign(job, seeds=1, body=WAIT, top=money)
    world.take_in()
    sets_clock(world, 0)
    script = SHIFTED.format(shift=str(world.root / "shift"), root=str(world.root))
    world.start(sys.executable, "-c", script, start_new_session=True)
    run = world.running("train/0")
    for step, word in ((365 * DAY_S, "forward by 365 d"), (-2 * DAY_S, "back by 367 d")):
        sets_clock(world, step)
        until(lambda: any(word in each for each in told(world, "clock")), f"it is told: {word}")  # noqa: B023
    polls = world.status()["as_of"]
    until(lambda: world.status()["as_of"] > polls, "another look")
    assert ticks(run)
    assert world.cell("train/0")["verdict"] == "RUNNING"
    assert 0 < world.status()["money"]["spent"] < 500
    assert told(world, "budget") == []
    assert len(told(world, "clock")) == 2
    assert sum("the clock of this machine was set" in each for each in told(world, "notice")) == 2
    (world.root / "go").touch()
    assert world.finish(retry=False)["complete"]
    assert world.status()["money"]["spent"] < 500
    assert world.check(cells=1).executions == 1
