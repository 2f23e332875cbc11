"""Makes text safe for a terminal: control characters, escape sequences, text that runs backwards. One table says what
is unsafe.

Text from runs, repositories and other users is data; all that is shown goes through here.
"""

from __future__ import annotations

import re
from functools import cache

# Controls but tab and line feed; characters that nobody sees or that turn the text round (tags and variation
# selectors can carry a whole hidden message); separators of lines that are no \n; halves of a character.
# Not U+FE0F and U+FE0E, which honest emoji have, nor the joiner between two of them.
_RANGES = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HIDDEN = frozenset(  # those of them that Python calls printable
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0))))
)
_PICTURE = r"\u2600-\u27bf\ufe0f\U0001f000-\U0001faff"
_UNSAFE = rf"(?!(?<=[{_PICTURE}])\u200d(?=[{_PICTURE}]))[{_RANGES}]"

# CSI; then OSC, DCS, SOS, PM and APC up to their end, or to the end of the line where they have none; then the rest.
# The same with one character (U+0080-9F) for the two.
_SEQUENCE = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n\r]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_BEGUN = (
    r"(?:\x1b[ -/]*|(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n\r]*\x1b?|\r)\Z"
)
_LONGEST_SEQUENCE = 4096  # what goes on for longer is no sequence that a terminal is told on purpose


def escape_terminal_text(text: str) -> str:
    """Each unsafe character spelled out as `\\x1b` or `\\u202e`, so that nothing is obeyed and nothing is hidden."""
    plain = text.replace("\n", "").replace("\t", "")
    if plain.isprintable() and (plain.isascii() or _HIDDEN.isdisjoint(plain)):  # at no cost, and nearly always so
        return text
    return _compile_cached(_UNSAFE).sub(_escape_character, text)


def escape_terminal_line(text: str) -> str:
    """The same for a name inside a line: a line feed or tab in it can't begin a line of its own."""
    return escape_terminal_text(text).replace("\n", r"\n").replace("\t", r"\t")


def replace_unprintable(text: str, instead: str = " ") -> str:
    """On one line, whatever can't be printed replaced: for what is kept, and told in sentences."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(sign if sign.isprintable() and sign not in _HIDDEN else instead for sign in text)


def escape_terminal_json(text: str) -> str:
    """JSON with such characters escaped: they stand in strings alone, so it says the same."""
    return text if text.isascii() and "\x7f" not in text else _compile_cached(_UNSAFE).sub(_json_unicode_escape, text)


def strip_terminal_sequences(text: str) -> str:
    """Without colours, titles and the like, whole sequences at a time."""
    return (
        _compile_cached(_SEQUENCE).sub("", text)
        if any(sign in text for sign in "\x1b\x90\x98\x9b\x9d\x9e\x9f")
        else text
    )


class TerminalFilter:
    """For a stream that comes in pieces: sequences are dropped, also those cut in two; a redrawn line is a new line."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, piece: str, *, last: bool = False) -> str:
        text, self._rest = self._rest + piece, ""
        begun = None if last else _compile_cached(_BEGUN).search(text, max(0, len(text) - _LONGEST_SEQUENCE))
        if begun:
            text, self._rest = text[: begun.start()], begun[0]
        text = strip_terminal_sequences(text).replace("\r\n", "\n").replace("\r", "\n")
        return _compile_cached(_UNSAFE).sub("", text)


@cache
def _compile_cached(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _escape_character(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_unicode_escape(found: re.Match[str]) -> str:
    return "".join(f"\\u{unit:04x}" for unit in _utf16_units(found[0]))


def _utf16_units(sign: str) -> tuple[int, ...]:
    code = ord(sign)
    return (code,) if code < 0x10000 else (0xD800 + (code - 0x10000 >> 10), 0xDC00 + (code - 0x10000 & 0x3FF))
