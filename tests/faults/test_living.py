"""Who keeps a campaign alive and who may not: down, hold, revival, the terminal, the environment, the shared slots."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from fault_world import World, kill, letter, ticks, until

ONE = "  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}'}\n"
WAIT = "while [ ! -e go ]; do sleep 0.02; done"


def let_go(world: World) -> None:
    (world.root / "go").touch()


def periods(world: World, cell: str, count: int) -> None:
    """Until the shim has looked for a controller `count` times: its own reads of `intent` are not visible, so by CPU."""
    shim = world.shim(cell)
    before = switches(shim)
    until(lambda: switches(shim) >= before + count, f"{count} periods of its shim")


def switches(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))


def test_down_stays_down_although_shims_live_on(world: World) -> None:
    world.env["MUSTER_REVIVE_S"] = "0.3"
    world.campaign(ONE, seeds=3, cpus=1, body=WAIT)
    assert world.muster("up", "--detach").returncode == 0
    run = world.running("train/0")
    assert world.muster("down").returncode == 0
    until(lambda: not world.controllers(), "the controller ends")
    periods(world, "train/0", 5)
    assert not world.controllers()
    assert ticks(run)  # the runs are left alone
    world.muster("status")  # a command that looks does not revive it either
    periods(world, "train/0", 2)
    assert not world.controllers()
    let_go(world)
    until(lambda: world.exit("train/0"), "the run ends under its shim")
    assert world.muster("status").returncode == 3
    assert not world.controllers()
    assert world.counted().executions == 1
    assert world.muster("up", timeout_s=60).returncode == 0  # up, and it goes on where it was
    assert world.check(cells=3).executions == 3


def test_hold_stops_every_start(world: World) -> None:
    world.campaign(ONE, seeds=3, cpus=1, body=f'[ "$2" != 1 ] || [ "$1" != train/0 ] || {{ {WAIT}; return 5; }}')
    assert world.muster("up", "--detach").returncode == 0
    world.running("train/0")
    assert world.muster("hold", "--because", "you may look, you may not rerun").returncode == 0
    let_go(world)
    until(lambda: world.rows("SELECT * FROM attempt WHERE verdict = 'DEAD'"), "its end is recorded")
    until(world.without_controller, "nothing is left to do")
    world.muster("retry", "train/0", "--because", "a person is impatient")
    world.muster("up", "--detach")
    world.controller().wait(timeout=60)
    assert world.counted().executions == 1  # neither retry, up nor a controller by hand starts anything
    assert [cell["verdict"] for cell in world.status()["cells"]] == ["DEAD", "HELD", "HELD"]
    assert world.muster("release").returncode == 0
    world.finish(retry=False)
    assert world.check(cells=3).of("train/0") == [1, 2]


@pytest.mark.parametrize("who", ["shim", "status"])
def test_killed_controller_is_revived(world: World, who: str) -> None:
    world.env["MUSTER_REVIVE_S"] = "0.2" if who == "shim" else "60"
    world.campaign(ONE, seeds=2, cpus=1, body=WAIT)
    assert world.muster("up", "--detach").returncode == 0
    run = world.running("train/0")
    first = world.holder()
    kill(first)
    until(lambda: not world.holder(), "it is dead")
    if who == "status":
        assert world.muster("status").returncode == 4
    second = until(world.holder, f"{who} revives it")
    assert second != first
    assert ticks(run)
    query = f"SELECT reason FROM event WHERE kind = 'epoch' AND who = 'controller {second}'"
    (epoch,) = until(lambda: world.rows(query), "its epoch")
    assert ("shim" in epoch["reason"]) == (who == "shim")
    let_go(world)
    world.finish(retry=False)
    assert world.check(cells=2).executions == 2


def test_revived_controller_uses_the_recorded_environment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.env["MUSTER_REVIVE_S"] = "0.2"
    world.campaign(ONE, seeds=2, cpus=1, body=f'env > "$MUSTER_OUT/env"; [ "$1" != train/0 ] || {WAIT}')
    monkeypatch.setenv("ONLY_UP_HAD_THIS", "a secret; with 'quotes' and $dollars")
    world.take_in()
    monkeypatch.delenv("ONLY_UP_HAD_THIS")
    controller = world.controller()  # bare: neither it nor its shims have the variable
    world.running("train/0")
    assert b"ONLY_UP" not in Path(f"/proc/{controller.pid}/environ").read_bytes()
    kill(controller.pid)
    controller.wait()
    until(world.holder, "the shim revives it")
    let_go(world)
    world.finish(retry=False)
    world.check(cells=2)
    for cell in ("train/0", "train/1"):
        text = (world.folder(cell) / "out" / "env").read_text()
        assert "ONLY_UP_HAD_THIS=a secret; with 'quotes' and $dollars\n" in text
        assert f"MUSTER_CELL={cell}\n" in text


@pytest.mark.parametrize("how", ["hangup", "leader killed", "terminal closed"])
def test_24_the_terminal_closes(world: World, how: str) -> None:
    world.campaign(ONE, seeds=2, body=WAIT)
    terminal, inside = os.openpty()
    try:
        command = ("setsid", "--ctty", "--wait", sys.executable, "-m", "muster", "-C", str(world.root), "up")
        leader = world.start(*command, stdin=inside, stdout=inside, stderr=inside)
        os.close(inside)
        runs = [world.running("train/0"), world.running("train/1")]
        controller = world.holder()
        ups = [pid for pid in world.ours() if _session(pid) not in (pid, os.getsid(0)) and "up" in _words(pid)] or [
            pid for pid in world.ours() if _words(pid)[-1:] == ["up"]
        ]
        if how == "hangup":
            for pid in ups:
                os.killpg(os.getpgid(pid), signal.SIGHUP)
        elif how == "leader killed":
            for pid in ups:
                kill(pid)
    finally:
        if how != "terminal closed":
            drain(terminal)
        os.close(terminal)
    until(lambda: not [pid for pid in ups if ticks(pid)], "the attached `up` is gone")
    leader.wait(timeout=60)
    beat = _beat(world)
    until(lambda: _beat(world) > beat + 1, "the controller beats on")
    assert world.holder() == controller
    assert all(ticks(run) for run in runs)
    let_go(world)
    world.finish(retry=False)
    assert world.check(cells=2).executions == 2


def _beat(world: World) -> float:
    try:
        return json.loads((world.state / "controller.lock").read_text())["beat"]
    except ValueError:
        return 0.0


def _session(pid: int) -> int:
    """One that has ended meanwhile leads itself."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return pid


