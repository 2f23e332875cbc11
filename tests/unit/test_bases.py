"""The configs that a loop begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.acts.bases import base_variants
from muster.rounds.names import digest_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "configs").mkdir()
    for name in ("b", "a"):
        (tmp_path / "configs" / f"{name}.json").write_text(f'{{"lr": 0.1, "name": "{name}"}}')
    (tmp_path / "base.yaml").write_text("lr: 0.1\n")
    return tmp_path


def names(root: Path, *written: str) -> list[str]:
    found, mistakes = base_variants({"base": list(written)}, root)
    assert mistakes == []
    return [each.name for each in found]


def said(root: Path, *written: str) -> list[str]:
    found = base_variants({"base": list(written)}, root)[1]
    return [f"{each.path}: {each.message} ({each.hint})" for each in found]


def test_files_globs_and_lists_each_once(root: Path) -> None:
    (root / "next.txt").write_text("# round 2\n\nconfigs/b.json\nbase.yaml\n")
    assert names(root, "configs/b.json", "configs/*.json", "@next.txt") == ["b", "a", "base"]
    (found,), _ = base_variants({"base": ["base.yaml"]}, root)
    assert (found.config, found.round, found.parent) == (str(root / "base.yaml"), 1, None)
    assert found.digest == digest_of({"lr": 0.1})


def test_two_files_of_one_name_stay_apart(root: Path) -> None:
    (root / "a.json").write_text("{}")
    first, second = names(root, "configs/a.json", "a.json")
    assert (first, second) == ("a", f"a-{digest_of({})[:6]}")


def test_every_mistake_is_told_at_once(root: Path) -> None:
    (root / "broken.json").write_text("{")
    (root / "binary.json").write_bytes(b"\xff\xfe")
    (root / "next.txt").write_text("configs/a.json\nconfigs/aa.json\n")
    (root / "notes.text").write_text("")
    found = said(
        root, "configs/bb.json", "none/*.json", "broken.json", "binary.json", "notes.txt", "@no.txt", "@next.txt"
    )
    assert found[:2] == [
        "loop.base.0: the config configs/bb.json does not exist (did you mean configs/b.json?)",
        "loop.base.1: a file that fits none/*.json does not exist (names are relative to the campaign's folder)",
    ]
    assert "loop.base.2: broken.json: it is no JSON: line 1, column 2" in found[2]
    assert "binary.json: it is no UTF-8 text" in found[3]
    assert "the config notes.txt does not exist" in found[4]
    assert found[5] == (
        "loop.base.5: the list no.txt can't be read: No such file or directory (did you mean notes.text?)"
    )
    assert "next.txt, line 2: the config configs/aa.json does not exist (did you mean configs/" in found[6]


def test_a_list_that_is_none_is_told_with_what_it_should_be(root: Path) -> None:
    (root / "bytes.txt").write_bytes(b"\xff")
    assert said(root, "@configs", "@bytes.txt") == [
        "loop.base.0: the list configs can't be read: Is a directory "
        "(@ stands before a text file with the name of one config on each line)",
        "loop.base.1: the list bytes.txt can't be read: it is no UTF-8 text (save it as UTF-8, one name on each line)",
    ]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("x.yaml", "x", "it is a text, not a mapping"),
        ("x.yaml", "- 1\n", "it is a list, not a mapping"),
        ("x.yaml", "# nothing\n", "it is empty"),
        ("x.json", "[1]", "it is a list, not a mapping"),
        ("x.json", "3", "it is a number, not a mapping"),
    ],
)
def test_a_config_is_a_mapping(root: Path, name: str, text: str, why: str) -> None:
    (root / name).write_text(text)
    assert said(root, name) == [f"loop.base.0: {name}: {why}: a config has keys (it must be a config file)"]


def test_a_file_that_is_no_config_is_none(root: Path) -> None:
    (root / "x.txt").write_text("lr 3")
    assert "x.txt is none of .json, .yaml, .yml and .toml" in said(root, "x.txt")[0]
