"""Splits a text into the words of a shell, as shlex does, in time proportional to its length.

shlex adds every character to the word before it, and copies that word each time: a word of a megabyte takes a minute.
"""

from __future__ import annotations

import re

_PIECES = r"(?P<blank>[ \t\r\n]+)|'(?P<single>[^']*+)'|(?P<double>\")|\\(?P<escaped>.)"
_OPEN = r"|(?P<open>['\\])"
_WORDS = re.compile(rf"{_PIECES}{_OPEN}|(?P<plain>[^ \t\r\n'\"\\]+)", re.DOTALL)
_COMMENTED = re.compile(rf"{_PIECES}|(?P<comment>#[^\n]*){_OPEN}|(?P<plain>[^ \t\r\n'\"\\#]+)", re.DOTALL)
_OPERATED = re.compile(
    rf"{_PIECES}|(?P<comment>#[^\n]*)|(?P<operator>[();<>|&]+){_OPEN}|(?P<plain>[^ \t\r\n'\"\\#();<>|&]+)", re.DOTALL
)
_IN_DOUBLE = re.compile(r'(?P<end>")|\\(?P<escaped>["\\])|(?P<plain>\\[^"\\]|[^"\\]+)', re.DOTALL)


def split(text: str, *, comments: bool = False) -> list[str]:
    """shlex.split. Raises ValueError for an open quote, and for a backslash at the end."""
    return _split(text, _COMMENTED if comments else _WORDS)


def split_commands(text: str) -> list[str]:
    """Without comments, and with each run of `();<>|&` as a word of its own."""
    return _split(text, _OPERATED)


def _split(text: str, pieces: re.Pattern[str]) -> list[str]:
    words: list[str] = []
    word: list[str] = []
    at = 0
    while match := pieces.match(text, at):
        kind, at = match.lastgroup, match.end()
        if kind == "open":
            raise ValueError("No escaped character" if match.group() == "\\" else "No closing quotation")
        if kind == "double":
            at = _end_of_double(text, at, word)
        elif kind in ("blank", "comment", "operator"):
            if word:
                words.append("".join(word))
                word = []
            if kind == "operator":
                words.append(match.group())
        else:
            word.append(match.group(str(kind)))
    if word:
        words.append("".join(word))
    return words


def _end_of_double(text: str, at: int, word: list[str]) -> int:
    """What stands in double quotes goes into the word."""
    word.append("")
    for match in _IN_DOUBLE.finditer(text, at):
        if match.lastgroup == "end":
            return match.end()
        word.append(match.group(str(match.lastgroup)))
    raise ValueError("No closing quotation")
