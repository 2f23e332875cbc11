"""muster shutdown: refused with reasons until all is done; looks, countdown, cancel; the machine stays on in every test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from power_world import OFF, complete, fits, machine

from support.camp import Camp

__all__ = ["machine"]  # the fixture


def test_refused_with_reasons_before_all_is_done(machine: Camp) -> None:
    assert "has not been started" in machine("shutdown", code=2).stderr
    machine("up", "--detach", code=0)
    machine.started("train/0")
    for args in ((), ("--dry-run",), machine.off):
        said = machine("shutdown", *args, code=3).stdout
        assert "train/0 is RUNNING" in said
        assert "slot cpu0 is leased" in said
        assert "train/0@1: a process of it lives on: its tree.lock is held" in said
    found = fits(machine.json("shutdown", code=3))
    assert (found["what"], found["command"]) == ("refused", "shutdown -h now || poweroff || halt")
    assert any(reason.startswith("train/1 is RUNNING") for reason in found["reasons"])
    machine.open(0, "3")
    machine.open(1)
    machine("wait", code=3)
    (reason,) = fits(machine.json("shutdown", *machine.off, code=3))["reasons"]
    assert reason.startswith("train/0 is DEAD: ")
    machine("giveup", "train/0", "--because", "enough", code=0)
    assert fits(machine.json("shutdown", "--dry-run", code=0))["what"] == "would shut down"
    assert not machine.marker.exists()


def test_a_dry_run_does_nothing_and_a_run_does_it_once(machine: Camp) -> None:
    complete(machine)
    before = (machine.root / ".muster" / "decisions.jsonl").read_bytes()
    said = machine("shutdown", "--dry-run", *machine.off, code=0).stdout
    assert "would shut down by `shutdown -h now || poweroff || halt`" in said
    assert (machine.root / ".muster" / "decisions.jsonl").read_bytes() == before
    assert not machine.marker.exists()
    said = machine("shutdown", *machine.off, code=0).stdout
    assert "a second look" in said
    assert "powering off in" in said
    assert machine.marker.read_text() == f"{OFF}\n"
    told = [decision["data"]["what"] for decision in machine.decisions("shutdown")]
    assert told == ["clear", "counting", "began", "ended"]
    assert "finish: shutdown done" in machine("status", code=0).stdout
    assert fits(machine.json("shutdown", *machine.off, code=0))["what"] == "shut down"
    assert machine.marker.read_text() == f"{OFF}\n{OFF}\n"  # a person asked again


def test_what_else_stands_against_it(machine: Camp) -> None:
    complete(machine)
    machine.gpus.write_text("2")
    assert fits(machine.json("shutdown", *machine.off, code=3))["reasons"] == [
        "GPU 0 is in use: 1 process uses it",
        "GPU 1 is in use: 1 process uses it",
    ]
    machine.gpus.write_text("0")
    token = machine.decisions("start")[0]["data"]["token"]
    left = subprocess.Popen(["sleep", "600"], env={**machine.environment, "MUSTER_ATTEMPT": token})
    other = subprocess.Popen(["sleep", "600"], env={**machine.environment, "MUSTER_ATTEMPT": "of another campaign"})
    elsewhere = {**machine.environment, "MUSTER_HOME": "/somewhere/else", "MUSTER_ATTEMPT": "of another machine"}
    far = subprocess.Popen(["sleep", "600"], env=elsewhere)
    try:
        machine.until(lambda: all(b"sleep" in Path(f"/proc/{p.pid}/cmdline").read_bytes() for p in (left, other, far)))
        found = fits(machine.json("shutdown", *machine.off, code=3))
        name = machine.decisions("start")[0]["cell"]
        assert sorted(found["reasons"]) == [
            f"a run of another campaign: pid {other.pid} of it lives on",
            f"{name}@1: pid {left.pid} of it lives on",
        ]
    finally:
        for process in (left, other, far):
            process.kill()
            process.wait()
    (machine.root / "reports" / "status").mkdir(exist_ok=True, parents=True)
    assert fits(machine.json("shutdown", "--dry-run", code=0))["reasons"] == []
    assert not machine.marker.exists()


def test_what_comes_up_between_the_looks_stops_it(machine: Camp) -> None:
    complete(machine)
    machine.environment["MUSTER_PACE"] = "0.02"
    going = machine.background("shutdown", *machine.off)
    assert b"a second look" in going.stdout.readline()
    machine.gpus.write_text("1")
    out, _ = going.communicate(timeout=30)
    assert going.returncode == 3
    assert b"GPU 0 is in use" in out
    assert not machine.marker.exists()
    assert [decision["data"]["what"] for decision in machine.decisions("shutdown")] == ["clear", "dropped"]


def test_cancelled_from_another_terminal(machine: Camp) -> None:
    complete(machine)
    going = machine.background("shutdown", "--countdown", "10m")
    machine.until(lambda: [d for d in machine.decisions("shutdown") if d["data"]["what"] == "counting"])
    assert "SHUTDOWN in 600 s" in machine("status", code=0).stdout
    assert fits(machine.json("shutdown", "--cancel", code=0))["what"] == "cancelled"
    out, _ = going.communicate(timeout=30)
    assert (going.returncode, b"the machine stays on" in out) == (3, True)
    assert not machine.marker.exists()


def test_ctrl_c_where_it_counts(machine: Camp) -> None:
    complete(machine)
    going = machine.background("shutdown", "--countdown", "10m")
    machine.until(lambda: [d for d in machine.decisions("shutdown") if d["data"]["what"] == "counting"])
    os.kill(going.pid, signal.SIGINT)
    out, err = going.communicate(timeout=30)
    assert (going.returncode, b"cancelled" in out, err.strip()) == (130, True, b"")
    assert machine.decisions("shutdown")[-1]["data"]["what"] == "dropped"
    assert "SHUTDOWN" not in machine("status", code=0).stdout
    assert not machine.marker.exists()


def test_a_command_that_fails_is_told_and_recorded(machine: Camp) -> None:
    complete(machine)
    machine.break_switches("shutdown", "poweroff", "halt")
    said = machine("shutdown", "--countdown", "0s", code=1).stderr
    assert "could not be powered off: `shutdown -h now || poweroff || halt` ended with exit 1: no rights" in said
    assert machine.decisions("shutdown")[-1]["data"]["what"] == "failed"
    assert "finish: shutdown" in machine("status", code=3).stdout
    error = json.loads(machine("shutdown", "--countdown", "0s", "--json", code=1).stderr)["error"]
    assert error["where"].endswith("shutdown.log")
    machine("up", code=0)  # a person goes on: nothing is left to try


def test_a_wish_is_granted_when_all_is_done_and_only_then(machine: Camp) -> None:
    machine("up", "--detach", code=0)
    machine.started("train/0")
    machine.open(0)
    wished = fits(machine.json("shutdown", "--when-done", *machine.off, code=0))
    assert (wished["what"], wished["wish"]["command"]) == ("wished", None)
    assert "powered off when all is done: `shutdown -h now || poweroff || halt`" in machine("status", code=4).stdout
    assert not machine.marker.exists()
    machine.open(1)
    machine("wait", code=0)
    assert machine.marker.read_text() == f"{OFF}\n"
    assert "shutdown done" in machine("status", code=0).stdout
    machine("up", code=0)  # the wish was granted: nothing goes down again
    assert machine.marker.read_text() == f"{OFF}\n"
    assert machine.json("shutdown", "--dry-run")["wish"] is None


def test_a_wish_taken_back(machine: Camp) -> None:
    machine("up", "--detach", code=0)
    machine("shutdown", "--when-done", *machine.off, code=0)
    assert "cancelled" in machine("shutdown", "--cancel", code=0).stdout
    assert "nothing was wished for" in machine("shutdown", "--cancel", code=0).stdout
    machine.open(0)
    machine.open(1)
    machine("wait", code=0)
    machine("up", code=0)
    assert not machine.marker.exists()
    machine("shutdown", "--when-done", *machine.off, code=0)  # a campaign at rest: a controller is started for it
    machine("wait", code=0)
    assert machine.marker.read_text() == f"{OFF}\n"


def test_wishes_of_a_campaign_that_is_down_wait(machine: Camp) -> None:
    complete(machine)
    machine("down", code=0)
    said = machine("shutdown", "--when-done", *machine.off, code=0).stdout
    assert "the campaign is down: nothing happens before it goes on" in said
    assert machine("status", code=0).stdout.count("powered off when all is done") == 1
    assert not machine.marker.exists()
    machine("up", code=0)
    assert machine.marker.read_text() == f"{OFF}\n"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--when-done", "--cancel"), "exclude each other"),
        (("--command", "true"), "No such option: --command"),
        (("--countdown", "5"), "--countdown 5: of what?"),
    ],
)
def test_wrong_use(machine: Camp, args: tuple[str, ...], text: str) -> None:
    assert text in machine("shutdown", *args, code=2).stderr


@pytest.mark.parametrize(
    ("broken", "tried"),
    [((), ["shutdown -h now"]), (("shutdown",), ["shutdown -h now", "poweroff"]),
     (("shutdown", "poweroff"), ["shutdown -h now", "poweroff", "halt"])],
)  # fmt: skip
def test_the_usual_command(machine: Camp, broken: tuple[str, ...], tried: list[str]) -> None:
    complete(machine)
    machine.break_switches(*broken)
    machine("shutdown", "--countdown", "0s", code=0)
    assert machine.switches.read_text().splitlines() == tried


def test_a_container_that_may_not_power_off(machine: Camp) -> None:
    complete(machine)
    machine.break_switches("shutdown", "poweroff", "halt")
    assert "in a container only its host can" in machine("shutdown", "--countdown", "0s", code=1).stderr
    assert machine.switches.read_text().splitlines() == ["shutdown -h now", "poweroff", "halt"]
    assert machine.decisions("shutdown")[-1]["data"]["what"] == "failed"
