"""Axis values with `edits:`: a grid over a config file, each combination in a file of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.camp import Camp

TRAIN = """\
import json, sys
config = json.load(open(sys.argv[1]))
print(sys.argv[1])
json.dump({"score": config["lr"] * config["wd"], "layers": config["layers"]}, open(f"{sys.argv[2]}/result.json", "w"))
"""
CAMPAIGN = """\
muster: 1
campaign: grid
slots: {gpus: 0, cpus: 2}
axes:
  lr: {base: {}, twice: {edits: ["lr@mul=2"]}}
  wd: {none: {}, some: {edits: ["wd@set=3.5", "layers[0]@add=1"]}}
  seed: [0, 1]
jobs:
  train:
    axes: [lr, wd, seed]
    config: configs/base.json
    command: python3 train.py {config_file} {out}
    results: {score: {json: result.json, key: score}}
"""
BASE = '{"lr": 0.5,  "wd": 1.0, "layers": [2, 2]}\n'


@pytest.fixture
def grid(camp: Camp) -> Camp:
    (camp.root / "configs").mkdir()
    (camp.root / "configs" / "base.json").write_text(BASE)
    (camp.root / "train.py").write_text(TRAIN)
    camp.write(CAMPAIGN)
    return camp


def results(camp: Camp) -> dict[str, Any]:
    found = {}
    for cell in camp.json("status", code=0)["cells"]:
        found[cell["cell"]] = json.loads((Path(cell["output"]) / "result.json").read_text())
    return found


def test_each_combination_runs_with_its_own_config(grid: Camp) -> None:
    grid("up", code=0)
    scores = {cell: each["score"] for cell, each in results(grid).items()}
    assert scores == {
        f"train/{lr}/{wd}/{seed}": a * b
        for lr, a in (("base", 0.5), ("twice", 1.0))
        for wd, b in (("none", 1.0), ("some", 3.5))
        for seed in (0, 1)
    }
    assert results(grid)["train/twice/some/0"]["layers"] == [3, 2]
    written = sorted((grid.root / ".muster" / "configs").iterdir())
    assert len(written) == 4  # the base as it was, too
    assert '{"lr": 1.0,  "wd": 1.0, "layers": [2, 2]}\n' in [each.read_text() for each in written]
    assert (grid.root / "configs" / "base.json").read_text() == BASE


def test_values_of_two_axes_may_have_the_same_name(grid: Camp) -> None:
    grid.write(CAMPAIGN.replace("some:", "twice:").replace("seed: [0, 1]", "seed: [0]"))
    grid("up", code=0)
    found = {cell: each["score"] for cell, each in results(grid).items()}
    assert found == {
        "train/base/none/0": 0.5, "train/twice/none/0": 1.0, "train/base/twice/0": 1.75, "train/twice/twice/0": 3.5,
    }  # fmt: skip


def test_another_base_changes_the_cells_that_use_it(grid: Camp) -> None:
    grid("up", code=0)
    assert "would change" not in grid("plan", code=0).stdout
    (grid.root / "configs" / "base.json").write_text(BASE.replace("1.0", "1.25"))
    told = grid("up", code=0).stdout
    assert "changed" in told, told
    assert set(grid.json("status", code=0)["counts"].values()) == {0, 8}  # what is DONE is kept


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("lr@mul=2", "lrs@mul=2", ["5:34", "lr twice", "lrs", "the nearest: lr"]),
        ("wd@set=3.5", "wd@mul=x", ["6:", "wd@mul=x"]),
        ("configs/base.json", "configs/bose.json", ["11:13", "No such file", "did you mean configs/base.json?"]),
        ("    config: configs/base.json\n", "", ["change nothing", "{config_file} has no value", "add `config: FILE`"]),
        ("{config_file} {out}", "configs/base.json {out}", ["config is never used", "{config_file}"]),
        ("configs/base.json", "configs/{lr}.json", ["config takes no placeholders"]),
        ("configs/base.json", "train.py", ["train.py", "config"]),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(grid: Camp, old: str, new: str, said: list[str]) -> None:
    assert old in CAMPAIGN
    grid.write(CAMPAIGN.replace(old, new))
    told = grid("up", code=2).stderr
    for each in said:
        assert each in told, told
    assert not (grid.root / ".muster").exists()


def test_two_names_for_one_config_are_told(grid: Camp) -> None:
    grid.write(CAMPAIGN.replace("lr@mul=2", "lr@set=0.5"))
    answer = grid("check", code=0)
    assert "twice runs with the very config of the base" in answer.stdout + answer.stderr


def test_the_loop_has_its_own_configs(grid: Camp) -> None:
    loop = 'loop: {job: train, base: [configs/base.json], default: {edit: ["lr@mul=0.5"], reason: mild}}\n'
    grid.write(CAMPAIGN + loop)
    assert "its configs are the variants" in grid("check", code=2).stderr
