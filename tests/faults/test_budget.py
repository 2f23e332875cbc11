"""Money with real processes: the cap stops starts in time and runs at the cap, and no span is lost with a controller.

The price is one a second for each slot, so that a budget is told in seconds. The bill is held against what the shims wrote
down: `exit.json` and `attempt.json` of every attempt.
"""

import json
import shutil
import signal
from typing import Any

import pytest
from fault_world import World, kill, until

ONE = "  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}'}\n"
WAIT = "while [ ! -e go ]; do sleep 0.02; done"
POLL_S, GRACE_S = 0.2, 5.0


def money(**more: Any) -> str:
    said = ", ".join(f"{key}: {value}" for key, value in {"price": 3600, "currency": "CNY", **more}.items())
    return f"money: {{{said}}}"


def held_s(world: World) -> dict[str, float]:
    """Attempt -> how long its slots were held, by its own folder, without Muster's help."""
    found = {}
    for order in sorted(world.state.glob("attempts/**/attempt.json")):
        about, ended = json.loads(order.read_text()), json.loads((order.parent / "exit.json").read_text())
        found[f"{about['cell']}@{about['n']}"] = (ended["boot"] - about["claimed_boot"]) * len(about["slots"])
    return found


def told(world: World, kind: str) -> list[dict[str, Any]]:
    lines = (world.state / "decisions.jsonl").read_text().splitlines()
    return [decision for line in lines if (decision := json.loads(line))["kind"] == kind]


def bill(world: World, *, tails_s: float = 0.0) -> float:
    """What Muster says was spent, held against the spans: within 1 %. `tails_s`: what stopped runs may leave behind."""
    spent, ended = float(world.status()["money"]["spent"]), sum(held_s(world).values())
    assert 0.99 * ended <= spent <= 1.01 * ended + tails_s
    (spans,) = world.rows("SELECT sum(ended_boot - began_boot) AS held FROM span")
    assert spent == pytest.approx(spans["held"], rel=0.01)
    return spent


def test_a_campaign_with_a_cap_stops_starting_in_time(world: World) -> None:
    world.campaign(ONE, seeds=40, cpus=2, body="sleep 0.3", top=money(budget=4))
    world.take_in()
    status = world.finish(retry=False)
    spent = bill(world)
    left = [cell for cell in status["cells"] if cell["verdict"] != "DONE"]
    assert {cell["verdict"] for cell in left} == {"HELD"}
    assert all("the budget of 4 CNY does not suffice" in cell["reason"] for cell in left)
    assert status["money"]["level"] == "no_new_start"
    assert 0 < len(left) < 40
    # at each start: what was held until then, and the shortest that had ended, fitted into the budget
    starts, ends = told(world, "start"), {(d["cell"], d["attempt"]): d for d in told(world, "settle")}
    for start in starts:
        at = start["boot"]
        until_then = [
            (min(at, ends[d["cell"], d["attempt"]]["data"]["ended_boot"]) - d["boot"]) for d in starts if d["boot"] < at
        ]
        known = [d["data"]["outcome"]["held_s"] for d in ends.values() if d["boot"] < at]
        assert sum(until_then) + min(known, default=0.0) <= 4, start
    longest = max(held_s(world).values())
    assert spent <= 4 + 2 * longest  # no more than the runs at work when it was used up
    assert world.muster("status").returncode == 3
    assert "4 CNY spent" in world.muster("status").stdout
    assert [d["data"]["level"] for d in told(world, "budget")].count("no_new_start") == 1


def test_more_money_lets_it_go_on(world: World) -> None:
    world.campaign(ONE, seeds=6, cpus=2, body="sleep 0.2", top=money(budget=0.5))
    world.take_in()
    held = world.finish(retry=False)["counts"]["HELD"]
    assert held >= 2
    text = (world.root / "campaign.yaml").read_text()
    (world.root / "campaign.yaml").write_text(text.replace("budget: 0.5", "budget: 50"))
    world.take_in()
    assert world.finish(retry=False)["complete"]
    bill(world)


def test_at_the_cap_runs_are_stopped(world: World) -> None:
    """One of them obeys at once, one ignores SIGTERM until the grace is over."""
    body = 'if [ "$1" = train/1 ]; then trap "" TERM; fi\n' + WAIT
    world.campaign(ONE, seeds=3, cpus=2, body=body, top=money(budget=3, at_cap="stop"))
    world.take_in()
    status = world.finish(retry=False)
    spent = bill(world, tails_s=1.0)
    busy_s = 1.0  # of the machine that the tests run on
    assert 3 <= spent <= 3 + 2 * (POLL_S + GRACE_S + busy_s)  # on both slots
    cells = {cell["cell"]: cell for cell in status["cells"]}
    assert [cells[f"train/{seed}"]["cause"] for seed in range(3)] == ["budget_stop", "budget_stop", None]
    assert "raise money.budget, then `muster retry train/0" in cells["train/0"]["next"]
    assert (cells["train/2"]["verdict"], status["money"]["level"]) == ("HELD", "at_cap")
    assert world.counted().executions == 2
    found = world.status()["money"]
    assert found["wasted"] + found["overhead"] == pytest.approx(found["spent"], abs=1e-5)
    levels = [d["data"]["level"] for d in told(world, "budget")]
    assert (levels.count("warn"), levels.count("at_cap")) == (1, 1)
    assert [d["data"]["what"] for d in told(world, "notice")].count("BUDGET") == len(levels)


