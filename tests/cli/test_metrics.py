"""`muster metrics`: on folders that no campaign knows, on cells, and on a W&B server that is made up."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from support.camp import Camp

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "metrics.schema.json").read_text())
LOGGING = """\
muster: 1
campaign: logging
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [seed]
    command: >-
      /bin/sh -c 'mkdir -p $MUSTER_OUT; echo step=1 printed=5;
      if [ {seed} = 0 ]; then echo "{{\\"step\\": 1, \\"loss\\": 2.5}}" > $MUSTER_OUT/metrics.jsonl; fi'
"""
FAKE = """\
class Run:
    def __init__(self, name): self.id, self.state, self.url, self.summary = name, "finished", "https://w/" + name, {"_runtime": 7}
    def scan_history(self):
        return iter([{"_step": s, "loss": 1 / (s + 1), "ot": {"pi": 2.0}, "_timestamp": 1.7e9 + s, "t": "x"} for s in range(4)])
class Api:
    def runs(self, path):
        if path != "me/project": raise ValueError("could not find project " + path)
        return [Run("a"), Run("b")]
    def run(self, path): return Run(path.split("/")[2])
"""


def rows(path: Path, *found: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in found))


def check(found: Any) -> None:
    for each in found if isinstance(found, list) else [found]:
        Draft202012Validator(SCHEMA).validate(each)


def test_a_folder_without_a_campaign(camp: Camp) -> None:
    rows(
        camp.root / "out" / "metrics.jsonl",
        {"step": 1, "train/loss": 4.0, "x": float("nan")},
        {"step": 9, "train/loss": 1.0},
    )
    found = json.loads(camp("metrics", "out", "--json", code=0).stdout)
    check(found)
    assert found["sources"][0]["format"] == "jsonl"
    loss = found["keys"]["train/loss"]
    assert (loss["first"], loss["last"], loss["best"], loss["delta"], loss["pct"]) == (4.0, 1.0, 1.0, -3.0, -75.0)
    assert (found["keys"]["x"]["last"], found["keys"]["x"]["nan"], found["keys"]["x"]["best"]) == (None, 1, None)
    assert found["age_s"] >= 0
    table = camp("metrics", "out", "--key", "train/*", code=0).stdout
    assert "train/loss" in table
    assert "1 min" in table
    assert "x " not in table
    assert "old" in table


def test_a_folder_of_several_runs_and_a_glob(camp: Camp) -> None:
    for name in ("a", "b"):
        rows(camp.root / "outputs" / "train" / name / "metrics.jsonl", {"step": 1, "loss": 1.0})
    for target in ("outputs/train", "outputs/train/*", "outputs/**"):
        found = json.loads(camp("metrics", target, "--json", code=0).stdout)
        check(found)
        assert [each["run"] for each in found] == ["outputs/train/a", "outputs/train/b"]


def test_nothing_found_says_what_was_looked_for(camp: Camp) -> None:
    (camp.root / "empty").mkdir()
    done = camp("metrics", "empty", code=1)
    assert "nothing that a run logged is in empty" in done.stderr
    assert "events.out.tfevents.*" in done.stderr
    assert "there is no nowhere" in camp("metrics", "nowhere", code=2).stderr
    assert "which run?" in camp("metrics", code=2).stderr
    (camp.root / "started").mkdir()
    (camp.root / "started" / "metrics.jsonl").touch()
    assert "no values yet" in camp("metrics", "started", code=0).stdout


def test_a_finished_file_in_which_nothing_fits_is_no_success(camp: Camp) -> None:
    path = camp.root / "train.log"
    path.write_text("compiling\ndone, saved to out\n")
    assert "no values yet" in camp("metrics", "train.log", code=0).stdout, "it may still get some"
    os.utime(path, (1.7e9, 1.7e9))
    for target in ("train.log", "."):
        done = camp("metrics", target, code=1)
        assert "no value is in" in done.stderr
        assert "nothing in train.log is one of: objects, `key=value`" in done.stderr
    (camp.root / "table.csv").write_text("a;b\nx;y\n")
    os.utime(camp.root / "table.csv", (1.7e9, 1.7e9))
    assert "a header, and rows of numbers" in camp("metrics", "table.csv", code=1).stderr


def test_numbers_of_rows_are_called_so(camp: Camp) -> None:
    (camp.root / "metrics.csv").write_text("loss\n1\n2\n")
    found = json.loads(camp("metrics", "metrics.csv", "--json", code=0).stdout)
    check(found)
    assert found["sources"][0]["step"] == "row"
    assert "nothing in it counts steps: they are the numbers of its rows" in camp("metrics", "metrics.csv").stdout


def test_a_key_that_no_run_has_is_wrong_use(camp: Camp) -> None:
    rows(camp.root / "out" / "metrics.jsonl", {"step": 1, "train/loss": 4.0, "lr": 0.1})
    done = camp("metrics", "out", "--key", "train/los", code=2)
    assert "no key fits --key train/los" in done.stderr
    assert "did you mean train/loss? logged are: lr, step, train/loss" in done.stderr
    assert done.stdout == ""
    assert "no key fits --key a --key b" in camp("metrics", "out", "--key", "a", "--key", "b", "--json", code=2).stderr
    rows(camp.root / "many" / "metrics.jsonl", {"step": 1, **{f"key{at:02}": 1.0 for at in range(20)}})
    assert "key00, key01" in (told := camp("metrics", "many", "--key", "nope", code=2).stderr)
    assert "key11 and 9 more" in told
    some = camp("metrics", "out", "many", "--key", "lr", "--key", "nope", code=0).stdout
    assert "none of its keys fits --key lr --key nope" in some, "of a run that has none while another has one"
    assert "none of its keys fits --key nope\n" in some
    assert "no values yet" not in some
    (camp.root / "started").mkdir()
    (camp.root / "started" / "metrics.jsonl").touch()
    assert "no values yet" in camp("metrics", "started", "--key", "nope", code=0).stdout


def test_one_of_several_without_a_run_is_noted_and_the_others_are_shown(camp: Camp) -> None:
    rows(camp.root / "outs" / "a" / "metrics.jsonl", {"step": 1, "loss": 4.0})
    (camp.root / "outs" / "b").mkdir()
    for targets in (("outs/*",), ("outs/a", "outs/b")):
        told = camp("metrics", *targets, code=0).stdout
        assert "nothing that a run logged is in outs/b" in told
        assert "loss" in told
        found = json.loads(camp("metrics", *targets, "--json", code=0).stdout)
        check(found)
        assert [(each["run"], sorted(each["keys"])) for each in found] == [("outs/a", ["loss", "step"]), ("outs/b", [])]
        assert found[1]["notes"] == ["nothing that a run logged is in outs/b"]
    (camp.root / "outs" / "a" / "metrics.jsonl").unlink()
    told = camp("metrics", "outs/*", code=1).stderr
    assert "nothing that a run logged is in outs/a; nor does the other hold any" in told
    assert "there is no nowhere" in camp("metrics", "outs/a", "nowhere", code=2).stderr


def test_cells_that_have_not_run_are_noted_beside_those_that_have(camp: Camp) -> None:
    camp.write(LOGGING)
    camp("up", "--only", "seed=0")
    logged, waiting = json.loads(camp("metrics", "train/*", "--json", code=0).stdout)
    assert (logged["run"], logged["keys"]["loss"]["last"]) == ("train/0", 2.5)
    assert (waiting["run"], waiting["notes"]) == ("train/1", ["train/1 has not run yet"])


def test_cells_of_a_campaign(camp: Camp) -> None:
    camp.write(LOGGING)
    camp("up", code=0)
    found = json.loads(camp("metrics", "train/*", "--json", code=0).stdout)
    check(found)
    logged, printed = found
    assert (logged["run"], logged["keys"]["loss"]["last"]) == ("train/0", 2.5)
    assert (printed["run"], printed["sources"][0]["format"]) == ("train/1", "stdout")
    assert printed["keys"]["printed"]["last"] == 5
    assert "there is no cell 'train/7'" in camp("metrics", "train/7", code=2).stderr


@pytest.fixture
def server(camp: Camp) -> Camp:
    camp.environment["PYTHONDONTWRITEBYTECODE"] = "1"  # tests write the fake anew within a second
    folder = camp.root.parent / "fake"
    folder.mkdir()
    (folder / "wandb.py").write_text(FAKE)
    camp.environment["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return camp


def test_runs_on_a_server(server: Camp) -> None:
    found = json.loads(server("metrics", "--wandb-online", "me/project", "--json", code=0).stdout)
    check(found)
    assert [each["run"] for each in found] == ["me/project/a", "me/project/b"]
    assert found[0]["keys"]["loss"]["last"] == 0.25
    assert found[0]["keys"]["ot.pi"]["count"] == 4
    assert found[0]["ended"] == {"code": 0, "runtime_s": 7.0}
    one = json.loads(server("metrics", "--wandb-online", "me/project/c", "--json", code=0).stdout)
    assert one["sources"][0]["path"] == "https://w/c"


def test_a_server_that_does_not_answer_and_a_name_that_is_none(server: Camp) -> None:
    done = server("metrics", "--wandb-online", "me/other", code=1)
    assert "W&B does not give me/other: could not find project me/other" in done.stderr
    assert "ENTITY/PROJECT" in server("metrics", "--wandb-online", "project", code=2).stderr


@pytest.mark.parametrize("where", ["Api", "runs", "scan_history"])
def test_whatever_the_package_raises_is_one_clear_message(server: Camp, where: str) -> None:
    """Without a key it has errors of its own, at one place or another."""
    path = server.root.parent / "fake" / "wandb.py"
    raising = "class CommError(Exception): pass\ndef fail(*_): raise CommError('no API key configured')\n"
    target = {"Api": "Api", "runs": "Api.runs", "scan_history": "Run.scan_history"}[where]
    path.write_text(f"{FAKE}{raising}{target} = fail\n")
    done = server("metrics", "--wandb-online", "me/project", code=1)
    assert "W&B does not give me/project: no API key configured" in done.stderr
    assert "WANDB_API_KEY" in done.stderr
    assert "mistake in Muster" not in done.stderr


def test_more_runs_than_are_asked_for_are_told(server: Camp) -> None:
    path = server.root.parent / "fake" / "wandb.py"
    for count, cut in ((200, False), (201, True)):
        path.write_text(FAKE.replace('[Run("a"), Run("b")]', f"(Run(str(at)) for at in range({count}))"))
        found = json.loads(server("metrics", "--wandb-online", "me/project", "--json", code=0).stdout)
        assert len(found) == 200
        assert found[-1]["notes"] == (["only the first 200 runs of me/project were asked for"] if cut else [])
        assert not any(each["notes"] for each in found[:-1])


def test_a_server_tells_what_is_no_finite_number_as_a_text(server: Camp) -> None:
    path = server.root.parent / "fake" / "wandb.py"
    path.write_text(FAKE.replace('"t": "x"', '"t": "x", "bad": "NaN", "in": {"up": "Infinity", "down": "-Infinity"}'))
    found = json.loads(server("metrics", "--wandb-online", "me/project/c", "--json", code=0).stdout)
    assert {key: found["keys"][key]["nan"] for key in ("bad", "in.up", "in.down", "loss")} == {
        "bad": 4, "in.up": 4, "in.down": 4, "loss": 0,
    }  # fmt: skip
    assert "t" not in found["keys"]


def test_without_the_package_there_is_one_clear_message(server: Camp) -> None:
    (server.root.parent / "fake" / "wandb.py").write_text("raise ImportError('not here')\n")
    done = server("metrics", "--wandb-online", "me/project", code=2)
    assert "needs the package wandb, which is not installed" in done.stderr
    assert "pip install 'wandb>=0.19,<0.32'" in done.stderr
