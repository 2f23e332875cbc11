"""Signs of a run that ended with its machine, and when a shim saw the last of a tree go."""

from __future__ import annotations

import os
from pathlib import Path

from muster.readers import attempt_facts


def touch(path: Path, at: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (at, at))


def test_the_newest_file_before_the_machine_came_back(tmp_path: Path) -> None:
    folder = tmp_path / ".muster" / "attempts" / "train" / "0" / "1"
    folder.mkdir(parents=True)
    assert attempt_facts.last_sign_of_attempt(str(folder), 1e9) is None
    touch(folder / "identity.json", 1000.0)
    touch(folder / "stdout.log", 2000.0)
    assert attempt_facts.last_sign_of_attempt(str(folder), 1e9) == 2000.0
    touch(tmp_path / ".muster" / "watch.json", 2500.0)  # a controller still looked at it then
    assert attempt_facts.last_sign_of_attempt(str(folder), 1e9) == 2500.0
    assert (
        attempt_facts.last_sign_of_attempt(str(folder), 2400.0) == 2000.0
    )  # what was written since is somebody else's


def test_when_the_last_orphan_was_gone(tmp_path: Path) -> None:
    assert attempt_facts.read_freed_time(str(tmp_path)) is None
    (tmp_path / "freed").write_text("1234.5")
    assert attempt_facts.read_freed_time(str(tmp_path)) == 1234.5
    (tmp_path / "freed").write_text("")  # cut off by a crash
    assert attempt_facts.read_freed_time(str(tmp_path)) is None