def test_a_run_that_can_not_save_again_before_the_cap_ends_after_its_checkpoint(world: World) -> None:
    script = """
for step in range(10**6):
    work(0.05)
    log(step)
    if is_there("save") and not is_there(os.path.join(out, "model.ckpt")):
        with open(os.path.join(out, "model.ckpt"), "w") as file:
            file.write("x" * 4096)
"""
    job = "steps: 1000000, progress: [{jsonl: metrics.jsonl, step: step}, {checkpoint: model.ckpt, every: 600s}]"
    world.trainer(script, job, top=money(budget=90, at_cap="stop"))
    world.controller()
    world.running("train/0")
    world.until_seen("train/0", lambda seen: (seen.step or 0) > 5, "it gets on")
    assert world.cell("train/0")["eta"]
    assert world.cell("train/0")["verdict"] == "RUNNING"  # before it has saved, nothing ends it
    (world.root / "save").touch()
    status = world.finish(retry=False)
    (cell,) = status["cells"]
    assert cell["cause"] == "budget_stop"
    assert bill(world, tails_s=1.0) < 90
    asked = [d["reason"] for d in told(world, "found") if "budget_stop" in d["reason"]]
    assert len(asked) == 1
    assert "its next checkpoint comes after that" in asked[0]


def test_a_killed_controller_loses_no_span(world: World) -> None:
    world.campaign(ONE, seeds=3, cpus=2, body=WAIT, top=money(budget=500))
    world.take_in()
    for _ in range(3):
        started = world.controller()
        world.running("train/0")
        world.running("train/1")
        kill(started.pid, signal.SIGKILL)
        until(world.without_controller, "the controller is gone")
    (world.root / "go").touch()  # they end while nobody watches
    until(lambda: world.exit("train/0") and world.exit("train/1"), "both have ended")
    ended = held_s(world)
    seen = world.status()["money"]  # before anybody has recorded their ends
    assert seen["spent"] == pytest.approx(sum(ended.values()), rel=0.01)
    assert world.finish(retry=False)["complete"]
    bill(world)
    found = world.status()["money"]
    assert found["productive"] + found["overhead"] == pytest.approx(found["spent"], abs=1e-5)


@pytest.mark.parametrize("deleted", [False, True], ids=["kept", "folder deleted"])
def test_orphans_hold_their_slot_until_they_are_gone_although_nobody_looks(world: World, deleted: bool) -> None:
    """The main process ends, a helper lives on, and both are over long before a controller comes."""
    world.campaign(ONE, seeds=1, body="while [ ! -e gone ]; do sleep 0.02; done & " + WAIT, top=money())
    world.take_in()
    started = world.controller()
    world.running("train/0")
    kill(started.pid, signal.SIGKILL)
    until(world.without_controller, "the controller is gone")
    folder = world.folder("train/0")
    order = json.loads((folder / "attempt.json").read_text())
    if deleted:
        shutil.rmtree(folder)
        folder = world.root / ".muster" / "lost" / order["token"]
    (world.root / "go").touch()
    until((folder / "exit.json").exists, "its main process has ended")
    (world.root / "gone").touch()
    freed = folder / "freed"
    until(lambda: freed.exists() and freed.read_text(), "its shim has seen the last of it")
    held = float(freed.read_text()) - order["claimed_boot"]
    assert held > json.loads((folder / "exit.json").read_text())["boot"] - order["claimed_boot"]
    assert world.finish(retry=False)["complete"]
    assert world.status()["money"]["spent"] == pytest.approx(held, rel=0.01)


def test_a_warning_is_told_once_whoever_controls(world: World) -> None:
    world.campaign(ONE, seeds=1, body=WAIT, top=money(budget=2.5))
    world.take_in()
    started = world.controller()
    until(lambda: told(world, "budget"), "80 % of the budget")
    kill(started.pid, signal.SIGKILL)
    until(world.without_controller, "the controller is gone")
    (world.root / "go").touch()
    world.finish(retry=False)
    levels = [d["data"]["level"] for d in told(world, "budget")]
    assert levels.count("warn") == 1
    assert len(levels) == len(set(levels))
