"""Every test in a world of its own; all that it started is ended by pid, and nothing may be left."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_world import World

KNOBS = {
    "MUSTER_POLL_S": "0.2",
    "MUSTER_REVIVE_S": "30",
    "MUSTER_GRACE_S": "5",
    "MUSTER_STALE_S": "2",
    "MUSTER_GUARD": "off",  # what is killed here stays dead; test_guard.py has the guard
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    home = tmp_path / "home"
    for name in [name for name in os.environ if name.startswith("MUSTER_")]:
        monkeypatch.delenv(name)
    for name, value in {**KNOBS, "MUSTER_HOME": str(home)}.items():
        monkeypatch.setenv(name, value)  # this process decides and looks too
    monkeypatch.setattr("muster.engine.store.controller_files.STALE_LOCK_S", float(KNOBS["MUSTER_STALE_S"]))
    made = World(tmp_path / "campaign", home, dict(os.environ), tmp_path / "count")
    yield made
    made.close()
