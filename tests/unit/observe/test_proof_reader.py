"""The proof on real files: what holds, what fails, what can't be told, and in which words."""

import json
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from muster.model.attempt import Order
from muster.model.attempt_snapshot import ExitRecord, ProofReading
from muster.model.campaign import AxisValue, CheckpointProof, DeclaredProgress, DeclaredResult, Job, Proof, StepProof
from muster.model.cell import Cell
from muster.readers.output_files import find_attempt_output, match_output_pattern
from muster.readers.progress import ProgressReader
from muster.readers.proof import FileProofReader

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
from history_files import wandb_bytes

CELL = Cell("train/v2_full/2", "train", (("config", AxisValue("v2_full", "v2_full")), ("seed", AxisValue("2", 2))))
ENDED = 1_800_000_000.0
EXIT = ExitRecord(code=0, signal=None, at=ENDED, boot=5000.0, duration_s=1000.0)
STARTED = ENDED - 1000.0
JSONL = DeclaredProgress("jsonl", "metrics.jsonl", "step")


def job(proof: Proof = Proof(), progress: tuple[DeclaredProgress, ...] = (JSONL,), **more: Any) -> Job:
    return Job("train", ("config", "seed"), ("x",), steps=120_000, proof=proof, progress=progress, **more)


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    folder = tmp_path / "attempt"
    (folder / "out").mkdir(parents=True)
    return folder


@pytest.fixture
def order(attempt: Path) -> Order:
    out = str(attempt / "out")
    return Order(
        cell=CELL.id, n=1, token="tok", epoch=1, argv=(), cwd="/", env={}, env_file="", slots=(), out=out, output=out, hash="",
        claimed_at="", claimed_boot=0.0, boot_id="", retry_cause=None, resumed_from=None, state="", bell="", ballast="",
        revive=(), revive_s=0.0, axes={}, code={},
    )  # fmt: skip


def read(job: Job, order: Order, ended: ExitRecord | None = EXIT) -> ProofReading:
    return FileProofReader().read(job, CELL, order, ended)


def told(reading: ProofReading) -> list[tuple[str, str]]:
    assert all(each.kind == "proof" for each in reading.evidence)
    return [(each.reading, each.says) for each in reading.evidence]


def put(path: Path, data: bytes = b"x", at: float = ENDED) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (at, at))
    return path


def steps(folder: Path, last: int, name: str = "metrics.jsonl") -> Path:
    return put(folder / name, b"".join(json.dumps({"step": n}).encode() + b"\n" for n in (1, last)))


WHOLE = pickle.dumps({"w": list(range(100))})


# -- results

SCORE = DeclaredResult("score", "json", "result.json", "score")


def test_results_are_read_and_are_proof(attempt: Path, order: Order) -> None:
    put(attempt / "out" / "result.json", b'{"score": 1.5}')
    put(attempt / "stderr.log", b"INFO cost: 3\n")
    put(attempt / "stdout.log", b"hello\n")
    printed = DeclaredResult("cost", "stdout", r"cost: (\d+)")
    reading = read(job(results=(SCORE, printed)), order)
    assert (reading.holds, reading.results) == (True, {"score": 1.5, "cost": 3.0})
    assert told(reading)[0] == ("result.json: score = 1.5", "holds")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (None, "result.json: no such file"),
        (b'{"score": NaN}', "'score' in result.json is nan"),
        (b'{"cost": 1}', "result.json has no 'score'"),
        (b'{"score": "high"}', "'score' in result.json is no number but a text"),
    ],
)
def test_a_result_that_is_none_is_an_error_of_its_cell(
    attempt: Path, order: Order, data: bytes | None, text: str
) -> None:
    if data is not None:
        put(attempt / "out" / "result.json", data)
    reading = read(job(results=(SCORE,)), order)
    assert (reading.holds, reading.results) == (False, {})
    assert told(reading) == [(text if data is None else f"score: result.json: {text}", "fails")]


# -- no proof


def test_no_proof_needs_nothing_and_costs_nothing(order: Order) -> None:
    reading = read(job(), order)
    assert reading.holds is True
    assert told(reading) == [("no proof declared: exit 0 is enough", "holds")]
    assert reading.output == order.output
    reader, plain = FileProofReader(), job()
    began = time.perf_counter()
    for _ in range(1000):
        reader.read(plain, CELL, order, EXIT)
    assert time.perf_counter() - began < 0.1  # 100 microseconds each would be slow


# -- steps


