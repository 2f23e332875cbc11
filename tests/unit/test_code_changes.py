"""Which files of source differ between cells: by what was recorded at their start, and by git."""

from __future__ import annotations

from typing import Any

from muster.app.facts.definition_changes import differing_source_files, find_changed_sources

BLOBS = {("c1", "train.py"): "a", ("c2", "train.py"): "b", ("c1", "model.py"): "m", ("c2", "model.py"): "m",
         ("c2", "new.py"): "n"}  # fmt: skip


def blob(commit: str, path: str) -> str | None:
    return BLOBS.get((commit, path))


def between(one: str, other: str) -> tuple[str, ...]:
    return ("train.py", "new.py", "result.json")


def code(commit: str | None = "c1", dirty: str | None = None, **files: str) -> dict[str, Any]:
    named = {name.replace("_", "."): text for name, text in files.items()}
    return {"commit": commit, "dirty": dirty, "files": named, "changed": list(named)}


def told(a: dict[str, Any], b: dict[str, Any]) -> tuple[str, ...]:
    return differing_source_files(a, b, blob, between)


def test_commits_that_differ_in_a_file_of_source() -> None:
    assert told(code("c1"), code("c2")) == ("train.py",)
    assert told(code("c1"), code("c1")) == ()


def test_a_change_that_was_committed_later_is_the_same_code() -> None:
    assert told(code("c1", "d", train_py="b"), code("c2")) == ()
    assert told(code("c1", "d", train_py="x"), code("c2")) == ("train.py",)


def test_a_working_tree_that_changed() -> None:
    assert told(code("c1", "d", model_py="x"), code("c1")) == ("model.py",)
    assert told(code("c1", "d", fresh_py="x"), code("c1")) == (), "it is new: what uses it has changed, too"
    assert told(code(None, None, train_py="a"), code(None, None, train_py="b")) == ("train.py",)


def test_an_older_record_that_names_no_files_tells_nothing() -> None:
    assert told({"commit": "c1", "dirty": "d"}, code("c2")) == ()
    assert told({"commit": "c1", "dirty": None}, code("c2")) == ("train.py",)


def test_the_cells_that_are_unlike_most() -> None:
    cells = {f"train/a/{seed}": code("c2" if seed == 4 else "c1") for seed in range(5)} | {"train/b/0": {}}
    assert dict(find_changed_sources(cells, blob, between)) == {"train/a/4": ("train.py",)}
