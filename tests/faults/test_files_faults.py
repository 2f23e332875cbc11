"""Faults 30, 32 and 41: files that are damaged, replaced, or on a file system that does not answer."""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fault_world import LOGGED, World, evidence, kill, mount, own_mounts, said, ticks, unmount, until, why_no_mounts

from muster.engine.judge.liveness import RunWatch, count_conviction, judge_liveness
from muster.engine.judge.signal_history import Thresholds, begin_history, fold_readings
from muster.model.attempt_snapshot import ProgressMark, RunReadings, TreeVitals
from muster.model.campaign import DeclaredProgress, Job

POLL_S = 0.1

# -- 30 and 32: the file in the hands of the test, while the run only holds it open

HOLDS = """
log(0)
train(10, first=1)
open("written", "w").close()
while not is_there("go"):
    work(0.1)
"""


def begin(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[int, Path]:
    """A busy run that has logged the steps 0 to 10 and from now on leaves its file to us."""
    world.pace(monkeypatch, 0.02, POLL_S)  # a busy tree is not convicted for 36 s, an idle one in 2.4 s
    world.trainer(HOLDS)
    world.controller()
    run = world.running("train/0")
    until((world.root / "written").exists, "it has logged")
    world.until_seen("train/0", lambda seen: pulse(seen).count == 10, "the last step is seen")
    return run, world.folder("train/0") / "out" / "metrics.jsonl"


def pulse(seen):
    return seen.pulses["metrics.jsonl"]


def looks(world: World, count: int = 3):
    """What is known after some more looks."""
    for _ in range(count):
        polled = world.until_seen("train/0", lambda _: True, "it is looked at").polled
        seen = world.until_seen("train/0", lambda seen: seen.polled > polled, "a look")  # noqa: B023
    return seen


def no_advance(world: World, do: Callable[[], object], step: int = 10) -> None:
    """What is done to the file is neither progress nor an error."""
    before = pulse(looks(world, 1)).advances
    do()
    seen = pulse(looks(world))
    assert seen.advances == before, "false growth"
    assert (seen.trouble, re.split("[,;]", seen.reading)[0]) == ("", f"step {step}")
    cell = world.cell("train/0")
    assert cell["verdict"] == "RUNNING"
    assert evidence(cell, "metrics.jsonl")["says"] in ("advances", "not overdue", "overdue")


def advance(world: World, do: Callable[[], object], step: float) -> None:
    before = pulse(looks(world, 1)).advances
    do()
    seen = world.until_seen("train/0", lambda seen: pulse(seen).count == step, f"step {step}")
    assert pulse(seen).advances == before + 1
    assert world.cell("train/0")["step"] == step


def append(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


def end(world: World, run: int) -> None:
    assert ticks(run)
    (world.root / "go").touch()
    assert world.finish(retry=False)["complete"]
    assert not [turn for turn in world.turns("train/0") if turn.startswith(("STALLED", "UNKNOWN"))]
    assert world.check(cells=1).executions == 1


def test_30_half_a_line(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run, file = begin(world, monkeypatch)
    no_advance(world, lambda: append(file, b'{"step": 99'))
    no_advance(world, lambda: append(file, b'9, "loss'))
    assert world.cell("train/0")["step"] == 10
    advance(world, lambda: append(file, b'": 0.5}\n'), 999)
    end(world, run)


def test_30_a_tail_of_nuls(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a power cut leaves it; what is written after it counts again."""
    run, file = begin(world, monkeypatch)
    no_advance(world, lambda: append(file, b'{"step": 50' + bytes(5000)))
    assert world.cell("train/0")["step"] == 10
    no_advance(world, lambda: append(file, b"\n"))
    advance(world, lambda: append(file, b'{"step": 12}\n'), 12)
    end(world, run)


TAILS = (b'{"step": 40', b"\0" * 4096, b"\xff\xfe{]\n")


def test_30_the_proof_rests_on_the_last_whole_line(world: World) -> None:
    script = f"""
log(20 if attempt == 1 else 30)
with open(os.path.join(out, "metrics.jsonl"), "ab") as file:
    file.write({TAILS!r}[int(cell.rpartition("/")[2])])
"""
    world.trainer(script, f'steps: 30, {LOGGED}, proof: {{step: {{min: "{{steps}}"}}}}', seeds=len(TAILS))
    world.controller()
    for cell in world.finish(retry=False)["cells"]:
        assert said(cell) == ("DEAD", None, "proven", "early_exit")
        assert "20" in cell["reason"]
    assert world.counted().executions == len(TAILS)
    assert world.finish()["complete"]  # a person retries them


def rotate(file: Path) -> None:
    """logrotate: the old one gets another name, the run goes on in a new one."""
    file.rename(file.with_suffix(".jsonl.1"))
    file.touch()


def copytruncate(file: Path) -> None:
    file.with_suffix(".jsonl.1").write_bytes(file.read_bytes())
    os.truncate(file, 0)


def replaced(file: Path) -> None:
    """The same lines in another inode: an editor, rsync, a restored backup."""
    other = file.with_suffix(".new")
    other.write_bytes(file.read_bytes())
    other.replace(file)


def gone(file: Path) -> None:
    file.unlink()


def test_32_the_log_is_another_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run, file = begin(world, monkeypatch)
    step = 10
    for how in (rotate, copytruncate, replaced, gone):
        no_advance(world, lambda: how(file), step)  # noqa: B023
        append(file, b'{"step": 4}\n')  # a step that was there before is no growth
        seen = looks(world)
        assert pulse(seen).trouble == ""
        step += 2
        advance(world, lambda: append(file, b'{"step": %d}\n{"step": %d}\n' % (step - 1, step)), step)  # noqa: B023
        assert pulse(looks(world)).advances == pulse(seen).advances + 1, how.__name__
    end(world, run)


def test_32_rotated_again_and_again_under_a_run_that_writes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.pace(monkeypatch, 0.01, POLL_S)
    world.trainer('step = 0\nwhile not is_there("go"):\n    work(0.05)\n    log(step)\n    step += 1')
    world.controller()
    run = world.running("train/0")
    file = world.folder("train/0") / "out" / "metrics.jsonl"
    world.until_seen("train/0", lambda seen: pulse(seen).advances > 5, "it advances")
    for how in (rotate, copytruncate) * 3:
        until(lambda: file.exists() and file.stat().st_size > 30, "something to rotate")
        aim = pulse(looks(world, 1)).count + 3
        with contextlib.suppress(FileNotFoundError):
            how(file)
        found = world.until_seen("train/0", lambda seen: pulse(seen).count > aim, "it advances on")  # noqa: B023
        assert pulse(found).trouble == ""
        assert world.cell("train/0")["verdict"] == "RUNNING"
    end(world, run)


# -- 41: a file system that does not answer, for real: nobody serves it, so every call on it waits

WHY_NOT = why_no_mounts() or ("" if Path("/dev/fuse").exists() else "needs /dev/fuse: a file system that nobody serves")


class Far:
    """A folder that is a plain one, then hangs, then is a plain one again. Who has opened its files goes on.

    It hangs for 20 s at the most: a test that waits for it where nobody should fails, and does not hang itself.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.folder = world.root / "far"
        self.folder.mkdir(parents=True)
        self._server: subprocess.Popen[bytes] | None = None

    def hang(self) -> None:
        fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        try:
            mount("far", self.folder, "fuse.far", options=f"fd={fd},rootmode=40000,user_id=0,group_id=0")
            self._server = self.world.start("sleep", "20", pass_fds=(fd,))
        finally:
            os.close(fd)

    def answer(self) -> None:
        if self._server is not None:
            unmount(self.folder)
            self._server.kill()  # who waits is told that nobody is there
            self._server.wait()
            self._server = None


@pytest.fixture
def far(world: World) -> Iterator[Far]:
    with own_mounts():
        found = Far(world)
        try:
            yield found
        finally:
            found.answer()
            world.close()


# writes through a descriptor that it opened in time, so that it does not hang itself
WRITES = """
seed = cell.rpartition("/")[2]
lines = open(f"far/run_{seed}/metrics.jsonl", "a", buffering=1)
step = 0
while not is_there("end_" + seed):
    work(0.1)
    lines.write(json.dumps({"step": step}) + chr(10))
    step += 1
    if is_there("pause_" + seed):
        wait_for("end_" + seed)
if is_there("fail"):
    count("end")
    sys.exit(5)
"""


def begin_far(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    *,
    seeds: int = 1,
    output: str = "far/run_{seed}",
    more: str = "",
    job: str = "",
) -> list[int]:
    """Runs that write to the far folder, and room for another one beside them."""
    world.pace(monkeypatch, 0.05, POLL_S)  # files are known not to answer after 3 s at any pace: convict no sooner
    for seed in range(seeds):
        (world.root / "far" / f"run_{seed}").mkdir()
    train = f"output: '{output}', progress: [{{jsonl: metrics.jsonl}}{more}]{job}"
    here = "  here: {axes: [other], command: 'sh job.sh {cell} {attempt}'}\n"
    axes, body = "  other: [0, 1, 2]", "while [ ! -e others ]; do sleep 0.02; done"
    world.trainer(WRITES, train, seeds=seeds, jobs=here, cpus=seeds + 1, axes=axes, body=body)
    world.controller()
    runs = [world.running(f"train/{seed}") for seed in range(seeds)]
    for seed in range(seeds):
        world.until_seen(f"train/{seed}", lambda seen: pulse(seen).advances > 5, "how it works is known")
    return runs


def others_run(world: World) -> None:
    """The loop is not blocked: three more cells start and end meanwhile."""
    (world.root / "others").touch()
    began = time.monotonic()
    until(lambda: [world.cell(f"here/{n}")["verdict"] for n in range(3)] == ["DONE"] * 3, "the others are DONE", 20)
    assert time.monotonic() - began < 10


def needs_hanging(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.root(pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it can")(test))


@needs_hanging
def test_41_living_runs(world: World, far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    """One works and one waits: the first is QUIET by its activity alone, of the second nothing can be told."""
    runs = begin_far(world, monkeypatch, seeds=2)
    far.hang()
    (world.root / "pause_1").touch()
    others_run(world)
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] != "RUNNING", "no longer RUNNING")
    assert said(cell) == ("QUIET", None, "presumed", None)
    assert "have not answered for" in cell["reason"]
    assert evidence(cell, "metrics.jsonl")["says"] == "abstains"
    assert evidence(cell, "cpu")["says"] == "busy"
    cell = world.until_cell("train/1", lambda cell: cell["verdict"] == "UNKNOWN", "UNKNOWN")
    assert said(cell) == ("UNKNOWN", None, "unknown", None)
    assert world.until_cell("train/0", lambda cell: cell["verdict"] == "QUIET", "still QUIET")
    assert not [turn for turn in world.turns("train/1") if turn.startswith("STALLED")]
    far.answer()
    world.until_cell("train/0", lambda cell: said(cell)[:2] == ("RUNNING", None), "RUNNING once it can be read")
    assert not [turn for turn in world.turns("train/0") if turn.startswith("STALLED")]
    assert all(ticks(run) for run in runs)
    for seed in (0, 1):
        (world.root / f"end_{seed}").touch()
    assert world.finish(retry=False)["complete"]
    assert world.check(cells=5).executions == 5


def test_41_an_idle_run_that_can_not_be_read_is_not_called_working() -> None:
    """It works in memory, and has written once: what is left of that, ever less, is no sign of work."""
    floors = Thresholds()
    job = Job("train", (), ("python",), progress=(DeclaredProgress("jsonl", "metrics.jsonl", "step"),))
    watch = RunWatch(begin_history(0.0, 0.0), floors=floors)
    used = written = 0.0
    for look in range(1, 360 + 1):  # ten minutes of training, then 20 minutes of silence
        now, trains = look * floors.poll_s, look <= 120
        used += 5.0 * trains
        written += 4096.0 * (look == 120)
        trouble = "" if trains else "its files do not answer"
        mark = ProgressMark("metrics.jsonl", "jsonl", float(min(look, 120)), f"step {look}", trouble=trouble)
        fold_readings(
            watch.history, RunReadings(now, (mark,), TreeVitals("S", used, written, 0, opens_gpu=False)), "S", floors
        )
        count_conviction(watch, job, now)
    found = judge_liveness(watch, job, now)
    assert (found.state, found.confidence) == ("UNKNOWN", "unknown"), found.reason


@needs_hanging
@pytest.mark.parametrize("how", ["killed", "fails", "exit 0", "exit 0 in a folder that must be found", "proof"])
def test_41_runs_that_end(world: World, far: Far, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """An end is told within seconds, although nothing of what it wrote can be read."""
    output = "far/*_{seed}" if "found" in how else "far/run_{seed}"
    proof = ", proof: {files: [metrics.jsonl]}" if how == "proof" else ""
    (run,) = begin_far(world, monkeypatch, output=output, job=proof)
    far.hang()
    if how == "fails":
        (world.root / "fail").touch()
    if how == "killed":
        kill(run)
    else:
        (world.root / "end_0").touch()
    until(lambda: ticks(run) is None, "it has ended")
    began = time.monotonic()
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] != "RUNNING", "no longer RUNNING")
    assert time.monotonic() - began < 5
    others_run(world)
    expected = {
        "killed": ("DEAD", None, "proven", "signal(9)"),
        "fails": ("DEAD", None, "proven", "exit_code(5)"),
        "proof": ("UNKNOWN", "ending", "unknown", None),
    }.get(how, ("DONE", None, "proven", None))
    cell = world.until_cell("train/0", lambda cell: cell["kind"] != "ending" or expected[0] != "DEAD", "told")
    assert said(cell) == expected or ("found" in how and cell["verdict"] == "UNKNOWN")
    far.answer()
    status = world.finish(retry=False)
    assert world.counted().of("train/0") == [1]
    assert status["complete"] == (how not in ("killed", "fails")), said(world.cell("train/0"))


@needs_hanging
def test_41_a_retry_that_looks_for_a_checkpoint(world: World, far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    """For its order the newest checkpoint is looked for, on files that do not answer: nobody else waits for that."""
    resume = f", resume: '{sys.executable} -S train.py {{cell}} {{attempt}}{{last.checkpoint}}'"
    (run,) = begin_far(world, monkeypatch, more=", {checkpoint: '*.ckpt'}", job=resume)
    far.hang()
    kill(world.shim("train/0"))
    kill(run)  # nobody knows how it ended: it is retried by itself, once
    until(lambda: ticks(run) is None, "it has ended")
    others_run(world)
    far.answer()
    (world.root / "end_0").touch()
    world.finish(retry=False)
    assert world.counted().of("here/2") == [1]
