"""Words of a shell's text: what shlex says, in time proportional to the length."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.app.campaign.preflight.missing_programs import find_missing_in_shell_text
from muster.text.command_template import split_shell_words
from muster.text.shell_words import split, split_commands

texts = st.text(st.sampled_from("ab=$/ \t\r\n'\"\\#;()<>|&é\x0b\xa0"), max_size=24)


def words_of(split: Callable[[str], list[str]], text: str) -> list[str] | None:
    try:
        return split(text)
    except ValueError:
        return None


def by_shlex(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    return list(lexer)


@given(texts)
def test_the_words_are_those_of_shlex(text: str) -> None:
    assert words_of(split, text) == words_of(shlex.split, text)
    assert words_of(lambda text: split(text, comments=True), text) == words_of(
        lambda text: shlex.split(text, comments=True), text
    )
    assert words_of(split_commands, text) == words_of(by_shlex, text)


SHAPES = {
    "one word": ("", "a"), "null": ("", "=null"), "quoted": ('"', "=\n", '"'), "single": ("'", "a ", "'"), "open": ("'", "a", ""),
    "open double": ('"', "a\\", ""), "escaped": ("", "\\a", ""), "in double": ('"', "\\\"", '"'), "empty": ("", "''", ""),
    "words": ("", "a ", ""), "comments": ("", "#\n", ""), "lines": ("", "\n", ""), "operators": ("", ";a|", ""),
    "folders": ("", "cd a\n", ""), "deep": ("", "cd " + "a/" * 900 + "\ncd /\n", ""), "in and out": ("", "cd a\n" * 900 + "cd /\n", ""),
    "former": ("cd " + "a" * 3000 + "\ncd /\npython ", "$OLDPWD", ""), "former ones": ("cd /" + "a" * 3000 + "\n", "cd /\npython $OLDPWD/a.py\n", ""),
    "launchers": ("", "nice ", ""), "srun": ("", "srun -x ", ""), "braces": ("", "{'a':", ""),
}  # fmt: skip


@pytest.mark.parametrize(
    "split", [split_shell_words, split_commands, lambda text: find_missing_in_shell_text(text, "/")]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_they_take_time_in_proportion(split: Callable[[str], object], shape: str) -> None:
    """A word of a megabyte once took 16 s."""
    short, long = (_cost(split, shape, size) for size in (250_000, 1_000_000))
    if long > 0.5 and long > 8 * short:
        short, long = (min(_cost(split, shape, size) for _ in range(3)) for size in (250_000, 1_000_000))
        assert long < 8 * short
    assert long < 5


def _cost(split: Callable[[str], object], shape: str, size: int) -> float:
    begin, piece, end = (*SHAPES[shape], "")[:3]
    text = begin + piece * (size // len(piece)) + end
    began = time.process_time()
    with suppress(ValueError):
        split(text)
    return time.process_time() - began


def test_a_name_with_a_nul_byte_is_a_script_that_is_not_there(tmp_path: Path) -> None:
    assert find_missing_in_shell_text("python a\0b/train.py", str(tmp_path)) is not None
