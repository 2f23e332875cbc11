"""Places that are closed to a user: said before anything starts, with what helps, instead of waiting for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from second_user import UID, common_place, in_a_fork

from muster.app.campaign import load_campaign
from muster.app.campaign.load_campaign import find_misfits, read_runnable_campaign
from muster.engine.ports.executor import Slot
from muster.faces.cli.common.entrypoint import run_command_line
from muster.files.campaign_ownership import find_readable_root
from muster.files.muster_home import slots_home
from muster.hosts.local.slot_leases import SlotLeases, why_slots_are_closed

__all__ = ["common_place"]
ONE = """\
muster: 1
campaign: one
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs: {train: {axes: [seed], command: "echo {seed}"}}
"""


def test_up_and_check_tell_of_a_home_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "campaign"
    root.mkdir()
    (root / "campaign.yaml").write_text(ONE)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "file" / "home"))
    assert run_command_line(["-C", str(root), "up"]) == 1
    told = capsys.readouterr().err
    assert f"can't be made: {tmp_path / 'file'} is no folder; nothing was started" in told
    assert "set MUSTER_HOME to a folder of your own" in told
    assert not (root / ".muster").exists()
    assert run_command_line(["-C", str(root), "check"]) == 1
    found = capsys.readouterr()
    assert "is no folder" in found.out + found.err
    campaign = read_runnable_campaign(root / "campaign.yaml").campaign
    assert find_misfits(campaign, None)
    monkeypatch.setattr(load_campaign, "find_unfinished_jobs", lambda *_: frozenset())
    assert not find_misfits(campaign, None), "nothing is left that needs a slot"


def test_a_shared_home_without_slots_is_told_with_what_its_owner_must_do(
    common_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = common_place / "shared" / "slots"
    monkeypatch.setenv("MUSTER_HOME", str(folder.parent))
    folder.parent.mkdir(mode=0o755)
    told = in_a_fork(lambda: why_slots_are_closed(folder))
    assert f"does not exist and can't be made: you may not write to {folder.parent}" in told
    assert f"`mkdir -m 1777 {folder}`" in told
    told = in_a_fork(lambda: SlotLeases(folder).lease([Slot("cpu0", "cpu")]))
    assert "may not be opened" not in told
    assert "can't be made" in told
    folder.mkdir(mode=0o755)
    assert f"`chmod 1777 {folder}`" in in_a_fork(lambda: why_slots_are_closed(folder))
    (folder / "cpu0").touch(0o666)
    assert in_a_fork(lambda: why_slots_are_closed(folder)) == "None", "one slot can be taken"
    folder.chmod(0o1777)
    (folder / "cpu0").unlink()
    assert in_a_fork(lambda: why_slots_are_closed(folder)) == "None"


def test_a_user_without_a_home_is_told_what_is_missing(common_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> Path:
        del os.environ["HOME"]
        return slots_home()

    monkeypatch.delenv("MUSTER_HOME", raising=False)
    assert (
        in_a_fork(told)
        == f"UsageError: your home folder can't be told: HOME is not set, and nobody here knows uid {UID}"
    )


def test_a_closed_campaign_is_not_said_to_be_readable_below_it(common_place: Path) -> None:
    """As a colleague's: `-C` to its own folder is advised only to who may read there."""
    root = common_place / "theirs"
    (root / "reports").mkdir(parents=True)
    (root / "campaign.yaml").write_text(ONE)
    (root / ".muster").mkdir(mode=0o700)
    (root / ".muster" / "decisions.jsonl").write_text("{}\n")
    for folder in (root, root / "reports"):
        told = in_a_fork(lambda folder=folder: find_readable_root(folder))  # type: ignore[misc]
        assert "and you may not read it; nothing was changed" in told
    (root / ".muster").chmod(0o755)
    assert "lies in it, and nothing above it was looked at" in in_a_fork(lambda: find_readable_root(root / "reports"))
