"""The Auto Loop of the reference on real trainings with real W&B files: four configs, four slots, three rounds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from support.camp import Camp

EXAMPLE = Path(__file__).parents[2] / "examples" / "act_ot"


@pytest.fixture
def act_ot(camp: Camp) -> Camp:
    for path in EXAMPLE.iterdir():
        if path.is_dir():
            shutil.copytree(path, camp.root / path.name)
        elif path.suffix in (".py", ".yaml"):
            shutil.copy(path, camp.root)
    shutil.rmtree(camp.root / "__pycache__", ignore_errors=True)
    campaign = camp.root / "campaign.yaml"
    short = campaign.read_text().replace("steps: 2000", "steps: 300").replace("log_freq=50", "log_freq=10")
    campaign.write_text(short)  # tests/slow/test_act_ot_gain.py has runs of full length
    camp.environment["PATH"] = f"{Path(sys.executable).parent}:{camp.environment['PATH']}"  # a python that has wandb
    return camp


def rounds(camp: Camp) -> list[dict[str, Any]]:
    lines = (camp.root / ".muster" / "decisions.jsonl").read_text().splitlines()
    return [each["data"] for each in map(json.loads, lines) if each["kind"] == "round"]


def test_three_rounds_of_four(act_ot: Camp) -> None:
    act_ot("loop", "run", code=0)
    cells = act_ot.cells()
    assert (len(cells), set(cells.values())) == (12, {"DONE"})
    second, third, last = rounds(act_ot)
    assert last["stopped"] == "all 3 rounds are done"
    names = {"baseline", "reg_tau", "tau2", "tau5"}
    for number, found in ((2, second), (3, third)):
        assert [each["round"] for each in found["variants"]] == [number] * 4
        assert {each["parent"] for each in found["variants"]} <= names, "each has a parent that was tried"
        assert all(each["reason"] and each["edits"] for each in found["variants"])
        names |= {each["name"] for each in found["variants"]}
        listed = (act_ot.root / "loop" / f"round-{number}.txt").read_text().split()
        assert sorted(Path(name).stem for name in listed) == sorted(each["name"] for each in found["variants"])
    assert all(each["by"].startswith("act_ot.") or each["by"] == "default" for each in second["variants"])
    ways = {each["parent"]: each["by"] for each in second["variants"]}
    assert ways["baseline"] == "act_ot.little_mass", "next to no mass is moved, and the set says what to do"
    assert len({each["digest"] for found in (second, third) for each in found["variants"]}) == 8
    output = act_ot.folder("train/baseline") / "out"
    assert list(output.glob("wandb/offline-run-*/*.wandb"))
    assert not list(output.rglob("wandb-history.jsonl")), "what the reference's loop died of"
    told = act_ot.json("metrics", str(output), code=0)
    assert told["keys"]["ot.pi_sum"]["count"] >= 30
    assert told["keys"]["eval.l1"]["last_step"] == 300
    assert told["keys"]["ot.pi_sum"]["last"] < 0.05


def test_the_campaign_with_seeds_is_the_same_loop(act_ot: Camp) -> None:
    seeds = act_ot.root / "seeds"
    act_ot("-C", str(seeds), "check", code=0)
    found = [YAML(typ="safe").load(folder / "campaign.yaml")["loop"] for folder in (EXAMPLE, EXAMPLE / "seeds")]
    for key in ("rounds", "keep", "use"):
        assert found[0][key] == found[1][key]
    assert [set(each) & {"rules", "default"} for each in found] == [set(), set()], "the set does all of the work"
    assert act_ot.json("-C", str(seeds), "plan", code=0)["declared"] == 12


@pytest.mark.slow
def test_a_run_killed_in_its_first_second_and_one_that_fails_stop_nobody(act_ot: Camp) -> None:
    campaign = act_ot.root / "campaign.yaml"
    campaign.write_text(campaign.read_text().replace("rounds: 3", "rounds: 2"))
    broken = act_ot.root / "configs" / "quick" / "tau2.json"
    broken.write_text(broken.read_text().replace('"hidden": 128', '"hidden": -1'))
    act_ot("loop", "run", "--detach", code=0)
    identity = act_ot.folder("train/tau5") / "identity.json"
    act_ot.until(identity.exists)
    os.kill(json.loads(identity.read_text())["pid"], signal.SIGKILL)
    act_ot("wait", "--timeout", "80s", code=3)
    second, last = rounds(act_ot)
    assert sorted(each["parent"] for each in second["variants"]) == ["baseline", "reg_tau"]
    assert last["stopped"] == "all 2 rounds are done"
    told = act_ot.json("loop", "explain", "train/tau5", code=0)
    assert told["runs"][0]["verdict"] == "DEAD"
    assert told["runs"][0]["because"]
    assert act_ot.cells()["train/tau2"] == "DEAD"
