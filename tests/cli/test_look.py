"""`muster look` at trainings that Muster did not start: real processes, and what worried people really type."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from muster.engine.judge.signal_history import Thresholds
from muster.engine.judge.unwatched_run import UnwatchedRunWatch
from muster.hosts.local import gpus
from muster.hosts.local.gpus import GpuReading
from muster.model.attempt_snapshot import ProgressMark, RunReadings, TreeVitals
from muster.model.campaign import DeclaredProgress, Job
from muster.model.foreign_run import ProgressDates
from support.camp import Camp

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from history_files import wandb_bytes

LOOK = json.loads((Path(__file__).parents[2] / "docs/schemas/look.schema.json").read_text())
KEYS = {"muster", "asked", "verdict", "kind", "confidence", "cause", "reason", "next", "pid", "output", "step",
        "target", "since", "evidence", "cadence", "files"}  # fmt: skip
# what a run does, by its first argument; the second is where it writes
TRAINER = """
import json, os, sys, threading, time
how, out = sys.argv[1], sys.argv[2]
os.makedirs(out + "/replay", exist_ok=True)
log = open(out + "/metrics.jsonl", "a", buffering=1)
step = 0
while True:
    step += 1
    if how != "quiet" or step == 1:
        log.write(json.dumps({"step": step, "loss": 1 / step, "time": time.time()}) + "\\n")
    if how != "logs":
        with open(f"{out}/replay/{step:06}.npz", "wb") as chunk:
            chunk.write(b"x" * 100)
    if how == "deadlock" and step == 30:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    sum(range(200_000))
    time.sleep(0.1)
"""
HANGUP = """
import os, signal, sys, time
class SignalException(Exception):
    pass
def handler(number, frame):
    print(f"W0223 Received {number} death signal, shutting down workers", file=sys.stderr)
    raise SignalException(f"Process {os.getpid()} got signal: {number}")
signal.signal(signal.SIGHUP, handler)
for step in range(10**6):
    print(f"step {step} loss 0.1", flush=True)
    time.sleep(0.05)
"""
BROKEN = """
import time
for epoch in range(1, 4):
    print(f"Epoch {epoch}/10 loss 0.5", flush=True)
