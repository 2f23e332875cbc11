"""Fault 42: /proc hides the run from who looks, and the kernel log may not be read: less is known, and no more.

For real: a /proc of our own that hides what may not be traced, a controller without any privilege, and a run that
nobody without privilege may trace.
"""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_world import World, evidence, kill, mount, own_mounts, said, ticks, until, why_no_mounts

POLL_S = 0.1
_BIND = 4096
WITHOUT_PRIVILEGE = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all")
NOT_TRACEABLE = "import ctypes\nctypes.CDLL(None).prctl(4, 0)\n"
TRAINS = """
step = 0
while not is_there("go"):
    work(0.1)
    log(step)
    step += 1
    if is_there("hang"):
        deadlock()
"""


def why_not() -> str:
    if not shutil.which("setpriv"):
        return "needs setpriv of util-linux"
    return why_no_mounts()


WHY_NOT = why_not()
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it can")]


@pytest.fixture(autouse=True)
def proc(world: World, tmp_path: Path) -> Iterator[None]:
    """In here /proc shows no process that may not be traced, and the kernel log belongs to nobody."""
    secret = tmp_path / "secret"
    secret.touch(mode=0o000)
    with own_mounts():
        try:
            mount("proc", "/proc", "proc", options="hidepid=invisible,gid=65533")  # but from that group
        except OSError as error:
            pytest.skip(f"no /proc of our own can be mounted here: {error}")
        mount(str(secret), "/dev/kmsg", "", _BIND)
        yield
        world.close()


def controller(world: World) -> subprocess.Popen[bytes]:
    command = (*WITHOUT_PRIVILEGE, sys.executable, "-m", "muster.bootstrap.controller_process", str(world.root))
    return world.start(*command, start_new_session=True)


def hidden(pid: int) -> bool:
    """Whether one without privilege sees it."""
    return subprocess.run([*WITHOUT_PRIVILEGE, "test", "-e", f"/proc/{pid}/stat"]).returncode != 0


def begin(world: World, monkeypatch: pytest.MonkeyPatch) -> int:
    world.pace(monkeypatch, 0.0015, POLL_S)  # a run whose activity nobody sees is convicted after 2.7 s
    world.trainer(NOT_TRACEABLE + TRAINS)
    controller(world)
    run = world.running("train/0")
    until(lambda: hidden(run), "it is hidden")
    return run


def beat(world: World) -> int:
    return (world.state / "controller.lock").stat().st_mtime_ns


def looks(world: World, count: int = 5) -> None:
    for _ in range(count):
        before = beat(world)
        until(lambda: beat(world) != before, "the controller beats")  # noqa: B023


def asked(world: World) -> dict[str, Any]:
    """`status` by one without privilege."""
    command = [*WITHOUT_PRIVILEGE, sys.executable, "-m", "muster", "-C", str(world.root), "status", "--json"]
    found = subprocess.run(command, env=world.env, capture_output=True, text=True, timeout=60)
    assert found.returncode == 4, found.stderr  # it goes on
    (cell,) = json.loads(found.stdout)["cells"]
    return cell


def test_42_cells_start_and_end_where_processes_of_others_are_hidden(world: World) -> None:
    """As on many shared machines: not even process 1 is seen, and what is ours is."""
    world.campaign("  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}'}\n", seeds=3, body="sleep 0.1")
    world.take_in()
    started = controller(world)
    assert hidden(1)
    until(lambda: started.poll() is not None, "the campaign ends", 20)
    assert [cell["verdict"] for cell in world.status()["cells"]] == ["DONE"] * 3
    assert world.check(cells=3).executions == 3


def test_42_a_hidden_run_that_advances(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begin(world, monkeypatch)
    looks(world)
    cell = asked(world)
    assert (cell["verdict"], cell["kind"]) in (("RUNNING", None), ("RUNNING", "starting"))
    assert cell["confidence"] == "presumed"  # lower: nobody sees its process
    assert "hidden" in evidence(cell, "process")["reading"]
    assert ticks(run)
    (world.root / "go").touch()
    until(world.without_controller, "the campaign ends")
    assert world.cell("train/0")["verdict"] == "DONE"
    assert not [turn for turn in world.turns("train/0") if turn.startswith(("STALLED", "UNKNOWN", "DEAD"))]
    assert world.check(cells=1).executions == 1


def test_42_a_hidden_run_that_hangs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its activity nothing can be proven: presumed at the most, and only after the time of a busy one."""
    begin(world, monkeypatch)
    world.until_seen("train/0", lambda seen: seen.first is not None, "it advances")
    (world.root / "hang").touch()
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "STALLED", "STALLED")
    assert said(cell)[::2] == ("STALLED", "presumed")
    assert world.counted().of("train/0") == [1]


@pytest.mark.parametrize("how", ["killed", "killed with its shim"])
def test_42_a_hidden_run_that_ends(world: World, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Its shim sees the end; where nobody did, its locks say that it is gone."""
    run = begin(world, monkeypatch)
    if how == "killed with its shim":
        kill(world.shim("train/0"))
    kill(run)
    until(lambda: world.rows("SELECT * FROM attempt WHERE n = 1 AND verdict = 'DEAD'"), "its end is recorded")
    (world.root / "go").touch()
    until(world.without_controller, "the campaign ends")
    first = world.why("train/0")["attempts"][0]
    assert first["verdict"] == "DEAD"
    if how == "killed":
        assert (first["cause"], first["confidence"]) == (f"signal({signal.SIGKILL})", "proven")
        assert world.counted().of("train/0") == [1]
    else:
        assert (first["cause"], first["confidence"]) == ("unknown", "unknown")
        assert world.counted().of("train/0") == [1, 2]  # retried by itself, once
    assert not world.counted().overlaps


def test_42_a_hidden_run_whose_shim_died(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lives, and its lock says so: never a second attempt beside it."""
    run = begin(world, monkeypatch)
    kill(world.shim("train/0"))
    until(lambda: not ticks(world.shim("train/0")), "the shim is gone")
    looks(world)
    cell = asked(world)
    assert cell["verdict"] == "RUNNING"
    assert ticks(run)
    assert world.counted().of("train/0") == [1]
