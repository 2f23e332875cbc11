"""Faults 17 to 23: runs that live and do not advance, and runs that only look as if they did not. Floors are shrunk.

Beside them what follows a stall: nothing by itself, or a restart of the whole tree where the campaign says so.
"""

import signal
import time
from pathlib import Path

import pytest
from fault_world import World, evidence, kill, letter, said, ticks, until

from muster.engine.judge.liveness import RunWatch, count_conviction, judge_liveness
from muster.engine.judge.signal_history import Thresholds, begin_history, fold_readings
from muster.model.attempt_snapshot import ProgressMark, RunReadings, TreeVitals
from muster.model.campaign import DeclaredProgress, Job

POLL_S = 0.1
SLACK_S = 3.0  # two busy cores
BOTH = "progress: [{jsonl: metrics.jsonl}, {files: 'replay/*.npz'}]"
UNTIL_GO = """
step = 0
while not is_there("go"):
    work(0.1)
    log(step)
    step += 1
"""


def let_go(world: World) -> None:
    (world.root / "go").touch()


def untouched(world: World, run: int, cell: str = "train/0") -> None:
    """Nothing was restarted and nothing was killed by itself."""
    assert ticks(run), "the run was killed"
    assert world.counted().of(cell) == [1]
    assert len(world.rows("SELECT * FROM attempt")) == 1


def test_17_stopped_and_let_go_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.pace(monkeypatch, 0.05, POLL_S)
    world.trainer(UNTIL_GO)
    world.controller()
    run = world.running("train/0")
    world.until_cell("train/0", lambda cell: cell["verdict"] == "RUNNING" and cell["step"], "RUNNING with a step")
    began = time.monotonic()
    kill(run, signal.SIGSTOP)
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "STALLED", "STALLED")
    assert time.monotonic() - began < 2 * POLL_S + SLACK_S
    assert said(cell) == ("STALLED", "stopped", "proven", None)
    assert "SIGCONT" in cell["next"]
    assert "state T" in evidence(cell, "process")["reading"]
    assert letter(run) == "T"
    kill(run, signal.SIGCONT)
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "RUNNING", "RUNNING again")
    untouched(world, run)
    let_go(world)
    assert world.finish(retry=False)["complete"]
    turns = world.turns("train/0")
    assert turns[0] == "STALLED(stopped)"
    assert {turn.partition("(")[0] for turn in turns[1:]} == {"RUNNING"}
    assert world.check(cells=1).executions == 1


def test_17_a_stopped_run_is_not_restarted_whatever_the_campaign_says(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stopped it means to let it go on; `on_stall: restart` is for runs that hang by themselves."""
    world.pace(monkeypatch, 0.005, POLL_S)
    world.trainer(UNTIL_GO, f"on_stall: restart, {'progress: [{jsonl: metrics.jsonl}]'}")
    world.controller()
    run = world.running("train/0")
    world.until_seen("train/0", lambda seen: seen.first is not None, "it advances")
    kill(run, signal.SIGSTOP)
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "STALLED", "STALLED")
    assert said(cell) == ("STALLED", "stopped", "proven", None)
    world.until_seen("train/0", lambda seen: seen.stopped_polls > 15, "far beyond what convicts an idle tree")
    assert said(world.cell("train/0")) == ("STALLED", "stopped", "proven", None)
    untouched(world, run)
    kill(run, signal.SIGCONT)
    let_go(world)
    assert world.finish(retry=False)["complete"]


def test_18_deadlock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.pace(monkeypatch, 0.01, POLL_S)  # convicts after 1.2 s of an idle tree
    world.trainer("train(12)\ndeadlock()")
    world.controller()
    run = world.running("train/0")
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "STALLED", "STALLED")
    cell = world.until_cell("train/0", lambda cell: cell["confidence"] == "proven", "proven")
    assert said(cell) == ("STALLED", "waiting", "proven", None)
    assert "no CPU" in cell["reason"]
    assert evidence(cell, "tree")["says"] == "idle"
    assert evidence(cell, "metrics.jsonl")["says"] == "silent"
    assert "on_stall: notify" in cell["next"]
    until(lambda: "STALLED(waiting)" in world.turns("train/0"), "it is recorded")
    found = world.why("train/0")
    cadence = found["cadence"]["metrics.jsonl"]
    assert cadence["gaps"] >= 8
    assert cadence["silent_s"] > cadence["convict_s"] >= 1.2
    turned = next(turn for turn in found["timeline"] if turn["verdict"] == "STALLED")
    assert "nothing has advanced" in turned["what"]  # the reading that changed it
    untouched(world, run)


def test_19_endless_loop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.pace(monkeypatch, 0.0015, POLL_S)  # a busy tree is convicted after 2.7 s
    world.trainer("train(12, share=0.9)\nwhile True: pass")
    world.controller()
    run = world.running("train/0")
    world.until_cell("train/0", lambda cell: cell["kind"] == "overdue", "RUNNING(overdue)")
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "STALLED", "STALLED")
    assert said(cell) == ("STALLED", "spinning", "presumed", None)
    assert evidence(cell, "cpu")["says"] == "busy"
    untouched(world, run)
    assert "STALLED(waiting)" not in world.turns("train/0")


def test_20_heartbeats_without_steps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A side thread prints and touches files for ever; the trainer waits. With a GPU at 100 %: test_gpu_faults."""
    world.pace(monkeypatch, 0.002, POLL_S)
    beat = """
def beat():
    while True:
        print("alive", flush=True)
        os.utime(os.path.join(out, "metrics.jsonl"))
        with open(os.path.join(out, "heartbeat"), "w") as file:
            file.write(str(time.time()))
        time.sleep(0.2)
log(0)
threading.Thread(target=beat, daemon=True).start()
train(12, first=1)
deadlock()
"""
    world.trainer(beat)
    world.controller()
    run = world.running("train/0")
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "STALLED", "STALLED")
    assert said(cell)[::2] == ("STALLED", "presumed")  # something of it works, so it is not proven
    assert cell["kind"] in ("waiting", "spinning")
    assert cell["step"] == 12
    size = (world.folder("train/0") / "stdout.log").stat().st_size
    until(lambda: (world.folder("train/0") / "stdout.log").stat().st_size > size + 20, "its heart beats on")
    assert world.cell("train/0")["verdict"] == "STALLED"
    untouched(world, run)