raise ValueError("the shapes do not fit")
"""
BUSY = "import time\nwhile True: time.sleep(0.02); sum(range(100_000))\n"
IDLE = "import time\ntime.sleep(1000)\n"
# as another user: all that is needed is loaded while it may still be read
AS_NOBODY = """
import os, sys
import muster.faces.cli.look, muster.faces.cli.common.entrypoint, muster.faces.cli.common.error_messages, muster.hosts.local.run_inspector, ruamel.yaml, unicodedata
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(muster.faces.cli.common.entrypoint.run_command_line(sys.argv[1:]))
"""


class Runs:
    """Starts trainings, and ends them with the test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, code: str, *arguments: str, log: str = "", **more: Any) -> subprocess.Popen[bytes]:
        path = self.root / f"job{len(self.started)}.py"
        path.write_text(code)
        out: Any = open(self.root / log, "ab") if log else subprocess.DEVNULL  # noqa: SIM115
        process = subprocess.Popen(
            [*more.pop("before", ()), sys.executable, str(path), *arguments], cwd=more.pop("cwd", self.root), stdout=out,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True, **more,
        )  # fmt: skip
        if log:
            out.close()
        self.started.append(process)
        return process

    def train(self, how: str = "both", steps: int = 3, out: str = "run") -> subprocess.Popen[bytes]:
        """Waits until it has made its first steps."""
        process = self.start(TRAINER, how, out)
        if how in ("quiet", "both", "deadlock"):
            Camp.until(lambda: len(list((self.root / out / "replay").glob("*.npz"))) >= steps, "its chunks")
        else:
            Camp.until(lambda: lines(self.root / out / "metrics.jsonl") >= steps, "its rows")
        return process

    def clean_up(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.fixture
def runs(camp: Camp) -> Iterator[Runs]:
    made = Runs(camp.root)
    yield made
    made.clean_up()


def rows(path: Path, *values: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


def evidence(found: dict[str, Any]) -> dict[str, str]:
    return {f"{row['signal']} {row['class']}": f"{row['reading']} [{row['says']}]" for row in found["evidence"]}


def state(found: dict[str, Any]) -> tuple[str, str | None, str]:
    return found["verdict"], found["kind"], found["confidence"]


# -- living runs


def test_a_run_that_advances(camp: Camp, runs: Runs) -> None:
    process = runs.train("both")
    (camp.root / "run" / "config.yaml").write_text("run:\n  steps: 120000\n")
    found = camp.json("look", str(process.pid), "run", "--for", "2s", code=4)
    assert set(found) >= KEYS
    assert state(found) == ("RUNNING", None, "proven")
    assert (found["pid"], found["output"]) == (process.pid, str(camp.root / "run"))
    assert found["asked"] == f"{process.pid} run"
    assert found["target"] == 120000
    assert not list(Draft202012Validator(LOOK).iter_errors(found))
    assert found["step"] >= 3
    assert evidence(found)["process life"].startswith(f"pid {process.pid} is alive, started ")
    assert "[advances]" in evidence(found)["metrics.jsonl progress"]
    assert "[advances]" in evidence(found)["replay/*.npz progress"]
    assert "by file times" not in json.dumps(found["evidence"])
    assert {each["file"]: each["advanced"] for each in found["files"]} == {"metrics.jsonl": True, "replay/*.npz": True}
    assert found["next"] == "nothing to do: it advances, and a restart would lose work"
    assert set(found["cadence"]) == {"metrics.jsonl", "replay/*.npz"}


@pytest.mark.slow  # the pure tests below are its siblings in CI
def test_its_folder_is_enough_and_so_is_its_pid(camp: Camp, runs: Runs) -> None:
    process = runs.train("both")
    by_folder = camp("look", "run", "--for", "2s", code=4).stdout
    assert by_folder.splitlines()[0][1:].startswith(" run is RUNNING, proven: metrics.jsonl: step ")
    assert f"pid {process.pid} has metrics.jsonl open for writing" in by_folder
    by_pid = camp("look", str(process.pid), "--for", "2s", code=4).stdout
    assert f"  output {camp.root / 'run'}\n" in by_pid
    assert "its output was found by looking: it has files open for writing there" in by_pid
    for title in ("What to do", "Evidence", "Cadence"):
        assert f"\n{title}\n" in by_pid


def test_a_silent_log_is_no_stall(camp: Camp, runs: Runs) -> None:
    """FAULTS 21: the log is silent, replay grows."""
    camp.environment["MUSTER_PACE"] = "0.02"
    runs.train("quiet", steps=15)
    (camp.root / "run" / "config.yaml").write_text("log_every: 1000\n")
    found = camp.json("look", "run", "--for", "3s", code=4)
    assert state(found) == ("QUIET", None, "proven")
    assert found["reason"].startswith("metrics.jsonl silent for ")
    assert found["next"].startswith("nothing to do: a silent log is no reason to restart it")
    assert "advanced" in evidence(found)["metrics.jsonl progress"]
    assert "by file times" in evidence(found)["metrics.jsonl progress"]


def test_a_stopped_run_is_told_at_once(camp: Camp, runs: Runs) -> None:
    process = runs.train("both")
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    found = camp.json("look", "run", "--for", "1s", code=4)
    assert state(found) == ("STALLED", "stopped", "proven")
    assert f"kill -CONT {process.pid}" in found["next"]
    os.kill(process.pid, signal.SIGCONT)
    assert camp.json("look", "run", "--for", "2s", code=4)["verdict"] == "RUNNING"


@pytest.mark.slow
def test_a_deadlock_is_presumed_by_file_times(camp: Camp, runs: Runs) -> None:
    """FAULTS 18, seen by somebody who came too late."""
    camp.environment["MUSTER_PACE"] = "0.005"
    process = runs.train("deadlock", steps=30)
    newest = camp.root / "run" / "replay" / "000030.npz"
    Camp.until(lambda: time.time() - newest.stat().st_mtime > 8, "a silence that is long for it")
    found = camp.json("look", str(process.pid), "--for", "5s", code=4)
    assert state(found) == ("STALLED", "waiting", "presumed")
    assert "how long is known by file times only" in found["reason"]
    assert "by file times [silent]" in evidence(found)["metrics.jsonl progress"]
    assert "by file times [silent]" in evidence(found)["replay/*.npz progress"]
    assert evidence(found)["tree activity"].startswith("no CPU and no I/O in the whole tree for ")
    assert found["next"] == "do not kill it yet: first keep what shows why, for it is lost with the process"
    assert process.poll() is None


@pytest.mark.slow  # the pure tests below are its siblings in CI
def test_a_busy_run_without_any_progress_file(camp: Camp, runs: Runs) -> None:
    (camp.root / "empty").mkdir()
    busy = runs.start(BUSY, cwd=camp.root / "empty")
    idle = runs.start(IDLE, cwd=camp.root / "empty")
    found = camp.json("look", str(busy.pid), "--for", "2s", code=4)
    assert state(found) == ("QUIET", None, "presumed")
    assert found["reason"].startswith("no progress signal can be read: progress files: none was found; its activity is")
    assert any(note.startswith("looked for metrics.jsonl, scores.jsonl, any *.jsonl") for note in found["notes"])
    found = camp.json("look", str(idle.pid), "--for", "2s", code=3)
    assert state(found) == ("UNKNOWN", None, "unknown")
    assert "whether it works can't be told" in found["reason"]


def test_wandb_and_tensorboard_without_a_row_yet(camp: Camp, runs: Runs) -> None:
    (camp.root / "run" / "wandb" / "run-1").mkdir(parents=True)
    (camp.root / "run" / "wandb" / "run-1" / "run-1.wandb").write_bytes(b":W&B")
    (camp.root / "run" / "events.out.tfevents.1.host").write_bytes(b"x")
    process = runs.start(BUSY, "--logdir", "run")
    found = camp.json("look", str(process.pid), "run", "--for", "1s", code=4)
    assert state(found) == ("RUNNING", "starting", "presumed")
    said = evidence(found)
    late = "it is written up to 20 s late"
    assert said["wandb/run-1/run-1.wandb progress"] == f"nothing yet: no row in run-1.wandb; {late} [nothing yet]"
    assert said["events.out.tfevents.* progress"].startswith("nothing yet: no row in events.out.tfevents.1.host; ")


def test_a_log_written_on_a_clock_of_seconds(camp: Camp, runs: Runs) -> None:
    """The story that Muster was made for: `log_every: 1000` is no number of steps."""
    now = time.time()
    process = runs.start(BUSY, "--logdir", "run", "--log_every", "1000")
    rows(camp.root / "run" / "metrics.jsonl", *({"step": i, "time": now - 1000 * (9 - i)} for i in range(10)))
    found = camp.json("look", str(process.pid), "run", "--for", "1s", code=4)
    note = "written on a clock of 1000 s: `log_every` in its config counts seconds, not steps"
    assert [each["note"] for each in found["cadence"].values()] == [note]
    assert any(note in text for text in found["advice"])


def test_output_through_tee(camp: Camp, runs: Runs) -> None:
    (camp.root / "run").mkdir()
    code = "import time\nfor step in range(10**6):\n    print(f'step {step}', flush=True)\n    time.sleep(0.05)\n"
    (camp.root / "steps.py").write_text(code)
    shell = f"{sys.executable} steps.py 2>&1 | tee run/train.log > /dev/null"
    process = subprocess.Popen(["/bin/sh", "-c", shell], cwd=camp.root, start_new_session=True)
    runs.started.append(process)
    try:
        Camp.until(lambda: lines(camp.root / "run" / "train.log") > 3, "its first steps")
        found = camp.json("look", "run", "--for", "1s", code=4)
        assert state(found) == ("RUNNING", None, "proven")
        assert "writes to tee, which has train.log open for writing" in evidence(found)["writer life"]
    finally:
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow  # the pure tests below are its siblings in CI
def test_who_merely_sits_there_is_not_the_run(camp: Camp, runs: Runs) -> None:
    rows(camp.root / "run" / "metrics.jsonl", {"step": 1}, {"step": 2})
    os.utime(camp.root / "run" / "metrics.jsonl", (1.7e9, 1.7e9))
    process = runs.start(IDLE, cwd=camp.root / "run")
    found = camp.json("look", "run", "--for", "1s", code=3)
    assert state(found) == ("UNKNOWN", None, "unknown")
    because = "nothing was written there since it started: whether it is this run can't be told"
    assert found["reason"] == f"pid {process.pid} works in this folder, but {because}"
    assert (
        found["next"] == f"if pid {process.pid} is this run, look where it really writes: `muster look {process.pid}`"
    )
    reader = runs.start(IDLE, "--checkpoint", "run/checkpoint.ckpt")  # an evaluation of what a dead run left behind
    found = camp.json("look", str(reader.pid), "run", "--for", "1s", code=3)
    assert found["reason"] == f"pid {reader.pid} is not seen to write in this folder, but {because}"
    (camp.root / "run" / "checkpoint.ckpt").write_bytes(b"x")
    os.utime(camp.root / "run" / "checkpoint.ckpt", (1.7e9, 1.7e9))
    found = camp.json("look", "run", "--for", "1s", code=3)
    assert found["reason"] == f"pid {reader.pid} names this folder in its command, but {because}"


@pytest.mark.parametrize("how", ["names it", "works there"])
def test_a_viewer_that_was_there_before_does_not_keep_a_killed_run_alive(camp: Camp, runs: Runs, how: str) -> None:
    (camp.root / "run").mkdir()
    viewer = runs.start(IDLE, *(["run"] if how == "names it" else []), cwd=camp.root / ("run" if how[0] == "w" else ""))
    time.sleep(0.05)  # file times are coarse
    trainer = runs.train()
    trainer.kill()
    trainer.wait()
    found = camp.json("look", "run", "--for", "1s", code=3)
    assert state(found) == ("UNKNOWN", None, "unknown")
    assert found["reason"].startswith(f"pid {viewer.pid} {'names' if how[0] == 'n' else 'works in'} this folder")
    assert f"`muster look {viewer.pid}`" in found["next"]


def test_what_advances_without_a_process_runs_elsewhere(camp: Camp) -> None:
    rows(camp.root / "run" / "metrics.jsonl", {"step": 1}, {"step": 2})
    over = threading.Event()

    def write() -> None:
        step = 2
        while not over.wait(0.1):
            step += 1
            with open(camp.root / "run" / "metrics.jsonl", "a") as file:
                file.write(json.dumps({"step": step}) + "\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = camp.json("look", "run", "--for", "2s", code=4)
    finally:
        over.set()
        writer.join()
    assert state(found) == ("RUNNING", "elsewhere", "presumed")
    assert "no process that can be seen here writes there: it runs elsewhere" in found["reason"]


# -- dead runs


def test_a_hangup_is_read_off_the_log(camp: Camp, runs: Runs) -> None:
    """FAULTS 25: an externally started torchrun under nohup, hung up although it ignores nothing."""
    (camp.root / "run").mkdir()
    process = runs.start(HANGUP, log="run/nohup.out", cwd=camp.root / "run", before=("nohup",))
    Camp.until(lambda: lines(camp.root / "run" / "nohup.out") > 3, "its first steps")
    assert camp.json("look", str(process.pid), "--for", "2s", code=4)["verdict"] == "RUNNING"
    os.kill(process.pid, signal.SIGHUP)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie: nobody has fetched its exit
    found = camp.json("look", str(process.pid), "run", "--for", "1s", code=3)
    assert (*state(found), found["cause"]) == ("DEAD", None, "probable", "hangup")
    assert evidence(found)["exit exit"] == "the kernel still knows how it ended: exit 1 [ended]"
    assert process.wait() == 1
    for words in (("run",), (str(process.pid), "run")):
        found = camp.json("look", *words, "--for", "1s", code=3)
        assert (*state(found), found["cause"]) == ("DEAD", None, "probable", "hangup")
        assert found["reason"].endswith("its terminal or session was closed; nobody saw its exit")
        assert any("got signal: 1" in line for line in found["lines"])
        assert found["next"] == "start it where no terminal owns it; what muster starts is not hung up"


def test_one_that_ended_with_0_is_done(camp: Camp, runs: Runs) -> None:
    (camp.root / "run").mkdir()
    process = runs.start("print('step 1 loss 0.5')", log="run/nohup.out", cwd=camp.root / "run")
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    found = camp.json("look", str(process.pid), "run", "--for", "1s")
    assert (*state(found), found["cause"]) == ("DONE", None, "presumed", None)
    assert process.wait() == 0


def test_an_empty_target(camp: Camp) -> None:
    assert camp("look", "", code=2).stderr.startswith("muster: nothing was named: the target is empty")


def test_a_traceback_in_nohup_out(camp: Camp, runs: Runs) -> None:
    (camp.root / "run").mkdir()
    process = runs.start(BROKEN, log="run/nohup.out", cwd=camp.root / "run")
    process.wait()
    shown = camp("look", "run", "--for", "1s", code=3).stdout
    first = shown.splitlines()[0]
    assert " run is DEAD(exception(ValueError, job0.py:5)), probable: it ended with ValueError" in first
    assert "the shapes do not fit; nobody saw its exit" in first
    assert "It is not running. What it wrote is still there." in shown
    assert "The lines of its log that show it" in shown
    assert "  | ValueError: the shapes do not fit" in shown
    gone = camp.json("look", str(process.pid), "--for", "1s", code=3)
    assert (gone["verdict"], gone["evidence"][0]["reading"]) == (
        "UNKNOWN", f"there is no process {process.pid} on this machine",
    )  # fmt: skip


def test_one_that_ends_while_we_look(camp: Camp, runs: Runs) -> None:
    (camp.root / "run").mkdir()
    code = "import time\nprint('step 1', flush=True)\ntime.sleep(1.5)\nraise RuntimeError('over')\n"
    process = runs.start(code, log="run/train.log")
    found = camp.json("look", str(process.pid), "run", "--for", "4s", code=3)
    assert found["verdict"] == "DEAD"
    assert found["pid"] is None
    assert "has ended" in evidence(found)["process life"]


def test_an_old_death_is_not_this_one(camp: Camp) -> None:
    rows(camp.root / "run" / "metrics.jsonl", {"step": 1}, {"step": 2})
    log = camp.root / "run" / "nohup.out"
    log.write_text(
        'step 1\nTraceback (most recent call last):\n  File "a.py", line 1, in <module>\n    x()\nValueError: old\n'
    )
    os.utime(log, (time.time() - 7200, time.time() - 7200))
    found = camp.json("look", "run", "--for", "1s", code=3)
    assert (*state(found), found["cause"]) == ("UNKNOWN", None, "unknown", None)
    assert found["reason"] == "no process on this machine writes there; silence is no evidence of death"


def test_one_that_reached_its_last_step(camp: Camp) -> None:
    rows(camp.root / "run" / "metrics.jsonl", {"step": 100}, {"step": 300})
    (camp.root / "run" / "config.json").write_text('{"num_train_steps": 300}')
    found = camp.json("look", "run", "--for", "1s", code=3)
    assert state(found) == ("UNKNOWN", "reached", "unknown")
    assert "its last step, 300, is the 300 that `num_train_steps` in config.json asks for" in found["reason"]
    assert (found["step"], found["target"]) == (300, 300)


@pytest.mark.parametrize(
    ("code", "found"),
    [(0, ("DONE", None, "presumed")), (1, ("DEAD", None, "probable")), (None, ("UNKNOWN", None, "unknown"))],
)
def test_the_exit_that_wandb_recorded(camp: Camp, code: int | None, found: tuple[str, str | None, str]) -> None:
    file = camp.root / "run" / "wandb" / "offline-run-20261101_101010-abc" / "run-abc.wandb"
    file.parent.mkdir(parents=True)
    file.write_bytes(wandb_bytes([{"step": step, "loss": 1.0} for step in range(9)], exit_code=code))
    told = camp.json("look", "run", "--for", "1s", code=0 if code == 0 else 3)
    assert state(told) == found
    assert (f"its W&B record ends with exit code {code}" in told["reason"]) == (code is not None), told["reason"]


# -- what people type


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "muster: there is no folder nowhere, and it is no process id either\n"
                      "  fix:   give a process id, or the folder that the run writes to\n"),
        (["rum"], "muster: there is no folder rum, and it is no process id either\n  fix:   did you mean run?\n"),
        (["0"], "muster: 0 is no process id\n  fix:   a folder of that name is ./0\n"),
        (["run", "--for", "5"], "muster: --for 5: of what?\n  fix:   add the unit: 5s, 5m or 5h\n"),
        (["run", "--for", "0s"], "muster: --for 0s: too short, a first look proves nothing\n  fix:   give it at least 1s\n"),
        (["/"], "muster: / is everything on this machine\n  fix:   give the folder of one run, or a process id\n"),
        (["run/pipe"], "muster: run/pipe is neither a folder nor a file\n  fix:   give the folder that the run writes to\n"),
    ],
)  # fmt: skip
def test_wrong_use(camp: Camp, words: list[str], message: str) -> None:
    (camp.root / "run").mkdir()
    os.mkfifo(camp.root / "run" / "pipe")
    done = camp("look", *words, code=2)
    assert done.stdout == ""
    assert done.stderr == message


