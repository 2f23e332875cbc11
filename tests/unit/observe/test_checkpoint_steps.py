"""The step that a checkpoint holds, read without executing anything."""

import json
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from muster.readers.checkpoints.checkpoint_steps import CheckpointStep, step_of_checkpoint

WEIGHTS = {"w": np.zeros((50, 50)), "opt": {"step": 7}, "more": [1, 2, ("step", 9)]}


class Boom:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("it was executed",))


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ({"step": 2101, "agent": WEIGHTS, "_timestamp": 1.5}, CheckpointStep(2101.0, sure=True)),  # Dreamer's
        ({"agent": WEIGHTS, "step": 100}, CheckpointStep(100.0, sure=True)),
        ({"step": np.int64(2300), "agent": WEIGHTS}, CheckpointStep(2300.0, sure=True)),
        ({"epoch": 10, "agent": WEIGHTS}, CheckpointStep(10.0, "epoch")),
        ({"epoch": 3, "global_step": 1200, "boom": Boom()}, CheckpointStep(1200.0)),
        ({"agent": WEIGHTS}, None),  # the counters inside are those of others
        ({"opt": {"step": 7}}, None),
        ({"names": "step", "n": 5}, None),
        ([{"step": 5}], None),
        ({"step": "five"}, None),
        ({"step": True}, None),
    ],
)
def test_a_pickle_says_its_step(tmp_path: Path, found: Any, wanted: CheckpointStep | None, protocol: int) -> None:
    path = tmp_path / "checkpoint.ckpt"
    path.write_bytes(pickle.dumps(found, protocol))
    assert step_of_checkpoint(str(path)) == wanted


def test_what_lies_behind_a_large_array_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.ckpt"
    path.write_bytes(pickle.dumps({"step": 5, "w": bytes(80 << 20)}))
    assert step_of_checkpoint(str(path)) == CheckpointStep(5.0, sure=True)
    path.write_bytes(pickle.dumps({"w": bytes(80 << 20), "step": 5}))
    assert step_of_checkpoint(str(path)) is None
    path.write_bytes(pickle.dumps({"step": 5, "w": list(range(1000))})[:40])  # cut off
    assert step_of_checkpoint(str(path)) == CheckpointStep(5.0, sure=True)
    path.write_bytes(b"\x80\x04garbage")
    assert step_of_checkpoint(str(path)) is None


def test_archives_and_folders(tmp_path: Path) -> None:
    torch = tmp_path / "model.pt"
    with zipfile.ZipFile(torch, "w") as archive:
        archive.writestr(
            "archive/data.pkl", pickle.dumps({"epoch": 2, "global_step": 900, "state": OrderedDict(a=1)}, 2)
        )
        archive.writestr("archive/data/0", b"x" * 100)
    assert step_of_checkpoint(str(torch)) == CheckpointStep(900.0)
    sb3 = tmp_path / "best_model.zip"
    with zipfile.ZipFile(sb3, "w") as archive:
        archive.writestr("data", json.dumps({"num_timesteps": 9000, "seed": 3}))
        archive.writestr("policy.pth", b"x")
    assert step_of_checkpoint(str(sb3)) == CheckpointStep(9000.0)
    lerobot = tmp_path / "checkpoints" / "last"
    (lerobot / "training_state").mkdir(parents=True)
    (lerobot / "training_state" / "training_step.json").write_text('{"step": 1500}')
    assert step_of_checkpoint(str(lerobot)) == CheckpointStep(1500.0, sure=True)
    assert step_of_checkpoint(str(tmp_path / "gone.ckpt")) is None


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("001500", CheckpointStep(1500.0)),
        ("rl_model_9000_steps.zip", CheckpointStep(9000.0)),
        ("checkpoint-500", CheckpointStep(500.0)),
        ("epoch=3-step=1200.ckpt", CheckpointStep(1200.0)),
        ("epoch-10.pt", CheckpointStep(10.0, "epoch")),
        ("step_400.tar", CheckpointStep(400.0)),
        ("checkpoint.ckpt", None),
        ("model_v2.pt", None),
        ("seed3.pt", None),
    ],
)
def test_names(tmp_path: Path, name: str, wanted: CheckpointStep | None) -> None:
    (tmp_path / name).write_bytes(b"weights")
    assert step_of_checkpoint(str(tmp_path / name)) == wanted


def test_the_share_of_steps_is_known_only_in_their_own_unit() -> None:
    assert CheckpointStep(2100.0).share(2500) == pytest.approx(0.84)
    assert CheckpointStep(2501.0).share(2500) == 1.0
    assert CheckpointStep(10505.0).share(2500) is None
    assert CheckpointStep(10.0, "epoch").share(2500) is None
    assert CheckpointStep(10.0).share(None) is None


@pytest.mark.parametrize(
    ("step", "late"),
    [
        (CheckpointStep(2500.0), True),
        (CheckpointStep(2300.0), True),
        (CheckpointStep(2100.0, sure=True), None),  # 84 %: as good as its time
        (CheckpointStep(100.0, sure=True), False),  # untrained, whenever its file was touched
        (CheckpointStep(3.0), None),  # a name may count saves
        (CheckpointStep(12000.0, sure=True), None),
    ],
)
def test_a_step_decides_where_it_is_clear(step: CheckpointStep, late: bool | None) -> None:
    assert step.is_late(2500, 0.9) is late
