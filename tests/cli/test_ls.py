"""muster ls: every campaign that this user's `up` started, one line each, wherever it lies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from support.camp import Camp

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "ls.schema.json").read_text())

TWO = """\
muster: 1
campaign: {name}
axes: {{seed: [0, 1]}}
slots: {{gpus: 0, cpus: 2}}
jobs: {{train: {{axes: [seed], command: "sh -c 'exit {code}'"}}}}
"""


def beside(camp: Camp, name: str, code: int = 0) -> Camp:
    other = type(camp)(camp.root.parent / name, Path(camp.environment["MUSTER_HOME"]))
    other.root.mkdir(exist_ok=True)
    other.write(TWO.format(name=name, code=code))
    other("up", code=3 if code else 0)
    return other


def listed(camp: Camp) -> dict[str, dict[str, Any]]:
    found = camp.json("ls", code=0)
    problems = [error.message for error in Draft202012Validator(SCHEMA).iter_errors(found)]
    assert not problems, problems
    return {Path(each["path"]).name: each for each in found["campaigns"]}


def told(each: dict[str, Any]) -> tuple[Any, ...]:
    return (each["campaign"], each["standing"], each["state"], each["done"], each["declared"])


def test_one_line_for_each_campaign_of_this_user(camp: Camp) -> None:
    assert "no campaign yet" in camp("ls", code=0).stdout
    beside(camp, "good")
    bad = beside(camp, "bad", 1)
    found = listed(camp)
    assert told(found["good"]) == ("good", "there", "complete", 2, 2)
    assert told(found["bad"]) == ("bad", "there", "stopped", 0, 2)
    lines = camp("ls", code=0).stdout.splitlines()
    assert [line.split()[:4] for line in lines] == [
        [str(bad.root), "stopped", "0", "of"],
        [str(camp.root.parent / "good"), "complete", "2", "of"],
    ]
    bad("down", code=0)
    assert listed(camp)["bad"]["state"] == "down"


def test_moved_copied_and_deleted(camp: Camp) -> None:
    beside(camp, "one")
    parent = camp.root.parent
    (parent / "one").rename(parent / "two")
    found = listed(camp)
    assert (found["two"]["standing"], found["two"]["before"]) == ("moved", str(parent / "one"))
    camp("-C", str(parent / "two"), "status", code=0)
    assert listed(camp)["two"]["standing"] == "moved", "who looks there enters nothing"
    camp("-C", str(parent / "two"), "up", code=0)
    assert (listed(camp)["two"]["standing"], listed(camp)["two"]["before"]) == ("there", None)
    shutil.copytree(parent / "two", parent / "copy", ignore=shutil.ignore_patterns("bell"))
    camp("-C", str(parent / "copy"), "status", code=0)
    assert list(listed(camp)) == ["two"]
    shutil.rmtree(parent / "two")
    assert told(listed(camp)["two"]) == ("one", "gone", "gone", None, None)
    assert "gone" in camp("ls", code=0).stdout


def test_forgotten_by_path_and_by_id(camp: Camp) -> None:
    one, two = beside(camp, "one"), beside(camp, "two")
    assert "forgotten" in camp("ls", "--forget", str(one.root), code=0).stdout
    found = listed(camp)
    assert list(found) == ["two"]
    assert camp.json("ls", "--forget", found["two"]["id"])["forgotten"]["path"] == str(two.root)
    assert listed(camp) == {}
    one("up", code=0)
    assert list(listed(camp)) == ["one"]
    error = camp("ls", "--forget", str(two.root), code=2).stderr
    assert "the register has no campaign" in error
    assert list(listed(camp)) == ["one"]


def test_one_at_work_is_not_forgotten(camp: Camp) -> None:
    camp.write(TWO.format(name="gated", code=0).replace("exit 0", "read word < gate-{seed}"))
    camp.gates(0, 1)
    camp("up", "--detach", code=0)
    assert told(listed(camp)["campaign"])[2:] == ("running", 0, 2)
    assert "a controller works on it" in camp("ls", "--forget", str(camp.root), code=2).stderr
    assert list(listed(camp)) == ["campaign"]
    camp.open(0)
    camp.open(1)
    camp("wait", code=0)