def test_nothing_is_wrong_use_with_an_example(camp: Camp) -> None:
    done = camp("look", code=2)
    assert "Missing argument 'PID|DIR...'" in done.stderr
    assert "for example: muster look 610925" in done.stderr


def test_a_process_that_does_not_exist(camp: Camp) -> None:
    gone = nobody()
    began = time.monotonic()
    done = camp("look", str(gone), "--for", "30s", code=3)
    assert time.monotonic() - began < 15  # there is nothing to wait for
    assert done.stderr == ""
    assert done.stdout.splitlines()[0].endswith(
        f" {gone} is UNKNOWN: there is no process {gone}; a training of that number has ended, or runs on another machine"
    )


def nobody() -> int:
    """A process id that is free."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        return process.pid


@pytest.mark.slow  # the pure tests below are its siblings in CI
def test_a_folder_goes_on_where_the_process_is_gone(camp: Camp, runs: Runs) -> None:
    gone = nobody()
    process = runs.train("both")
    found = camp.json("look", str(gone), "run", "--for", "1s", code=4)
    assert (found["verdict"], found["pid"]) == ("RUNNING", process.pid)
    assert f"there is no process {gone}; process {process.pid} writes there now" in found["notes"]
    process.kill()
    process.wait()
    found = camp.json("look", str(gone), "run", "--for", "1s", code=3)
    assert state(found) == ("UNKNOWN", None, "unknown")  # what was written just now may go on elsewhere
    for path in (camp.root / "run").rglob("*"):
        os.utime(path, (time.time() - 600, time.time() - 600))
    found = camp.json("look", str(gone), "run", "--for", "1s", code=3)
    assert state(found) == ("UNKNOWN", None, "unknown")  # silence is no evidence of death, however long
    assert f"there is no process {gone}, and no process on this machine writes there" in found["reason"]


def test_the_first_process_and_threads_of_the_kernel(camp: Camp) -> None:
    name = Path("/proc/1/comm").read_text().strip()
    if not name.startswith("python"):
        done = camp("look", "1", code=2)
        assert done.stderr.startswith(f"muster: 1 is the first process of this machine ({name}), not a training\n")
    if Path("/proc/2/comm").exists() and Path("/proc/2/comm").read_text() == "kthreadd\n":
        assert camp("look", "2", code=2).stderr == (
            "muster: 2 is a thread of the kernel (kthreadd), not a training\n  fix:   `ps aux` lists the others\n"
        )
        error = json.loads(camp("look", "2", "--json", code=2).stderr)["error"]
        assert (error["code"], error["message"]) == ("usage", "2 is a thread of the kernel (kthreadd), not a training")


def test_a_folder_without_any_progress_file(camp: Camp) -> None:
    (camp.root / "empty").mkdir()
    done = camp("look", "empty", "--for", "1s", code=3)
    assert done.stdout.splitlines()[0].endswith(
        " empty is UNKNOWN: no process on this machine writes there, and no progress file was found in it"
    )
    assert (
        "note   looked for metrics.jsonl, scores.jsonl, any *.jsonl or *.csv with a column that counts" in done.stdout
    )


def test_a_checkpoint_knows_a_later_step_than_a_log_that_lags(camp: Camp) -> None:
    """LeRobot under W&B: the record ends at 1300, and checkpoints/001500 is there."""
    rows(camp.root / "run" / "metrics.jsonl", {"step": 1200}, {"step": 1300})
    for step in (1000, 1500):
        folder = camp.root / "run" / "checkpoints" / f"{step:06}"
        folder.mkdir(parents=True)
        (folder / "model.bin").write_bytes(b"x" * 10)
    (camp.root / "run" / "train_config.json").write_text('{"steps": 2000}')
    found = camp.json("look", "run", "--for", "1s", code=3)
    assert (found["step"], found["logged_step"], found["target"]) == (1500, 1300, 2000)
    assert "step 1500 is that of its newest checkpoint; its log lags, for it shows an earlier one" in found["notes"]


def test_more_steps_than_were_asked_for_are_counted_in_another_unit(camp: Camp) -> None:
    rows(camp.root / "run" / "metrics.jsonl", {"step": 5740}, {"step": 5745})
    (camp.root / "run" / "config.yaml").write_text("run:\n  steps: 2500\n")
    found = camp.json("look", "run", "--for", "1s", code=3)
    assert state(found) == ("UNKNOWN", None, "unknown")
    assert "may be complete" not in json.dumps(found)
    assert any("they are counted in different units" in note for note in found["notes"])


def test_one_number_in_a_log_is_no_step(camp: Camp) -> None:
    (camp.root / "run").mkdir()
    (camp.root / "run" / "train.log").write_text("Step 1: load the data\ncompiling\n")
    assert camp.json("look", "run", "--for", "1s", code=3)["step"] is None


def test_two_gigabytes_without_a_newline(camp: Camp) -> None:
    (camp.root / "run").mkdir()
    with open(camp.root / "run" / "metrics.jsonl", "wb") as file:
        file.truncate(2 << 30)
    began = time.monotonic()
    found = camp.json("look", "run", "--for", "1s", code=3)
    assert time.monotonic() - began < 20
    assert evidence(found)["metrics.jsonl progress"].startswith("no newline in the last ")


def test_several_at_once(camp: Camp, runs: Runs) -> None:
    process = runs.train("both")
    rows(camp.root / "other" / "metrics.jsonl", {"step": 7})
    found = camp.json("look", "other", "run", "--for", "2s", code=4)
    assert [(each["asked"], each["verdict"], each["step"] == 7) for each in found] == [
        ("other", "UNKNOWN", True), ("run", "RUNNING", False),
    ]  # fmt: skip
    assert found[1]["pid"] == process.pid


def test_a_file_stands_for_its_folder(camp: Camp) -> None:
    rows(camp.root / "run" / "metrics.jsonl", {"step": 7})
    assert camp.json("look", "run/metrics.jsonl", "--for", "1s", code=3)["output"] == str(camp.root / "run")


def test_names_that_would_play_with_the_terminal(camp: Camp) -> None:
    folder = camp.root / "bad\033[31m\nname"
    rows(folder / "metrics.jsonl", {"step": 7})
    os.mkdir(os.fsencode(folder) + b"/replay-\xff")  # noqa: PTH102
    for number in range(3):
        with open(os.fsencode(folder) + b"/replay-\xff/%d.npz" % number, "wb") as file:
            file.write(b"x")
    shown = camp("look", str(folder), "--for", "1s", code=3).stdout
    assert "\033[31m" not in shown
    assert camp.json("look", str(folder), "--for", "1s", code=3)["step"] == 7


def test_a_run_of_a_campaign(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    pid = gated.started("train/0")
    folder = gated.folder("train/0")
    for words in ((str(pid),), (str(folder),), (str(folder / "out"),)):
        found = gated.json("look", *words, "--for", "1s")
        assert any("muster " in note and "why train/0" in note for note in found["notes"]), found
    assert gated.json("look", str(folder), "--for", "1s")["pid"] == pid
    found = gated.json("look", ".", "--for", "1s")
    assert any("this is a campaign's folder" in note for note in found["notes"])
    for seed in (0, 1):
        gated.open(seed)


# -- other users


def as_nobody(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", AS_NOBODY, *arguments], capture_output=True, text=True, timeout=60, cwd="/",
        env={"PATH": os.defpath, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs to be another user")


@pytest.fixture
def open_to_all(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and len(folder.parts) > 2:
            folder.chmod(0o755)


@needs_root
@pytest.mark.usefixtures("open_to_all")
def test_a_process_of_another_user(camp: Camp, runs: Runs) -> None:
    process = runs.train("both")
    done = as_nobody("look", str(process.pid), str(camp.root / "run"), "--for", "1s", "--json")
    assert done.returncode == 4, done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] == "RUNNING"
    said = evidence(found)
    assert said["access life"].startswith("it belongs to root: its folder, its open files and its I/O may not be read")
    assert said["io activity"] == "/proc/PID/io may not be read [abstains]"


@needs_root
@pytest.mark.usefixtures("open_to_all")
def test_files_that_may_not_be_read(camp: Camp) -> None:
    rows(camp.root / "run" / "metrics.jsonl", {"step": 7})
    (camp.root / "run" / "metrics.jsonl").chmod(0)
    found = json.loads(as_nobody("look", str(camp.root / "run"), "--for", "1s", "--json").stdout)
    assert evidence(found)["metrics.jsonl progress"] == "metrics.jsonl can't be read: Permission denied [abstains]"
    assert found["reason"].startswith("no process that you may look into writes there")
    (camp.root / "run").chmod(0o700)
    found = json.loads(as_nobody("look", str(camp.root / "run"), "--for", "1s", "--json").stdout)
    assert found["reason"].endswith(f"{camp.root / 'run'} can't be read: Permission denied")


# -- GPUs that nobody leased


@pytest.mark.parametrize(
    ("readings", "found"),
    [
        ([GpuReading(0, processes=((5, 10),)), GpuReading(1, processes=((7, 10),))], ((1,), False)),
        ([GpuReading(0), GpuReading(1, processes=((7, 10), (9, 10)))], ((1,), True)),
        ([GpuReading(0, processes=((4711, None),))], ((0,), False)),  # in a container: the host's pid, and one GPU
        ([GpuReading(0, processes=((4711, None), (4712, None)))], ((0,), True)),
        ([GpuReading(0), GpuReading(1, processes=None)], ((1,), True)),  # who uses it can't be listed
    ],
)
def test_gpus_of_a_tree(monkeypatch: pytest.MonkeyPatch, readings: list[GpuReading], found: Any) -> None:
    monkeypatch.setattr(gpus, "_open_gpu_devices", lambda _: [1])
    monkeypatch.setattr(gpus, "NvmlReader", lambda: lambda: readings)
    assert gpus.gpus_of_processes([7, 8]) == found


def test_no_gpu_is_asked_for_where_none_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "NvmlReader", lambda: pytest.fail("nobody needs it"))
    assert gpus.gpus_of_processes([os.getpid()]) == ((), False)


# -- the judge's history, begun with file times

HOUR = 3600.0


class Watched:
    """A made-up run, two hours old, looked at every second."""

    def __init__(self, dated: dict[str, ProgressDates], age: float = 2 * HOUR) -> None:
        self.now, self.wall = 100_000.0, 1_800_000_000.0
        kinds: dict[str, Any] = {"metrics.jsonl": "jsonl", "replay/*.npz": "files", "last.ckpt": "checkpoint"}
        self.marks = {name: ProgressMark(name, kinds[name], 5.0, "step 5") for name in dated}
        progress = tuple(DeclaredProgress(kinds[name], name) for name in dated)
        self.watch = UnwatchedRunWatch(
            Job("look", (), ("python",), progress=progress), dated, self.now - age, self.now,
            replace(Thresholds(), poll_s=1.0, late_s=4.0),
        )  # fmt: skip
        self.cpu = 0.0

    def look(self, count: int = 7, *, cpu: float = 1.0, after_s: float = 1.0) -> Any:
        for _ in range(count):
            self.now += after_s
            self.wall += after_s
            self.cpu += cpu * after_s
            vitals = TreeVitals("S", self.cpu, 1000 * self.cpu, 0, opens_gpu=False)
            self.watch.look(RunReadings(self.now, tuple(self.marks.values()), vitals), "S", self.wall)
        return self.watch.find(self.now)

    def advance(self, name: str) -> None:
        mark = self.marks[name]
        self.marks[name] = replace(mark, count=(mark.count or 0.0) + 1)


def ago(seconds: float, gaps: tuple[float, ...] = (), why: str = "") -> ProgressDates:
    return ProgressDates(1_800_000_000.0 - seconds, gaps, why)


def shown(found: Any) -> tuple[str, str | None, str]:
    return str(found.state), found.kind, found.confidence


def test_file_times_alone_prove_nothing() -> None:
    run = Watched({"metrics.jsonl": ago(500), "replay/*.npz": ago(20, (30.0,) * 50)})
    assert shown(run.look()) == ("QUIET", None, "presumed")
    run.advance("replay/*.npz")
    found = run.look(1)
    assert shown(found) == ("QUIET", None, "proven")
    assert "by file times" not in found.reason


@pytest.mark.parametrize(("cpu", "kind"), [(0.0, "waiting"), (1.0, "spinning")])
def test_a_long_silence_by_file_times_is_a_presumed_stall(cpu: float, kind: str) -> None:
    run = Watched({"metrics.jsonl": ago(HOUR, (10.0,) * 50), "replay/*.npz": ago(HOUR, (30.0,) * 50)})
    assert shown(run.look(2, cpu=cpu))[:2] == ("RUNNING", "overdue")  # a first look proves nothing
    found = run.look(5, cpu=cpu)
    assert shown(found) == ("STALLED", kind, "presumed")
    assert found.reason.endswith("; how long is known by file times only")
    run.advance("metrics.jsonl")
    assert shown(run.look(1)) == ("RUNNING", None, "proven")


def test_an_old_checkpoint_of_unknown_cadence_can_not_speak_for_a_silent_log() -> None:
    run = Watched({"metrics.jsonl": ago(1.5 * HOUR, (10.0,) * 50), "last.ckpt": ago(1.4 * HOUR)})
    assert shown(run.look(cpu=0.0))[0] == "STALLED"
    fresh = Watched({"metrics.jsonl": ago(1.5 * HOUR, (10.0,) * 50), "last.ckpt": ago(300)})
    assert shown(fresh.look(cpu=0.0))[0] == "RUNNING"  # but it shows that the run went on


def test_a_signal_that_can_not_be_dated_abstains_until_it_advances() -> None:
    run = Watched({"metrics.jsonl": ProgressDates(None, (), "its file time lies in the future")})
    assert shown(run.look()) == ("QUIET", None, "presumed")
    run.advance("metrics.jsonl")
    assert shown(run.look(1)) == ("RUNNING", None, "proven")


def test_what_is_older_than_the_process_is_another_runs() -> None:
    run = Watched({"metrics.jsonl": ago(HOUR)}, age=600.0)
    assert shown(run.look()) == ("RUNNING", "starting", "presumed")


def test_a_late_look_drops_no_file_time() -> None:
    run = Watched({"metrics.jsonl": ago(HOUR, (10.0,) * 50)})
    run.look(4, cpu=0.0)
    run.look(1, cpu=0.0, after_s=60.0)
    assert shown(run.look(4, cpu=0.0)) == ("STALLED", "waiting", "presumed")


def test_a_suspended_machine_explains_a_silence() -> None:
    run = Watched({"metrics.jsonl": ago(HOUR, (10.0,) * 50)})
    slept: Callable[..., None] = lambda seen, state, wall: UnwatchedRunWatch.look(run.watch, seen, state, wall, HOUR)  # noqa: E731
    run.watch.look = slept  # type: ignore[method-assign]
    assert shown(run.look(cpu=0.0))[0] == "RUNNING"
