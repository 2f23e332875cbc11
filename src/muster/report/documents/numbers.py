"""Finds every number of a text with its exact span. Dates, versions, ranges, ratios and the like are none here."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from muster.report.documents.format import POWER, UNSIGNED, Format, half_step, read, significant

MARK = r" ?\(PARTIAL [0-9]+/[0-9]+\)"
_LETTER = r"[A-Za-zÀ-ɏͰ-Ͽа-я0-9_]"
_WORD = rf"[A-Za-zÀ-ɏͰ-Ͽа-я]{_LETTER}*+(?:-(?=[A-Za-z0-9]){_LETTER}*+)*"
_UNITS = r"(?:ms|s|h|min)(?![A-Za-z0-9_])"
_JOINED = rf"(?:[ ]?(?:/|×|\\times|\\cdot|[xX*]|–|—|~|～)[ ]?{UNSIGNED}|(?:--?|[ ]--?[ ]){UNSIGNED})"
_SCAN = re.compile(
    rf"""(?:(?<![0-9])|(?![0-9]))(?=[\\A-Za-zÀ-ɏͰ-Ͽа-я0-9.+\-−\[(（~_/])(?:
      \\[A-Za-z]+
    | (?<![A-Za-z0-9.~_/-])(?=[0-9_.~/-]*[A-Za-z])[A-Za-z0-9_.~-]*(?:/[A-Za-z0-9_.~-]+)+/?  # runs/20260222-x/a.csv
    | {_WORD}                                                                               # v2_full, seed2
    | [0-9]{{4}}-[0-9]{{1,2}}(?:-[0-9]{{1,2}})?(?![0-9.])(?:[T ][0-9]{{1,2}}:[0-9:.]+)?     # dates and times
    | [0-9]{{4}}/[0-9]{{1,2}}/[0-9]{{1,2}} | [0-9]{{1,2}}/[0-9]{{1,2}}/[0-9]{{4}}
    | [0-9]{{6,8}}[-_T][0-9]{{4,6}}
    | [0-9]{{1,4}}[ ]?[年月日号时点]
    | [0-9]{{1,2}}:[0-9]{{2}}(?::[0-9]{{2}}(?:\.[0-9]+)?)?(?![0-9])
    | [0-9]+(?:\.[0-9]+){{2,}}                                                              # versions, addresses
    | \[\^?[0-9]+(?:[ ]?[,–-][ ]?[0-9]+)*\]                                                 # citations
    | [\[(（][ ]*[+\-−]?{UNSIGNED}[ ]*[,，;][ ]*[+\-−]?{UNSIGNED}[ ]*[\])）]                 # intervals
    | {UNSIGNED}{_JOINED}+[A-Za-z0-9_]*(?:[ ]?\^[^\s|&$]*)?                                 # 17/20, 4 x 5, 0-4
    | [0-9]+[ ]?\^[ ]?\{{?[+\-−]?[0-9]+\}}?                                                 # powers
    | (?!{UNSIGNED}(?![0-9,]))[0-9]+(?:[ ]?[,，、][ ]?[0-9]+)+(?![.0-9])                    # 0,1,3,4 and 1,68
    | (?!{UNSIGNED}{POWER}(?![A-Za-z0-9_])){UNSIGNED}(?!{_UNITS})
      (?:[A-Za-z]|_[A-Za-z0-9])[A-Za-z0-9_]*                                                # 120k, 3D
    | {UNSIGNED}\([0-9]+\)                                                                  # 1.684(741)
    | (?P<number>(?:(?<![A-Za-z0-9一-鿿)\]}}%+\-−/.])[+\-−])?(?<![0-9])(?<![0-9][.,]){UNSIGNED}{POWER}?)
      (?![0-9]|\.[0-9])(?:{_UNITS})?)
    """,
    re.VERBOSE,
)
_GAP = r"[ \t\u00a0\u2009\u202f]?"  # never the end of a line
_NOISE = (  # bounded: a run of spaces must not take for ever
    r"(?:[ \t\u00a0*_{}$(（~]|\\[,;:!\\]|\\(?:scriptsize|footnotesize|small|tiny|mathrm|mathbf|text[a-z]*"
    r"|left|right|bm)|</?(?:b|strong|i|em|sub|sup|small|span)>){0,40}"
)
_SIGNS = r"(?:±|\\pm(?![A-Za-z])|\\textpm|&plusmn;|\+/-|\+-|＋－)"
_SPREAD = re.compile(rf"(?:{_GAP}(?:\\?%|％))?{_NOISE}{_SIGNS}{_NOISE}")
_LOOSE = re.compile(rf"(?:{_GAP}(?:\\?%|％))?{_NOISE}[\r\n]*{_NOISE}{_SIGNS}")
_LOOSE_BEFORE = re.compile(rf"{_SIGNS}{_NOISE}[\r\n]*{_NOISE}$")
_PERCENT = re.compile(rf"{_GAP}(?:\\?%|％)")
_COMMANDED = re.compile(r"\\(?:num|tablenum|SI|qty)(?:\[[^\]\n]{0,80}\])?\{[^{}\n]{0,40}$")
_BREAK = re.compile("\n")
_DOLLAR = re.compile(r"(?<!\\)\$")
_CLOSED = re.compile(r"\}{0,4}[ ]?(?:\$|\\\))|\}(?:\{[^{}\n]{0,40}\})?(?:\\?%)?\$?")
_MARK = re.compile(MARK)
# what stands right before a numeral that is no result
_GLUED = re.compile(
    r"(?:[<>≤≥＜＞#§№¥￥€£@]|\^\{?|[A-Za-z0-9})]_\{?|\\(?:le|leq|ge|geq|lt|gt|leqslant|geqslant)|[<>]=)\s?$"
)
_NEAR = 1000  # characters of a line that are looked at
_SIGN = re.compile(r"(?:[-−–—－＋+]\$?|\$[-−+] )$")


@dataclass(frozen=True, slots=True)
class Numeral:
    start: int
    end: int
    value: float
    format: Format


@dataclass(frozen=True, slots=True)
class Number:
    """What stands in a text as one result: a numeral, or a mean and its spread."""

    start: int
    end: int  # with the percent sign and the mark PARTIAL, where they are
    numerals: tuple[Numeral, ...]
    percent: bool = False
    mark: str = ""
    tail: str = ""  # what closes its formula, where no mark follows: one would go behind it

    @property
    def pair(self) -> bool:
        return len(self.numerals) > 1

    @property
    def digits(self) -> int:
        return max(significant(each.value, each.format) for each in self.numerals)

    @property
    def plain_integer(self) -> bool:
        head = self.numerals[0].format
        return not (self.pair or self.percent or head.decimals or head.exponent or head.thousands)


def scan(text: str) -> list[Number]:
    """Numbers that may be results, in order. `text` is a Source's `bare`."""
    numerals = list(_numerals(text))
    return list(_numbers(text, numerals))