@pytest.mark.parametrize(
    ("last", "says"), [(120_000, "holds"), (117_600, "holds"), (117_599, "fails"), (40_000, "fails")]
)
def test_steps(order: Order, last: int, says: str) -> None:
    steps(Path(order.out), last)
    reading = read(job(Proof(step=StepProof("{steps}", 0.02))), order)
    assert told(reading) == [(f"metrics.jsonl: last step {last}, wanted 117600 of 120000", says)]
    assert reading.holds is (says == "holds")
    assert reading.step == last


def test_steps_are_scaled_and_the_best_source_counts(order: Order) -> None:
    steps(Path(order.out), 600_000)
    steps(Path(order.out), 5, "other/eval.jsonl")
    sources = (
        replace(JSONL, scale=0.2),
        DeclaredProgress("jsonl", "*/eval.jsonl", "step"),
        DeclaredProgress("files", "replay/*.npz"),
    )
    reading = read(job(Proof(step=StepProof("{steps}")), sources), order)
    assert told(reading) == [("metrics.jsonl: last step 600000 x 0.2 = 120000, wanted 120000", "holds")]
    assert reading.step == 120_000


def test_missing_metrics_fail(order: Order) -> None:
    proof = Proof(step=StepProof("{steps}"))
    assert told(read(job(proof), order)) == [("metrics.jsonl: does not exist, wanted 120000", "fails")]
    reading = read(job(proof, (DeclaredProgress("wandb", "wandb/latest-run", "_step"),)), order)
    assert told(reading) == [("wandb/latest-run: there are no records, wanted 120000", "fails")]
    assert read(job(proof, ()), order).holds is None
    put(Path(order.out) / "metrics.jsonl", b'{"loss": 1}\n')
    assert told(read(job(proof), order)) == [("metrics.jsonl: no step in it (key 'step'), wanted 120000", "fails")]


def test_the_exit_that_wandb_recorded_is_read_where_nobody_saw_it(order: Order) -> None:
    wandb = (DeclaredProgress("wandb", "wandb", "_step"),)
    put(
        Path(order.out) / "wandb" / "run-1-a" / "run-a.wandb",
        wandb_bytes([{"step": 1, "loss": 0.5}], exit_code=1),
        ENDED - 9,
    )
    put(Path(order.out) / "wandb" / "run-2-b" / "run-b.wandb", wandb_bytes([{"step": 1, "loss": 0.5}], exit_code=0))
    assert read(job(progress=wandb), order).recorded is None  # its exit is known
    assert read(job(progress=wandb), order, None).recorded == 0  # of the newest
    assert read(job(Proof(step=StepProof("1")), wandb), order, None).recorded == 0
    put(Path(order.out) / "wandb" / "run-3-c" / "run-c.wandb", wandb_bytes([{"step": 1, "loss": 0.5}]), ENDED + 9)
    assert read(job(progress=wandb), order, None).recorded is None  # killed: its last one has no exit


def test_console_steps(order: Order, attempt: Path) -> None:
    console = job(Proof(step=StepProof("100")), (DeclaredProgress("stdout", r"step:(\d+)"),))
    assert read(console, order).holds is False
    put(attempt / "stderr.log", b"step:100\n")
    assert told(read(console, order)) == [("stderr.log: last step 100, wanted 100", "holds")]
    put(attempt / "stdout.log", b"step:90\nstep:9")
    assert read(console, order).holds is False


def test_unknown_placeholder_is_said(order: Order) -> None:
    reading = read(replace(job(Proof(step=StepProof("{steps}"))), steps=None), order)
    assert reading.holds is None
    assert "has no value here" in told(reading)[0][0]


# -- checkpoints


def checkpoint(path: str = "checkpoint.ckpt", after: float = 0.9) -> Job:
    return job(Proof(checkpoint=CheckpointProof(path, after)))


@pytest.mark.parametrize(
    ("at", "holds", "words"),
    [
        (30, False, "checkpoint.ckpt saved at 3 % of the run, wanted after 90 %"),
        (899, False, "checkpoint.ckpt saved at 89.9 % of the run, wanted after 90 %"),
        (900, True, "checkpoint.ckpt saved at 90 % of the run, wanted after 90 %"),
        (1001, True, "checkpoint.ckpt saved at 100 % of the run, wanted after 90 %"),
        (
            4600,
            True,
            "checkpoint.ckpt was saved 3600 s after the run's end by the clock: can't be compared, wanted after 90 %",
        ),
        (-60, False, "checkpoint.ckpt was saved 60 s before the run started, wanted after 90 %"),
    ],
)
def test_when_a_checkpoint_was_saved(order: Order, at: float, holds: bool, words: str) -> None:
    put(Path(order.out) / "checkpoint.ckpt", WHOLE, STARTED + at)
    reading = read(checkpoint(), order)
    assert reading.holds is holds
    assert told(reading)[-1][0] == words
    assert "opens (pickle" in told(reading)[0][0]


