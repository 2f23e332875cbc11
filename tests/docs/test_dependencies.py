"""What is installed is what is pinned, and each package that is asked for stands in docs/dependencies.md with its reason."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WITHOUT_REGISTRY = (
    "pyproject.toml",
    "constraints.txt",
    "constraints-build.txt",
    "constraints-site.txt",
    "Makefile",
    ".ci/run",
    ".github/workflows/ci.yml",
    ".pre-commit-config.yaml",
)
OURS = {"muster-ml", "pip"}  # pip comes with the environment


def pins(file: str) -> dict[str, str]:
    found = {}
    for line in (ROOT / file).read_text().splitlines():
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.!+]+)", line)
        assert match, f"{file}: {line!r} is no pin: names and versions only, no place that packages come from"
        assert canonicalize_name(match[1]) not in found, f"{file}: {match[1]} stands there twice"
        found[canonicalize_name(match[1])] = match[2]
    return found


def requirements() -> list[Requirement]:
    project = PROJECT["project"]
    texts = [*project["dependencies"], *(text for extra in project["optional-dependencies"].values() for text in extra)]
    return [Requirement(text) for text in (*texts, *PROJECT["build-system"]["requires"])]


@pytest.mark.skipif(
    not Path(sys.prefix, ".ready").exists() or Path(sys.prefix).resolve() != ROOT / ".venv",
    reason="this environment was not made by `make setup`",
)
def test_what_is_installed_is_what_is_pinned() -> None:
    """Both ways. After a change of versions: `make clean setup`, and the list anew."""
    installed = {canonicalize_name(each.metadata["Name"]): each.version for each in importlib.metadata.distributions()}
    assert {name: version for name, version in installed.items() if name not in OURS} == pins("constraints.txt")


def test_the_build_backend_and_what_it_needs_are_pinned() -> None:
    held = pins("constraints-build.txt")
    (backend,) = [Requirement(text) for text in PROJECT["build-system"]["requires"]]
    assert backend.specifier.contains(held[canonicalize_name(backend.name)])
    assert {"editables", "packaging", "pathspec", "pluggy", "trove-classifiers", "tomlkit"} == set(held) - {
        backend.name
    }
    both = pins("constraints.txt")  # pip is given both files at once: they must agree
    assert {name: both[name] for name in held if name in both} == {name: held[name] for name in held if name in both}
    makefile = (ROOT / "Makefile").read_text()
    for variable in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"):
        assert f"{variable}=constraints-build.txt" in makefile


def test_every_range_has_two_ends_and_holds_the_pin() -> None:
    held = (
        pins("constraints.txt")
        | pins("constraints-build.txt")
        | {"mkdocs-material": pins("constraints-site.txt")["mkdocs-material"]}
    )
    for each in requirements():
        assert {part.operator for part in each.specifier} == {">=", "<"}, each
        assert each.specifier.contains(held[canonicalize_name(each.name)], prereleases=True), each
        assert each.url is None
    assert PROJECT["project"]["requires-python"] == ">=3.11"


def test_every_dependency_has_its_row_and_every_row_its_dependency() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    named: list[Any] = [canonicalize_name(row[1].strip(" `")) for row in rows]
    assert sorted(named) == sorted({canonicalize_name(each.name) for each in requirements()})
    assert all(cell.strip() for row in rows for cell in row[1:-1])


def test_no_registry_is_named_and_nothing_is_locked() -> None:
    for name in WITHOUT_REGISTRY:
        assert not re.search(r"--(extra-)?index-url|--find-links|pypi\.|https?://", (ROOT / name).read_text()), name
    assert not [each for each in ROOT.iterdir() if each.name.endswith(".lock") or each.name == "pip.conf"]
