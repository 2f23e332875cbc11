"""Reads that hang, fail or find no thread hold nobody up and end nothing."""

import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from muster.engine.ports.clock import SystemClock
from muster.hosts.local.attempt_observer import _answer_if_ready
from muster.readers.background_reader import BackgroundReader, run_in_daemon_thread
from muster.readers.checkpoints.whole_checkpoints import check_checkpoint


@pytest.fixture
def no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


@pytest.mark.usefixtures("no_thread")
def test_a_system_without_a_thread_for_us() -> None:
    with pytest.raises(OSError, match="can't start new thread"):
        run_in_daemon_thread(lambda: 1).result(1)
    shift: BackgroundReader[int, int] = BackgroundReader(SystemClock())
    shift.read({0: lambda: 1})
    assert shift.newest == {}


def test_who_asks_again_does_not_wait_again() -> None:
    gate = threading.Event()
    asked: dict[str, Any] = {}
    assert _answer_if_ready(asked, "a", gate.wait) is None
    waiting = asked["a"]
    assert _answer_if_ready(asked, "a", gate.wait) is None
    assert asked["a"] is waiting
    gate.set()
    waiting.result(10)
    found = _answer_if_ready(asked, "a", gate.wait)
    assert found is not None
    assert found.result() is True
    assert asked == {}


def test_the_oldest_answer_is_asked_for_first() -> None:
    order: list[int] = []
    shift: BackgroundReader[int, int] = BackgroundReader(SystemClock(), patience_s=10)
    shift.read({key: lambda key=key: order.append(key) or key for key in (1, 2)})  # type: ignore[misc]
    shift.read({key: lambda key=key: order.append(key) or key for key in (1, 2, 3)})  # type: ignore[misc]
    assert order == [1, 2, 3, 1, 2]


@pytest.mark.parametrize("at", range(40))
def test_no_damage_to_a_zip_directory_escapes(tmp_path: Path, at: int) -> None:
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", b"x" * 100)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 4 + at] ^= 0xFF
    path.write_bytes(data)
    check_checkpoint(str(path))  # whole or not: it answers
