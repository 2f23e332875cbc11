"""`muster flag`: what is raised now, and a person's word about it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from support.camp import Camp

SCHEMA = Path(__file__).parents[2] / "docs/schemas/flag.schema.json"
CAMPAIGN = """\
muster: 1
campaign: words
axes: {config: [base, new], seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  eval:
    axes: [config, seed]
    command: python3 eval.py {out} {config} {seed}
    results: {score: {json: result.json, key: score}}
decision: {primary: {metric: score, better: higher}, baseline: base, delta: 0.5}
"""
EVAL = """\
import json, random, sys
out, config, seed = sys.argv[1:]
random.seed(config + seed)
json.dump({"score": random.random()}, open(f"{out}/result.json", "w"))
"""


@pytest.fixture
def touched(camp: Camp) -> Camp:
    """A campaign in which somebody changed a result file after its cell had ended."""
    (camp.root / "eval.py").write_text(EVAL)
    camp.write(CAMPAIGN)
    camp("up", code=0)
    change(camp, "eval/new/1", 0.25)
    return camp


def change(camp: Camp, cell: str, score: float) -> None:
    """Well after its end: what a run's last process writes within a moment of it is still its own."""
    path = camp.root / f".muster/attempts/{cell}/1/out/result.json"
    path.write_text(json.dumps({"score": score}))
    later = time.time() + 1
    os.utime(path, (later, later))


def test_an_accepted_flag_voids_no_verdict_and_every_report_tells_it(touched: Camp) -> None:
    assert touched.json("report")["verdict"] == "INVALID"
    (flag,) = [each for each in touched.json("flag", "list", code=0)["flags"] if each["level"] == "ERROR"]
    assert (flag["code"], flag["cells"], flag["accepted"]) == ("changed_result", ["eval/new/1"], None)
    told = touched.json("flag", "accept", "changed_result", "--because", "a typo, fixed by hand", code=0)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(told)
    assert "stale" in touched("verify", code=1).stdout, "the report does not know the word yet"
    assert touched.json("status", code=0)["report"]["because"] == "a red flag was accepted since"
    made = touched.json("report")
    assert touched.json("status", code=0)["report"]["stale"] is False
    assert made["verdict"] == "NOT_ENOUGH_EVIDENCE"
    (flag,) = [each for each in made["flags"] if each["code"] == "changed_result"]
    assert (flag["level"], flag["accepted"]["because"]) == ("ERROR", "a typo, fixed by hand")
    for name in ("decision.md", "defence.md"):
        text = (touched.root / "reports" / name).read_text()
        assert "The red flag changed_result (ERROR) counts no more by the word of a person" in text, name
        assert "“a typo, fixed by hand”" in text
    assert "accepted the red flag changed_result: “a typo, fixed by hand”" in touched("record", "--out", "-").stdout
    touched("verify", code=0)
    touched("fsck", code=0)
    assert touched.json("report")["verdict"] == "NOT_ENOUGH_EVIDENCE", "the word is in the log"


def test_a_flag_that_is_raised_later_elsewhere_is_not_covered(touched: Camp) -> None:
    touched("flag", "accept", "changed_result", "--because", "a typo", code=0)
    change(touched, "eval/base/0", 0.5)
    found = touched.json("flag", "list", code=0)["flags"]
    assert {each["cells"][0]: bool(each["accepted"]) for each in found if each["code"] == "changed_result"} == {
        "eval/base/0": False,
        "eval/new/1": True,
    }
    assert touched.json("report")["verdict"] == "INVALID"


def test_what_is_refused_changes_nothing(touched: Camp) -> None:
    log = touched.root / ".muster/decisions.jsonl"
    before = log.read_bytes()
    for arguments, told in (
        (["changed_reslut", "--because", "x"], ["there is no flag 'changed_reslut'", "did you mean changed_result?"]),
        (["one_curve", "--because", "x"], ["no flag one_curve is raised now", "raised now: changed_result"]),
        (["changed_result", "--because", " "], ["--because is empty"]),
        (["changed_result"], ["--because"]),
        ([], ["CODE"]),
    ):
        done = touched("flag", "accept", *arguments, code=2)
        assert all(each in done.stderr for each in told), done.stderr
    assert log.read_bytes() == before
