"""What programs rely on: the published schemas describe what the commands really print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from support.camp import Camp

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


def schema(name: str) -> Any:
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text())


def fits(value: Any, name: str) -> Any:
    validator = Draft202012Validator(schema(name), format_checker=Draft202012Validator.FORMAT_CHECKER)
    problems = [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(value)]
    assert not problems, problems
    return value


def failure(camp: Camp, *args: str, code: int) -> Any:
    done = camp(*args, "--json", code=code)
    assert done.stdout == ""
    return fits(json.loads(done.stderr), "error")["error"]


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.name)
def test_schemas_are_schemas(path: Path) -> None:
    Draft202012Validator.check_schema(json.loads(path.read_text()))


def test_a_cell_is_the_same_everywhere() -> None:
    status, why = schema("status")["$defs"], schema("why")["$defs"]
    assert status["evidence"] == why["evidence"]
    assert status["verdict"] == why["verdict"]
    assert status["cell"]["properties"].items() <= why["cell"]["properties"].items()


def test_the_schema_is_strict() -> None:
    validator = Draft202012Validator(schema("status"))
    assert len(list(validator.iter_errors({"muster": 1, "surplus": True}))) > 8


def test_every_state_of_a_campaign_fits(gated: Camp) -> None:
    assert failure(gated, "status", code=2)["code"] == "usage"
    gated("up", "--detach", code=0)
    gated.started("train/0")
    gated.started("train/1")
    going = fits(gated.json("status", code=4), "status")
    assert going["counts"] | {"RUNNING": 2, "BLOCKED": 2} == going["counts"]
    assert fits(gated.json("why", "train/0"), "why")["attempts"][0]["exit"] == {"code": None, "signal": None}
    assert len(fits(gated.json("why", "*"), "why")) == 4
    fits(gated.json("wait", "--timeout", "0.1s", code=4), "status")

    gated.open(0, "3")
    gated.ended("train/0")
    gated.until(lambda: gated.cells()["train/0"] == "DEAD")
    gated("hold", "--because", "stop here", code=0)
    gated("note", "broken", "--cell", "train/0", "--evidence", "campaign.yaml:2", code=0)
    gated("retry", "train/0", "--because", "again", code=0)
    held = fits(gated.json("status"), "status")
    assert held["intent"] == "held"
    dead = fits(gated.json("why", "train/0"), "why")
    assert dead["attempts"][0]["exit"] == {"code": 3, "signal": None}
    assert dead["attempts"][0]["cause"] == "exit_code(3)"
    assert [d["what"] for d in dead["decisions"]] == ["start", "settle", "note", "retry"]

    gated("release", code=0)
    gated.started("train/0", 2)
    gated.open(0)
    gated.open(1, "1")
    fits(gated.json("wait", "--timeout", "60s"), "status")
    gated.until(lambda: gated.cells()["train/1"] == "DEAD")
    gated("giveup", "train/1", "eval/1", "--because", "enough", code=0)
    over = fits(gated.json("wait", code=0), "status")
    assert (over["complete"], over["counts"]["GIVEN_UP"], over["counts"]["DONE"]) == (True, 2, 2)
    assert len(fits(gated.json("why", "train/*"), "why")) == 2
    fits(gated.json("manifest", code=0), "manifest")


def test_status_while_down_and_pending_fits(gated: Camp) -> None:
    gated("up", "--detach", "--only", "seed=0", code=0)
    gated.started("train/0")
    gated("down", "--runs", "--because", "enough", code=0)
    status = fits(gated.json("status", code=3), "status")
    assert (status["intent"], status["controller"]["alive"]) == ("down", False)
    assert "--only seed=0" in fits(gated.json("why", "train/1"), "why")["reason"]


def test_errors_are_objects(gated: Camp) -> None:
    assert failure(gated, "why", "train/0", code=2)["hint"] == "start it with `muster up`"
    gated("up", "--detach", code=0)
    assert "did you mean" in failure(gated, "why", "trian/0", code=2)["hint"]
    assert failure(gated, "wait", "--timeout", "5", code=2)["code"] == "usage"
    assert failure(gated, "status", "--nonsense", code=2)["code"] == "usage"
    assert failure(gated, "logs", "eval/0", code=1)["code"] == "failed"
    assert "no folder" in failure(gated, "-C", "nowhere", "status", code=2)["message"]
    gated.write("muster: 1\ncampaign: x\njobs: 7\n")
    assert failure(gated, "up", code=2)["mistakes"]
