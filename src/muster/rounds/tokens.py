"""The words of an expression, each with its column."""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 2000  # characters
MOST = 300  # tokens: a chain of sums is as deep as it is long
_TOKEN = re.compile(
    r"""(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z_0-9.]))
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
      | (?P<sign><=|>=|==|!=|[-+*/<>(),.])""",
    re.VERBOSE,
)
_BLANK = re.compile(r"\s*")
_INSTEAD = {
    "&&": "and", "||": "or", "&": "and", "|": "or", "=": "==", "!": "not", "≤": "<=", "≥": ">=", "[": "(", "]": ")",
    "{": "(", "}": ")", "%": "a number, as in 0.1, or delta_pct", "“": '"', "”": '"',
}  # fmt: skip


class ExpressionError(ValueError):
    """An expression that can't be read; the message says where, and how to mend it."""

    def __init__(self, what: str, column: int, hint: str = "") -> None:
        super().__init__(f"column {column}: {what}" + (f"; {hint}" if hint else ""))
        self.what = what
        self.column = column
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # number | text | name | sign | end
    text: str
    start: int
    end: int

    @property
    def column(self) -> int:
        return self.start + 1


def tokens(text: str) -> list[Token]:
    if len(text) > LONGEST:
        raise ExpressionError(f"it is too long: {len(text)} characters, {LONGEST} are read", LONGEST)
    found: list[Token] = []
    at = _skip(text, 0)
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _wrong(text, at)
        found.append(Token(match.lastgroup, match[0], at, match.end()))
        if len(found) > MOST:
            raise ExpressionError(f"it is too long: more than {MOST} names, numbers and signs", at + 1)
        at = _skip(text, match.end())
    return [*found, Token("end", "", len(text), len(text))]


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _wrong(text: str, at: int) -> ExpressionError:
    if text[at] in "\"'":
        return ExpressionError("a text is not closed", at + 1, f"close it with {text[at]}")
    for sign in (text[at : at + 2], text[at]):
        if sign in _INSTEAD:
            return ExpressionError(f"{sign} is not known here", at + 1, f"write {_INSTEAD[sign]}")
    if text[at].isdigit() or text[at] == ".":
        word = re.match(r"[\w.]+", text[at:])
        return ExpressionError(f"{word[0] if word else text[at]!r} is no number", at + 1)
    return ExpressionError(f"{text[at]!r} is not known here", at + 1)


def text_of(token: Token) -> str:
    """What stands between the quotes."""
    return re.sub(r"\\(.)", r"\1", token.text[1:-1])
