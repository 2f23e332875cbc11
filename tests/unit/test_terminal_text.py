"""What a terminal would obey, or a reader not see."""

from __future__ import annotations

import io
import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.faces.cli.common.terminal_output import (
    clean_for_terminal,
    cleaned_streams,
    clear_line,
    paint_text,
    print_json,
    terminal_code,
)
from muster.text.terminal_text import (
    TerminalFilter,
    escape_terminal_json,
    escape_terminal_line,
    escape_terminal_text,
    replace_unprintable,
    strip_terminal_sequences,
)

OBEYED = [sign for sign in map(chr, range(0xA0)) if unicodedata.category(sign) == "Cc" and sign not in "\n\t"]
TURNED = [chr(code) for code in (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))]
UNSEEN = list("\u200b\u200c\u2060\u2063\ufeff\xad\u034f\u3164\uffa0\ufe01\U000e0041\U000e0100\u2028\u2029")
UNSAFE = [*OBEYED, *TURNED, *UNSEEN, "\udc9b", "\ud800"]
HOSTILE = "a\x1b[41mred\x1b[0m\x1b]0;title\x07b\x1b]8;;http://evil/\x1b\\link\x1b]8;;\x1b\\\x9b2Jc\x9d0;t\x9cd\x1bPq#1\x1b\\e\x1bc\x1b(0f"
ANY = st.text(st.characters() | st.sampled_from(UNSAFE))


def is_harmless(text: str) -> bool:
    return not any(sign in text for sign in UNSAFE)


@pytest.mark.parametrize("sign", UNSAFE, ids=lambda sign: f"{ord(sign):04x}")
def test_each_is_spelled_out_and_text_beside_it_stays(sign: str) -> None:
    shown = escape_terminal_text(f"left{sign}right")
    assert is_harmless(shown)
    assert shown.startswith("left\\")
    assert f"{ord(sign):x}" in shown
    assert shown.endswith("right")
    assert replace_unprintable(f"left{sign}right") == "left right"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "\tindented\n",
        "配置 v2，完成",
        "3\u00a0μm",
        "　",
        "✔ ‖ …",
        "👩\u200d🔬",
        "❤\ufe0f",
        "é e\u0301",
        "\ue0a0",
    ],
)
def test_honest_text_stays_as_it_is(text: str) -> None:
    assert escape_terminal_text(text) == text


def test_a_name_begins_no_line_of_its_own() -> None:
    assert escape_terminal_line("a\nmuster: all is well\tb") == r"a\nmuster: all is well\tb"


def test_whole_sequences_go_and_the_text_between_them_stays() -> None:
    assert strip_terminal_sequences(HOSTILE) == "aredblinkcdef"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_a_stream_is_filtered_however_it_is_cut(size: int) -> None:
    text = f"{HOSTILE}\r\n10%\r20%\nend\x00\u202e\x7f\x08\n"
    one = TerminalFilter()
    pieces = [one.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join(pieces) + one.feed("", last=True) == "aredblinkcdef\n10%\n20%\nend\n"


def test_a_sequence_without_end_hides_no_more_than_its_line() -> None:
    one = TerminalFilter()
    assert one.feed("a\x1b]0;" + "x" * 100) == "a"
    assert one.feed("y\nthe next line\n") == "\nthe next line\n"
    assert len(one.feed("\x1b]0;" + "z" * 100_000)) >= 0
    assert one.feed("\nafter it\n").endswith("after it\n")


@given(ANY)
def test_whatever_it_is_nothing_of_it_is_obeyed(text: str) -> None:
    assert is_harmless(escape_terminal_text(text))
    assert is_harmless(replace_unprintable(text))
    assert escape_terminal_text(escape_terminal_text(text)) == escape_terminal_text(text)
    one = TerminalFilter()
    filtered = "".join(map(one.feed, text)) + one.feed("", last=True)
    assert is_harmless(filtered)


@given(ANY)
def test_json_says_the_same_with_escapes(text: str) -> None:
    for ascii_only in (True, False):
        shown = escape_terminal_json(json.dumps({text: [text]}, ensure_ascii=ascii_only))
        assert is_harmless(shown)
        assert json.loads(shown) == json.loads(json.dumps({text: [text]}))


class Screen(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_only_codes_of_our_own_get_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    with cleaned_streams():
        print(paint_text("bad\x1b[32mGOOD", "red"), "\x1b[32mDONE\x9b", end="")
        sys.stdout.write(clear_line())
        sys.stdout.writelines(["\x1b<", "x>\x1b[31mm>"])
        guess = terminal_code("31m").replace(terminal_code("")[2:-1], "0" * 24)
        print(guess, "x", file=sys.stdout)
    shown = screen.getvalue()
    assert shown.startswith("\x1b[31mbad\\x1b[32mGOOD\x1b[0m \\x1b[32mDONE\\x9b\x1b[G\x1b[K\\x1b<x>\\x1b[31mm>\\x1b<")
    assert shown.count("\x1b") == 4


def test_what_is_drawn_past_print_is_cleaned_too() -> None:
    assert clean_for_terminal("a\x1b[2Jb") == r"a\x1b[2Jb"


def test_the_streams_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sys.stdout, sys.stderr
    with cleaned_streams(), cleaned_streams():
        assert sys.stdout is not before[0]
    assert (sys.stdout, sys.stderr) == before


def test_an_object_is_json_and_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    with cleaned_streams():
        print_json({"\x7f\x9b": "\u202e\U000e0041\x1b\n配置"})
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert json.loads(shown) == {"\x7f\x9b": "\u202e\U000e0041\x1b\n配置"}
