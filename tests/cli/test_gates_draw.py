"""`muster gates draw`: of a folder, of a cell, and where it can't."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from muster.faces.cli.common.entrypoint import run_command_line
from support.camp import Camp

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
GATES = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "gates.schema.json").read_text("utf-8"))
SCHEMA = {**GATES, "anyOf": [{"$ref": "#/$defs/draw"}]}
SCHEDULE = {"iterations": 24, "schedule": "8:a.json|type=ne;16:b.json|type=main", "trace": [], "warnings": []}


def run_folder(place: Path) -> Path:
    place.mkdir()
    rows = [{"iter": at, "stage": "ne", "survival": at / 30} for at in (8, 16)]
    (place / "eval_history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "schedule_trace.json").write_text(json.dumps(SCHEDULE))
    return place


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def muster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """In this process: there is no campaign, so nothing is started."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Said:
        code = run_command_line(["gates", "draw", *arguments])
        return Said(code, *capsys.readouterr())

    return call


def test_a_folder_needs_no_campaign(muster: Callable[..., Said], tmp_path: Path) -> None:
    place = run_folder(tmp_path / "v40")
    said = muster("v40")
    assert said.code == 0, said
    assert "v40/figures/survival.png (.svg, .pdf)" in said.out
    assert "the row of iteration 16 is labelled ne; by the schedule it is main (9-24)" in said.out
    names = sorted(path.name for path in (place / "figures").iterdir())
    assert names == ["survival.pdf", "survival.png", "survival.svg"]
    before = (place / "figures" / "survival.png").stat().st_mtime_ns
    told = json.loads(muster("v40/eval_history.jsonl", "--language", "zh", "--json").out)
    Draft202012Validator(SCHEMA).validate(told)
    assert told["files"] == [f"v40/figures/survival.{kind}" for kind in ("png", "svg", "pdf")]
    assert "存活率" in told["captions"]["survival"]
    assert len(told["contradictions"]) == 1
    assert {Path(each["path"]).name for each in told["inputs"]} == {"eval_history.jsonl", "schedule_trace.json"}
    assert not told["stamped"]
    assert (place / "figures" / "survival.png").stat().st_mtime_ns == before  # nothing changed, nothing was written
    assert muster("v40", "--out", "else/where").code == 0
    assert (tmp_path / "else" / "where" / "survival.svg").exists()


def test_where_there_is_nothing_to_draw(muster: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    said = muster("empty")
    assert said.code == 1
    assert "nothing that a staged training leaves can be read there" in said.err
    assert "looked for gate_trace.jsonl" in said.err
    (tmp_path / "empty" / "stage_summary.json").write_text('{"events": ')
    said = muster("empty")
    assert said.code == 1
    assert "there is nothing to draw in it" in said.err
    assert "stage_summary.json can't be read" in said.err
    assert list((tmp_path / "empty").iterdir()) == [tmp_path / "empty" / "stage_summary.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no folder 'nowhere'"),
        ([""], "there is no folder ''"),
        (["text.md"], "text.md is none of the files of a run"),
        (["v40", "--language", "fr"], "--language fr: expected en or zh"),
    ],
)
def test_what_is_wrong_use(muster: Callable[..., Said], tmp_path: Path, arguments: list[str], message: str) -> None:
    run_folder(tmp_path / "v40")
    (tmp_path / "text.md").write_text("")
    said = muster(*arguments)
    assert said.code == 2
    assert message in said.err
    assert not (tmp_path / "v40" / "figures").exists()


def test_a_folder_that_can_not_be_written(muster: Callable[..., Said], tmp_path: Path) -> None:
    place = run_folder(tmp_path / "v40")
    (place / "figures").write_text("a file")
    said = muster("v40")
    assert said.code == 1
    assert "a file stands where a folder belongs" in said.err
    if os.geteuid() != 0:  # root may write everywhere
        (place / "figures").unlink()
        place.chmod(0o500)
        try:
            assert "Permission denied" in muster("v40").err
        finally:
            place.chmod(0o700)


@pytest.fixture
def answers(camp: Camp, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """`muster ARGS --json` in this process, where nothing need be started."""
    monkeypatch.setenv("MUSTER_HOME", camp.environment["MUSTER_HOME"])
    monkeypatch.chdir(camp.root)

    def call(*arguments: str) -> Any:
        run_command_line([*arguments, "--json"])
        said = capsys.readouterr()
        return json.loads(said.out or said.err)

    return call


def test_a_cell_gets_a_stamp_that_turns_stale(camp: Camp, answers: Callable[..., Any]) -> None:
    (camp.root / "train.py").write_text(TRAIN)
    camp.write(CAMPAIGN)
    camp("up", code=0)
    told = answers("gates", "draw", "train")
    Draft202012Validator(SCHEMA).validate(told)
    assert told["stamped"]
    assert "存活率" in told["captions"]["survival"]  # the campaign's language
    assert (camp.root / "reports" / "gates" / "train" / "survival.png").exists()
    assert {each["path"]: each["state"] for each in answers("verify")["files"]} == {
        f"reports/gates/train/survival.{kind}": "fresh" for kind in ("png", "svg", "pdf")
    }
    traced = answers("trace", "reports/gates/train/survival.png")
    assert traced["made"]["command"] == "muster gates draw train"
    (history,) = (each["path"] for each in traced["cells"][0]["files"])
    assert Path(history).name == "eval_history.jsonl"
    with open(camp.root / history, "a") as log:
        log.write('{"iter": 32, "survival": 1}\n')
    found = answers("verify")["files"][0]
    assert found["state"] == "stale"
    assert "eval_history.jsonl was changed" in found["because"]
    answers("gates", "draw", "train")
    (camp.root / "reports" / "gates" / "train" / "mine.png").write_text("no stamp")
    states = {each["path"].rpartition("/")[2]: each["state"] for each in answers("verify")["files"]}
    assert states == {"survival.png": "fresh", "survival.svg": "fresh", "survival.pdf": "fresh", "mine.png": "broken"}
    assert "there is no cell 'eval'" in answers("gates", "draw", "eval")["error"]["message"]


def test_a_cell_that_is_not_over_is_partial(camp: Camp, answers: Callable[..., Any]) -> None:
    (camp.root / "train.py").write_text(TRAIN + 'import os\nos.mkfifo("gate")\nopen("gate").read()\n')
    camp.write(CAMPAIGN)
    camp("up", "--detach", code=0)
    camp.until((camp.root / "gate").exists, "the run's gate")
    told = answers("gates", "draw", "train")
    folder = camp.root / "reports" / "gates" / "train"
    assert sorted(path.name for path in folder.iterdir()) == [
        "survival.PARTIAL.pdf", "survival.PARTIAL.png", "survival.PARTIAL.svg",
    ]  # fmt: skip
    assert told["captions"]["survival"].startswith("PARTIAL。")
    assert answers("trace", told["files"][0])["missing"] == ["train"]
    (camp.root / "gate").write_text("go")
    camp("wait", code=0)
    assert {each["state"] for each in answers("verify")["files"]} == {"fresh"}  # what it was drawn from is the same
    answers("gates", "draw", "train")
    assert sorted(path.name for path in folder.iterdir()) == ["survival.pdf", "survival.png", "survival.svg"]
