"""What was launched stays launched, whatever can't be read for a moment."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from muster.engine.ports.clock import SystemClock
from muster.files import process_identity
from muster.files.process_identity import read_boot_id
from muster.hosts.local.attempt_probe import AttemptProbe
from muster.hosts.local.launch_orders import LaunchBook
from muster.model.attempt import Attempt
from muster.model.attempt_snapshot import ProofReading


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """A real EMFILE."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, hard))
    held = []
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in held:
            os.close(fd)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    book = LaunchBook(tmp_path / "launched")
    book.note("a")
    book.close()
    return tmp_path / "launched"


def test_a_book_that_cannot_be_read_says_so(path: Path) -> None:
    book = LaunchBook(path)
    with no_descriptor_left(), pytest.raises(OSError, match="Too many open files"):
        book.known()
    assert "a" in book.known()


def test_a_controller_that_cannot_read_it_forgets_nothing(path: Path) -> None:
    book = LaunchBook(path)
    with no_descriptor_left():
        book.keep_only({"a"})
    assert "a" in book.known()


def test_one_that_was_deleted_or_replaced_says_that_all_may_have_been_launched(path: Path) -> None:
    path.unlink()
    first = LaunchBook(path)
    first.keep_only({"a", "b"})
    assert set(first.known()) == set(LaunchBook(path).known()) == {"a", "b"}
    path.unlink()
    os.mkfifo(path)
    second = LaunchBook(path)
    second.keep_only({"c"})
    assert set(LaunchBook(path).known()) == {"c"}


def test_one_that_cannot_be_written_is_known_as_long_as_the_controller_lives(tmp_path: Path) -> None:
    book = LaunchBook(tmp_path / "gone" / "launched")
    book.keep_only({"a"})
    assert "a" in book.known()


def test_who_cannot_look_for_its_processes_does_not_call_it_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = Attempt("train/0", 1, "token", 1, (), "", "", SystemClock().boot() - 100, read_boot_id())
    probe = AttemptProbe(lambda *_: tmp_path / "none", SystemClock(), lambda *_: ProofReading(True))
    opened = open

    def refused(path: str, *words: str) -> IO[Any]:
        if str(path).endswith("/environ"):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return opened(path, *words)

    monkeypatch.setattr(process_identity, "open", refused, raising=False)
    seen = probe.look([attempt])[attempt.key]
    assert (seen.started, seen.trouble) == ("unread", "[Errno 24] Too many open files")
