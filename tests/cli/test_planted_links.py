"""Links that came with a folder: nothing is written through one, whatever the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.camp import Camp

CAMPAIGN = """\
muster: 1
campaign: shipped
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs: {train: {axes: [seed], command: "true"}}
"""
COMMANDS = (
    ["check"], ["plan"], ["up", "--detach"], ["status"], ["why", "train/0"], ["note", "seen"], ["report"], ["fsck"],
    ["stop", "train/0", "--because", "x"], ["hold", "--because", "x"], ["clean"], ["pack", "it.tar.gz"],
)  # fmt: skip


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """What is somebody's and none of the campaign's."""
    folder = tmp_path / "outside"
    folder.mkdir()
    for name in ("preflight.json", "intent", "notes.txt"):
        (folder / name).write_text("mine")
    return folder


def test_init_writes_through_no_link(camp: Camp, outside: Path) -> None:
    victim = outside / "notes.txt"
    for name in (".campaign.yaml.partial", ".AGENTS.md.partial"):
        (camp.root / name).symlink_to(victim)
    camp("init", code=0)
    assert victim.read_text() == "mine"
    assert not (camp.root / "campaign.yaml").is_symlink()
    (camp.root / "campaign.yaml").unlink()
    (camp.root / "campaign.yaml").symlink_to(victim)
    camp("init", "--force", code=0)
    assert victim.read_text() == "mine"
    assert not (camp.root / "campaign.yaml").is_symlink()
    assert (camp.root / "campaign.yaml.before-init").is_symlink(), "what was there is kept"


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_state_that_is_a_link_is_refused(camp: Camp, outside: Path, words: list[str]) -> None:
    camp.write(CAMPAIGN)
    (camp.root / ".muster").symlink_to(outside)
    before, mode = content(outside), outside.stat().st_mode
    told = camp(*words, code=2).stderr
    assert f"this .muster is a link to '{outside}'" in told
    assert f"where: {camp.root / '.muster'}" in told
    assert "`output:`" in told
    assert (content(outside), outside.stat().st_mode) == (before, mode)
    assert {path.name for path in camp.root.iterdir()} == {".muster", "campaign.yaml"}


def test_a_link_in_the_state_is_refused(camp: Camp, outside: Path) -> None:
    camp.write(CAMPAIGN)
    (camp.root / ".muster").mkdir()
    (camp.root / ".muster" / "diffs").symlink_to(outside)
    before = content(outside)
    told = camp("check", code=2).stderr
    assert "diffs in .muster is a link" in told
    assert content(outside) == before
