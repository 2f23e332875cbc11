"""The code that cells ran, in both languages."""

from __future__ import annotations

from typing import Any

import pytest

from muster.text.catalogue import load_catalogue
from muster.text.describe_run import describe_code_of_cell, describe_code_of_cells

A = "2721f32fc62c" + "0" * 28
CLEAN = {"state": "known", "commit": A, "dirty": None, "changed": [], "untracked": [], "files": {}}
CHANGED = {**CLEAN, "dirty": "1a2b", "changed": ["train.py"], "untracked": ["t.py"], "files": {"t.py": "aa"}}
SLOW = {"state": "unknown", "why": "git did not answer in 60 s", "waited_s": 60.0}
NONE = {
    "state": "no_repository",
    "commit": None,
    "dirty": "cd",
    "changed": [],
    "untracked": [],
    "files": {"t.py": "aa"},
}


@pytest.mark.parametrize(
    ("code", "english", "chinese"),
    [
        (CLEAN, A, A),
        (CHANGED, "commit 2721f32 plus uncommitted changes in 2 files (train.py and t.py untracked)",
         "提交 2721f32，另有 2 个文件未提交的改动（train.py 和 t.py 未纳入版本管理）"),
        ({"commit": A, "dirty": "1a2b", "readable": True}, "commit 2721f32 plus uncommitted changes (diff 1a2b)",
         "提交 2721f32，另有未提交的改动（diff 1a2b）"),
        (SLOW, "not known: git did not answer in 60 s", "未知：git 在 60 秒内没有应答"),
        ({"state": "unknown", "why": "git is not installed"}, "not known: git is not installed", None),
        (NONE, "under no version control; 1 file of source known by hash", None),
        ({**NONE, "files": {}}, "under no version control", "未纳入版本管理"),
        ({**NONE, "state": "no_commit", "files": {}}, "in a repository without a commit yet", "所在仓库还没有任何提交"),
        ({}, "not recorded", "没有记录"),
    ],
)  # fmt: skip
def test_what_one_cell_ran(code: dict[str, Any], english: str, chinese: str | None) -> None:
    assert describe_code_of_cell(code, load_catalogue("report", "en")) == english
    if chinese:
        assert describe_code_of_cell(code, load_catalogue("report", "zh")) == chinese


def test_what_all_cells_ran() -> None:
    w = load_catalogue("report", "en")
    assert describe_code_of_cells([], w) == ""
    assert describe_code_of_cells([CLEAN, CLEAN], w) == A
    assert describe_code_of_cells([SLOW, SLOW], w) == "not known: git did not answer in 60 s"
    assert describe_code_of_cells([CLEAN, SLOW, {}], w) == f"{A} (known for 1 of 3 cells)"
    both = describe_code_of_cells([CLEAN, CHANGED], w)
    assert both == f"2 states of it: {A} and {describe_code_of_cell(CHANGED, w)}"
