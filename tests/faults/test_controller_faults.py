"""Faults 1 to 8, 33 and 45: the controller dies, stops, hangs, is there twice, or loses its database."""

import json
import signal
import sys
import time

import pytest
from fault_world import World, kill, letter, ticks, until

ONE = "  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}'}\n"
WAIT = "while [ ! -e go ]; do sleep 0.02; done"


def let_go(world: World) -> None:
    (world.root / "go").touch()


def crash(world: World, point: str) -> None:
    world.controller(world.armed(point))
    until(world.marker.exists, f"{point} is reached")
    until(lambda: not world.holder(), "the controller is dead")


def outcome(world: World, cell: str, n: int = 1) -> dict:
    (row,) = world.rows(f"SELECT outcome FROM attempt WHERE cell = '{cell}' AND n = {n}")
    return json.loads(row["outcome"])


def test_1_killed_before_the_claim_is_committed(world: World) -> None:
    world.campaign(ONE, seeds=1)
    world.take_in()
    crash(world, "lease.taken")
    assert world.cell("train/0")["verdict"] == "PENDING"
    assert not world.rows("SELECT * FROM attempt")
    world.finish(retry=False)
    assert world.check(cells=1).of("train/0") == [1]


def test_2_killed_after_the_claim_before_the_shim(world: World) -> None:
    world.campaign(ONE, seeds=1)
    world.take_in()
    crash(world, "claim.committed")
    (claimed,) = world.rows("SELECT token FROM attempt")
    world.finish(retry=False)
    assert world.check(cells=1).of("train/0") == [1]
    (kept,) = world.rows("SELECT token FROM attempt")
    assert kept["token"] == claimed["token"]  # the same attempt, not another one


def test_3_killed_after_the_shim_was_asked_for(world: World) -> None:
    world.campaign(ONE, seeds=1, body=WAIT)
    world.take_in()
    crash(world, "spawn.sent")
    run = world.running("train/0")
    world.controller()
    until(world.holder, "a new controller")
    cell = world.until_cell("train/0", lambda cell: cell["pid"] == run, "adopted again")
    assert cell["verdict"] == "RUNNING"
    let_go(world)
    world.finish(retry=False)
    assert world.check(cells=1).of("train/0") == [1]


@pytest.mark.parametrize("code", [0, 3])
def test_4_killed_after_exit_json_before_it_is_recorded(world: World, code: int) -> None:
    world.campaign(ONE, seeds=1, body=f"return {code}")
    world.take_in()
    crash(world, "exit.seen")
    assert world.rows("SELECT verdict FROM attempt")[0]["verdict"] is None
    assert world.cell("train/0")["verdict"] == ("DEAD" if code else "DONE")  # the truth needs no controller
    world.finish(retry=False)
    assert world.check(cells=1, exits={"train/0": 3} if code else {}).of("train/0") == [1]
    assert outcome(world, "train/0")["exit_code"] == code


def test_5_killed_between_the_verdict_and_the_retry(world: World) -> None:
    world.campaign(ONE, seeds=1, body=f'[ "$2" != 1 ] || {WAIT}')
    world.take_in()
    world.controller(world.armed("settle.committed"))
    run = world.running("train/0")
    kill(world.shim("train/0"))
    kill(run)
    until(world.marker.exists, "the verdict is committed")
    world.finish(retry=False)
    world.check(cells=1)
    first, second = world.rows("SELECT n, retry_cause FROM attempt ORDER BY n")
    assert (first["retry_cause"], second["retry_cause"]) == (None, "unknown")
    assert world.counted().of("train/0") == [1, 2]


def test_6_killed_in_the_middle_of_a_stop(world: World) -> None:
    world.env["MUSTER_GRACE_S"] = "1.5"
    world.campaign(ONE, seeds=1, body=f"trap '' TERM; {WAIT}")
    world.take_in()
    world.controller(world.armed("stop.poke"))
    world.running("train/0")
    world.say("stop", "enough", cell="train/0")
    until(world.marker.exists, "the request is out")
    stages = world.folder("train/0") / "stopping.jsonl"
    until(stages.exists, "TERM was sent")
    status = world.finish(retry=False)
    assert status["cells"][0]["cause"] == "user_stop"
    signals = [json.loads(line)["signal"] for line in stages.read_text().splitlines()]
    assert signals[0] == signal.SIGTERM
    assert set(signals[1:]) == {signal.SIGKILL}  # the second controller's request did not begin again with TERM
    assert outcome(world, "train/0")["exit_signal"] == signal.SIGKILL
    assert world.counted().of("train/0") == [1]


def race(world: World, times: int) -> None:
    """Two `muster up` at once on one campaign, again and again: one controller, each cell once."""
    world.campaign(ONE, seeds=2, body=f'case "$1" in train/0) {WAIT};; esac')
    for turn in range(times):
        both = [world.up(), world.up()]
        until(lambda: all(process.poll() is not None for process in both), "both have handed over")  # noqa: B023
        assert [process.returncode for process in both] == [0, 0], world.trouble()
        until(lambda: len(world.controllers()) <= 1, "the loser ends")
        holder = until(world.holder, "a controller")
        assert [holder] == world.controllers()
        world.running("train/0")
        assert world.counted().of("train/0") == [1], f"turn {turn}"
        kill(holder)  # the next two find a campaign without a controller and a run that lives
        until(lambda: not world.controllers(), "it is gone")
    let_go(world)
    world.finish(retry=False)
    counted = world.check(cells=2)
    assert counted.executions == 2


