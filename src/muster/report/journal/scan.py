"""A journal line by line: code, comments and generated blocks apart from what a person wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|[0-9]{1,3}[.)])[ \t]+)?(?P<fence>`{3,}|~{3,})(?P<info>[^\r\n]*)")
_MARKER = re.compile(r"[ \t]*<!--[ \t]*muster:(?P<what>\w+)(?P<rest>[^\r\n]*?)-->[ \t]*")
_STRANGE = re.compile(r"[ \t]*<!--[ \t]*muster:")
_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")


class Unreadable(Exception):
    """A text that can't be worked on; the message says why, and `line` where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message, self.line = message, line


@dataclass(frozen=True, slots=True)
class Line:
    number: int  # from 1
    start: int
    end: int  # without its line end
    text: str
    kind: str  # text | code | comment | begin | end
    inside: bool = False  # of a generated block


def newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def scan(text: str) -> list[Line]:
    """Raises Unreadable where a fence, a comment or a block is never closed: nothing behind it could be told apart."""
    found: list[Line] = []
    fence, comment, block = _Open(), 0, 0
    for number, (start, shown) in enumerate(_lines(text), 1):
        kind = "text"
        if fence.mark:
            kind, closed = "code", fence.closed_by(shown)
            fence = _Open() if closed else fence
        elif comment:
            kind = "comment"
            comment = 0 if "-->" in shown else comment
        elif marker := _MARKER.fullmatch(shown):
            kind = _marker(marker["what"], block, number)
            block = number if kind == "begin" else 0
        elif _STRANGE.match(shown):
            raise Unreadable("a marker of Muster's is damaged", number)
        elif fence.opened_by(shown, number):
            kind = "code"
        elif _opens_comment(shown):
            kind, comment = "comment" if shown.lstrip().startswith("<!--") else "text", number
        elif shown.lstrip().startswith("<!--"):
            kind = "comment"
        found.append(Line(number, start, start + len(shown), shown, kind, bool(block) and kind != "begin"))
    for open_, what in ((fence.line, "code block"), (comment, "comment"), (block, "generated block")):
        if open_:
            raise Unreadable(f"a {what} begins here and is never closed", open_)
    return found


class _Open:
    """A fence that waits for its end."""

    def __init__(self) -> None:
        self.mark, self.line = "", 0

    def opened_by(self, shown: str, number: int) -> bool:
        found = _FENCE.fullmatch(shown)
        if found is None or (found["fence"][0] == "`" and "`" in found["info"]):
            return False
        self.mark, self.line = found["fence"], number
        return True

    def closed_by(self, shown: str) -> bool:
        body = shown.strip(" \t>")
        return len(body) >= len(self.mark) and set(body) == {self.mark[0]}


def _marker(what: str, block: int, number: int) -> str:
    if what not in ("begin", "end"):
        raise Unreadable(f"there is no marker muster:{what}", number)
    if what == "begin" and block:
        raise Unreadable(f"a generated block begins inside that of line {block}", number)
    if what == "end" and not block:
        raise Unreadable("a generated block ends here that never began", number)
    return what


def uncommented(text: str) -> str:
    """Without comments; the beginning of one that does not end here is made harmless."""
    bare = _CODE.sub(lambda found: found[0].replace("<!--", "\0"), text)
    bare = re.sub(r"<!--.*?-->", "", bare, flags=re.DOTALL)
    return bare.replace("<!--", "\\<!--").replace("\0", "<!--")


def _opens_comment(shown: str) -> bool:
    bare = _CODE.sub("", shown.replace("\\<", "  "))
    return bare.rfind("<!--") > bare.rfind("-->")


def _lines(text: str) -> Sequence[tuple[int, str]]:
    found, at = [], 0
    for line in text.split("\n"):
        found.append((at, line.removesuffix("\r")))
        at += len(line) + 1
    if found[0][1].startswith("\ufeff"):
        found[0] = (1, found[0][1][1:])
    if len(found) > 1 and not found[-1][1]:
        found.pop()
    return found
