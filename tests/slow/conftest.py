"""The world of the fault tests, for the long runs: every process that a test started is ended by pid."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(1, str(Path(__file__).parent / "deaths"))
sys.path.insert(1, str(Path(__file__).parents[1] / "faults"))

from fault_world import World

KNOBS = {"MUSTER_POLL_S": "0.2", "MUSTER_GRACE_S": "1", "MUSTER_STALE_S": "5"}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    home = tmp_path / "home"
    for name in [name for name in os.environ if name.startswith("MUSTER_") and not name.endswith(("_SEED", "_ONLY"))]:
        monkeypatch.delenv(name)
    for name, value in {**KNOBS, "MUSTER_HOME": str(home)}.items():
        monkeypatch.setenv(name, value)  # this process decides and looks too
    monkeypatch.setattr("muster.engine.store.controller_files.STALE_LOCK_S", float(KNOBS["MUSTER_STALE_S"]))
    made = World(tmp_path / "campaign", home, dict(os.environ), tmp_path / "count")
    yield made
    made.close()
