"""A growing file, whatever happens to it: whole lines, each once, at the cost of what is new."""

import os
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.readers.records import growing_file
from muster.readers.records.growing_file import LONGEST_LINE, MOST_BYTES, FileTail, lines_with_needle

needs_a_user = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def drain(tail: FileTail) -> bytes:
    text = b""
    while True:
        chunk = tail.read()
        text += chunk.text
        if not chunk.more:
            return text


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


# -- growth


def test_missing_then_there(log: Path) -> None:
    tail = FileTail(str(log))
    assert (drain(tail), tail.exists) == (b"", False)
    log.write_bytes(b"one\n")
    assert (drain(tail), tail.exists, tail.generation) == (b"one\n", True, 0)


def test_missing_folder_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert drain(FileTail(str(tmp_path / "none" / "x"))) == drain(FileTail(str(tmp_path / "file" / "x"))) == b""


def test_each_line_comes_once_and_a_half_one_waits(log: Path) -> None:
    tail = FileTail(str(log))
    append(log, b"one\ntw")
    assert (drain(tail), tail.rest) == (b"one\n", b"tw")
    assert drain(tail) == b""
    append(log, b"o")
    assert drain(tail) == b""
    append(log, b"\nthree\nfour")
    assert (drain(tail), tail.rest) == (b"two\nthree\n", b"four")


