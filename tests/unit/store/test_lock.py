"""controller.lock: readable at every moment, whatever trouble it tells of."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.engine.ports.clock import SystemClock
from muster.engine.store.controller_files import LOCK_LENGTH, ControllerLock


@pytest.mark.parametrize(
    "trouble", ["磁盘已满" * 100, "\U0001f525" * 300, "\x00" * 300, "\udcff" * 300, "plain " * 100]
)
def test_trouble_in_any_script_fits(tmp_path: Path, trouble: str) -> None:
    lock = ControllerLock(tmp_path, SystemClock())
    assert lock.take()
    try:
        for said in (trouble, "", trouble, "short"):
            lock.beat(3, said)
            assert lock.path.stat().st_size == LOCK_LENGTH
            holder = lock.holder()
            assert holder is not None
            assert holder.epoch == 3
            assert said.startswith(holder.trouble)
            assert len(holder.trouble) >= min(len(said), 50)
    finally:
        lock.give_back()


def test_the_tail_of_a_longer_one_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "controller.lock").write_text("x" * 2 * LOCK_LENGTH)
    lock = ControllerLock(tmp_path, SystemClock())
    assert lock.take()
    try:
        holder = lock.holder()
        assert holder is not None
        assert (holder.epoch, holder.alive) == (0, True)
    finally:
        lock.give_back()
