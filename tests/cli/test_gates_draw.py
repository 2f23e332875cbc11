"""`muster gates draw`: of a folder, of a cell, and where it can't."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

Camp = Any  # of conftest.py
CAMPAIGN = """\
muster: 1
campaign: staged
language: zh
slots: {gpus: 0, cpus: 1}
jobs:
  train: {axes: [], command: "python3 train.py {out}", retry: {max: 0}}
"""
TRAIN = """\
import json, sys
with open(sys.argv[1] + "/eval_history.jsonl", "w") as log:
    for at in (8, 16, 24):
        log.write(json.dumps({"iter": at, "stage": "ne", "survival": at / 30}) + "\\n")
"""
SCHEDULE = {"iterations": 24, "schedule": "8:a.json|type=ne;16:b.json|type=main", "trace": [], "warnings": []}


def run_folder(place: Path) -> Path:
    place.mkdir()
    rows = [{"iter": at, "stage": "ne", "survival": at / 30} for at in (8, 16)]
    (place / "eval_history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "schedule_trace.json").write_text(json.dumps(SCHEDULE))
    return place


def test_a_folder_needs_no_campaign(camp: Camp) -> None:
    place = run_folder(camp.root / "v40")
    said = camp("gates", "draw", "v40", code=0).stdout
    assert "v40/figures/survival.png (.svg, .pdf)" in said
    assert "the row of iteration 16 is labelled ne; by the schedule it is main (9-24)" in said
    names = sorted(path.name for path in (place / "figures").iterdir())
    assert names == ["survival.pdf", "survival.png", "survival.svg"]
    before = (place / "figures" / "survival.png").stat().st_mtime_ns
    told = camp.json("gates", "draw", "v40/eval_history.jsonl", "--language", "zh", code=0)
    assert told["files"] == [
        str(place.relative_to(camp.root) / "figures" / f"survival.{kind}") for kind in ("png", "svg", "pdf")
    ]
    assert "存活率" in told["captions"]["survival"]
    assert len(told["contradictions"]) == 1
    assert {Path(each["path"]).name for each in told["inputs"]} == {"eval_history.jsonl", "schedule_trace.json"}
    assert not told["stamped"]
    assert (place / "figures" / "survival.png").stat().st_mtime_ns == before  # nothing changed, nothing was written
    camp("gates", "draw", "v40", "--out", "else/where", code=0)
    assert (camp.root / "else" / "where" / "survival.svg").exists()


def test_where_it_can_not(camp: Camp) -> None:
    (camp.root / "empty").mkdir()
    said = camp("gates", "draw", "empty", code=1).stderr
    assert "nothing that a staged training leaves can be read there" in said
    assert "looked for gate_trace.jsonl" in said
    (camp.root / "empty" / "stage_summary.json").write_text('{"events": ')
    said = camp("gates", "draw", "empty", code=1).stderr
    assert "there is nothing to draw in it" in said
    assert "stage_summary.json can't be read" in said
    assert "there is no folder 'nowhere'" in camp("gates", "draw", "nowhere", code=2).stderr
    (camp.root / "text.md").write_text("")
    assert "text.md is none of the files of a run" in camp("gates", "draw", "text.md", code=2).stderr
    run_folder(camp.root / "v40")
    assert "--language fr: expected en or zh" in camp("gates", "draw", "v40", "--language", "fr", code=2).stderr
    (camp.root / "v40" / "figures").write_text("a file")
    said = camp("gates", "draw", "v40", code=1).stderr
    assert "a file stands where a folder belongs" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_can_not_be_written(camp: Camp) -> None:
    place = run_folder(camp.root / "v40")
    place.chmod(0o500)
    try:
        assert "Permission denied" in camp("gates", "draw", "v40", code=1).stderr
    finally:
        place.chmod(0o700)


def test_a_cell_gets_a_stamp_that_turns_stale(camp: Camp) -> None:
    (camp.root / "train.py").write_text(TRAIN)
    camp.write(CAMPAIGN)
    camp("up", code=0)
    told = camp.json("gates", "draw", "train", code=0)
    assert told["stamped"]
    assert "存活率" in told["captions"]["survival"]  # the campaign's language
    assert (camp.root / "reports" / "gates" / "train" / "survival.png").exists()
    states = {each["path"]: each["state"] for each in camp.json("verify", code=0)["files"]}
    assert states["reports/gates/train/survival.png"] == "fresh"
    traced = camp.json("trace", "reports/gates/train/survival.png", code=0)
    assert traced["made"]["command"] == "muster gates draw train"
    (history,) = (each["path"] for each in traced["cells"][0]["files"])
    assert Path(history).name == "eval_history.jsonl"
    with open(camp.root / history, "a") as log:
        log.write('{"iter": 32, "survival": 1}\n')
    states = {each["path"]: each for each in camp.json("verify")["files"]}
    assert states["reports/gates/train/survival.png"]["state"] == "stale"
    assert "eval_history.jsonl was changed" in states["reports/gates/train/survival.png"]["because"]
    camp("gates", "draw", "train", code=0)
    assert {each["state"] for each in camp.json("verify", code=0)["files"]} == {"fresh"}
    assert "there is no cell 'eval'" in camp("gates", "draw", "eval", code=2).stderr


def test_a_cell_that_is_not_over_is_partial(camp: Camp) -> None:
    (camp.root / "train.py").write_text(TRAIN + 'import os\nos.mkfifo("gate")\nopen("gate").read()\n')
    camp.write(CAMPAIGN)
    assert "train has not run yet" in camp("gates", "draw", "train").stderr or not (camp.root / ".muster").exists()
    camp("up", "--detach", code=0)
    camp.until((camp.root / "gate").exists, "the run's gate")
    told = camp.json("gates", "draw", "train", code=0)
    folder = camp.root / "reports" / "gates" / "train"
    assert sorted(path.name for path in folder.iterdir()) == [
        "survival.PARTIAL.pdf", "survival.PARTIAL.png", "survival.PARTIAL.svg",
    ]  # fmt: skip
    assert told["captions"]["survival"].startswith("PARTIAL。")
    (camp.root / "gate").write_text("go")
    camp("wait", code=0)
    camp("gates", "draw", "train", code=0)
    assert sorted(path.name for path in folder.iterdir()) == ["survival.pdf", "survival.png", "survival.svg"]
