"""A command that is printed works from where the person stands: in the campaign, below it, or with -C."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from muster.faces.cli.common.terminal_output import command_from_here


@pytest.mark.parametrize(
    ("stands", "folder", "expected"),
    [
        (".", ".", "muster docs update text/cite.md"),
        ("text", ".", "muster docs update cite.md"),
        ("other", ".", "muster docs update ../text/cite.md"),
        (".", "text", "muster -C text docs update cite.md"),
        ("other", "..", "muster -C .. docs update text/cite.md"),
    ],
)
def test_a_path_that_leads_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stands: str, folder: str, expected: str
) -> None:
    for name in ("text", "other"):
        (tmp_path / name).mkdir()
    document = tmp_path / "text" / "cite.md"
    document.write_text("")
    monkeypatch.chdir(tmp_path / stands)
    told = command_from_here(Path(folder), "docs update", document)
    assert told == expected
    assert (Path(folder) / shlex.split(told)[-1]).resolve() == document


def test_names_that_a_shell_would_take_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my campaign").mkdir()
    monkeypatch.chdir(tmp_path)
    told = command_from_here(Path("my campaign"), "docs bind", tmp_path / "my campaign" / "a b.md")
    assert shlex.split(told) == ["muster", "-C", "my campaign", "docs", "bind", "a b.md"]
