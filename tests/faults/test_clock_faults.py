"""Faults 34 and 46: time in which nobody looked. What happened in it is unknown: it convicts nobody."""

import os
import shutil
import signal
import sys
import time

import pytest
from fault_world import World, kill, letter, said, ticks, until

POLL_S = 0.1
HOUR_S = 3600.0
# The boot clock counts a suspend. No test can suspend its machine, and a time namespace would shift the start times of
# processes too, by which they are known; so the clock of those who look is shifted, in their own processes.
SHIFTED = """
import sys, time
real = time.clock_gettime
def shifted(clock):
    with open({shift!r}) as file:
        asleep = float(file.read() or 0)
    return real(clock) + (asleep if clock == time.CLOCK_BOOTTIME else 0)
time.clock_gettime = shifted
"""
TRAINS = """
step = 0
while not is_there("go"):
    if is_there("pause"):
        wait_for("on")
    work(0.1)
    log(step)
    step += 1
"""


def sleeps(world: World, seconds: float) -> None:
    partial = world.root / "asleep.new"
    partial.write_text(str(seconds))
    partial.replace(world.root / "asleep")


@pytest.mark.parametrize("looks", ["the controller", "a new controller"])
def test_34_the_machine_sleeps_for_an_hour(world: World, monkeypatch: pytest.MonkeyPatch, looks: str) -> None:
    world.pace(monkeypatch, 0.02, POLL_S)  # an hour is fifty times what convicts even a busy run
    world.trainer(TRAINS)
    sleeps(world, 0)
    shift = SHIFTED.format(shift=str(world.root / "asleep"))
    script = f"{shift}\nfrom muster.bootstrap.controller_process import main\nsys.exit(main([{str(world.root)!r}]))"
    controller = world.start(sys.executable, "-c", script, start_new_session=True)
    real = time.clock_gettime

    def shifted(clock: int) -> float:
        return real(clock) + (float((world.root / "asleep").read_text()) if clock == time.CLOCK_BOOTTIME else 0.0)

    monkeypatch.setattr(time, "clock_gettime", shifted)  # we look, too
    run = world.running("train/0")
    before = world.until_seen("train/0", lambda seen: seen.pulses["metrics.jsonl"].advances > 6, "its cadence is known")
    if looks == "a new controller":
        kill(controller.pid)
        controller.wait()
    kill(run, signal.SIGSTOP)  # as in a suspend nothing of it runs
    sleeps(world, HOUR_S)
    kill(run, signal.SIGCONT)
    if looks == "a new controller":
        world.start(sys.executable, "-c", script, start_new_session=True)
    seen = world.verdicts_until("train/0", lambda: late(world) > before.late_polls, "the first look after it")
    assert {cell["verdict"] for cell in seen} == {"RUNNING"}
    found = world.until_seen("train/0", lambda seen: advances(seen) > advances(before) + 5, "it goes on")
    assert found.polled - before.polled > HOUR_S
    assert found.pulses["metrics.jsonl"].cadence.longest < 60  # the gap was dropped
    world.until_cell("train/0", lambda cell: said(cell) == ("RUNNING", None, "proven", None), "RUNNING")
    assert ticks(run)
    (world.root / "go").touch()
    assert world.finish(retry=False)["complete"]
    assert not [turn for turn in world.turns("train/0") if turn.startswith(("STALLED", "UNKNOWN"))]
    assert world.check(cells=1).executions == 1


def advances(seen) -> int:
    return int(seen.pulses["metrics.jsonl"].advances)


def late(world: World) -> int:
    found = world.history("train/0")
    return found.late_polls if found else 0


def test_46_nobody_looked_for_a_while(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller gets no time for longer than convicts an idle tree, and the run is idle as long: no stall."""
    pace = 0.01
    world.pace(monkeypatch, pace, POLL_S)  # convicts an idle tree after 1.2 s
    world.trainer(TRAINS)
    controller = world.controller()
    run = world.running("train/0")
    before = world.until_seen("train/0", lambda seen: seen.pulses["metrics.jsonl"].advances > 6, "its cadence is known")
    kill(controller.pid, signal.SIGSTOP)
    until(lambda: letter(controller.pid) == "T", "the controller is starved")
    (world.root / "pause").touch()
    since = time.monotonic()
    seen = world.verdicts_until(
        "train/0", lambda: time.monotonic() - since > 120 * pace + 1.5, "the time that convicts"
    )
    assert {cell["verdict"] for cell in seen} == {"RUNNING"}  # who looks now convicts nobody either
    kill(controller.pid, signal.SIGCONT)
    found = world.until_seen("train/0", lambda seen: seen.late_polls > before.late_polls, "a late look")
    assert found.convicted_polls == 0
    assert world.cell("train/0")["verdict"] == "RUNNING"
    (world.root / "on").touch()
    found = world.until_seen("train/0", lambda seen: advances(seen) > advances(found) + 5, "it goes on")
    assert found.pulses["metrics.jsonl"].cadence.longest < 120 * pace  # that gap was not learned
    assert world.holder() == controller.pid
    assert ticks(run)
    (world.root / "go").touch()
    assert world.finish(retry=False)["complete"]
    assert not [turn for turn in world.turns("train/0") if turn.startswith(("STALLED", "UNKNOWN"))]
    assert world.check(cells=1).executions == 1


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("taskset"), reason="needs taskset of util-linux")
def test_46_a_hundred_busy_processes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load 100, for real, on one core: looks come late, the run gets little time, and nobody is convicted of that."""
    pace = 0.1
    world.pace(monkeypatch, pace, 0.5)  # convicts an idle tree after 12 s
    world.trainer(TRAINS)
    core = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    world.start(
        *core, sys.executable, "-m", "muster.bootstrap.controller_process", str(world.root), start_new_session=True
    )
    run = world.running("train/0")
    world.until_seen("train/0", lambda seen: seen.first is not None, "it advances")
    busy = [world.start(*core, "sh", "-c", "while :; do :; done") for _ in range(100)]
    try:
        since = time.monotonic()
        seen = world.verdicts_until("train/0", lambda: time.monotonic() - since > 200 * pace, "long enough to convict")
    finally:
        for process in busy:
            kill(process.pid)
        for process in busy:
            process.wait()
    assert {cell["verdict"] for cell in seen} <= {"RUNNING", "QUIET"}
    world.until_cell("train/0", lambda cell: said(cell)[:2] == ("RUNNING", None), "RUNNING")
    assert ticks(run)
    (world.root / "go").touch()
    assert world.finish(retry=False)["complete"]
    assert not [turn for turn in world.turns("train/0") if turn.startswith("STALLED")]
    assert world.check(cells=1).executions == 1
