"""A power-off sees what lives and what is not done: orphans, other campaigns, writers, other people. Real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from power_world import ONE, complete, fits, machine

from support.camp import Camp

__all__ = ["machine"]
STRANGER = 4242  # nobody's uid

# without the token, without tree.lock, in a session of its own: as `subprocess` starts a helper by default
LEAVES = """\
import os, pathlib, subprocess
if out := os.environ.get("MUSTER_OUT"):
    pathlib.Path(out, "made").write_text("x")
subprocess.Popen(["sleep", "600"], env={}, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                 stderr=subprocess.DEVNULL)
"""


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes of nobody's campaign: they end with the test."""
    found: list[subprocess.Popen[bytes]] = []
    yield found
    for each in found:
        with each:
            each.kill()


def leaves_one_behind(camp: Camp) -> int:
    """Runs a campaign to its end whose run leaves an upload behind; the pid of that."""
    (camp.root / "leave.py").write_text(LEAVES)
    python = sys.executable
    camp.write(ONE.replace("axes: [seed], command: \"sh -c 'echo started; read word < gate-{seed}; exit $word'\"",
                           f'axes: [], proof: {{files: [made]}}, command: "{python} leave.py"'))  # fmt: skip
    camp("up", "--detach", code=0)
    camp("wait", code=0)
    return orphan(camp)


def orphan(camp: Camp) -> int:
    (pid,) = camp.ended("train")["orphans"]
    camp.left = [*getattr(camp, "left", []), pid]
    return int(pid)


def shim_of(camp: Camp, cell: str = "train") -> int:
    return int(json.loads((camp.folder(cell) / "identity.json").read_text())["shim_pid"])


def reasons(camp: Camp, code: int = 3) -> list[str]:
    found: list[str] = fits(camp.json("shutdown", "--dry-run", code=code))["reasons"]
    return found


def beside(camp: Camp, name: str) -> Camp:
    """Another campaign of the same user."""
    other = type(camp)(camp.root.parent / name, Path(camp.environment["MUSTER_HOME"]))
    other.root.mkdir()
    other.environment = camp.environment
    return other


def end(pid: int, camp: Camp) -> None:
    os.kill(pid, signal.SIGKILL)
    camp.until(lambda: not camp.alive(pid), "its end")


@pytest.mark.parametrize("shim", ["lives", "was killed", "lost its folder"])
def test_what_a_run_left_behind_stands_against_it(machine: Camp, shim: str) -> None:
    left = leaves_one_behind(machine)
    try:
        assert reasons(machine) == [f"train@1: pid {left}, which it left behind, lives on"]
        if shim == "was killed":
            end(shim_of(machine), machine)
            assert reasons(machine) == [f"train@1: pid {left}, which it left behind, lives on"]
        if shim == "lost its folder":
            alive = shim_of(machine)
            shutil.rmtree(machine.root / ".muster" / "attempts")
            assert f"pid {alive} is the shim of a run whose campaign is not known any more" in reasons(machine)
        assert "not now" in machine("shutdown", *machine.off, code=3).stdout
        assert not machine.marker.exists()
    finally:
        end(left, machine)
    assert reasons(machine, code=0) == []


def test_what_a_step_of_the_finish_left_behind_stands_against_it(machine: Camp) -> None:
    (machine.root / "leave.py").write_text(LEAVES)
    run = f"finish: {{others: ignore, run: ['{sys.executable} leave.py']}}"
    machine.write(ONE.replace("finish: {others: ignore}", run))
    machine("up", "--detach", code=0)
    machine.open(0)
    machine.open(1)
    told = machine.root / ".muster" / "finish" / "run-1" / "1" / "exit.json"
    machine.until(told.exists, "the end of the step")
    (left,) = json.loads(told.read_text())["orphans"]
    try:
        assert f"finish run-1: pid {left}, which it left behind, lives on" in reasons(machine)
    finally:
        end(left, machine)
    machine("wait", code=0)
    assert reasons(machine, code=0) == []


def test_orphans_of_another_campaign_stand_against_it(machine: Camp) -> None:
    complete(machine)
    other = beside(machine, "other")
    left = leaves_one_behind(other)
    try:
        where = f"campaign one in {other.root}"
        assert reasons(machine) == [f"{where}: train@1: pid {left}, which it left behind, lives on"]
    finally:
        end(left, other)
    assert reasons(machine, code=0) == []
    other.clean_up()


