"""Finds every number of a text with its exact span and its format (digits, sign, thousands, exponent), so that a new
value can be written alike. Dates, versions, ranges and ratios are skipped.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

SEPARATORS = r"(?:,|\{,\}|\\,|\u2009|\u202f)"  # between groups of three
UNSIGNED = rf"(?:(?:[0-9]{{1,3}}(?:{SEPARATORS}[0-9]{{3}})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|(?<![A-Za-z0-9_.])\.[0-9]+)"
POWER = r"(?:[eE][+\-−]?[0-9]{1,3})"
_PARTS = re.compile(
    rf"(?P<sign>[+\-−])?(?P<whole>[0-9]{{1,3}}(?P<thousands>{SEPARATORS})[0-9]{{3}}(?:(?P=thousands)[0-9]{{3}})*|[0-9]*)"
    r"(?:\.(?P<part>[0-9]+))?(?:(?P<e>[eE])(?P<esign>[+\-−]?)(?P<power>[0-9]{1,3}))?"
)


@dataclass(frozen=True, slots=True)
class NumeralFormat:
    decimals: int
    thousands: str = ""  # what stands between groups of three
    plus: bool = False  # +0.31
    minus: str = "-"
    bare: bool = False  # .741
    exponent: str = ""  # e or E
    power_digits: int = 0
    power_plus: bool = False


@lru_cache(maxsize=8192)  # a text has many numbers more than once
def read_numeral(token: str) -> tuple[float, NumeralFormat] | None:
    """The value and the format; None where this format could not write what stands there."""
    parts = _PARTS.fullmatch(token)
    if parts is None or not (parts["whole"] or parts["part"]):
        return None
    sign, whole, fraction, e = (parts[name] or "" for name in ("sign", "whole", "part", "e"))
    thousands = parts["thousands"] or ""
    digits = whole.replace(thousands, "") if thousands else whole
    power = f"e{parts['esign'].replace('−', '-')}{parts['power']}" if e else ""
    value = float(f"{'-' if sign in '-−' and sign else ''}{digits or '0'}.{fraction or '0'}{power}")
    if not math.isfinite(value):
        return None
    minus = next((mark for mark in (sign, parts["esign"]) if mark and mark in "-−"), "-")
    style = NumeralFormat(
        decimals=len(fraction),
        thousands=thousands,
        plus=sign == "+",
        minus=minus,
        bare=not whole,
        exponent=e,
        power_digits=len(parts["power"] or ""),
        power_plus=parts["esign"] == "+",
    )
    written = write_numeral(value, style)
    return (value, style) if written == (token.lstrip("-−") if value == 0 else token) else None


def write_numeral(value: float, style: NumeralFormat) -> str:
    """The value in that format. Zero has no minus."""
    size = abs(value)
    if style.exponent:
        shown, _, power = f"{size:.{style.decimals}e}".partition("e")
        mark = style.minus if int(power) < 0 else "+" if style.power_plus else ""
        tail = f"{style.exponent}{mark}{abs(int(power)):0{style.power_digits}d}"
    else:
        shown, tail = f"{size:,.{style.decimals}f}", ""
        shown = shown.replace(",", style.thousands)
    if style.bare and shown.startswith("0."):
        shown = shown[1:]
    nothing = not any(digit in "123456789" for digit in shown)
    mark = style.minus if value < 0 and not nothing else "+" if style.plus else ""
    return mark + shown + tail


def scale_value(value: float, scale: int) -> float:
    """Times 100 for percent, without the dust that binary fractions leave (0.285 is 28.5 %)."""
    return float(Decimal(repr(value)) * scale) if scale != 1 else value


def half_printed_step(value: float, style: NumeralFormat) -> float:
    """Half of the last printed digit: how far a value may be away that still prints like this."""
    power = 0
    if style.exponent and value:
        power = int(f"{abs(value):.{style.decimals}e}".partition("e")[2])
    return 0.5 * 10.0 ** (power - style.decimals) * (1 + 1e-9) + abs(value) * 1e-12


def significant_digits(value: float, style: NumeralFormat) -> int:
    """Digits that tell one number from another: 0.026 has two, 83.0 three, 3000 one."""
    shown = write_numeral(abs(value), NumeralFormat(style.decimals, exponent=style.exponent, power_digits=1)).partition(
        "e"
    )[0]
    digits = shown.partition("E")[0].replace(".", "").lstrip("0")
    return len(digits if style.decimals else digits.rstrip("0"))


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
    format: NumeralFormat


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
        return max(significant_digits(each.value, each.format) for each in self.numerals)

    @property
    def plain_integer(self) -> bool:
        head = self.numerals[0].format
        return not (self.pair or self.percent or head.decimals or head.exponent or head.thousands)


def scan_numbers(text: str) -> list[Number]:
    """Numbers that may be results, in order. `text` is a Source's `bare`."""
    numerals = list(_scan_numerals(text))
    return list(_join_numerals(text, numerals))


