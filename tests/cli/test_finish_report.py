"""`finish: {report: true, docs: true}` by the real commands: whole, partial where cells were given up, and fresh before a
shutdown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.camp import Camp

SPRINT = """\
muster: 1
campaign: sprint
axes: {config: [base, new], seed: [0, 1, 2]}
slots: {gpus: 0, cpus: 2}
jobs:
  eval:
    axes: [config, seed]
    command: sh eval.sh {config} {seed} {out}
    results: {score: {json: result.json, key: score}}
decision: {primary: {metric: score, better: higher}, baseline: base, delta: 0.3, looks: [3]}
finish: {report: true, docs: true, run: ["cp -r reports copied"], shutdown: "echo off >> off", countdown: 0s, others: ignore}
"""
EVAL = """\
[ "$1 $2" != "new 2" ] || [ -e works ] || exit 3
case $1 in base) echo "{\\"score\\": 1.$2}";; *) echo "{\\"score\\": 4.$2$2}";; esac > $3/result.json
"""
NO_GPU = """
class NVMLError(Exception): pass
def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 0
"""


@pytest.fixture
def sprint(camp: Camp, tmp_path: Path) -> Camp:
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "pynvml.py").write_text(NO_GPU)
    for name in ("shutdown", "poweroff", "halt"):  # the real ones are out of reach
        (tmp_path / "fake" / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "fake" / name).chmod(0o755)
    camp.environment |= {"PYTHONPATH": str(tmp_path / "fake"), "MUSTER_PACE": "0.005"}
    camp.environment["PATH"] = f"{tmp_path / 'fake'}{os.pathsep}{camp.environment['PATH']}"
    camp.write(SPRINT)
    (camp.root / "eval.sh").write_text(EVAL)
    return camp


def states(camp: Camp) -> dict[str, str]:
    return {step["step"]: step["state"] for step in camp.json("status")["finish"]["steps"]}


def test_a_whole_report_is_made_copied_and_fresh(sprint: Camp) -> None:
    (sprint.root / "works").touch()
    sprint("up", code=0)
    assert states(sprint) == dict.fromkeys(("report", "docs", "cost", "record", "run-1", "shutdown"), "done")
    assert (sprint.root / "copied" / "decision.md").read_bytes() == (
        sprint.root / "reports" / "decision.md"
    ).read_bytes()
    assert (sprint.root / "off").read_text() == "off\n"
    assert sprint.json("shutdown", "--dry-run", code=0)["reasons"] == []
    with open(sprint.root / "reports" / "decision.md", "a") as file:
        file.write("it is great\n")
    (reason,) = sprint.json("shutdown", "--dry-run", code=3)["reasons"]
    assert reason.startswith("a derived file is not fresh: reports/decision.md")


@pytest.mark.slow
def test_a_partial_report_where_a_cell_was_given_up(sprint: Camp) -> None:
    sprint("up", code=3)
    assert not (sprint.root / "reports" / "decision.md").exists()
    assert states(sprint)["report"] == "waiting"
    sprint("giveup", "eval/new/2", "--because", "it diverges", code=0)
    sprint("wait", code=0)
    assert states(sprint) == dict.fromkeys(("report", "docs", "cost", "record", "run-1", "shutdown"), "done")
    (made,) = (sprint.root / "reports").glob("decision*.md")
    assert "PARTIAL-5of6" in made.name
    assert (sprint.root / "copied" / made.name).exists()
    assert (sprint.root / "off").read_text() == "off\n"


@pytest.mark.slow  # tests/unit/test_shutdown.py is its sibling in CI
def test_every_reason_against_a_shutdown_is_named_at_once(sprint: Camp) -> None:
    """Steps that failed or wait, and files that are not fresh: nobody should fix the one to hear of the next."""
    (sprint.root / "works").touch()
    sprint.write(SPRINT.replace('"cp -r reports copied"', '"false", "cp -r reports copied"'))
    sprint("up", code=3)
    with open(sprint.root / "reports" / "decision.md", "a") as file:
        file.write("it is great\n")
    expected = [
        "finish: run-1 (`false`) is failed: ",
        "finish: run-2 (`cp -r reports copied`) is waiting",
        "a derived file is not fresh: reports/decision.md is broken: ",
    ]
    for words in (("--dry-run",), ()):
        reasons = sprint.json("shutdown", *words, code=3)["reasons"]
        assert len(reasons) == len(expected)
        assert all(reason.startswith(begin) for reason, begin in zip(reasons, expected, strict=True))
    quick = sprint.json("shutdown", "--dry-run", "--quick", code=3)["reasons"]  # the controller's, each minute
    assert quick == reasons[:2]
    assert "--quick" not in sprint("shutdown", "--help", code=0).stdout


SAME = """\
echo '{"score": 1.23456789}' > $3/result.json
"""
NOTE = "cat >> notices; echo >> notices"


def test_an_invalid_report_is_seen_by_everybody_and_stops_nothing(sprint: Camp) -> None:
    """The same number for each config and seed: the machine is powered off all the same, and nobody misses the verdict."""
    (sprint.root / "eval.sh").write_text(SAME)
    (sprint.root / "tell.sh").write_text(NOTE)
    (sprint.root / "talk.md").write_text("| config | score |\n| --- | --- |\n| new | 1.235 |\n")
    sprint.write(SPRINT.replace("finish: {report: true, docs: true, ", "finish: {") + "notify: [{run: sh tell.sh}]\n")
    sprint("up", code=0)
    sprint("docs", "bind", "talk.md", "--yes", "--place", code=0)
    sprint("report", code=3)
    sprint("report", "--exit-zero", code=0)

    sprint.write(SPRINT.replace("countdown", "notify: true, countdown") + "notify: [{run: sh tell.sh}]\n")
    said = sprint("up", code=0).stdout
    assert states(sprint) == dict.fromkeys(("report", "docs", "cost", "record", "run-1", "notify", "shutdown"), "done")
    assert (sprint.root / "off").exists()
    found = sprint.json("status", code=0)
    (step,) = [step for step in found["finish"]["steps"] if step["step"] == "report"]
    assert step["verdict"] == found["report"]["verdict"] == "INVALID"
    assert step["flag"] == found["report"]["flag"]["message"]
    assert (found["report"]["stale"], found["report"]["path"]) == (False, "reports/decision.md")
    assert f"report: INVALID: {step['flag']}" in said
    assert f"report: INVALID: {step['flag']}" in sprint("status", code=0).stdout
    told = [json.loads(line) for line in (sprint.root / "notices").read_text().splitlines() if line]
    (complete,) = [notice for notice in told if notice["what"] == "COMPLETE"]
    assert complete["verdict"] == "INVALID"
    assert complete["text"].endswith(f"6 of 6 cells done; report: INVALID: {step['flag']}")