def test_an_unfinished_campaign_stands_against_it_until_it_is_put_down(machine: Camp) -> None:
    """Nothing of it lives, no slot is leased: only the register knows of it."""
    complete(machine)
    other = beside(machine, "other")
    other.write(ONE)
    other.gates(0, 1)
    other("up", "--detach", code=0)
    other.open(0)
    other.open(1, "3")
    other("wait", code=3)
    (reason,) = reasons(machine)
    assert reason.startswith(f"campaign one in {other.root} is not finished: 1 of 2 cells are not done")
    other.root.rename(machine.root.parent / "renamed")
    (reason,) = reasons(machine)
    assert f"in {machine.root.parent / 'renamed'} is not finished" in reason
    (machine.root.parent / "renamed").rename(other.root)
    taken = other.root / ".muster" / "campaigns"
    taken.rename(other.root / ".muster" / "away")
    (reason,) = reasons(machine)
    assert f"campaign one in {other.root} can't be read: " in reason
    assert f"`muster ls --forget {other.root}`" in reason
    (other.root / ".muster" / "away").rename(taken)
    other("hold", "--because", "I want to look", code=0)
    (reason,) = reasons(machine)
    assert "is not finished" in reason
    other("release", code=0)
    other("down", code=0)
    assert reasons(machine, code=0) == []
    shutil.rmtree(other.root)
    assert reasons(machine, code=0) == []


def test_a_process_that_writes_into_an_output_folder_stands_against_it(
    machine: Camp, started: list[subprocess.Popen[bytes]]
) -> None:
    machine.write(ONE.replace("axes: [seed],", "axes: [seed], output: 'runs/{seed}_*',"))
    (machine.root / "runs" / "by_hand").mkdir(parents=True)
    complete(machine)
    log = machine.root / "runs" / "by_hand" / "metrics.jsonl"
    log.touch()
    (machine.root / "runs" / ".notes.md.swp").touch()
    (machine.root / "notes.md").touch()
    for path, mode in ((log, "r"), (machine.root / "runs" / ".notes.md.swp", "w"), (machine.root / "notes.md", "w")):
        began(machine, started, path, mode)
    assert reasons(machine, code=0) == []  # a reader, an editor, and who writes elsewhere
    writer = began(machine, started, log, "a")
    (reason,) = reasons(machine)
    assert reason.startswith(f"pid {writer.pid} (")
    assert reason.endswith(f" writes {log}")


def began(camp: Camp, started: list[subprocess.Popen[bytes]], path: Path, mode: str) -> subprocess.Popen[bytes]:
    code = f"file = open({str(path)!r}, {mode!r}); print('open', flush=True); input()"
    made = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            cwd="/", start_new_session=True)  # fmt: skip
    started.append(made)
    assert made.stdout is not None
    assert made.stdout.readline() == b"open\n", camp
    return made


def test_who_waits_for_muster_itself_does_not_stand_against_it(machine: Camp) -> None:
    """`muster shutdown > log`, and a reader of it: they write where the runs write."""
    machine.write(ONE.replace("axes: [seed],", "axes: [seed], output: '*_{seed}',"))
    complete(machine)
    line = f"{sys.executable} -m muster shutdown --dry-run 2>&1 | tee told.txt > also.txt; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=machine.root, env=machine.environment, capture_output=True, check=False
    )
    assert (done.returncode, b"nothing stands against it" in (machine.root / "told.txt").read_bytes()) == (0, True)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs the right to be somebody else")
def test_the_work_of_others_delays_it_and_can_be_ignored(machine: Camp, started: list[subprocess.Popen[bytes]]) -> None:
    who = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
    stranger = subprocess.Popen([*who, "sleep", "600"], cwd="/")
    mine = subprocess.Popen(["sleep", "601"], cwd="/", start_new_session=True)
    started += [stranger, mine]
    machine.until(lambda: Path(f"/proc/{stranger.pid}").stat().st_uid == STRANGER, "it is somebody else")
    complete(machine)
    said = f"uid {STRANGER} works here: sleep 600 (pid {stranger.pid})"
    assert said in fits(machine.json("shutdown", "--dry-run", code=0))["others"]  # ONE ignores them
    assert f"ignored: {said}" in machine("shutdown", "--dry-run", code=0).stdout
    machine.write(ONE.replace("finish: {others: ignore}", "finish: {others: wait}"))
    machine("up", code=0)
    found = reasons(machine)
    assert said in found
    assert not [reason for reason in found if str(mine.pid) in reason]
    stranger.kill()
    stranger.wait()
    assert said not in fits(machine.json("shutdown", "--dry-run"))["reasons"]