@given(st.lists(st.binary(max_size=20).map(lambda text: text.replace(b"\0", b"\n")), max_size=30))
def test_pieces_add_up(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / "pieces.log"
    path.write_bytes(b"")
    tail, seen = FileTail(str(path)), b""
    for piece in pieces:
        append(path, piece)
        seen += drain(tail)
    text = b"".join(pieces)
    assert seen == text[: text.rfind(b"\n") + 1]
    assert tail.rest == text[len(seen) :]
    assert (tail.unended, tail.generation) == (len(tail.rest), 0)


def test_a_read_is_bounded_and_says_that_there_is_more(log: Path) -> None:
    tail = FileTail(str(log))
    log.write_bytes(b"x" * 99 + b"\n")
    drain(tail)
    append(log, (b"y" * 99 + b"\n") * (3 * MOST_BYTES // 100))
    chunk = tail.read()
    assert chunk.more
    assert len(chunk.text) <= MOST_BYTES
    assert len(chunk.text) + len(drain(tail)) == 3 * MOST_BYTES // 100 * 100


def test_a_large_file_is_read_from_near_its_end(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_file, "TAIL_BYTES", 1000)
    log.write_bytes(b"header\n" + b"".join(b"line %d\n" % n for n in range(100_000)))
    tail = FileTail(str(log))
    lines = drain(tail).splitlines()
    assert lines[-1] == b"line 99999"
    assert 80 < len(lines) <= 100
    assert lines[0].startswith(b"line 999")  # a whole one
    assert tail.first == b"header"
    append(log, b"more\n")
    assert drain(tail) == b"more\n"


def test_far_behind_it_goes_on_near_the_end(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_file, "TAIL_BYTES", 1000)
    monkeypatch.setattr(growing_file, "FAR_BEHIND", 5000)
    log.write_bytes(b"start\n")
    tail = FileTail(str(log))
    drain(tail)
    append(log, b"".join(b"line %d\n" % n for n in range(10_000)))
    lines = drain(tail).splitlines()
    assert lines[-1] == b"line 9999"
    assert len(lines) <= 100
    assert tail.generation == 0


def test_the_cost_is_that_of_what_is_new(log: Path) -> None:
    log.write_bytes(b"a line of a log\n" * 500_000)
    tail = FileTail(str(log))
    drain(tail)
    began = time.perf_counter()
    for _ in range(500):
        append(log, b"one more\n")
        assert tail.read().text == b"one more\n"
    assert time.perf_counter() - began < 0.5


# -- lines without an end, NULs


def test_an_endless_line_costs_no_memory_and_is_dropped(log: Path) -> None:
    log.write_bytes(b"before\n")
    tail = FileTail(str(log))
    assert drain(tail) == b"before\n"
    append(log, b"x" * (LONGEST_LINE + 10))
    assert drain(tail) == b""
    assert tail.overlong
    assert tail.rest == b""
    append(log, b"x" * 1000)
    assert drain(tail) == b""
    assert tail.unended == LONGEST_LINE + 1010
    append(log, b"xx\nafter\n")
    assert drain(tail) == b"after\n"
    assert not tail.overlong


def test_an_endless_line_that_grows_slowly_is_not_copied_again_and_again(log: Path) -> None:
    log.touch()
    tail = FileTail(str(log))
    began = time.perf_counter()
    with log.open("ab", 0) as file:
        for _ in range(2000):
            file.write(b"y" * 500)
            tail.read()
    assert time.perf_counter() - began < 1.0


@pytest.mark.parametrize("first", [b"", b"seen\n"])
def test_two_gigabytes_without_a_newline(log: Path, first: bytes) -> None:
    log.write_bytes(first)
    tail = FileTail(str(log))
    if first:
        drain(tail)
    os.truncate(log, 2 << 30)
    tracemalloc.start()
    began = time.perf_counter()
    assert drain(tail) == b""
    took = time.perf_counter() - began
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tail.overlong
    assert tail.offset == 2 << 30
    assert took < 2.0
    assert peak < 64 << 20
    append(log, b'{"step": 3}\n')
    assert drain(tail) == b'{"step": 3}\n'


def test_nuls_of_a_power_cut_are_no_text(log: Path) -> None:
    tail = FileTail(str(log))
    append(log, b"one\ntw" + bytes(5000))
    assert drain(tail) == b"one\n"
    append(log, b"three\nfour\n")
    assert drain(tail) == b"three\nfour\n"  # "tw" was never finished
    append(log, b"fi" + bytes(3) + b"six\n")
    assert drain(tail) == b"six\n"


def test_a_large_file_with_nuls_at_its_end(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_file, "TAIL_BYTES", 100)
    log.write_bytes(b"line\n" * 1000)
    os.truncate(log, 50 << 20)
    tail = FileTail(str(log))
    assert b"line\n" in drain(tail)
    append(log, b"next\n")
    assert drain(tail) == b"next\n"


# -- another file


def test_truncated(log: Path) -> None:
    log.write_bytes(b"one\ntwo\nthr")
    tail = FileTail(str(log))
    drain(tail)
    os.truncate(log, 0)
    assert (drain(tail), tail.generation, tail.rest) == (b"", 1, b"")
    append(log, b"new\n")
    assert (drain(tail), tail.generation) == (b"new\n", 1)


def test_copytruncate_that_grew_again_before_the_look(log: Path) -> None:
    log.write_bytes(b"one\ntwo\n")
    tail = FileTail(str(log))
    drain(tail)
    with log.open("r+b") as file:  # the same inode, larger than before
        file.truncate(0)
        file.write(b"other 1\nother 2\nother 3\n")
    assert (drain(tail), tail.generation) == (b"other 1\nother 2\nother 3\n", 1)


def test_rotated_by_rename(log: Path) -> None:
    log.write_bytes(b"one\n")
    tail = FileTail(str(log))
    drain(tail)
    log.rename(log.with_suffix(".1"))
    assert (drain(tail), tail.exists, tail.generation) == (b"", False, 0)
    log.write_bytes(b"one\ntwo\n")  # even where it begins with the same bytes
    assert (drain(tail), tail.generation) == (b"one\ntwo\n", 1)


def test_replaced_by_another_inode(log: Path) -> None:
    log.write_bytes(b"one\n")
    tail = FileTail(str(log))
    drain(tail)
    other = log.with_suffix(".new")
    other.write_bytes(b"one\ntwo\n")
    other.replace(log)
    assert (drain(tail), tail.generation) == (b"one\ntwo\n", 1)


def test_a_new_header_with_the_same_end_is_another_file(log: Path) -> None:
    rows = b"".join(b"%d\n" % n for n in range(1000))
    log.write_bytes(b"a,b\n" + rows)
    tail = FileTail(str(log))
    drain(tail)
    log.write_bytes(b"c,d\n" + rows + b"1000\n")
    assert drain(tail).startswith(b"c,d\n")
    assert tail.generation == 1


# -- what can't be read


@needs_a_user
def test_unreadable_raises(log: Path) -> None:
    log.write_bytes(b"one\n")
    log.chmod(0)
    with pytest.raises(PermissionError):
        FileTail(str(log)).read()


def test_folders_and_pipes_raise_and_do_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(OSError):
            FileTail(str(path)).read()


def test_an_error_loses_nothing(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write_bytes(b"one\n")
    tail = FileTail(str(log))
    drain(tail)
    append(log, b"two\n")
    with monkeypatch.context() as patch:
        patch.setattr(growing_file.os, "pread", _fails)
        with pytest.raises(OSError):
            tail.read()
    assert (drain(tail), tail.generation) == (b"two\n", 0)


def _fails(*_: object) -> bytes:
    raise OSError(5, "Input/output error")


# -- progress bars


def test_bars_end_with_carriage_returns(log: Path) -> None:
    tail = FileTail(str(log), bars=True)
    append(log, b" 1/9\r 2/9\r 3/9")
    assert (drain(tail), tail.rest) == (b" 1/9\r 2/9\r", b" 3/9")
    append(log, b"\r 4/9\nbye\n")
    assert drain(tail) == b" 3/9\r 4/9\nbye\n"


def test_a_log_without_line_ends_is_handed_out_in_pieces(log: Path) -> None:
    tail = FileTail(str(log), bars=True)
    words = b"".join(b"step %d " % n for n in range(200_000))
    append(log, words)
    pieces = drain(tail)
    assert len(pieces) > LONGEST_LINE
    append(log, b"\n")
    assert b"".join((pieces + drain(tail)).split()) == b"".join(words.split())  # nothing lost, no number cut
    assert {len(piece.split()[-1]) for piece in pieces.splitlines()} <= {4, 5, 6}


# -- lines, from the end


@given(
    st.lists(st.sampled_from([b"", b"a", b"needle", b"x needle y needle", b"needles", b" "]), max_size=12),
    st.booleans(),
)
def test_lines_back(lines: list[bytes], ended: bool) -> None:
    text = b"\n".join(lines) + (b"\n" if ended else b"")
    stripped = [line.strip() for line in reversed(text.split(b"\n"))]
    assert list(lines_with_needle(text)) == [line for line in stripped if line]
    assert list(lines_with_needle(text, b"needle")) == [line for line in stripped if b"needle" in line]
    follow = [line for line in stripped if b"needle " in line]
    assert list(lines_with_needle(text, b"needle", b" ")) == follow
