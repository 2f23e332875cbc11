"""`muster edit`: what it prints, what it writes, and what it says to what can't be done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from support.camp import Camp

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/edit.schema.json").read_text())
BASE = "# the baseline\nmodel:\n  lr: 1e-4   # small\n  width: 64\n"


@pytest.fixture
def base(camp: Camp) -> Path:
    path: Path = camp.root / "base.yaml"
    path.write_text(BASE)
    return path


def test_a_table_of_what_changed(camp: Camp, base: Path) -> None:
    said = camp("edit", "base.yaml", "--change", "model.lr@mul=2", "--change", "model.width@mul=1.27", "--reason",
                "wider", code=0).stdout.splitlines()  # fmt: skip
    (made,) = camp.root.glob("base_*.yaml")
    assert said[0].split(None, 1) == [made.name, "from base.yaml: wider"]
    assert said[1].split() == ["path", "before", "after"]
    assert said[2].split() == ["model.lr", "0.0001", "0.0002"]
    assert said[3].split(None, 3) == ["model.width", "64", "81", "81.28 rounded to 81, because it is an integer"]
    assert said[4] == "recorded in variants.jsonl"
    assert made.read_text() == BASE.replace("1e-4", "0.0002").replace("64", "81")
    assert base.read_text() == BASE
    assert not (camp.root / ".muster").exists()


def test_json_fits_its_schema(camp: Camp, base: Path) -> None:
    found = camp.json("edit", "base.yaml", "--change", "model.lr@set=NaN", "--reason", "odd", code=0)
    Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(found)
    assert found["changes"][0]["new"] == "nan"
    assert Path(found["path"]).read_text() == BASE.replace("1e-4", ".nan")


def test_from_another_folder(camp: Camp, base: Path) -> None:
    camp.root = camp.root.parent
    found = camp.json("-C", "campaign", "edit", "base.yaml", "--change", "model.lr@mul=2", "--reason", "r", "--out",
                      "mine.yaml", code=0)  # fmt: skip
    assert found["path"] == str(base.with_name("mine.yaml"))
    assert found["parent"] == str(base)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["base.yaml", "--change", "model.lr@mul=2"], ["Missing option '--reason'", "for example: muster edit"]),
        (["base.yaml", "--reason", "r"], ["Missing option '--change'"]),
        (["bas.yaml", "--change", "model.lr@mul=2", "--reason", "r"], ["there is no file bas.yaml", "did you mean base.yaml?"]),
        ([".", "--change", "model.lr@mul=2", "--reason", "r"], [". is a folder", "name the config file in it"]),
        (["base.yaml", "--change", "model.l@mul=2", "--reason", "r"], ["model.l matches nothing", "model.lr"]),
        (["base.yaml", "--change", "a", "--change", "b", "--reason", "r"], ["2 of 2 changes can't be made", "'a' is no edit", "'b' is no edit"]),
        (["base.yaml", "--change", "model.lr@mul=1", "--reason", "r"], ["the variant would be the same config"]),
        (["base.yaml", "--change", "model.lr@mul=2", "--reason", "r", "--out", "base.yaml"], ["base.yaml exists already"]),
    ],
)  # fmt: skip
def test_what_can_not_be_done_is_said_and_nothing_is_written(
    camp: Camp, base: Path, args: list[str], words: list[str]
) -> None:
    told = camp("edit", *args, code=2).stderr
    assert [word for word in words if word not in told] == []
    error = json.loads(camp("edit", *args, "--json", code=2).stderr)["error"]
    assert words[0] in error["message"]
    assert [path.name for path in camp.root.iterdir()] == ["base.yaml"]
    assert base.read_text() == BASE
