"""A log loses its middle: its blocks, and neither its length, its ends, nor anybody's place in it."""

from __future__ import annotations

import os
from pathlib import Path

from muster.hosts.local.attempt_observer import cut_attempt_logs
from muster.readers.records.growing_file import FileTail, GrowingFile

MOST = 1 << 20
LINE = b"step %08d of a run that prints without end\n"


def write(path: Path, first: int, last: int) -> None:
    with open(path, "ab") as log:
        log.write(b"".join(LINE % number for number in range(first, last)))


def blocks(path: Path) -> int:
    return path.stat().st_blocks * 512


def test_it_keeps_its_length_and_both_ends(tmp_path: Path) -> None:
    log = tmp_path / "stdout.log"
    write(log, 0, 100_000)
    before = log.read_bytes()
    assert cut_attempt_logs(str(tmp_path), MOST) > 3 * MOST
    after = log.read_bytes()
    assert len(after) == len(before)
    assert after[: MOST // 4] == before[: MOST // 4]
    assert after[-MOST // 2 :] == before[-MOST // 2 :]
    assert blocks(log) <= MOST
    assert cut_attempt_logs(str(tmp_path), MOST) == 0, "there is room until the next time"


def test_one_that_is_small_enough_or_no_file_stays(tmp_path: Path) -> None:
    write(tmp_path / "stdout.log", 0, 1000)
    os.mkfifo(tmp_path / "stderr.log")
    before = (tmp_path / "stdout.log").read_bytes()
    assert cut_attempt_logs(str(tmp_path), MOST) == 0
    assert (tmp_path / "stdout.log").read_bytes() == before
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere, 0, 100_000)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "stdout.log").symlink_to(elsewhere)
    assert cut_attempt_logs(str(tmp_path / "run"), MOST) == 0, "what a link leads to is not ours"


def test_who_writes_and_who_reads_notice_nothing(tmp_path: Path) -> None:
    log = tmp_path / "stdout.log"
    writer = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    tail, growing = FileTail(str(log)), GrowingFile(str(log))
    try:
        seen = 0
        for turn in range(20):
            os.write(writer, b"".join(LINE % number for number in range(turn * 10_000, (turn + 1) * 10_000)))
            lines = b""
            while (chunk := tail.read()).text or chunk.more:
                lines += chunk.text
            with growing.opened() as replaced:
                assert not replaced
                growing.go_on(growing.size)
            assert tail.generation == 0
            assert lines.splitlines()[-1] + b"\n" == LINE % ((turn + 1) * 10_000 - 1)
            if turn:
                assert lines.splitlines()[0] + b"\n" == LINE % (turn * 10_000)
            seen += cut_attempt_logs(str(tmp_path), MOST)
        assert seen > 6 * MOST
        assert blocks(log) <= MOST
        assert log.stat().st_size == 200_000 * len(LINE % 0)
    finally:
        os.close(writer)
