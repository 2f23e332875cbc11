"""The finish, and fault 48: the controller is killed in every step; nothing is lost or doubled; the machine goes down only
with proof, and at most once. The power switch of these tests is a file."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from fault_world import World, kill, letter, ticks, until
from test_crash_points import shim_points

from muster.files.crash_points import CRASH_POINTS

TRAIN = "  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}'}\n"
COPY = "'sh job.sh copy/1 1', 'sh job.sh copy/2 1'"
OFF = "echo off >> off"
WAIT = 'case "$1" in copy/1) while [ ! -e go ]; do sleep 0.02; done;; esac'
NO_GPU = """
class NVMLError(Exception): pass
def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 0
"""


@pytest.fixture
def machine(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Without GPUs, without a real power switch, and with little patience."""
    (tmp_path / "nvml").mkdir()
    (tmp_path / "nvml" / "pynvml.py").write_text(NO_GPU)
    (tmp_path / "bin").mkdir()
    for name in ("shutdown", "poweroff", "halt"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    for name, value in (("PATH", path), ("PYTHONPATH", str(tmp_path / "nvml"))):
        world.env[name] = value
        monkeypatch.setenv(name, value)
    world.pace(monkeypatch, 0.005)
    return world


def begin(world: World, finish: str, *, body: str = WAIT, top: str = "", seeds: int = 2) -> None:
    world.campaign(TRAIN, seeds=seeds, body=body, top=f"finish: {{{finish}, others: ignore}}\n{top}")
    world.take_in()


def said(world: World, kind: str) -> list[dict[str, Any]]:
    lines = (world.state / "decisions.jsonl").read_text().splitlines()
    return [decision for line in lines if (decision := json.loads(line))["kind"] == kind]


def stages(world: World) -> list[str]:
    return [decision["data"]["what"] for decision in said(world, "shutdown")]


def steps(world: World) -> dict[str, dict[str, Any]]:
    return {step["step"]: step for step in world.status()["finish"]["steps"]}


def copies(world: World) -> list[tuple[str, int]]:
    """How often each command of the finish really ran, by its own word."""
    counted = world.counted()
    assert not counted.overlaps, counted.overlaps
    return sorted((name, times) for (name, _), times in counted.begins.items() if name.startswith("copy"))


def step_pids(world: World, step: str, n: int = 1) -> tuple[int, int]:
    """The command and its shim."""
    path = world.state / "finish" / step / str(n) / "identity.json"
    until(path.exists, f"{step} has an identity")
    who = json.loads(path.read_text())
    return who["pid"], who["shim_pid"]


def is_off(world: World) -> int:
    """How often the machine was powered off."""
    path = world.root / "off"
    return len(path.read_text().splitlines()) if path.exists() else 0


def under_way(world: World) -> None:
    until(lambda: world.counted().begins[("copy/1", 1)], "the first command runs")


def let_go(world: World) -> None:
    (world.root / "go").touch()


# -- killed in each step


@pytest.mark.parametrize("when", ["it lives", "it has ended"])
def test_killed_while_a_command_runs(machine: World, when: str) -> None:
    begin(machine, f"run: [{COPY}], shutdown: '{OFF}', countdown: 0s")
    machine.controller()
    under_way(machine)
    command, _ = step_pids(machine, "run-1")
    kill(until(machine.holder, "the controller"))
    until(machine.without_controller, "it is dead")
    assert ticks(command), "the command went down with the controller"
    assert machine.status()["finish"]["due"]
    if when == "it has ended":
        let_go(machine)
        until(lambda: ticks(command) is None, "the command ends while nobody decides")
    machine.controller()
    until(machine.holder, "another controller")
    let_go(machine)
    status = machine.finish(retry=False)
    assert copies(machine) == [("copy/1", 1), ("copy/2", 1)]
    assert is_off(machine) == 1
    assert [step["state"] for step in status["finish"]["steps"]] == ["done", "done", "done"]


def test_killed_after_every_record(machine: World) -> None:
    """A controller is started, and killed as soon as it has recorded something of the finish, up to the second look."""
    top = "notify: [{run: 'true'}]"
    begin(machine, f"run: [{COPY}], notify: true, shutdown: '{OFF}', countdown: 0s", body="", top=top)
    told = before = 0
    killed = []
    while not killed or stages(machine).count("clear") < 2:
        machine.controller()

        def records() -> int:
            return len(said(machine, "finish")) + len(stages(machine))

        told = until(lambda: now if (now := records()) > before else 0, "it records something", every_s=0.001)  # noqa: B023
        holder = machine.holder()
        if holder is None or stages(machine)[-1:] in (["counting"], ["began"], ["ended"]):
            break  # it was quicker than we
        kill(holder)
        killed.append(holder)
        until(machine.without_controller, "it is dead")
        before = max(told, records())
    machine.finish(retry=False)
    assert len(killed) >= 4
    assert copies(machine) == [("copy/1", 1), ("copy/2", 1)]
    assert is_off(machine) == 1
    assert {name: step["state"] for name, step in steps(machine).items()} == dict.fromkeys(
        ("run-1", "run-2", "notify", "shutdown"), "done"
    )


def test_killed_in_the_countdown_which_begins_anew(machine: World) -> None:
    begin(machine, f"shutdown: '{OFF}', countdown: 2s")
    machine.controller()
    until(lambda: "counting" in stages(machine), "the countdown")
    kill(until(machine.holder, "the controller"))
    until(machine.without_controller, "it is dead")
    machine.controller()
    until(lambda: stages(machine).count("counting") == 2, "another countdown")
    assert is_off(machine) == 0
    machine.finish(retry=False)
    assert is_off(machine) == 1
    assert stages(machine) == ["clear", "counting", "clear", "counting", "began", "ended"]


def test_killed_while_the_machine_goes_down_and_never_again(machine: World) -> None:
    """The command was recorded: who comes after, on a machine that was switched on again, must not repeat it."""
    begin(machine, f"shutdown: '{OFF}; while [ ! -e go ]; do sleep 0.02; done', countdown: 0s")
    machine.controller()
    until(lambda: is_off(machine), "the command runs")
    kill(until(machine.holder, "the controller"))
    until(machine.without_controller, "it is dead")
    let_go(machine)
    machine.finish(retry=False)
    assert stages(machine)[-1] == "unclear"
    assert machine.muster("up").returncode == 0
    assert machine.muster("status").returncode == 0
    until(machine.without_controller, "nobody is at work")
    assert is_off(machine) == 1
    assert "not repeated by itself" in machine.muster("status").stdout


def test_stopped_in_the_countdown_and_taken_over(machine: World) -> None:
    begin(machine, f"shutdown: '{OFF}', countdown: 3s")
    machine.controller()
    until(lambda: "counting" in stages(machine), "the countdown")
    old = until(machine.holder, "the controller")
    kill(old, signal.SIGSTOP)
    until(lambda: letter(old) == "T", "it is stopped")
    until(lambda: json.loads(machine.muster("status", "--json").stdout)["controller"]["trouble"], "it is seen to hang")
    machine.controller()
    until(lambda: machine.holder() not in (None, old), "another one has taken over")
    kill(old, signal.SIGCONT)
    machine.finish(retry=False)
    assert is_off(machine) == 1


def test_the_command_and_its_shim_are_killed_too(machine: World) -> None:
    """Nobody can tell how far it got: it is run again, but not for ever, and never beside another one."""
    begin(machine, f"run: ['sh job.sh copy/1 1'], shutdown: '{OFF}', countdown: 0s")
    machine.controller()
    for n in (1, 2, 3):
        until(lambda: world_has(machine, n), f"execution {n}")  # noqa: B023
        command, shim = step_pids(machine, "run-1", n)
        kill(shim)
        kill(command)
    machine.finish(retry=False)
    assert copies(machine) == [("copy/1", 3)]
    assert is_off(machine) == 0
    assert steps(machine)["run-1"]["state"] == "failed"
    let_go(machine)
    assert machine.muster("up").returncode == 0  # a person has looked
    assert copies(machine) == [("copy/1", 4)]
    assert is_off(machine) == 1


def world_has(world: World, n: int) -> bool:
    return world.counted().begins[("copy/1", 1)] == n


@pytest.mark.slow
@pytest.mark.parametrize("point", [*shim_points(), *CRASH_POINTS[:5], "epoch.taken", "order.write", "order.rename"])
def test_killed_at_every_named_point(machine: World, point: str) -> None:
    """The campaign is complete when its finish is declared, so the first to get there is of the finish."""
    machine.campaign(TRAIN, seeds=1)
    machine.take_in()
    machine.finish(retry=False)
    until(lambda: not machine.controllers(), "nobody is left who could do it unarmed")
    begin(machine, f"run: [{COPY}], shutdown: '{OFF}', countdown: 0s", body="", seeds=1)
    machine.controller(machine.armed(point))
    if point != "fold.intent":  # which is written only when it changes
        until(machine.marker.exists, f"{point} is reached")
    machine.finish(retry=False)
    failed = machine.status()["finish"]["failed"]
    assert is_off(machine) == (0 if failed else 1)
    assert failed in ((None, "run-1") if point == "child.execing" else (None,))
    assert machine.muster("up").returncode == 0
    assert all(times <= 2 for _, times in copies(machine))  # twice only where nobody could see its end
    assert is_off(machine) == 1


# -- what keeps it from going on


def test_a_command_that_fails_keeps_the_machine_on(machine: World) -> None:
    body = 'case "$1" in copy/2) [ -e fixed ] || { echo no remote >&2; return 5; };; esac'
    run = f"{COPY}, 'sh job.sh copy/3 1'"
    begin(
        machine,
        f"run: [{run}], shutdown: '{OFF}', countdown: 0s",
        body=body,
        top="notify: [{run: 'sh -c \"cat >> told\"'}]",
    )
    machine.controller()
    status = machine.finish(retry=False)
    assert status["complete"]
    assert (status["finish"]["failed"], status["finish"]["due"]) == ("run-2", False)
    shown = machine.muster("status")
    assert shown.returncode == 3
    assert "run-2 (`sh job.sh copy/2 1`) failed" in shown.stdout
    folder = machine.root / steps(machine)["run-2"]["folder"]
    assert (folder / "stderr.log").read_text() == "no remote\n"
    until(
        lambda: (machine.root / "told").exists() and "run-2 failed" in (machine.root / "told").read_text(), "a notice"
    )
    refused = machine.muster("shutdown", "--countdown", "0s")
    assert refused.returncode == 3
    assert "finish: run-2 (`sh job.sh copy/2 1`) is failed" in refused.stdout
    assert "finish: run-3 (`sh job.sh copy/3 1`) is waiting" in refused.stdout
    assert (copies(machine), is_off(machine)) == ([("copy/1", 1), ("copy/2", 1)], 0)
    assert machine.muster("wait").returncode == 3
    (machine.root / "fixed").touch()
    assert machine.muster("up").returncode == 0
    assert copies(machine) == [("copy/1", 1), ("copy/2", 2), ("copy/3", 1)]
    assert is_off(machine) == 1


def test_a_command_that_does_not_exist(machine: World) -> None:
    begin(machine, f"run: [no-such-command-here], shutdown: '{OFF}', countdown: 0s")
    machine.controller()
    machine.finish(retry=False)
    assert steps(machine)["run-1"]["state"] == "failed"
    assert len(said(machine, "finish")) == 2  # tried once: it would fail in the same way again
    assert is_off(machine) == 0


def test_a_notice_that_fails_stops_nothing(machine: World) -> None:
    begin(machine, f"notify: true, shutdown: '{OFF}', countdown: 0s", top="notify: [{run: 'false'}]")
    machine.controller()
    machine.finish(retry=False)
    assert steps(machine)["notify"]["why"] == "`false` ended with 1"
    assert is_off(machine) == 1


def test_cancelled_in_the_countdown(machine: World) -> None:
    begin(machine, f"run: ['sh job.sh copy/2 1'], shutdown: '{OFF}', countdown: 10m")
    machine.controller()
    until(lambda: "counting" in stages(machine), "the countdown")
    shown = machine.muster("status")
    assert shown.returncode == 4
    assert "SHUTDOWN in 600 s" in shown.stdout
    assert machine.muster("shutdown", "--cancel").returncode == 0
    until(machine.without_controller, "its work is over")
    assert machine.muster("status").returncode == 0
    assert "shutdown was cancelled by" in machine.muster("status").stdout
    assert machine.muster("up").returncode == 0  # `up` does not bring it back
    assert (copies(machine), is_off(machine)) == ([("copy/2", 1)], 0)
    assert stages(machine) == ["clear", "counting", "cancel"]


def test_a_cell_taken_up_again_in_the_countdown(machine: World) -> None:
    body = 'case "$1" in train/1) [ -e go ] || return 3;; esac'
    begin(machine, f"run: ['sh job.sh copy/2 1'], shutdown: '{OFF}', countdown: 3s", body=body)
    machine.controller()
    machine.until_cell("train/1", lambda cell: cell["verdict"] == "DEAD", "DEAD")
    assert machine.muster("giveup", "train/1", "--because", "no money").returncode == 0
    until(lambda: "counting" in stages(machine), "the countdown")
    let_go(machine)
    assert machine.muster("retry", "train/1", "--because", "money came").returncode == 0
    machine.until_cell("train/1", lambda cell: cell["verdict"] == "DONE", "DONE")
    assert is_off(machine) == 0
    machine.finish(retry=False)
    assert copies(machine) == [("copy/2", 2)]  # another state of the matrix
    assert is_off(machine) == 1


def test_two_campaigns_on_one_machine(machine: World) -> None:
    """The one that is done waits for the other, and says for what."""
    other = machine.beside("other")
    other.campaign(TRAIN, seeds=1, body="while [ ! -e go ]; do sleep 0.02; done")
    other.take_in()
    other.controller()
    other.running("train/0")
    begin(machine, f"shutdown: '{OFF}', countdown: 0s", seeds=1, body="")
    machine.controller()
    until(lambda: "refused" in stages(machine), "it is refused")
    reasons = said(machine, "shutdown")[-1]["data"]["reasons"]
    assert any("is leased" in reason for reason in reasons)
    assert any("a run of another campaign: pid" in reason for reason in reasons)
    assert "shutdown waits: " in machine.muster("status").stdout
    assert is_off(machine) == 0
    let_go(other)
    until(other.without_controller, "the other is done")
    machine.finish(retry=False)
    assert is_off(machine) == 1


def test_down_leaves_a_command_alone_and_down_with_runs_stops_it(machine: World) -> None:
    begin(machine, f"run: [{COPY}], shutdown: '{OFF}', countdown: 0s")
    machine.controller()
    under_way(machine)
    command, _ = step_pids(machine, "run-1")
    assert machine.muster("down").returncode == 0
    assert ticks(command)
    assert machine.muster("status").returncode == 0  # complete, and nothing goes on by itself
    refused = machine.muster("shutdown", "--countdown", "0s")
    assert "finish run-1: pid" in refused.stdout
    ended = machine.muster("down", "--runs")
    assert "finish run-1: stopped" in ended.stdout
    until(lambda: ticks(command) is None, "it has ended")
    let_go(machine)
    assert machine.muster("up").returncode == 0
    assert copies(machine) == [("copy/1", 2), ("copy/2", 1)]
    assert is_off(machine) == 1


# -- fault 48


def test_48_a_shutdown_with_one_unknown_is_refused(machine: World) -> None:
    body = 'case "$1" in train/1) while [ ! -e go ]; do sleep 0.02; done;; esac'
    begin(machine, f"shutdown: '{OFF}', countdown: 0s", body=body)
    controller = machine.controller()
    machine.until_cell("train/0", lambda cell: cell["verdict"] == "DONE", "DONE")
    run, shim = machine.running("train/1"), machine.shim("train/1")
    until(lambda: machine.rows("SELECT verdict FROM attempt WHERE cell = 'train/0'")[0]["verdict"], "it is recorded")
    kill(shim)
    kill(run)
    (machine.folder("train/1") / "exit.json").write_text("half a fact")
    kill(controller.pid)
    until(machine.without_controller, "it is dead")
    assert machine.cell("train/1")["verdict"] == "UNKNOWN"
    for words in (("--dry-run",), ("--countdown", "0s")):
        refused = machine.muster("shutdown", *words)
        assert refused.returncode == 3
        assert "train/1 is UNKNOWN: it can't be read" in refused.stdout
    machine.controller()
    until(machine.holder, "another controller")
    until(lambda: machine.muster("wait", "--timeout", "0.5s").returncode in (3, 4), "it does not know either")
    assert is_off(machine) == 0
