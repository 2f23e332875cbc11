"""What the store keeps is English, whatever language the process speaks: other processes read it, and fsck compares it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from store_world import World

from muster.engine.ports.clock import SystemClock
from muster.engine.ports.probe import WatchBookState
from muster.engine.store.controller_files import ControllerLock, WatchBookFile
from muster.engine.store.database_checks import dump_database
from muster.model.decision import Decision
from muster.text.phrases import has_code, phrase, speaking


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path / "state", "disk")
    made.begin()
    return made


def test_why_a_decision_was_refused(world: World) -> None:
    with speaking("pseudo"):
        refused = world.one(Decision("stop", "me", "because", cell="train/a"))
        kept = dump_database(world.store.db)
    assert refused == "⟦it is not running⟧"
    assert has_code(refused, "store.not_running")
    assert [row["void"] for row in kept["event"].values() if row["void"]] == ["it is not running"]


def test_the_trouble_in_a_lock_and_the_watch_book(tmp_path: Path) -> None:
    with speaking("pseudo"):
        lock = ControllerLock(tmp_path, SystemClock())
        assert lock.take()
        lock.beat(1, phrase("store.database_disk_full"))
        book = WatchBookFile(tmp_path, "boot")
        book.save(WatchBookState("boot", told={"a@1": ("DEAD", None, phrase("store.not_running"))}))
    assert json.loads((tmp_path / "controller.lock").read_text())["trouble"] == "campaign.db: the disk is full"
    assert book.load().told == {"a@1": ("DEAD", None, "it is not running")}
    lock.give_back()
