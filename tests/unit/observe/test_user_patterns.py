"""Patterns of users: what explodes is given up after a second of processor time, and the others are as they were."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.model.campaign import DeclaredResult
from muster.readers import user_patterns
from muster.readers.pattern_child import PatternHit
from muster.readers.records.record_steps import read_last_step
from muster.readers.records.row_steps import LogPattern
from muster.readers.records.text_steps import PrintedStepReader
from muster.readers.results import read_cell_result
from muster.readers.user_patterns import LONGEST_SEARCHED_LINE, PatternTooSlow, UserPattern

SLOW = "(?:a+)+b([0-9]+)"
APART = r"epoch (\d+).*loss.*=(\d)"  # not tame by its form, and quick on honest lines


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    user_patterns._slow_patterns.clear()
    yield
    user_patterns._slow_patterns.clear()
    user_patterns.end_pattern_child()


def test_no_process_is_started_for_an_honest_pattern(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("step 1\nstep 22 of 30\n")
    assert read_last_step(str(log), "stdout", r"step (\d+)") == 22
    assert user_patterns._pattern_children == []


def test_both_ways_find_the_same() -> None:
    lines = [
        "epoch 1 loss=3 epoch 2 loss=4",
        "",
        "nothing",
        "é epoch 7, loss =5",
        "x" * LONGEST_SEARCHED_LINE + "epoch 9 loss=1",
    ]
    apart = UserPattern(APART).hits(lines)
    assert len(user_patterns._pattern_children) == 1
    own: list[list[PatternHit]] = [
        [(m.group(1), m.end(1) == len(line), {}) for m in re.finditer(APART, line[-LONGEST_SEARCHED_LINE:])]
        for line in lines
    ]
    assert apart == own


def test_one_that_explodes_is_given_up_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PatternTooSlow, match="is too slow"):
        UserPattern(SLOW).hits(["a" * 46])
    assert user_patterns._pattern_children == []  # the kernel ended it
    began = time.process_time()
    with pytest.raises(PatternTooSlow):
        UserPattern(SLOW).hits(["aab1"])
    assert time.process_time() - began < 0.1
    monkeypatch.setattr(user_patterns, "REMEMBERED_S", 0.0)
    assert UserPattern(SLOW).hits(["aab1"]) == [[("1", True, {})]]


def test_many_slow_lines_are_too_slow_in_this_process_too() -> None:
    with pytest.raises(PatternTooSlow):
        UserPattern(r".*b(\d)").hits(["ab" * (LONGEST_SEARCHED_LINE // 2)] * 1000)
    assert user_patterns._pattern_children == []


def test_a_log_goes_on_telling_it(tmp_path: Path) -> None:
    log = tmp_path / "stdout.log"
    log.write_text("a" * 46 + "\n")
    reader = PrintedStepReader(str(log), LogPattern.of(SLOW))
    for _ in range(2):
        with pytest.raises(PatternTooSlow, match=r"\(\?:a\+\)\+b"):
            reader.look()
    with pytest.raises(PatternTooSlow):
        read_last_step(str(log), "stdout", SLOW)
    with pytest.raises(PatternTooSlow):
        read_cell_result(DeclaredResult("x", "stdout", SLOW), str(log), "stdout.log", {})


def test_a_long_line_of_a_result_is_read_in_parts(tmp_path: Path) -> None:
    log = tmp_path / "stdout.log"
    log.write_text("word " * 10_000 + "score: 12.5 " + "word " * 10_000 + "\rscore: 13.5\n")
    found = read_cell_result(
        DeclaredResult("x", "stdout", r"score: ([\d.]+)", reduce="mean"), str(log), "stdout.log", {}
    )
    assert (found.value, found.rows) == (13.0, 2)


def test_the_child_that_was_killed_is_started_again() -> None:
    pattern = UserPattern(APART)
    assert pattern.hits(["epoch 1 loss=3"]) != [[]]
    child = user_patterns._pattern_children[0].process
    child.kill()
    child.wait()
    assert pattern.hits(["epoch 1 loss=3"]) != [[]]