def prints_as(numeral: Numeral, value: float) -> bool:
    return abs(numeral.value - value) <= half_step(numeral.value, numeral.format)


def _numerals(text: str) -> Iterator[Numeral]:
    for found in _SCAN.finditer(text):
        if found.lastgroup != "number":
            continue
        known = read(found["number"])
        if known is not None:
            yield Numeral(found.start("number"), found.end("number"), *known)


def _numbers(text: str, numerals: Sequence[Numeral]) -> Iterator[Number]:
    at = 0
    while at < len(numerals):
        chain = [numerals[at]]
        while at + len(chain) < len(numerals) and _spreads(text, chain[-1], numerals[at + len(chain)]):
            chain.append(numerals[at + len(chain)])
        at += len(chain)
        if len(chain) <= 2 and not (_unfit(text, chain[0].start) or _torn(text, chain)):
            yield _closed(text, Number(chain[0].start, chain[-1].end, tuple(chain)))


def _spreads(text: str, mean: Numeral, spread: Numeral) -> bool:
    if spread.start - mean.end > 60 or spread.value < 0 or spread.format.plus:
        return False
    return _SPREAD.fullmatch(text, mean.end, spread.start) is not None


def _torn(text: str, chain: Sequence[Numeral]) -> bool:
    """A mean whose spread stands elsewhere, or a spread without its mean: one of them alone would be half a change."""
    behind = _LOOSE.match(text, chain[-1].end)
    return behind is not None or _LOOSE_BEFORE.search(text, max(0, chain[0].start - 24), chain[0].start) is not None


def _unfit(text: str, start: int) -> bool:
    before = text[max(0, start - 12) : start]
    if _GLUED.search(before) or before[-1:].isdigit():  # a digit of another script
        return True
    if text[start] not in "+-−" and _SIGN.search(before):
        return True  # a sign that is not the numeral's own
    return before.endswith(("$", "＄")) and _is_money(text, start)


def _is_money(text: str, start: int) -> bool:
    """$200 is money, $0.999$ is not: an odd dollar on its line."""
    begin, end = max(0, start - _NEAR), start + _NEAR
    line = text[text.rfind("\n", begin, start) + 1 or begin : text.find("\n", start, end) % (end + 1)]
    return line.count("$") % 2 == 1


def _closed(text: str, number: Number) -> Number:
    """With the percent sign and the mark that follow it."""
    end, percent, mark = number.end, False, ""
    if found := _PERCENT.match(text, end):
        end, percent = found.end(), True
    if number.pair and "%" in text[number.numerals[0].end : number.numerals[1].start]:
        percent = True
    tail = _tail(text, number.start, end)
    if found := _MARK.match(text, end + len(tail)):
        end, mark = found.end(), found[0]
    return replace(number, end=end, percent=percent, mark=mark, tail="" if mark else tail)


def _tail(text: str, start: int, end: int) -> str:
    """The end of its formula or of its \\num{}: a mark within it would be no mark, or no LaTeX."""
    begin = _line_begin(text, start)
    near = text[max(begin, start - _NEAR) : start]
    if not (_COMMANDED.search(near) or _in_dollars(text, begin, start) or near.rfind("\\(") > near.rfind("\\)")):
        return ""
    found = _CLOSED.match(text, end)
    return found[0] if found else ""


def _line_begin(text: str, at: int) -> int:
    breaks = _marks(text).breaks
    before = bisect_left(breaks, at)
    return breaks[before - 1] + 1 if before else 0


def _in_dollars(text: str, begin: int, at: int) -> bool:
    dollars = _marks(text).dollars
    return (bisect_left(dollars, at) - bisect_left(dollars, begin)) % 2 == 1


class _Marks(NamedTuple):
    """Where lines and formulas end, found once: a text of one line may hold a hundred thousand numbers."""

    breaks: list[int]
    dollars: list[int]


@lru_cache(maxsize=2)
def _marks(text: str) -> _Marks:
    return _Marks([each.start() for each in _BREAK.finditer(text)], [each.start() for each in _DOLLAR.finditer(text)])