def stamp(attempt: Path, started: float, ended: float) -> None:
    put(attempt / "started", b"tok", started)
    put(attempt / "exit.json", b"{}", ended)


def test_the_attempts_own_files_beat_the_recorded_wall_time(order: Order, attempt: Path) -> None:
    off = 7200.0  # the clock that stamps files is two hours behind
    stamp(attempt, STARTED - off, ENDED - off)
    put(Path(order.out) / "checkpoint.ckpt", WHOLE, ENDED - off - 5)
    assert read(checkpoint(), order).holds is True
    put(Path(order.out) / "checkpoint.ckpt", WHOLE, STARTED - off + 5)
    assert read(checkpoint(), order).holds is False
    put(attempt / "started", b"another token", STARTED - off)
    assert "before the run started" in told(read(checkpoint(), order))[-1][0]


@pytest.mark.parametrize("jump", [3600.0, -600.0, -3600.0])
@pytest.mark.parametrize(("before", "at"), [(True, 1.0), (False, 995.0)])
def test_a_clock_that_jumps_changes_no_verdict(
    order: Order, attempt: Path, jump: float, before: bool, at: float
) -> None:
    stamp(attempt, STARTED, ENDED + jump)
    put(Path(order.out) / "checkpoint.ckpt", WHOLE, STARTED + at + (0 if before else jump))
    assert read(checkpoint(), order).holds is not before


def test_broken_newest_names_the_previous(order: Order) -> None:
    out = Path(order.out)
    put(out / "epoch-40.ckpt", WHOLE, STARTED + 800)
    put(out / "epoch-50.ckpt", WHOLE[:-5], STARTED + 1000)
    reading = read(checkpoint("epoch-*.ckpt"), order)
    assert reading.holds is False
    assert "epoch-50.ckpt is no whole checkpoint: the pickle is cut off" in told(reading)[0][0]
    assert "the previous one, epoch-40.ckpt, opens" in told(reading)[0][0]
    assert "epoch-40.ckpt saved at 80 % of the run" in told(reading)[1][0]
    assert read(checkpoint("epoch-*.ckpt", 0.5), order).holds is True
    # without saved_after nothing shows that the older one is late enough
    assert read(checkpoint("epoch-*.ckpt", 0.0), order).holds is False


@pytest.mark.parametrize("data", [b"", WHOLE[:-1], WHOLE[:1]])
def test_truncated_checkpoint_is_refused(order: Order, data: bytes) -> None:
    put(Path(order.out) / "checkpoint.ckpt", data)
    reading = read(checkpoint(after=0.0), order)
    assert reading.holds is False
    assert "no whole checkpoint" in told(reading)[0][0]


def test_missing_checkpoint_and_unknown_window(order: Order) -> None:
    assert told(read(checkpoint(), order)) == [("checkpoint.ckpt: there is no checkpoint", "fails")]
    put(Path(order.out) / "checkpoint.ckpt", WHOLE)
    reading = read(checkpoint(), order, None)
    assert reading.holds is None
    assert "is not known" in told(reading)[-1][0]