def test_7_two_ups_at_once(world: World) -> None:
    race(world, 8)


@pytest.mark.slow
def test_7_two_ups_at_once_fifty_times(world: World) -> None:
    race(world, 50)


def test_7_two_controllers_at_once(world: World) -> None:
    world.campaign(ONE, seeds=8)
    world.take_in()
    rivals = [world.controller() for _ in range(4)]
    until(lambda: all(rival.poll() is not None for rival in rivals), "all of them end")
    assert [rival.returncode for rival in rivals] == [0, 0, 0, 0]
    world.check(cells=8)
    epochs = world.rows("SELECT who FROM event WHERE kind = 'start' GROUP BY who")
    assert len(epochs) == 1  # one of them did it all


@pytest.mark.parametrize("wake", ["never", "before", "during"])
def test_8_stopped_controller_is_taken_over(world: World, wake: str) -> None:
    """It still holds its lock; `status` keeps telling the truth; whoever wakes up late changes nothing."""
    world.campaign(ONE, seeds=3, cpus=1, body='[ "$1" != train/0 ] || ' + WAIT)
    world.take_in()
    old = world.controller()
    world.running("train/0")
    kill(old.pid, signal.SIGSTOP)
    until(lambda: letter(old.pid) == "T", "it is stopped")

    def silent() -> bool:
        return bool(json.loads(world.muster("status", "--json").stdout)["controller"]["trouble"])

    until(silent, "status says that the controller hangs")
    status = json.loads(world.muster("status", "--json").stdout)
    assert status["cells"][0]["verdict"] == "RUNNING"
    assert not status["controller"]["alive"]
    let_go(world)
    until(lambda: world.exit("train/0"), "the run ends while nobody decides")
    assert json.loads(world.muster("status", "--json").stdout)["cells"][0]["verdict"] == "DONE"
    if wake == "before":
        kill(old.pid, signal.SIGCONT)
    second = world.up()
    if wake == "during":
        time.sleep(0.3)  # somewhere in the takeover; any moment is right
        kill(old.pid, signal.SIGCONT)
    until(lambda: second.poll() is not None, "up hands over")
    assert second.returncode == 0
    world.finish(retry=False)
    if wake == "never":
        until(lambda: not ticks(old.pid) or old.poll() is not None, "the old one was killed")
    counted = world.check(cells=3)
    assert counted.executions == 3


def test_33_the_wall_clock_jumps(world: World) -> None:
    """An hour forth and back while runs live, mtimes of every kind: no verdict changes, nothing starts again."""
    world.campaign(ONE, seeds=3, body='case "$1" in train/0|train/1) ' + WAIT + ";; esac; return 0")
    world.take_in()
    clock = world.root / "shift"
    clock.write_text("0")
    wrapper = f"""
import sys, time
real = time.time
def shifted():
    try:
        return real() + float(open({str(clock)!r}).read() or 0)
    except (OSError, ValueError):
        return real()
time.time = shifted
from muster.bootstrap.controller_process import main
sys.exit(main([{str(world.root)!r}]))
"""
    controller = world.start(sys.executable, "-c", wrapper, start_new_session=True)
    runs = [world.running("train/0"), world.running("train/1")]
    for shift in (3600, -3600, 7200, 0):
        clock.write_text(str(shift))
        looked = world.root / ".muster" / "controller.lock"
        now = time.time() + shift
        for path in [*world.folder("train/0").iterdir(), *world.folder("train/1").iterdir()]:
            os_utime(path, now)
        beat = json.loads(looked.read_text())["beat"]
        until(lambda: json.loads(looked.read_text())["beat"] > beat + 0.5, "several polls under that clock")  # noqa: B023
        assert [world.cell(cell)["verdict"] for cell in ("train/0", "train/1")] == ["RUNNING", "RUNNING"]
        assert controller.poll() is None
    assert [ticks(run) is not None for run in runs] == [True, True]
    let_go(world)
    until(lambda: controller.poll() is not None, "it ends")
    assert world.check(cells=3).executions == 3
    assert len(world.rows("SELECT * FROM attempt")) == 3
    assert all(outcome(world, f"train/{seed}")["duration_s"] < 1000 for seed in range(3))


def os_utime(path, at: float) -> None:
    import os

    os.utime(path, (at, at))


def test_45_the_database_is_deleted(world: World) -> None:
    world.campaign(ONE, seeds=4, cpus=1, body='[ "$1" != train/1 ] || ' + WAIT)
    world.take_in()
    controller = world.controller()
    world.running("train/1")
    kill(controller.pid)
    controller.wait()
    before = [dict(row) for row in world.rows("SELECT cell, n, token, verdict FROM attempt ORDER BY cell, n")]
    assert [row["verdict"] for row in before] == ["DONE", None]
    for path in world.state.glob("campaign.db*"):
        path.unlink()
    status = json.loads(world.muster("status", "--json").stdout)
    assert [cell["verdict"] for cell in status["cells"]] == ["DONE", "RUNNING", "PENDING", "PENDING"]
    after = [dict(row) for row in world.rows("SELECT cell, n, token, verdict FROM attempt ORDER BY cell, n")]
    assert after == before
    let_go(world)
    until(world.without_controller, "the revived controller finishes")
    world.finish(retry=False)
    assert world.check(cells=4).executions == 4
