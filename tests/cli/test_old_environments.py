"""A recorded environment goes when no attempt needs it: a key that was rotated does not live on."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from muster.files.campaign_snapshots import delete_old_environments, lock_environment_recording
from support.camp import Camp

CAMPAIGN = """\
muster: 1
campaign: rotated
axes: {{seed: [0, 1{more}]}}
slots: {{gpus: 0, cpus: 3}}
jobs:
  train:
    axes: [seed]
    command: /bin/sh -c 'echo started; read word < gate-{{seed}}; echo $ROTATED; exit $word'
    retry: {{max: 0}}
"""


def recorded(camp: Camp) -> set[str]:
    files = (camp.root / ".muster" / "env").glob("*.json")
    return {json.loads(path.read_text())["ROTATED"] for path in files}


def up(camp: Camp, key: str, *args: str) -> None:
    camp.environment["ROTATED"] = key
    camp("up", "--detach", *args, code=0)


def test_the_old_one_stays_while_an_attempt_with_it_runs(camp: Camp) -> None:
    camp.gates(0, 1, 2)
    camp.write(CAMPAIGN.format(more=""))
    up(camp, "first-key", "--only", "seed=0")
    camp.started("train/0")
    camp.write(CAMPAIGN.format(more=", 2"))
    up(camp, "second-key")
    for cell in ("train/1", "train/2"):
        camp.started(cell)
    assert recorded(camp) == {"first-key", "second-key"}
    camp.open(1)
    camp.until(lambda: camp.cells()["train/1"] == "DONE")
    assert recorded(camp) == {"first-key", "second-key"}, "train/0 runs with the first"
    camp.open(0)
    camp.until(lambda: recorded(camp) == {"second-key"}, "the old one is gone")
    camp.open(2, "1")
    camp("wait", code=3)
    log = {seed: (camp.folder(f"train/{seed}") / "stdout.log").read_text().split()[-1] for seed in (0, 1, 2)}
    assert log == {0: "first-key", 1: "second-key", 2: "second-key"}
    up(camp, "third-key")
    camp("retry", "train/2", "--because", "again", code=0)
    camp.started("train/2", 2)
    assert recorded(camp) == {"third-key"}
    camp.open(2)
    camp("wait", code=0)
    assert recorded(camp) == {"third-key"}
    assert (camp.folder("train/2", 2) / "stdout.log").read_text().split()[-1] == "third-key"


def test_an_old_key_that_comes_again_is_there(camp: Camp) -> None:
    camp.gates(0, 1)
    camp.write(CAMPAIGN.format(more=""))
    for key in ("one", "two", "one"):
        up(camp, key)
    for seed in (0, 1):
        camp.open(seed)
    camp("wait", code=0)
    assert recorded(camp) == {"one"}


def test_a_controller_that_is_killed_between_two_deletions_leaves_the_rest_to_the_next(camp: Camp) -> None:
    camp.environment["MUSTER_GUARD"] = "off"
    camp.gates(0, 1)
    camp.write(CAMPAIGN.format(more=""))
    up(camp, "now")
    camp.started("train/0")
    controller = camp.controller()
    assert controller
    os.kill(controller, signal.SIGKILL)
    camp.until(lambda: camp.controller() is None, "it is gone")
    folder = camp.root / ".muster" / "env"
    for number in range(3):
        (folder / f"{number:016x}.json").write_text(json.dumps({"ROTATED": str(number)}))
    marker = camp.root / "reached"
    known = dict(camp.environment)
    camp.environment |= {"MUSTER_CRASH_AT": "env.forgotten", "MUSTER_CRASH_ONCE": str(marker)}
    camp("up", "--detach")
    camp.until(marker.exists, "a controller is killed there")
    camp.environment = known
    for seed in (0, 1):
        camp.open(seed)
    up(camp, "now")
    camp("wait", code=0)
    camp.until(lambda: recorded(camp) == {"now"}, "the next one has deleted the rest")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "env").mkdir()
    for name in ("a.json", "b.json", "c.json", "note.txt"):
        (tmp_path / "env" / name).write_text("{}")
    return tmp_path


def test_nothing_goes_while_one_is_recorded(state: Path) -> None:
    with lock_environment_recording(state):
        assert delete_old_environments(state, lambda: {"a.json"}) == []
    assert delete_old_environments(state, lambda: {"a.json"}) == ["b.json", "c.json"]
    assert sorted(path.name for path in (state / "env").iterdir()) == ["a.json", "note.txt"]


def test_nothing_goes_where_it_can_not_be_told_what_is_needed(state: Path) -> None:
    assert delete_old_environments(state, lambda: None) == []
    assert delete_old_environments(state / "nowhere", lambda: {"a.json"}) == []
    assert len(list((state / "env").iterdir())) == 4
