"""The site has every page, the decisions have one form, and what loads from outside is found."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import ROOT, name

DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
PAGES = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}


def test_every_page_is_in_the_nav_once() -> None:
    listed = re.findall(r"^ +- (?:[^:\n]+: )?([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == PAGES | {"index.md", "zh.md", "contributing.md", "security.md", "changelog.md"}


@pytest.mark.parametrize("path", DECISIONS, ids=name)
def test_a_decision_has_title_date_status_and_three_parts(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(rf"# {path.name[:4]}: \S.*", lines[0])
    assert re.fullmatch(r"Date: \d{4}-\d\d-\d\d · Status: (accepted|proposed|superseded by \d{4})", lines[2])
    assert [line for line in lines if line.startswith("## ")] == ["## Context", "## Decision", "## Consequences"]
    assert f"[{lines[0][2:]}]({path.name})" in (path.parent / "README.md").read_text(encoding="utf-8")


def test_each_decision_has_its_own_number() -> None:
    assert [path.name[:4] for path in DECISIONS] == [f"{number:04}" for number in range(1, len(DECISIONS) + 1)]


@pytest.mark.parametrize(
    ("page", "code"),
    [
        ('<script src="assets/a.js"></script><a href="https://example.org">x</a>', 0),
        ('<script src="https://example.org/a.js"></script>', 1),
        ('<link rel="stylesheet" href="//example.org/a.css">', 1),
        ('<link rel="preconnect" href="https://example.org">', 1),
        ('<img src="http://example.org/a.png">', 1),
        ("<style>@font-face {src: url('https://example.org/a.woff2')}</style>", 1),
        ('<pre class="mermaid">a</pre>', 1),
    ],
)
def test_a_page_that_loads_from_outside_fails(page: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(page)
    done = subprocess.run([sys.executable, ROOT / "tools" / "check_site.py", tmp_path], capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr


def test_the_lowest_versions_are_listed() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "minimum_versions.py", "test"], capture_output=True, text=True, check=True
    )
    pins = dict(line.split("==") for line in done.stdout.splitlines())
    assert {"typer", "scipy", "pytest"} <= set(pins)