@pytest.mark.parametrize("every", [2, 3, 12, 24, 30])
def test_20_a_heart_that_beats_between_idle_looks(every: int) -> None:
    """wandb's own process writes every 15 s, looks are 5 s apart: most show an idle tree, and none shows progress."""
    floors = Thresholds()
    job = Job("train", (), ("python",), progress=(DeclaredProgress("jsonl", "metrics.jsonl", "step"),))
    watch = RunWatch(begin_history(0.0, 0.0), floors=floors)
    written, used, found = 0.0, 0.0, []
    for look in range(1, 720 + 1):  # ten minutes of training, then 50 minutes of nothing but heartbeats
        now, trains = look * floors.poll_s, look <= 120
        written += 1000.0 * (trains or look % every == 0)
        used += 2.0 if trains else 0.1 * (look % every == 0)
        step = float(min(look, 120))
        mark = ProgressMark("metrics.jsonl", "jsonl", step, f"step {step:g}")
        fold_readings(
            watch.history, RunReadings(now, (mark,), TreeVitals("S", used, written, 0, opens_gpu=False)), "S", floors
        )
        count_conviction(watch, job, now)
        found.append(judge_liveness(watch, job, now).state)
    assert found[119] == "RUNNING"
    assert set(found[-60:]) == {"STALLED"}  # and it stays so


def test_21_silent_log_and_growing_replay(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pace = 0.0015
    world.pace(monkeypatch, pace, POLL_S)
    body = """
train(10)
number = 0
while not is_there("go"):
    work(0.2)
    chunk(number)
    number += 1
"""
    world.trainer(body, BOTH)
    world.controller()
    run = world.running("train/0")
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "QUIET", "QUIET")
    assert said(cell) == ("QUIET", None, "proven", None)
    assert "metrics.jsonl silent for" in cell["reason"]
    assert "replay/*.npz" in cell["reason"]

    def fifty_minutes() -> bool:
        found = world.history("train/0")
        return bool(found and found.polled - (found.pulses["metrics.jsonl"].advanced or 0) > 3000 * pace)

    seen = world.verdicts_until("train/0", fifty_minutes, "the log was silent for 50 minutes at this pace")
    assert {cell["verdict"] for cell in seen} <= {"QUIET", "RUNNING"}
    assert sum(said(cell) == ("QUIET", None, "proven", None) for cell in seen) > 0.8 * len(seen)
    assert not [turn for turn in world.turns("train/0") if turn.startswith(("STALLED", "UNKNOWN"))]
    untouched(world, run)
    let_go(world)
    assert world.finish(retry=False)["complete"]
    assert world.check(cells=1).executions == 1


