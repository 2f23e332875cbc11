"""Another boot id means a reboot only on the same machine."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from muster.engine.ports.store import LoggedDecision
from muster.engine.store import controller_files
from muster.engine.store.controller_files import ClaimMachines, machine_of_epoch
from muster.model.attempt import Attempt
from muster.model.decision import Decision

ATTEMPT = Attempt("train/0", 1, "token", 7, (), "", "", 0.0, "another boot")


def claimed_under(state: Path, data: dict[str, Any]) -> bool:
    told = LoggedDecision(Decision("epoch", "controller 1", "started", epoch=7, data={"epoch": 7, **data}), None)
    store: Any = SimpleNamespace(events=lambda: [told])
    return ClaimMachines(store, state)(ATTEMPT)


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_files, "anonymous_machine_name", lambda: "here")


def test_a_folder_that_was_brought_from_another_machine(tmp_path: Path) -> None:
    assert claimed_under(tmp_path, {"machine": "there", "inode": 1})


def test_the_same_machine_after_a_reboot(tmp_path: Path) -> None:
    assert not claimed_under(tmp_path, machine_of_epoch(tmp_path))


def test_a_container_that_was_made_anew_keeps_its_disk(tmp_path: Path) -> None:
    assert not claimed_under(tmp_path, {**machine_of_epoch(tmp_path), "machine": "there"})


def test_what_an_older_version_recorded_proves_nothing(tmp_path: Path) -> None:
    assert not claimed_under(tmp_path, {})
