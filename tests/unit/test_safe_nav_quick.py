"""The example workload's promises to Muster: the same seed gives the same bytes, and a resume can't be told."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "safe_nav"


def train(out: Path, steps: int, *more: object, config: str = "full") -> Path:
    args = ("--config", config, "--seed", 3, "--steps", steps, "--out", out, "--log-every", 100, "--save-every", 200)
    command = [sys.executable, str(EXAMPLE / "train.py"), *map(str, (*args, *more))]
    subprocess.run(command, check=True, capture_output=True, cwd="/")
    return out


def points(out: Path) -> list[dict[str, Any]]:
    """Log points without what a clock wrote."""
    lines = (out / "metrics.jsonl").read_text().splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "time"} for line in lines]


def replay(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "replay").iterdir())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("whole") / "out", 800)


def test_a_run_leaves_what_it_says(whole: Path) -> None:
    steps = [point["step"] for point in points(whole)]
    assert steps == list(range(100, 801, 100))
    assert replay(whole) == ["00000200.npz", "00000400.npz", "00000600.npz", "00000800.npz"]
    assert json.loads((whole / "config.json").read_text())["certificate"] is True
    with np.load(whole / "checkpoint.npz") as checkpoint:
        assert checkpoint["step"] == 800
    assert sorted(path.name for path in whole.iterdir()) == ["checkpoint.npz", "config.json", "metrics.jsonl", "replay"]


def test_the_same_seed_gives_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    again = train(tmp_path / "again", 800)
    assert points(again) == points(whole)
    assert (again / "checkpoint.npz").read_bytes() == (whole / "checkpoint.npz").read_bytes()


def test_a_resumed_run_ends_where_an_uninterrupted_one_does(whole: Path, tmp_path: Path) -> None:
    # 500 is in the middle of an episode, of a replay chunk, and between two saves of the uninterrupted run.
    half = train(tmp_path / "half", 500)
    rest = train(tmp_path / "rest", 800, "--from", half / "checkpoint.npz")
    assert points(half) + points(rest) == points(whole)
    assert (rest / "checkpoint.npz").read_bytes() == (whole / "checkpoint.npz").read_bytes()
    assert replay(rest) == ["00000600.npz", "00000800.npz"]


def test_resuming_a_finished_run_tells_its_last_point_again(whole: Path, tmp_path: Path) -> None:
    again = train(tmp_path / "again", 800, "--from", whole / "checkpoint.npz")
    assert points(again) == points(whole)[-1:]
    assert (again / "checkpoint.npz").read_bytes() == (whole / "checkpoint.npz").read_bytes()


def test_a_checkpoint_of_another_config_is_refused(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        train(tmp_path / "other", 800, "--from", whole / "checkpoint.npz", config="baseline")
    assert b"was trained as" in refused.value.stderr


def test_an_evaluation_names_its_split_and_its_checkpoint(whole: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLE / "eval.py"), "--checkpoint", str(whole / "checkpoint.npz")]
    command += ["--split", "ood", "--shift.level", "1", "--episodes", "4", "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, cwd="/")
    result = json.loads((tmp_path / "result.json").read_text())
    assert set(result) == {"score", "cost", "episodes", "split", "level", "checkpoint_sha256"}
    assert (result["split"], result["level"], result["episodes"]) == ("ood", 1, 4)
