"""Steps out of the records of W&B and TensorBoard, while a run writes them; and that their delay convicts nobody."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from muster.engine.judge.liveness import RunWatch, count_conviction, judge_liveness
from muster.engine.judge.signal_history import STANDARD_THRESHOLDS, begin_history, fold_readings
from muster.model.attempt_snapshot import ProgressMark, RunReadings, TreeVitals
from muster.model.campaign import DeclaredProgress, Job
from muster.model.verdict import VerdictState
from muster.readers.progress import RecordSource
from muster.readers.records.record_steps import (
    TensorboardStepReader,
    WandbStepReader,
    tensorboard_files,
    wandb_record_files,
)

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
from history_files import board_bytes, field, framed, history_record, scalar, wandb_bytes


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def rows(*steps: int) -> list[dict[str, float]]:
    return [{"step": step, "loss": 1.0, "env/frames": step * 4.0} for step in steps]


def test_the_newest_step_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "run-x.wandb"
    data = wandb_bytes(rows(*range(50)))
    reader = WandbStepReader(str(path))
    reader.look()
    assert reader.step is None
    for end in range(0, len(data), 37):
        path.write_bytes(data[:end])
        reader.look()
    path.write_bytes(data)
    reader.look()
    assert reader.step == 49


def test_a_step_key_of_its_own_and_a_scale(tmp_path: Path) -> None:
    path = tmp_path / "run-x.wandb"
    path.write_bytes(wandb_bytes(rows(1, 2, 3)))
    reader = WandbStepReader(str(path), "env/frames", 0.5)
    reader.look()
    assert (reader.logged, reader.step) == (12, 6)
    other = WandbStepReader(str(path), "nowhere")
    other.look()
    assert other.nothing("x") == "0 of 3 rows of x hold a number at 'nowhere'"


def test_a_large_file_is_read_from_near_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster.readers.records.record_steps.TAIL_BYTES", 100_000)
    records = tmp_path / "run-x.wandb"
    records.write_bytes(wandb_bytes(rows(*range(3000))))
    board = tmp_path / "events.out.tfevents.1"
    board.write_bytes(board_bytes(rows(*range(3000))))
    for reader in (WandbStepReader(str(records)), TensorboardStepReader(str(board))):
        reads: list[int] = []
        at = reader._growing.at
        reader._growing.at = lambda offset, count, at=at, reads=reads: reads.append(offset) or at(offset, count)  # type: ignore[method-assign, misc]
        reader.look()
        assert reader.step == 2999
        assert min(offset for offset in reads if offset > 64) > 100_000


def test_an_event_file_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(board_bytes(rows(5)))
    reader = TensorboardStepReader(str(path))
    reader.look()
    assert (reader.step, reader.fitted) == (5, True)
    append(path, scalar(6, "loss", math.nan) + scalar(7, "loss", 1.0)[:-3])
    reader.look()
    assert (reader.step, reader.non_finite) == (6, "loss")
    path.write_bytes(board_bytes(rows(2)))
    reader.look()
    assert reader.step == 2


def test_damage_is_no_step(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    broken = bytearray(scalar(9, "loss", 1.0))
    broken[30] ^= 1
    path.write_bytes(board_bytes(rows(5)) + bytes(broken))
    reader = TensorboardStepReader(str(path))
    reader.look()
    assert reader.step == 5


def test_the_newest_row_that_is_not_finite_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run-x.wandb"
    path.write_bytes(framed([history_record(1, {"step": 1, "a": 1.0, "b": {"c": math.inf}})]))
    reader = WandbStepReader(str(path))
    reader.look()
    assert reader.non_finite == "b.c"


def test_which_files_are_meant(tmp_path: Path) -> None:
    for name in ("offline-run-20260101_000000-aa", "run-20260201_000000-bb"):
        folder = tmp_path / "wandb" / name
        folder.mkdir(parents=True)
        (folder / f"run-{name[-2:]}.wandb").touch()
    (tmp_path / "wandb" / "latest-run").symlink_to("run-20260201_000000-bb")
    newest = tmp_path / "wandb" / "run-20260201_000000-bb" / "run-bb.wandb"
    for named in (newest, newest.parent, tmp_path / "wandb", tmp_path, tmp_path / "wandb" / "latest-run"):
        assert [Path(each).resolve() for each in wandb_record_files(str(named))] == [newest]
    assert wandb_record_files(str(tmp_path / "nothing")) == []
    (tmp_path / "tb" / "eval").mkdir(parents=True)
    for name in ("events.out.tfevents.1", "eval/events.out.tfevents.2", "other"):
        (tmp_path / "tb" / name).touch()
    assert [Path(each).name for each in tensorboard_files(str(tmp_path / "tb"))] == [
        "events.out.tfevents.2",
        "events.out.tfevents.1",
    ]


def test_a_source_tells_its_delay_and_the_runs_own_exit(tmp_path: Path) -> None:
    folder = tmp_path / "wandb" / "run-20260201_000000-bb"
    folder.mkdir(parents=True)
    source = RecordSource(DeclaredProgress("wandb", "wandb", "_step"), "wandb", str(tmp_path / "wandb"), None)
    assert source.look().reading == "nothing yet: no records in wandb"
    (folder / "run-bb.wandb").write_bytes(wandb_bytes(rows(7)))
    mark = source.look()
    assert (mark.count, mark.reading, mark.delay_s) == (7, "step 7", 20.0)
    exited = b"\x08\x7f" + field(18, b"\x08\x01\x10\x2a")
    (folder / "run-bb.wandb").write_bytes(framed([history_record(1, rows(7)[0]), exited]))
    assert source.look().reading == "step 7; its W&B record ends with exit code 1"


def test_nothing_heavy_is_imported() -> None:
    """The controller reads steps every few seconds, and must stay small."""
    code = (
        "import sys, muster.readers.progress, muster.readers.records.record_steps as records\n"
        "reader = records.TensorboardStepReader('/nowhere'); reader.look()\n"
        "assert 'numpy' not in sys.modules and 'wandb' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- the delay


def _watch(delay_s: float, flushed_s: float, silent_from: float, until: float) -> list[VerdictState]:
    """A run that advances all the time; its log shows it when it is flushed. From `silent_from` on it logs nothing."""
    job = Job("train", (), ("x",), progress=(DeclaredProgress("wandb", "wandb", "_step"),))
    history = begin_history(0.0, 0.0)
    watch, states = RunWatch(history), []
    now = 0.0
    while now < until:
        now += STANDARD_THRESHOLDS.poll_s
        shown = min(now, silent_from) // flushed_s * flushed_s
        mark = ProgressMark("wandb", "wandb", shown or None, f"step {shown}", own=True, delay_s=delay_s)
        idle = now > silent_from  # a loader that waits for a disk: little CPU, and no state that proves anything
        vitals = TreeVitals("S", cpu_s=min(now, silent_from) * 0.9 + now * 0.003, io_bytes=min(now, silent_from) * 1e5)
        fold_readings(history, RunReadings(now, (mark,), vitals), "S" if idle else "R", STANDARD_THRESHOLDS)
        count_conviction(watch, job, now)
        states.append(judge_liveness(watch, job, now).state)
    return states


def test_a_healthy_run_is_never_stalled_because_of_the_flush_delay() -> None:
    states = _watch(20.0, 15.0, math.inf, 3600.0)
    assert set(states) == {VerdictState.RUNNING}


def test_a_pause_that_fits_its_patience_is_not_convicted_for_what_the_writer_keeps_back() -> None:
    """Rows that fill a block every few seconds, then a pause: what is kept back makes it look longer than it is."""
    pause = STANDARD_THRESHOLDS.convict_s + 10.0
    assert VerdictState.STALLED in _watch(0.0, 5.0, 600.0, 600.0 + pause)
    assert VerdictState.STALLED not in _watch(20.0, 5.0, 600.0, 600.0 + pause)
    assert VerdictState.STALLED in _watch(20.0, 5.0, 600.0, 600.0 + pause + 60.0)