def test_unreadable_checkpoint_is_no_failure(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    put(Path(order.out) / "checkpoint.ckpt", WHOLE)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("muster.readers.checkpoints.whole_checkpoints._check_path", refuse)
    assert read(checkpoint(), order).holds is None


def test_a_linked_last_checkpoint_counts_once(order: Order) -> None:
    out = Path(order.out)
    put(out / "checkpoints/000100/model.bin", b"weights", ENDED - 10)
    (out / "checkpoints/last").symlink_to("000100")
    assert read(checkpoint("checkpoints/*"), order).holds is True
    assert read(checkpoint("checkpoints/last"), order).holds is True


# -- files


def test_files(order: Order) -> None:
    wanted = job(Proof(files=("result.json", "replay/*.npz", "{config}_{seed}.csv")))
    out = Path(order.out)
    put(out / "result.json", b"{}")
    put(out / "replay/1.npz", b"")
    reading = read(wanted, order)
    assert told(reading) == [
        ("result.json: 1 found", "holds"),
        ("replay/*.npz: 1 found, all of them empty", "fails"),
        ("{config}_{seed}.csv: no such file", "fails"),
    ]
    put(out / "replay/2.npz")
    put(out / "v2_full_2.csv")
    assert read(wanted, order).holds is True


def test_an_untrained_checkpoint_is_known_by_its_step_whenever_it_was_saved(order: Order) -> None:
    out = Path(order.out)
    proof = job(Proof(checkpoint=CheckpointProof("checkpoint.ckpt", 0.9)))
    put(out / "checkpoint.ckpt", pickle.dumps({"step": 100, "agent": {}}), ENDED - 1)  # somebody touched it
    assert told(read(proof, order))[1] == (
        "checkpoint.ckpt saved at 99.9 % of the run; it holds step 100 of 120000 (0 %), wanted after 90 %", "fails",
    )  # fmt: skip
    put(out / "checkpoint.ckpt", pickle.dumps({"step": 119_000, "agent": {}}), ENDED - 500)  # evaluations came after it
    assert told(read(proof, order))[1] == (
        "checkpoint.ckpt saved at 50 % of the run; it holds step 119000 of 120000 (99.1 %), wanted after 90 %", "holds",
    )  # fmt: skip
    assert read(proof, order, None).holds is True  # its exit is lost, and with it when it ended
    put(out / "checkpoint.ckpt", pickle.dumps({"step": 100_000, "agent": {}}), ENDED - 500)
    assert read(proof, order).holds is False


def test_a_living_run_without_a_log_is_as_far_as_its_checkpoint(order: Order) -> None:
    proof = job(progress=(JSONL, DeclaredProgress("checkpoint", "checkpoints/*")))
    for step in (400, 800):
        put(Path(order.out) / "checkpoints" / f"{step:06}" / "model.bin", at=ENDED + step)
    assert FileProofReader().progress(proof, CELL, order).step == 800
    steps(Path(order.out), 550)  # W&B and others lag
    assert FileProofReader().progress(proof, CELL, order).step == 800
    steps(Path(order.out), 900)
    assert FileProofReader().progress(proof, CELL, order).step == 900


# -- outputs


@pytest.fixture
def named(order: Order, tmp_path: Path) -> Order:
    return replace(order, output=str(tmp_path / "runs" / "*_v2_full_*_2"))


def run(tmp_path: Path, stamp: str, at: float, grown: float | None = None) -> Path:
    folder = tmp_path / "runs" / f"{stamp}_v2_full_task_2"
    put(folder / "config.yaml", at=at)
    put(folder / "metrics.jsonl", b'{"step": 9}\n', grown or at)
    os.utime(folder, (at, at))
    return folder


def test_the_folder_made_since_the_start_is_the_output(
    named: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    old, mine, touched = (run(tmp_path, name, now - ago) for name, ago in (("a", 5000), ("b", 50), ("c", 4000)))
    put(touched / "plot.png", at=now)
    monkeypatch.setattr("muster.readers.output_files.os.stat", _without_ctime(os.stat))
    assert find_attempt_output(named, now - 100) == str(mine)
    assert find_attempt_output(named, now - 10) == str(touched)
    assert find_attempt_output(named, None) == str(touched)
    assert find_attempt_output(named, now + 100) is None
    assert str(old) not in {find_attempt_output(named, now - 4500)}
    ended = replace(EXIT, at=now, duration_s=100.0)
    reading = read(job(Proof(step=StepProof("9"))), named, ended)
    assert reading.holds is True
    assert reading.output == str(mine)
    assert "2 folders fit" in told(reading)[0][0]


def _without_ctime(stat: Any) -> Any:
    """ctime can't be set back in a test: every folder here was made just now."""

    class Times:
        def __init__(self, real: os.stat_result) -> None:
            self.st_mtime = self.st_ctime = real.st_mtime
            self.st_mode, self.st_size, self.st_dev = real.st_mode, real.st_size, real.st_dev

    return lambda path, **more: Times(stat(path, **more))


def test_what_an_attempt_wrote_a_moment_before_the_next_one_began_is_not_the_next_ones(
    named: Order, tmp_path: Path, attempt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry begins within milliseconds of the death before it."""
    now = time.time()
    run(tmp_path, "a", now - 0.2)
    monkeypatch.setattr("muster.readers.output_files.os.stat", _without_ctime(os.stat))
    proof = job(Proof(step=StepProof("9")), results=(DeclaredResult("step", "jsonl", "metrics.jsonl", "step"),))
    put(attempt / "started", b"tok", now - 0.1)
    assert FileProofReader().progress(proof, CELL, named) == ProofReading(None)
    assert (read(proof, named, None).holds, read(proof, named, None).output) == (False, None)
    assert [mark.count for mark in ProgressReader(proof, CELL, named).look()] == [None]
    own = run(tmp_path, "b", now - 0.05)
    assert read(proof, named, None).output == str(own)
    put(attempt / "exit.json", at=now - 0.04)
    run(tmp_path, "c", now)  # a later attempt's
    assert read(proof, named).output == str(own)


def test_on_two_file_systems_what_was_there_at_the_launch_is_told_from_what_came_since(
    order: Order, attempt: Path, elsewhere: Path
) -> None:
    named = replace(order, output=str(elsewhere / "runs" / "*_v2_full_*_2"))
    proof = job(Proof(files=("model.pt",)), results=(DeclaredResult("step", "jsonl", "metrics.jsonl", "step"),))
    old = run(elsewhere, "a", time.time())
    put(old / "model.pt", at=time.time())
    put(attempt / "started", b"tok", time.time() - 1)  # by its clock it came first
    assert read(proof, named, None).output == str(old)
    later = replace(named, there=match_output_pattern(named.output, str(attempt)))
    assert list(later.there) == ["a_v2_full_task_2"]
    assert (read(proof, later, None).holds, read(proof, later, None).output) == (False, None)
    assert find_attempt_output(later, None) is None
    assert [mark.count for mark in ProgressReader(proof, CELL, later).look()] == [None]
    put(old / "note.txt", at=time.time() + 0.1)  # somebody, or the attempt itself, goes on in it
    touched = read(proof, later, None)
    assert (touched.output, touched.holds) == (str(old), False)  # its model.pt is older
    own = run(elsewhere, "b", time.time())
    assert read(proof, later, None).output == str(own)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one file system only")
    folder = Path(tempfile.mkdtemp(dir=memory))
    yield folder
    shutil.rmtree(folder)


def test_a_folder_from_before_the_start_is_nobodys_proof_and_nobodys_step(
    named: Order, tmp_path: Path, attempt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the exit is lost, and where `started` is gone with it."""
    now = time.time()
    old = run(tmp_path, "a", now - 5000)
    monkeypatch.setattr("muster.readers.output_files.os.stat", _without_ctime(os.stat))
    proof = job(Proof(step=StepProof("9")), results=(DeclaredResult("step", "jsonl", "metrics.jsonl", "step"),))
    claimed = replace(named, claimed_at=datetime.fromtimestamp(now - 100).astimezone().isoformat())
    put(attempt / "started", b"tok", now - 100)
    for order in (named, claimed, claimed):
        assert FileProofReader().progress(proof, CELL, order) == ProofReading(None)
        reading = read(proof, order, None)
        assert (reading.holds, reading.output, reading.step) == (False, None, None)
        assert told(reading)[0] == (f"no folder fits {named.output} since the start", "fails")
        if order is claimed:
            (attempt / "started").unlink(missing_ok=True)
    put(old / "plot.png", at=now)  # somebody touches it: what it holds is as old as before
    reading = read(proof, claimed, None)
    assert (reading.holds, reading.output, reading.step, reading.results) == (False, str(old), None, {})
    model = put(old / "model.bin", at=now - 5000)
    files = job(Proof(files=("model.*",)))
    assert told(read(files, claimed, None))[-1] == ("model.*: 1 found, from before the start", "fails")
    os.utime(model, (now, now))
    assert read(files, claimed, None).holds is True
    put(old / "metrics.jsonl", b'{"step": 9}\n', now)  # it goes on in the old folder
    assert read(proof, claimed, None).holds is True


def test_a_folder_of_a_later_attempt_is_not_taken_for_an_earlier_one(named: Order, tmp_path: Path) -> None:
    mine, later = run(tmp_path, "a", STARTED + 50), run(tmp_path, "b", ENDED + 50)
    found = read(job(Proof(step=StepProof("9"))), named)
    assert (found.holds, found.output) == (True, str(mine))
    assert later.exists()


def test_no_folder_fits(named: Order) -> None:
    reading = read(job(Proof(step=StepProof("9"))), named)
    assert reading.holds is False
    assert reading.output is None
    assert "no folder fits" in told(reading)[0][0]
    assert read(job(), named).output is None


def test_literal_outputs(order: Order, tmp_path: Path) -> None:
    assert find_attempt_output(order, ENDED) == order.out
    assert find_attempt_output(replace(order, output=str(tmp_path / "none")), None) is None
    odd = tmp_path / "runs[1]"
    odd.mkdir()
    assert find_attempt_output(replace(order, output=str(odd)), None) == str(odd)
    steps(odd, 120_000)
    assert read(job(Proof(step=StepProof("{steps}"))), replace(order, output=str(odd)), None).holds is True