def test_22_compiles_before_the_first_step(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pace = 0.0015
    world.pace(monkeypatch, pace, POLL_S)
    world.trainer(f"print('compiling', flush=True)\nwork({1500 * pace})\n{UNTIL_GO}")  # 25 minutes
    world.controller()
    run = world.running("train/0")
    first = world.folder("train/0") / "out" / "metrics.jsonl"
    seen = world.verdicts_until("train/0", first.exists, "the first step")
    assert {said(cell) for cell in seen[1:-1]} == {("RUNNING", "starting", "presumed", None)}
    assert "grace" in seen[-2]["reason"]
    world.until_cell("train/0", lambda cell: said(cell)[:2] == ("RUNNING", None), "RUNNING")
    untouched(world, run)
    let_go(world)
    assert world.finish(retry=False)["complete"]
    assert not [turn for turn in world.turns("train/0") if turn.startswith("STALLED")]


def test_23_the_second_long_evaluation_is_learned(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of 0.1 s, evaluations of 1.8 s: longer than convicts an idle tree, 2/3 of what convicts a busy one."""
    world.pace(monkeypatch, 0.0015, POLL_S)
    body = """
train(12)
for name in ("first", "second"):
    open(name, "w").close()
    work(1.8)
    open(name + "_over", "w").close()
    train(6, first=12 if name == "first" else 18)
wait_for("go")
"""
    world.trainer(body)
    world.controller()
    run = world.running("train/0")
    until((world.root / "first").exists, "the first evaluation")
    seen = world.verdicts_until("train/0", (world.root / "first_over").exists, "its end")
    overdue = [cell for cell in seen if cell["kind"] == "overdue"]
    assert overdue
    assert {said(cell) for cell in overdue} == {("RUNNING", "overdue", "presumed", None)}
    assert "longer than usual" in overdue[-1]["reason"]  # the note
    assert {cell["verdict"] for cell in seen} == {"RUNNING"}
    until((world.root / "second").exists, "the second evaluation")
    seen = world.verdicts_until("train/0", (world.root / "second_over").exists, "its end")
    assert {cell["verdict"] for cell in seen} == {"RUNNING"}
    assert not [cell for cell in seen if cell["kind"] == "overdue"], "the first one was not learned from"
    untouched(world, run)
    assert not [turn for turn in world.turns("train/0") if turn.startswith("STALLED")]
    let_go(world)
    world.finish(retry=False)


# -- on_stall: restart

HANGS = """
import subprocess
helper = subprocess.Popen(["sleep", "1000"])
with open(f"tree_{attempt}", "w") as file:
    file.write(f"{os.getpid()} {helper.pid}")
train(6)
deadlock()
"""


def trees(world: World) -> list[int]:
    return [int(pid) for path in sorted(world.root.glob("tree_*")) for pid in path.read_text().split()]


def test_a_stalled_run_is_restarted_as_often_as_allowed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.pace(monkeypatch, 0.005, POLL_S)
    world.trainer(HANGS, "on_stall: restart, retry: {max: 1}, progress: [{jsonl: metrics.jsonl}]")
    world.controller()
    (cell,) = world.finish(retry=False)["cells"]
    assert said(cell) == ("DEAD", None, "probable", "stalled")
    assert cell["attempt_count"] == 2
    assert "held: stalled 2 times" in cell["next"]
    first, second = world.why("train/0")["attempts"]
    assert (first["verdict"], first["cause"], second["retry_cause"]) == ("DEAD", "stalled", "stalled")
    assert "STALLED(waiting)" in world.turns("train/0", 1)
    assert "STALLED(waiting)" in world.turns("train/0", 2)
    assert len(trees(world)) == 4
    assert not [pid for pid in trees(world) if ticks(pid)], "a part of the tree was left alive"
    assert world.counted().of("train/0") == [1, 2]
    stops = world.rows("SELECT reason FROM event WHERE kind = 'found' AND reason LIKE 'stop requested (stalled)%'")
    assert len(stops) == 2, "it was not written down before it was done"


def test_three_attempts_without_a_newer_checkpoint_are_enough(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.pace(monkeypatch, 0.005, POLL_S)
    job = "on_stall: restart, retry: {max: 9}, progress: [{jsonl: metrics.jsonl}, {checkpoint: '*.npz'}]"
    world.trainer(HANGS, job)
    world.controller()
    (cell,) = world.finish(retry=False)["cells"]
    assert said(cell) == ("DEAD", None, "probable", "stalled")
    assert cell["attempt_count"] == 3
    assert "3 attempts without a newer checkpoint" in cell["next"]
    assert world.counted().of("train/0") == [1, 2, 3]
    assert not [pid for pid in trees(world) if ticks(pid)]


def test_a_stalled_run_is_left_alone_by_default(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a person's `muster stop` ends its whole tree, as a stop and not as a stall."""
    world.pace(monkeypatch, 0.005, POLL_S)
    world.trainer(HANGS)
    world.controller()
    run = world.running("train/0")
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "STALLED", "STALLED")
    world.until_seen("train/0", lambda seen: seen.convicted_polls > 10, "it stays convicted")
    untouched(world, run)
    assert all(ticks(pid) for pid in trees(world))
    answer = world.muster("stop", "train/0", "--because", "it hangs")
    assert answer.returncode == 0, answer.stderr
    (cell,) = world.finish(retry=False)["cells"]
    assert said(cell) == ("DEAD", None, "proven", "user_stop")
    assert not [pid for pid in trees(world) if ticks(pid)]
    assert Path(world.folder("train/0") / "exit.json").exists()
