"""Somebody is always there: whatever of controller and guard is killed, the campaign ends by itself.

Nobody types a command here once it was started, unless a test says so.
"""

import contextlib
import fcntl
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fault_world import PATIENCE_S, World, kill, letter, ticks, until
from test_finish_faults import machine, stages  # noqa: F401

from muster.hosts.local import guard
from muster.hosts.local.guard_keeper import GUARD_PROGRAM, living_guard_pid, read_guard_report

ONE = "  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}'}\n"
WAIT = "while [ ! -e go ]; do sleep 0.02; done"
MOST_KB = 12 * 1024


@pytest.fixture
def guarded(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """With the guard, and with shims that look for a controller only when they end."""
    for name, value in (("MUSTER_GUARD", "on"), ("MUSTER_REVIVE_S", "3600")):
        world.env[name] = value
        monkeypatch.setenv(name, value)
    return world


def up(world: World) -> int:
    """Detached; the controller's pid once it has a guard."""
    assert world.muster("up", "--detach").returncode == 0
    first = until(world.holder, "a controller")
    until(lambda: living_guard_pid(world.state), "a guard")
    return int(first)


def let_go(world: World) -> None:
    (world.root / "go").touch()


def completed(world: World, cells: int) -> Any:
    """It ends without anybody's help, and nothing of it is left."""
    until(lambda: rests(world), f"the campaign ends by itself: {world.trouble()}", timeout_s=2 * PATIENCE_S)
    until(lambda: not world.ours(), "nobody is left")
    assert world.status()["complete"]
    return world.check(cells=cells)


def rests(world: World) -> bool:
    text = (world.state / "decisions.jsonl").read_text()
    whole = text.endswith("\n")  # else a line is being written
    return whole and json.loads(text.splitlines()[-1])["kind"] == "end"


def another_controller(world: World, first: int) -> int:
    """Who has taken an epoch since."""

    def led() -> int | None:
        pid = world.holder()
        about = _json(world.state / "controller.lock")
        return pid if pid and pid != first and about.get("epoch") else None

    return int(until(led, f"another controller: {world.trouble()}"))


def another_guard(world: World, first: int) -> int:
    def other() -> int | None:
        pid = living_guard_pid(world.state)
        return pid if pid != first else None

    return int(until(other, "another guard"))


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


# -- whoever dies is started again


@pytest.mark.parametrize(("seeds", "body"), [(2, WAIT), (8, "sleep 0.1")], ids=["long runs", "short runs"])
def test_killed_controller_comes_back(guarded: World, seeds: int, body: str) -> None:
    guarded.campaign(ONE, seeds=seeds, cpus=2, body=body)
    first = up(guarded)
    kill(first)
    if body == WAIT:
        second = another_controller(guarded, first)
        query = f"SELECT reason FROM event WHERE kind = 'epoch' AND who = 'controller {second}'"
        assert until(lambda: guarded.rows(query), "its epoch")[0]["reason"] == "revived by the guard"
        let_go(guarded)
    assert completed(guarded, seeds).executions == seeds


def test_controller_comes_back_where_nothing_runs(guarded: World) -> None:
    """It waits for a slot that somebody else has."""
    guarded.campaign(ONE, seeds=1, cpus=1, body=":")
    (guarded.home / "slots").mkdir(parents=True)
    with open(guarded.home / "slots" / "cpu0", "w") as slot:
        fcntl.flock(slot, fcntl.LOCK_EX)
        first = up(guarded)
        kill(first)
        second = another_controller(guarded, first)
        assert not guarded.counted().executions
        kill(second)
        another_controller(guarded, second)
    assert completed(guarded, 1).executions == 1


def test_controller_and_guard_are_killed_in_turn(guarded: World) -> None:
    guarded.campaign(ONE, seeds=40, cpus=2, body="sleep 0.1")
    controller, watcher = up(guarded), living_guard_pid(guarded.state) or 0
    for _ in range(3):
        kill(watcher)
        watcher = another_guard(guarded, watcher)
        kill(controller)
        controller = another_controller(guarded, controller)
        watcher = living_guard_pid(guarded.state) or another_guard(guarded, watcher)
    assert completed(guarded, 40).executions == 40


def test_both_are_killed_while_a_run_lives(guarded: World) -> None:
    """The shim that ends finds nobody listening, and revives before it goes."""
    guarded.campaign(ONE, seeds=3, cpus=1, body=f'[ "$1" != train/0 ] || {WAIT}')
    up(guarded)
    guarded.running("train/0")
    both = [living_guard_pid(guarded.state) or 0, guarded.holder() or 0]
    for pid in both:
        kill(pid, signal.SIGSTOP)  # neither starts the other in between
    for pid in both:
        kill(pid)
    until(lambda: not any(ticks(pid) for pid in both), "both are dead")
    let_go(guarded)
    assert completed(guarded, 3).executions == 3


@pytest.mark.parametrize("who", ["controller", "guard first"])
def test_killed_during_the_finish(guarded: World, who: str) -> None:
    step = 'finish: {run: ["sh job.sh copy/1 1"]}'
    guarded.campaign(ONE, seeds=1, body=f'[ "$1" != copy/1 ] || {WAIT}', top=step)
    first = up(guarded)
    until(lambda: guarded.counted().begins[("copy/1", 1)], "the step runs")
    if who == "guard first":
        before = living_guard_pid(guarded.state) or 0
        kill(before)
        another_guard(guarded, before)
    kill(first)
    another_controller(guarded, first)
    let_go(guarded)
    until(lambda: rests(guarded), f"it ends by itself: {guarded.trouble()}")
    until(lambda: not guarded.ours(), "nobody is left")
    assert guarded.counted().begins[("copy/1", 1)] == 1
    assert guarded.status()["finish"]["steps"][0]["state"] == "done"


def test_killed_in_the_wait_before_power_off(guarded: World, machine: World) -> None:  # noqa: F811
    machine.campaign(ONE, seeds=1, body=":", top="finish: {shutdown: 'echo off >> off', countdown: 3s}")
    first = up(machine)
    until(lambda: "counting" in stages(machine), "the countdown")
    kill(first)
    until((machine.root / "off").exists, f"it goes off: {machine.trouble()}")
    until(lambda: not machine.ours(), "nobody is left")
    assert (machine.root / "off").read_text() == "off\n"


def test_stopped_guard_goes_on(guarded: World) -> None:
    guarded.campaign(ONE, seeds=1, body=WAIT)
    up(guarded)
    watcher = living_guard_pid(guarded.state) or 0
    kill(watcher, signal.SIGSTOP)
    until(lambda: letter(watcher) == "T", "it is stopped")
    until(lambda: letter(watcher) == "S", "its controller lets it go on")
    controller = guarded.holder() or 0
    kill(controller, signal.SIGSTOP)
    kill(watcher, signal.SIGSTOP)
    kill(controller)
    until(lambda: not ticks(controller), "only a stopped guard is left")
    let_go(guarded)  # its shim wants a guard when it ends
    assert completed(guarded, 1).executions == 1


@pytest.mark.parametrize("point", guard.POINTS)
@pytest.mark.parametrize("how", ["", ":stop"])
def test_guard_dies_at_every_point(guarded: World, point: str, how: str) -> None:
    guarded.campaign(ONE, seeds=6, cpus=1, body="sleep 0.1")
    guarded.env |= guarded.armed(point + how)
    up(guarded) if point != "guard.lock" else guarded.muster("up", "--detach")
    first = until(guarded.holder, "a controller")
    if point != "guard.lock":
        kill(first)
    until(guarded.marker.exists, f"it comes to {point}")
    if how and point == "guard.leave":  # all is over: nobody else lets it go on
        until(lambda: [letter(pid) for pid in guarded.ours()] == ["T"], "only the stopped guard is left")
        kill(guarded.ours()[0], signal.SIGCONT)
    assert completed(guarded, 6).executions == 6


# -- exactly one, and none for nothing


def test_exactly_one_guard(guarded: World) -> None:
    guarded.campaign(ONE, seeds=1, body=WAIT)
    up(guarded)
    first = living_guard_pid(guarded.state)
    others = [guarded.start(sys.executable, "-I", "-S", GUARD_PROGRAM, str(guarded.state)) for _ in range(5)]
    assert [other.wait(timeout=PATIENCE_S) for other in others] == [0] * 5
    assert living_guard_pid(guarded.state) == first
    assert guards(guarded) == [first]
    let_go(guarded)
    completed(guarded, 1)


def guards(world: World) -> list[int]:
    return [pid for pid in world.ours() if GUARD_PROGRAM in arguments(pid)]


def arguments(pid: int) -> list[str]:
    """Of a process; none once it has gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def test_down_ends_the_guard_and_up_brings_it_back(guarded: World) -> None:
    guarded.campaign(ONE, seeds=1, body=WAIT)
    up(guarded)
    assert guarded.muster("down").returncode == 0
    assert not guards(guarded)  # `down` has waited for it
    assert guarded.holder() is None
    up(guarded)
    let_go(guarded)
    assert completed(guarded, 1).executions == 1


def test_held_campaign_is_not_started_again(guarded: World) -> None:
    guarded.campaign(ONE, seeds=1, body=WAIT)
    first = up(guarded)
    assert guarded.muster("hold", "--because", "stop and think").returncode == 0
    kill(first)
    until(lambda: not guards(guarded), "the guard leaves")
    assert guarded.controllers() == []
    let_go(guarded)
    until(lambda: guarded.exit("train/0"), "the run ends")
    until(lambda: not guarded.ours(), "its shim starts nobody either")
    assert guarded.muster("release").returncode == 0
    completed(guarded, 1)


@pytest.mark.parametrize("how", ["deleted", "moved"])
@pytest.mark.parametrize("alone", [True, False], ids=["guard alone", "with a controller"])
def test_guard_leaves_a_folder_that_is_gone(guarded: World, how: str, alone: bool) -> None:
    guarded.campaign(ONE, seeds=1, cpus=1, body=":")
    guarded.take_in()
    (guarded.home / "slots").mkdir(parents=True)
    with open(guarded.home / "slots" / "cpu0", "w") as slot:
        fcntl.flock(slot, fcntl.LOCK_EX)
        if alone:
            start_guard(guarded, "/bin/sh", "-c", "exit 1")
            until(lambda: read_guard_report(guarded.state), "it has lost a controller")
        else:
            guarded.controller()
            until(lambda: living_guard_pid(guarded.state), "a guard")
        if how == "deleted":
            delete(guarded.root)
        else:
            guarded.root.rename(guarded.root.with_name("elsewhere"))  # a controller goes with its folder
        until(lambda: not (guarded.ours() if how == "deleted" else guards(guarded)), "they leave")


def delete(folder: Path) -> None:
    """Who writes there at the same time may have made something new."""

    def gone() -> bool:
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
        return not folder.exists()

    until(gone, "the folder is deleted")


def start_guard(world: World, *command: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    return world.start(sys.executable, "-I", "-S", GUARD_PROGRAM, str(world.state), *command, env=env)


def test_guard_of_a_campaign_at_rest_ends_at_once(guarded: World) -> None:
    guarded.campaign(ONE, seeds=1, body=":")
    assert guarded.muster("up").returncode == 0
    completed(guarded, 1)
    assert start_guard(guarded).wait(timeout=PATIENCE_S) == 0
    assert len(guarded.rows("SELECT * FROM event WHERE kind = 'epoch' AND who LIKE 'controller%'")) == 1


def test_copy_is_guarded_by_nobody(guarded: World) -> None:
    guarded.campaign(ONE, seeds=1, body=WAIT)
    up(guarded)
    copy = guarded.beside("another")
    shutil.copytree(guarded.root, copy.root, ignore=shutil.ignore_patterns("bell"))
    assert start_guard(copy).wait(timeout=PATIENCE_S) == 0
    assert "another" not in "".join(word for pid in guarded.controllers() for word in arguments(pid))
    let_go(guarded)
    completed(guarded, 1)


# -- a controller that fails by itself


def test_failing_controller_is_told(guarded: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more and more time in between; `status` says so, and the next one that lives tells it as a notice."""
    guarded.pace(monkeypatch, 0.02)
    guarded.campaign(ONE, seeds=1, body=":")
    guarded.take_in()
    tries = guarded.root / "tries"
    script = f'date +%s.%N >> {tries}; [ -e {guarded.root}/fixed ] && exec "$@"; echo it is broken >&2; exit 7'
    real = (
        sys.executable,
        "-m",
        "muster.bootstrap.begin_process",
        "muster.bootstrap.controller_process",
        str(guarded.root),
    )
    start_guard(guarded, "/bin/sh", "-c", script, "sh", *real)
    words = until(
        lambda: (found := read_guard_report(guarded.state)) and found.times >= 6 and found, "it failed six times"
    )
    assert (words.code, words.said) == (7, "it is broken")
    told = guarded.status()["controller"]
    assert re.fullmatch(
        r"it failed \d+ times in a row, with exit code 7: it is broken; the guard starts it again at \d\d:\d\d:\d\d; "
        r".*controller\.log says more",
        told["trouble"],
    )
    times = [float(line) for line in tries.read_text().split()]
    gaps = [late - early for early, late in itertools.pairwise(times)]
    assert gaps[-1] > 4 * gaps[0], gaps
    (guarded.root / "fixed").touch()
    completed(guarded, 1)
    assert read_guard_report(guarded.state) is None
    (notice,) = guarded.rows("SELECT reason FROM event WHERE kind = 'notice'")
    assert "the guard started the controller again; it failed" in notice["reason"]


def test_controller_that_comes_too_late_is_no_failure(guarded: World) -> None:
    guarded.campaign(ONE, seeds=1, body=":")
    guarded.take_in()
    with guarded.desk() as desk:
        assert desk.lock.take()
        started = guarded.controller(env={"MUSTER_REVIVED_BY": "guard"})
        assert started.wait(timeout=PATIENCE_S) == 0
        watcher = start_guard(guarded)
        until(lambda: living_guard_pid(guarded.state), "a guard")
        assert watcher.poll() is None
        assert not guarded.controllers()
        desk.lock.give_back()
    completed(guarded, 1)
    assert read_guard_report(guarded.state) is None


def test_controller_without_descriptors_says_so_in_a_line(guarded: World) -> None:
    guarded.campaign(ONE, seeds=1, body=":")
    guarded.take_in()
    seen = set()
    for limit in range(4, 9):
        line = f"ulimit -n {limit}; exec {sys.executable} -m muster.bootstrap.begin_process muster.bootstrap.controller_process {guarded.root}"
        done = subprocess.run(["sh", "-c", line], env=guarded.env, capture_output=True, text=True, timeout=PATIENCE_S)
        if not done.stderr.startswith("muster: "):
            continue  # the interpreter itself did not begin, or this was enough
        seen.add(done.stderr)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert "Traceback" not in done.stderr
    assert any("Too many open files" in line for line in seen), seen


# -- what it costs, and what it holds


def test_guard_is_small_and_holds_nothing(guarded: World) -> None:
    guarded.campaign(ONE, seeds=1, body=WAIT)
    up(guarded)
    guarded.running("train/0")
    watcher = living_guard_pid(guarded.state) or 0
    until(lambda: letter(watcher) == "S", "it sleeps")
    rollup = Path(f"/proc/{watcher}/smaps_rollup").read_text()
    assert int(re.search(r"^Rss: +(\d+) kB", rollup, re.MULTILINE)[1]) <= MOST_KB  # type: ignore[index]
    held = sorted(str(entry.readlink()) for entry in Path(f"/proc/{watcher}/fd").iterdir() if entry.is_symlink())
    assert [path for path in held if not path.startswith("anon_inode")] == ["/dev/null"] * 3 + [
        str(guarded.state / "guard.lock")
    ]
    assert Path(f"/proc/{watcher}/cwd").readlink() == Path("/")
    assert os.getsid(watcher) == watcher
    let_go(guarded)
    completed(guarded, 1)
