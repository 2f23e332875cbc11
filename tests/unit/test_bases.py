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
    assert "the list no.txt can't be read" in found[5]
    assert "next.txt, line 2: the config configs/aa.json does not exist (did you mean configs/" in found[6]


def test_a_file_that_is_no_config_is_none(root: Path) -> None:
    (root / "x.txt").write_text("lr 3")
    assert "x.txt is none of .json, .yaml, .yml and .toml" in said(root, "x.txt")[0]
