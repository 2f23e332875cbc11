"""A home in which nobody can take a slot: `up` says so before it starts anything, instead of waiting for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Camp
from second_user import UID, common_place, in_a_fork

from muster.execute.slot_folder import closed_slots
from muster.execute.slots import SlotHouse, home
from muster.ports.executor import Slot

__all__ = ["common_place"]
ONE = """\
muster: 1
campaign: one
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs: {train: {axes: [seed], command: "echo {seed}"}}
"""


def test_up_and_check_tell_of_a_home_that_cannot_be_made(camp: Camp, tmp_path: Path) -> None:
    camp.write(ONE)
    (tmp_path / "file").write_text("")
    usual = camp.environment["MUSTER_HOME"]
    camp.environment["MUSTER_HOME"] = str(tmp_path / "file" / "home")
    done = camp("up")
    assert done.returncode == 1, done.stdout
    assert f"can't be made: {tmp_path / 'file'} is no folder; nothing was started" in done.stderr
    assert "set MUSTER_HOME to a folder of your own" in done.stderr
    assert not (camp.root / ".muster").exists()
    done = camp("check")
    assert done.returncode == 1
    assert "is no folder" in done.stdout + done.stderr
    camp.environment["MUSTER_HOME"] = usual
    assert camp("up").returncode == 0
    camp.environment["MUSTER_HOME"] = str(tmp_path / "file" / "home")
    assert camp("up").returncode == 0, "nothing is left that needs a slot"


def test_a_shared_home_without_slots_is_told_with_what_its_owner_must_do(
    common_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = common_place / "shared" / "slots"
    monkeypatch.setenv("MUSTER_HOME", str(folder.parent))
    folder.parent.mkdir(mode=0o755)
    told = in_a_fork(lambda: closed_slots(folder))
    assert f"does not exist and can't be made: you may not write to {folder.parent}" in told
    assert f"`mkdir -m 1777 {folder}`" in told
    told = in_a_fork(lambda: SlotHouse(folder).lease([Slot("cpu0", "cpu")]))
    assert "may not be opened" not in told
    assert "can't be made" in told
    folder.mkdir(mode=0o755)
    assert f"`chmod 1777 {folder}`" in in_a_fork(lambda: closed_slots(folder))
    (folder / "cpu0").touch(0o666)
    assert in_a_fork(lambda: closed_slots(folder)) == "None", "one slot can be taken"
    folder.chmod(0o1777)
    (folder / "cpu0").unlink()
    assert in_a_fork(lambda: closed_slots(folder)) == "None"


def test_a_user_without_a_home_is_told_what_is_missing(common_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> Path:
        del os.environ["HOME"]
        return home()

    monkeypatch.delenv("MUSTER_HOME", raising=False)
    assert (
        in_a_fork(told)
        == f"UsageError: your home folder can't be told: HOME is not set, and nobody here knows uid {UID}"
    )
