"""Files that the real wandb and tensorboard wrote, offline and in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from muster.readers.records.logged_runs import MeasuredRun, RunMeter, newest_run_in
from muster.readers.records.record_steps import (
    TensorboardStepReader,
    WandbStepReader,
    tensorboard_files,
    wandb_record_files,
)

WANDB = """
import math, sys, wandb
settings = wandb.Settings(console="off", silent=True, x_disable_stats=True, x_disable_meta=True, x_disable_machine_info=True)
run = wandb.init(project="p", dir=sys.argv[1], mode="offline", settings=settings, config={"lr": 1e-3})
for step in range(300):
    run.log({"train/loss": 1 / (step + 1), "ot": {"pi_sum": step * 0.5, "deep": {"er": 2}}, "损失": 0.25, "flag": True,
             "note": "text", "bad": math.nan if step % 3 else math.inf, "h": wandb.Histogram([1, 2, 3])})
    if step % 50 == 49:
        run.log({"eval/success": step / 300})
run.finish(exit_code=3)
"""
BOARD = """
import sys, numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary import Writer
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util.tensor_util import make_tensor_proto
old = EventFileWriter(sys.argv[1] + "/old")
for step in range(200):
    value = [Summary.Value(tag="loss", simple_value=step * 0.5), Summary.Value(tag="损失", simple_value=float("nan"))]
    old.add_event(Event(wall_time=1.7e9 + step, step=step, summary=Summary(value=value)))
old.close()
new = EventFileWriter(sys.argv[1] + "/new")
for step in range(50):
    for tag, number in (("f", np.float32(step)), ("d", np.float64(step)), ("i", np.int64(-step)), ("h", np.float16(1.5))):
        value = Summary.Value(tag=tag, tensor=make_tensor_proto(number))
        new.add_event(Event(wall_time=1.7e9, step=step, summary=Summary(value=[value])))
new.close()
"""


def write(code: str, folder: Path) -> None:
    environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_DIR": str(folder), "HOME": str(folder),
                   "WANDB_CACHE_DIR": str(folder / "cache"), "WANDB_ERROR_REPORTING": "false"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(folder)], env=environment, capture_output=True, text=True,
        timeout=120, cwd=folder,
    )  # fmt: skip
    assert done.returncode in (0, 3), done.stderr


def measured(folder: Path) -> MeasuredRun:
    run = newest_run_in(str(folder)).run
    assert run is not None
    meter = RunMeter(run.feeds())
    meter.look()
    return meter.measured()


def test_what_wandb_writes_offline(tmp_path: Path) -> None:
    write(WANDB, tmp_path)
    found = measured(tmp_path)
    keys = {key: summary for key, summary in found.keys.items() if not key.startswith(("_", "h."))}
    assert set(keys) == {"train/loss", "ot.pi_sum", "ot.deep.er", "损失", "bad", "eval/success"}
    assert (keys["train/loss"].first, keys["train/loss"].count) == (1.0, 300)
    assert keys["ot.pi_sum"].last == 149.5
    assert (keys["bad"].nan, keys["bad"].count) == (300, 300)
    assert keys["eval/success"].count == 6
    assert found.keys["_step"].last == 305
    assert found.sources[0].skipped == ()
    assert found.ended is not None
    assert found.ended.code == 3
    reader = WandbStepReader(wandb_record_files(str(tmp_path))[0])
    reader.look()
    assert (reader.step, reader.ended) == (305, found.ended)


def test_what_tensorboard_writes(tmp_path: Path) -> None:
    write(BOARD, tmp_path)
    old, new = measured(tmp_path / "old"), measured(tmp_path / "new")
    assert (old.keys["loss"].count, old.keys["loss"].last, old.keys["损失"].nan) == (200, 99.5, 200)
    assert old.written == 1.7e9 + 199
    assert {key: summary.last for key, summary in new.keys.items()} == {"f": 49, "d": 49, "i": -49, "h": 1.5}
    assert new.sources[0].skipped == old.sources[0].skipped == ()
    reader = TensorboardStepReader(tensorboard_files(str(tmp_path / "old"))[0])
    reader.look()
    assert reader.step == 199


def test_the_source_code_needs_neither() -> None:
    code = (
        "import sys, muster.faces.cli.metrics, muster.readers.records.logged_runs, muster.app.metrics.measure_runs\n"
        "assert not {'wandb', 'tensorboard', 'google.protobuf', 'tensorflow'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
