"""The waker: a ring, an end, and an end that came before anybody watched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from muster.files.state_folder import ring_bell
from muster.hosts.local.waker import LocalWaker

KEY = ("train/0", 1)


def ended() -> int:
    run = subprocess.Popen(["true"])
    run.wait()
    return run.pid


def test_a_ring_names_an_attempt_or_the_log(tmp_path: Path) -> None:
    waker = LocalWaker(tmp_path / "bell")
    assert ring_bell(tmp_path / "bell", "train/0\t1")
    assert ring_bell(tmp_path / "bell")
    wake = waker.wait(5)
    assert (wake.attempts, wake.log) == ({KEY}, True)
    waker.close()
    assert not ring_bell(tmp_path / "bell"), "nobody listens"


def test_an_end_wakes_once(tmp_path: Path) -> None:
    waker = LocalWaker(tmp_path / "bell")
    reader, writer = os.pipe()
    with subprocess.Popen(["cat"], stdin=reader, stdout=subprocess.DEVNULL) as run:
        os.close(reader)
        waker.watch(KEY, [run.pid])
        assert not waker.wait(0).attempts
        os.close(writer)
        assert waker.wait(5).attempts == {KEY}
    waker.watch(KEY, [run.pid])
    assert not waker.wait(0).attempts, "a pid that has fired is not watched again"
    waker.close()


def test_an_end_that_came_before_anybody_watched_wakes_too(tmp_path: Path) -> None:
    waker = LocalWaker(tmp_path / "bell")
    pid = ended()
    waker.watch(KEY, [pid])
    assert waker.wait(60).attempts == {KEY}
    waker.watch(KEY, [pid])
    assert not waker.wait(0).attempts, "but only once: no busy loop"
    waker.close()
