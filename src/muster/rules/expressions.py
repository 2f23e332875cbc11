"""The language of `when` and of `keep: by`: `last("ot.pi_sum") < 0.05 and not missing("eval.success")`.

No Python is evaluated: a text becomes a tree of the few nodes below, or an error with its column.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from muster.rules.metric_summary import KEPT_VALUES

LONGEST_EXPRESSION = 2000  # characters
MOST_TOKENS = 300  # tokens: a chain of sums is as deep as it is long
_TOKEN = re.compile(
    r"""(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z_0-9.]))
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
      | (?P<sign><=|>=|==|!=|[-+*/<>(),.])""",
    re.VERBOSE,
)
_BLANK = re.compile(r"\s*")
_INSTEAD = {
    "&&": "and",
    "||": "or",
    "&": "and",
    "|": "or",
    "=": "==",
    "!": "not",
    "≤": "<=",
    "≥": ">=",
    "[": "(",
    "]": ")",
    "{": "(",
    "}": ")",
    "%": "a number, as in 0.1, or delta_pct",
    "“": '"',
    "”": '"',
}


class ExpressionError(ValueError):
    """An expression that can't be read; the message says where, and how to fix it."""

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


def tokenize_expression(text: str) -> list[Token]:
    if len(text) > LONGEST_EXPRESSION:
        raise ExpressionError(
            f"it is too long: {len(text)} characters, {LONGEST_EXPRESSION} are read", LONGEST_EXPRESSION
        )
    found: list[Token] = []
    at = _skip_expression_blanks(text, 0)
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _unknown_token_error(text, at)
        found.append(Token(match.lastgroup, match[0], at, match.end()))
        if len(found) > MOST_TOKENS:
            raise ExpressionError(f"it is too long: more than {MOST_TOKENS} names, numbers and signs", at + 1)
        at = _skip_expression_blanks(text, match.end())
    return [*found, Token("end", "", len(text), len(text))]