def _words(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().split("\0")[:-1]
    except OSError:
        return []


def drain(fd: int) -> None:
    os.set_blocking(fd, False)
    try:
        while os.read(fd, 4096):
            pass
    except OSError:
        pass


def test_two_campaigns_share_two_slots(world: World) -> None:
    """Machine-wide leases: never more than two runs at a time, whoever asks, and both campaigns come to their end."""
    other = world.beside("other")
    world.campaign(ONE, seeds=8, body="sleep 0.05")
    other.campaign(ONE.replace("train", "second"), seeds=8, body="sleep 0.05")
    for one in (world, other):
        one.take_in()
    both = [world.controller(), other.controller()]
    until(lambda: all(process.poll() is not None for process in both), "both end")
    running = most = 0
    for line in world.count.read_text().splitlines():
        running += {"begin": 1, "end": -1}[line.split()[0]]
        most = max(most, running)
    assert most == 2
    assert len(world.rows("SELECT * FROM attempt WHERE verdict = 'DONE'")) == 8
    assert len(other.rows("SELECT * FROM attempt WHERE verdict = 'DONE'")) == 8
    assert world.counted().executions == 16
    assert not world.counted().overlaps


def test_stopped_controller_is_not_revived_behind_its_back(world: World) -> None:
    """It holds its lock: shims leave it alone, and once it goes on it is the same controller as before."""
    world.env["MUSTER_REVIVE_S"] = "0.2"
    world.campaign(ONE, seeds=1, body=WAIT)
    world.take_in()
    controller = world.controller()
    world.running("train/0")
    kill(controller.pid, signal.SIGSTOP)
    until(lambda: letter(controller.pid) == "T", "it is stopped")
    periods(world, "train/0", 5)
    assert world.controllers() == [controller.pid]
    kill(controller.pid, signal.SIGCONT)
    let_go(world)
    until(lambda: controller.poll() is not None, "it ends")
    assert world.check(cells=1).executions == 1
