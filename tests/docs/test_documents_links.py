"""Links between documents lead somewhere, and so do the modules that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import DOCS, DOCUMENTS, ROOT, anchors, links, name, prose

ROOMS = sorted(path.name for path in (ROOT / "src" / "muster").iterdir() if (path / "__init__.py").exists())


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_resolve(path: Path) -> None:
    broken = []
    for number, target in links(path):
        file, _, anchor = target.partition("#")
        if "://" in file or file.startswith("mailto:"):
            continue
        to = (path.parent / file).resolve() if file else path
        if not to.exists() or (anchor and anchor not in anchors(to)):
            broken.append(f"{name(path)}:{number}: {target}")
    assert not broken


def test_every_document_is_reached_from_the_readme() -> None:
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        path = ahead.pop()
        if path in reached:
            continue
        reached.add(path)
        for _, target in links(path):
            to = (path.parent / target.partition("#")[0]).resolve()
            ahead += [*to.glob("*.md")] if to.is_dir() else [to] if to.suffix == ".md" else []
    assert not {name(path) for path in DOCUMENTS} - {name(path) for path in reached}


def test_architecture_names_functions_where_they_are() -> None:
    path, lost = ROOT / "docs" / "architecture.md", []
    for number, line in (row for row in prose(path) if row[1].startswith("| ")):
        for module, names in re.findall(r"`(\w[\w/]*\.py)`: ((?:`\w+`(?:, )?)+)", line):
            code = (ROOT / "src" / "muster" / module).read_text(encoding="utf-8")
            missing = [
                each for each in re.findall(r"`(\w+)`", names) if not re.search(rf"(?m)^(?:def|class) {each}\b", code)
            ]
            lost += [f"{name(path)}:{number}: {module}: {each}" for each in missing]
    assert not lost


@pytest.mark.parametrize("path", [*DOCS, *sorted((ROOT / "docs" / "decisions").glob("*.md"))], ids=name)
def test_modules_that_are_named_exist(path: Path) -> None:
    lost = [
        f"{name(path)}:{number}: {module}"
        for number, line in prose(path)
        for module in re.findall(rf"`((?:{'|'.join(ROOMS)})/[\w./*-]*)`", line)
        if not list((ROOT / "src" / "muster").glob(module.rstrip("/")))
    ]
    assert not lost