def _skip_expression_blanks(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _unknown_token_error(text: str, at: int) -> ExpressionError:
    if text[at] in "\"'":
        return ExpressionError("a text is not closed", at + 1, f"close it with {text[at]}")
    for sign in (text[at : at + 2], text[at]):
        if sign in _INSTEAD:
            return ExpressionError(f"{sign} is not known here", at + 1, f"write {_INSTEAD[sign]}")
    if text[at].isdigit() or text[at] == ".":
        word = re.match(r"[\w.]+", text[at:])
        return ExpressionError(f"{word[0] if word else text[at]!r} is no number", at + 1)
    return ExpressionError(f"{text[at]!r} is not known here", at + 1)


def unquote_token(token: Token) -> str:
    """What stands between the quotes."""
    return re.sub(r"\\(.)", r"\1", token.text[1:-1])


ExpressionKind = Literal["number", "truth", "text"]
DEEPEST_EXPRESSION = 40
KEY_FUNCTIONS = ("last", "first", "min", "max", "best", "delta", "delta_pct", "mean", "count", "nan", "slope")
WINDOW_FUNCTIONS = ("mean", "min", "max", "slope", "last", "first", "delta", "delta_pct", "count", "nan")
FUNCTIONS = (*KEY_FUNCTIONS, "window", "missing")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_KIND_WORDS = {"number": "a number", "truth": "true or false", "text": "a text"}


@dataclass(frozen=True, slots=True)
class ExpressionNode:
    text: str  # as it is written
    column: int
    kind: ExpressionKind


@dataclass(frozen=True, slots=True)
class LiteralNode(ExpressionNode):
    value: float | bool | str


@dataclass(frozen=True, slots=True)
class MetricNode(ExpressionNode):
    """`last("x")`, `missing("x")`, `window("x", 50).mean`."""

    function: str
    key: str
    window: int = 0  # 0: of all values


@dataclass(frozen=True, slots=True)
class ArithmeticNode(ExpressionNode):
    sign: str  # + - * /
    sides: tuple[ExpressionNode, ...]  # one: unary minus


@dataclass(frozen=True, slots=True)
class ComparisonNode(ExpressionNode):
    signs: tuple[str, ...]
    sides: tuple[ExpressionNode, ...]  # one more than signs: 0 < x < 1


@dataclass(frozen=True, slots=True)
class BooleanNode(ExpressionNode):
    word: str  # and | or | not
    sides: tuple[ExpressionNode, ...]


def parse_expression(text: str, kind: ExpressionKind = "truth") -> ExpressionNode:
    """`kind`: what it must give: truth for `when`, number for `keep: by`. Raises ExpressionError."""
    parser = _ExpressionParser(text)
    found = parser.whole()
    if found.kind != kind:
        hint = 'compare it: last("x") > 0' if kind == "truth" else 'for example: last("eval.success")'
        raise ExpressionError(
            f"{found.text} is {_KIND_WORDS[found.kind]}, and {_KIND_WORDS[kind]} is needed", found.column, hint
        )
    return found


def keys_in_expression(node: ExpressionNode) -> Iterator[str]:
    """The keys that it asks for, as they are written."""
    if isinstance(node, MetricNode):
        yield node.key
    if isinstance(node, ArithmeticNode | ComparisonNode | BooleanNode):
        for side in node.sides:
            yield from keys_in_expression(side)


class _ExpressionParser:
    def __init__(self, text: str) -> None:
        self.source = text
        self.tokens = tokenize_expression(text)
        self.at = 0
        self.depth = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def whole(self) -> ExpressionNode:
        if self.now.kind == "end":
            raise ExpressionError("it is empty", 1, 'for example: last("train.loss") < 0.05')
        found = self._either()
        if self.now.kind != "end":
            raise self._unexpected()
        return found

    def _took(self, *texts: str) -> str:
        """The word or sign, if it is the next one."""
        if self.now.kind in ("sign", "name") and self.now.text in texts:
            self.at += 1
            return self.tokens[self.at - 1].text
        return ""

    def _expect(self, sign: str, why: str) -> None:
        if not self._took(sign):
            raise ExpressionError(f"{sign} is missing {why}", self.now.column)

    def _from(self, start: int) -> str:
        return self.source[self.tokens[start].start : self.tokens[self.at - 1].end]

    # -- from what binds least to what binds most

    def _either(self) -> ExpressionNode:
        return self._joined("or", self._both)

    def _both(self) -> ExpressionNode:
        return self._joined("and", self._turned)

    def _joined(self, word: str, below: Callable[[], ExpressionNode]) -> ExpressionNode:
        start, sides = self.at, [below()]
        while self._took(word):
            sides.append(below())
        if len(sides) == 1:
            return sides[0]
        for side in sides:
            self._need(side, "truth", word)
        return BooleanNode(self._from(start), self.tokens[start].column, "truth", word, tuple(sides))

    def _turned(self) -> ExpressionNode:
        start = self.at
        if not self._took("not"):
            return self._comparison()
        self._deeper()
        inner = self._turned()
        self.depth -= 1
        self._need(inner, "truth", "not")
        return BooleanNode(self._from(start), self.tokens[start].column, "truth", "not", (inner,))

    def _comparison(self) -> ExpressionNode:
        start, sides, signs = self.at, [self._sum()], []
        while sign := self._took(*COMPARISONS):
            signs.append(sign)
            sides.append(self._sum())
        if not signs:
            return sides[0]
        for side in sides:
            self._need(side, "number", signs[0])
        return ComparisonNode(self._from(start), self.tokens[start].column, "truth", tuple(signs), tuple(sides))

    def _sum(self) -> ExpressionNode:
        return self._chain(("+", "-"), self._product)

    def _product(self) -> ExpressionNode:
        return self._chain(("*", "/"), self._signed)

    def _chain(self, signs: tuple[str, ...], below: Callable[[], ExpressionNode]) -> ExpressionNode:
        start, left = self.at, below()
        while sign := self._took(*signs):
            right = below()
            for side in (left, right):
                self._need(side, "number", sign)
            left = ArithmeticNode(self._from(start), self.tokens[start].column, "number", sign, (left, right))
        return left

    def _signed(self) -> ExpressionNode:
        start = self.at
        if not self._took("-"):
            return self._atom()
        self._deeper()
        inner = self._signed()
        self.depth -= 1
        self._need(inner, "number", "-")
        return ArithmeticNode(self._from(start), self.tokens[start].column, "number", "-", (inner,))

    def _atom(self) -> ExpressionNode:
        token = self.now
        if token.kind == "number":
            self.at += 1
            if not math.isfinite(float(token.text)):
                raise ExpressionError(f"{token.text} is too large for a number", token.column)
            return LiteralNode(token.text, token.column, "number", float(token.text))
        if token.kind == "text":
            self.at += 1
            return LiteralNode(token.text, token.column, "text", unquote_token(token))
        if token.kind == "name" and token.text not in ("and", "or", "not"):
            return self._named()
        if self._took("("):
            self._deeper()
            found = self._either()
            self._expect(")", f"for the bracket in column {token.column}")
            self.depth -= 1
            return found
        raise self._unexpected()

    def _named(self) -> ExpressionNode:
        start, token = self.at, self.now
        self.at += 1
        if token.text in ("true", "false") and self.now.text != "(":
            return LiteralNode(token.text, token.column, "truth", token.text == "true")
        if token.text not in FUNCTIONS:
            raise self._unknown(token)
        self._expect("(", f'behind {token.text}: {token.text}("KEY")')
        key = self._key(token.text)
        window, function = 0, token.text
        if function == "window":
            self._expect(",", 'and how many values: window("KEY", 50)')
            window = self._length()
        self._expect(")", f"for {token.text}( in column {token.column}")
        if function == "window":
            function = self._of_window()
        kind: ExpressionKind = "truth" if function == "missing" else "number"
        return MetricNode(self._from(start), token.column, kind, function, key, window)

    def _key(self, function: str) -> str:
        token = self.now
        if token.kind != "text":
            bare = self.source[token.start :].partition(")")[0].partition(",")[0].strip()
            known = token.kind == "name"
            hint = f'write {function}("{bare}")' if known else f'for example: {function}("train.loss")'
            raise ExpressionError(f"{function} needs the key of a metric in quotes", token.column, hint)
        self.at += 1
        if not unquote_token(token):
            raise ExpressionError("the key of a metric is empty", token.column)
        return unquote_token(token)

    def _length(self) -> int:
        token = self.now
        if token.kind != "number" or not token.text.isdecimal() or not 0 < int(token.text[:9]) <= KEPT_VALUES:
            what = f"the length of a window is a whole number from 1 to {KEPT_VALUES}"
            raise ExpressionError(what, token.column, 'for example: window("KEY", 50).mean')
        self.at += 1
        return int(token.text)

    def _of_window(self) -> str:
        dot = self._took(".")
        token = self.now
        if not dot or token.text not in WINDOW_FUNCTIONS:
            names = ", ".join(f".{name}" for name in WINDOW_FUNCTIONS)
            what = f"a window has no .{token.text}" if dot else "what of the window is meant"
            raise ExpressionError(what, token.column, f"one of {names}")
        self.at += 1
        return token.text

    # -- what is wrong

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST_EXPRESSION:
            raise ExpressionError("it is nested too deeply", self.now.column)

    def _need(self, node: ExpressionNode, kind: ExpressionKind, sign: str) -> None:
        if node.kind == kind:
            return
        hint = 'compare it: last("x") > 0' if kind == "truth" else ""
        if node.kind == "text":
            hint = f"a text is the key of a metric: last({node.text})"
        what = f"{node.text} is {_KIND_WORDS[node.kind]}, and `{sign}` needs {_KIND_WORDS[kind]}"
        raise ExpressionError(what, node.column, hint)

    def _unknown(self, token: Token) -> ExpressionError:
        called = self.now.text == "("
        near = difflib.get_close_matches(token.text, FUNCTIONS, 1)
        if called:
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(FUNCTIONS)}"
            return ExpressionError(f"there is no function {token.text}", token.column, hint)
        bare = self._bare(token)
        return ExpressionError(f"{bare} is no value", token.column, f'a metric is asked for by last("{bare}")')

    def _bare(self, token: Token) -> str:
        """`ot.pi_sum`, written without quotes."""
        end = token.end
        for each in self.tokens[self.at :]:
            if each.start != end or (each.kind == "sign" and each.text not in "./") or each.kind == "end":
                break
            end = each.end
        return self.source[token.start : end]

    def _unexpected(self) -> ExpressionError:
        token = self.now
        if token.kind == "end":
            return ExpressionError("it ends too early: a value is missing", token.column)
        before = self.tokens[self.at - 1].text if self.at else ""
        behind = f" behind {before}" if before else ""
        hint = "two conditions are joined by and, or" if token.kind in ("name", "number", "text") else ""
        if token.text == ")":
            hint = "there is no bracket that it closes" if before not in ("(", "") else "a value is missing"
        return ExpressionError(f"{token.text} is out of place{behind}", token.column, hint)
