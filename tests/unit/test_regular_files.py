"""The opener of files that somebody else wrote: regular files only, at once, and no further than they reached."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from muster.files.safe_open import (
    HOLE_BYTES,
    FileTooLarge,
    NotRegularFile,
    is_permanent_read_error,
    open_log_file,
    open_regular_fd,
    open_regular_file,
    read_file_start,
    read_regular_file,
)


@pytest.mark.parametrize(("kind", "told"), [("fifo", "a FIFO"), ("socket", "a socket"), ("zero", "a device")])
@pytest.mark.parametrize("through_a_link", [False, True])
def test_what_is_no_file_is_refused_with_its_kind(tmp_path: Path, kind: str, told: str, through_a_link: bool) -> None:
    path = tmp_path / "odd"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.relpath(path))
    if through_a_link:
        (tmp_path / "link").symlink_to(path)
        path = tmp_path / "link"
    before = len(list(Path("/proc/self/fd").iterdir()))
    for opens in (
        open_regular_fd,
        open_regular_file,
        open_log_file,
        lambda at: read_regular_file(at, 10),
        lambda at: read_file_start(at, 1),
    ):
        with pytest.raises(NotRegularFile) as raised:
            opens(str(path))
        assert raised.value.strerror == f"it is no plain file but {told}"
        assert is_permanent_read_error(raised.value)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_folders_and_missing_files_are_told_as_ever(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_regular_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_regular_file(tmp_path / "none")


def test_a_link_to_a_file_is_followed_and_is_not_inherited(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    with open_regular_file(tmp_path / "link") as file:
        assert file.read() == b"abc"
        assert not os.get_inheritable(file.fileno())
    assert read_regular_file(tmp_path / "link", 3) == b"abc"
    with pytest.raises(FileTooLarge, match="more than 2 bytes"):
        read_regular_file(tmp_path / "link", 2)


def test_what_grows_while_it_is_read_ends(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n" * 100_000)
    with path.open("ab", buffering=0) as writer, open_log_file(path) as file:
        lines = 0
        for _ in file:
            lines += 1
            writer.write(b"two\n")
        assert lines == 100_000
    with open_regular_file(path) as file:
        writer_size = path.stat().st_size
        with path.open("ab") as writer:
            writer.write(b"three\n")
        assert len(file.read()) == writer_size


def test_a_hole_is_passed_over_and_ends_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"a 1\nb 2")
        file.seek(1 << 40)
        file.write(b"3\nc 4\n")
        file.truncate(1 << 41)
    with open_log_file(path) as log:
        text = log.read()
    assert text.count(HOLE_BYTES) == 2
    assert [line.strip(b"\0") for line in text.split(b"\n") if line.strip(b"\0")] == [b"a 1", b"b 2", b"3", b"c 4"]
    assert len(text) < 4 << 20