def numeral_prints_as(numeral: Numeral, value: float) -> bool:
    return abs(numeral.value - value) <= half_printed_step(numeral.value, numeral.format)


def _scan_numerals(text: str) -> Iterator[Numeral]:
    for found in _SCAN.finditer(text):
        if found.lastgroup != "number":
            continue
        known = read_numeral(found["number"])
        if known is not None:
            yield Numeral(found.start("number"), found.end("number"), *known)


def _join_numerals(text: str, numerals: Sequence[Numeral]) -> Iterator[Number]:
    at, marks = 0, _line_and_formula_ends(text)
    while at < len(numerals):
        chain = [numerals[at]]
        while at + len(chain) < len(numerals) and _is_spread_of(text, chain[-1], numerals[at + len(chain)]):
            chain.append(numerals[at + len(chain)])
        at += len(chain)
        if len(chain) <= 2 and not (_is_no_result(text, chain[0].start) or _is_torn_pair(text, chain)):
            yield _with_percent_and_mark(text, marks, Number(chain[0].start, chain[-1].end, tuple(chain)))


def _is_spread_of(text: str, mean: Numeral, spread: Numeral) -> bool:
    if spread.start - mean.end > 60 or spread.value < 0 or spread.format.plus:
        return False
    return _SPREAD.fullmatch(text, mean.end, spread.start) is not None


def _is_torn_pair(text: str, chain: Sequence[Numeral]) -> bool:
    """A mean whose spread stands elsewhere, or a spread without its mean: one of them alone would be half a change."""
    behind = _LOOSE.match(text, chain[-1].end)
    return behind is not None or _LOOSE_BEFORE.search(text, max(0, chain[0].start - 24), chain[0].start) is not None


def _is_no_result(text: str, start: int) -> bool:
    before = text[max(0, start - 12) : start]
    if _GLUED.search(before) or before[-1:].isdigit():  # a digit of another script
        return True
    if text[start] not in "+-−" and _SIGN.search(before):
        return True  # a sign that is not the numeral's own
    return before.endswith(("$", "＄")) and _is_dollar_amount(text, start)


def _is_dollar_amount(text: str, start: int) -> bool:
    """$200 is money, $0.999$ is not: an odd dollar on its line."""
    begin, end = max(0, start - _NEAR), start + _NEAR
    line = text[text.rfind("\n", begin, start) + 1 or begin : text.find("\n", start, end) % (end + 1)]
    return line.count("$") % 2 == 1


def _with_percent_and_mark(text: str, marks: _LineAndFormulaEnds, number: Number) -> Number:
    """With the percent sign and the mark that follow it."""
    end, percent, mark = number.end, False, ""
    if found := _PERCENT.match(text, end):
        end, percent = found.end(), True
    if number.pair and "%" in text[number.numerals[0].end : number.numerals[1].start]:
        percent = True
    tail = _formula_tail(text, marks, number.start, end)
    if found := _MARK.match(text, end + len(tail)):
        end, mark = found.end(), found[0]
    if end == number.end and not (percent or mark or tail):
        return number
    return replace(number, end=end, percent=percent, mark=mark, tail="" if mark else tail)


def _formula_tail(text: str, marks: _LineAndFormulaEnds, start: int, end: int) -> str:
    """The end of its formula or of its \\num{}: a mark within it would be no mark, or no LaTeX."""
    if not marks.formulas:
        return ""
    begin = _begin_of_line(marks, start)
    near = text[max(begin, start - _NEAR) : start]
    if not (_COMMANDED.search(near) or _is_in_formula(marks, begin, start) or near.rfind("\\(") > near.rfind("\\)")):
        return ""
    found = _CLOSED.match(text, end)
    return found[0] if found else ""


def _begin_of_line(marks: _LineAndFormulaEnds, at: int) -> int:
    before = bisect_left(marks.breaks, at)
    return marks.breaks[before - 1] + 1 if before else 0


def _is_in_formula(marks: _LineAndFormulaEnds, begin: int, at: int) -> bool:
    return (bisect_left(marks.dollars, at) - bisect_left(marks.dollars, begin)) % 2 == 1


class _LineAndFormulaEnds(NamedTuple):
    """Where lines and formulas end, found once: a text of one line may hold a hundred thousand numbers."""

    breaks: list[int]
    dollars: list[int]
    formulas: bool  # whether there may be any


def _line_and_formula_ends(text: str) -> _LineAndFormulaEnds:
    breaks, dollars = ([each.start() for each in sign.finditer(text)] for sign in (_BREAK, _DOLLAR))
    return _LineAndFormulaEnds(breaks, dollars, bool(dollars) or "\\" in text)
