"""Faults 9 to 13: the shim or the run dies; and the slots that a dead or stopped shim must not keep."""

import json
import signal
import sys
import time

from fault_world import SHIM, World, kill, letter, ticks, until

ONE = "  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}'}\n"
WAIT = "while [ ! -e go ]; do sleep 0.02; done"


def start(world: World, body: str = WAIT, seeds: int = 1, **more) -> None:
    world.campaign(ONE, seeds=seeds, body=body, **more)
    world.take_in()
    world.controller()


def let_go(world: World) -> None:
    (world.root / "go").touch()


def test_9_two_shims_of_one_attempt(world: World) -> None:
    world.campaign(ONE, seeds=1)
    world.take_in()
    world.controller(world.armed("order.rename"))  # the order is there, no shim was asked for
    until(world.marker.exists, "the order is written")
    command = (sys.executable, "-I", "-S", str(SHIM), "run", str(world.folder("train/0")))
    shims = [world.start(*command, start_new_session=True) for _ in range(4)]
    until(lambda: all(shim.poll() is not None for shim in shims), "all shims end")
    assert [shim.returncode for shim in shims] == [0, 0, 0, 0]
    world.finish(retry=False)
    assert world.check(cells=1).of("train/0") == [1]


def test_10_shim_killed_before_the_gate_opens(world: World) -> None:
    world.campaign(ONE, seeds=1, body='[ "$2" != 1 ] || return 9')
    world.take_in()
    world.controller(world.armed("shim.identity.dirsync"))
    until(world.marker.exists, "the shim is killed at its gate")
    world.finish(retry=False)
    first, second = world.rows("SELECT n, retry_cause, outcome FROM attempt ORDER BY n")
    assert json.loads(first["outcome"])["cause"]["kind"] == "never_started"
    assert second["retry_cause"] == "never_started"
    assert world.check(cells=1).of("train/0") == [2]  # the first one was never executed


def test_11_shim_killed_while_the_run_lives(world: World) -> None:
    start(world, f'[ "$2" != 1 ] || {WAIT}')
    run = world.running("train/0")
    kill(world.shim("train/0"))
    cell = world.until_cell("train/0", lambda cell: "shim is gone" in cell["reason"], "known to have lost its shim")
    assert (cell["verdict"], cell["pid"]) == ("RUNNING", run)
    let_go(world)
    world.finish(retry=False)
    first, second = world.rows("SELECT n, retry_cause, outcome FROM attempt ORDER BY n")
    cause = json.loads(first["outcome"])["cause"]
    assert (cause["kind"], cause["confidence"]) == ("unknown", "unknown")
    assert "oom" not in json.dumps(cause).lower()
    assert second["retry_cause"] == "unknown"
    world.check(cells=1)


def test_12_run_killed(world: World) -> None:
    world.env["MUSTER_POLL_S"] = "5"  # the verdict must not wait for a poll
    start(world)
    run = world.running("train/0")
    killed = time.monotonic()
    kill(run)
    until(lambda: world.rows("SELECT * FROM attempt WHERE verdict = 'DEAD'"), "the death is recorded")
    assert time.monotonic() - killed < 1.0
    cell = world.cell("train/0")
    assert (cell["cause"], cell["attempt_count"]) == ("signal(9)", 1)
    assert "not known" in cell["reason"]
    assert world.finish(retry=False)["counts"]["DEAD"] == 1  # held: nothing starts it again by itself


def test_13_run_exits_with_137(world: World) -> None:
    start(world, "return 137")
    status = world.finish(retry=False)
    assert status["cells"][0]["cause"] == "exit_code(137)"
    assert world.check(cells=1, exits={"train/0": 137}).of("train/0") == [1]


def test_stopped_shim_whose_run_has_ended_does_not_keep_its_slot(world: World) -> None:
    world.campaign(ONE, seeds=2, cpus=1)
    world.take_in()
    world.controller(world.armed("shim.reaped:stop"))
    until(world.marker.exists, "the first shim stops after it wrote the exit")
    until(lambda: len(world.counted().ends) == 2, "the second cell gets the only slot")
    world.finish(retry=False)
    world.check(cells=2)


def test_stopped_shim_with_an_orphan_is_helped_on(world: World) -> None:
    """The run left a child behind; the shim is stopped after it wrote that down: it alone can see the child end."""
    helper = "(setsid sh -c 'while [ ! -e go ]; do sleep 0.02; done' &)"
    world.campaign(ONE, seeds=1, body=f"{helper}; return 6")
    world.take_in()
    world.controller()
    world.until_cell("train/0", lambda cell: cell["kind"] == "orphans", "RUNNING(orphans)")
    kill(world.shim("train/0"), signal.SIGSTOP)
    let_go(world)
    (cell,) = world.finish(retry=False)["cells"]
    assert (cell["verdict"], cell["cause"], cell["attempt_count"]) == ("DEAD", "exit_code(6)", 1)


def test_a_stop_outlives_the_shim_that_had_it(world: World) -> None:
    """The run ignores SIGTERM, and the shim dies before it would have killed it: somebody else must."""
    world.env["MUSTER_GRACE_S"] = "3"
    start(world, f"trap '' TERM; {WAIT}")
    run, shim = world.running("train/0"), world.shim("train/0")
    was, steps = ticks(run), world.folder("train/0") / "stopping.jsonl"
    world.say("stop", "enough", cell="train/0")
    until(steps.exists, "its shim has sent SIGTERM")
    kill(shim)
    until(lambda: ticks(run) != was, "the run is ended")
    (cell,) = world.finish(retry=False)["cells"]
    assert (cell["verdict"], cell["cause"], cell["attempt_count"]) == ("DEAD", "user_stop", 1)
    assert world.exit("train/0") is None, "nobody saw its exit: the shim was gone"


def test_revived_controller_does_not_keep_the_slot_of_a_dead_shim(world: World) -> None:
    world.env["MUSTER_REVIVE_S"] = "0.2"
    start(world, '[ "$1$2" != train/01 ] || ' + WAIT, seeds=2, cpus=1)
    run = world.running("train/0")
    first = world.holder()
    kill(first)
    until(lambda: world.holder() not in (None, first), "the shim revives a controller")
    kill(world.shim("train/0"))
    kill(run)
    world.finish()
    world.check(cells=2)


def test_stopped_run_is_not_dead(world: World) -> None:
    start(world)
    run = world.running("train/0")
    kill(run, signal.SIGSTOP)
    until(lambda: letter(run) == "T", "it is stopped")
    world.until_cell("train/0", lambda cell: "state T" in str(cell["evidence"]), "seen stopped")
    assert world.cell("train/0")["verdict"] in ("RUNNING", "STALLED")
    kill(run, signal.SIGCONT)
    let_go(world)
    world.finish(retry=False)
    assert world.check(cells=1).of("train/0") == [1]
    assert ticks(run) is None
