"""The numbers that a person wrote, with what stands around them: a name, an iteration, a version, a stage."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.report.documents.format import UNSIGNED
from muster.report.documents.format import read as read_numeral
from muster.report.documents.numbers import Number, Numeral, scan
from muster.report.documents.sentences import Span, clauses_of, sentences_of
from muster.report.documents.source import MARKDOWN, Source
from muster.report.journal.points import item_at
from muster.report.journal.scan import Line
from muster.report.journal.sections import FINDINGS, LEARNING, OBSERVATIONS, RECORD, Section, of_role, sections
from muster.report.journal.told import key_of

_NAMED = re.compile(
    r"(?P<key>[A-Za-z][A-Za-z0-9_₀-₉.]{0,99}+)`?\s{0,2}(?:=|≈|＝|~=|≃)\s{0,2}`?\*{0,2}"
    rf"(?P<value>[-+−]?{UNSIGNED}(?:[eE][-+]?[0-9]+)?)(?P<percent>\s?[%％])?(?![\w]|\s?[:：]\s?[0-9])"
)
_ITERATIONS = re.compile(
    r"(?:\biter(?:ation)?s?\s?|迭代\s?|第\s?)(?P<first>[0-9]{1,7})"
    r"(?:\s?(?P<range>[-–~～到至])\s?(?P<last>[0-9]{1,7})|(?P<more>(?:\s?[/、,]\s?[0-9]{1,7}(?![.0-9]))+))?(?:\s?轮)?",
    re.I,
)
_VERSION = re.compile(
    r"(?<![\w/])dev_v(?P<version>[0-9]{1,6})(?![\w])|(?<![\w/.])v(?P<short>[0-9]{1,6})\s?(?=的|'s|iter)"
)
_RATIO = re.compile(r"(?<![\w.:])(?P<a>[0-9]{2,7})\s?[:：]\s?(?P<b>[0-9]{2,7})(?![\w.:])")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_₀-₉]{2,}")
LONGEST = 2000  # characters of a sentence
NEAR = 200  # characters on either side that a name may stand in
_EXTREME = re.compile(r"最[低高小大差好]|\b(?:lowest|highest|min(?:imum)?|max(?:imum)?|worst|best|least|most)\b", re.I)
_COMPARED = re.compile(r"[<>≤≥＜＞]=?\s?`?\**$")


@dataclass(frozen=True, slots=True)
class Claim:
    start: int
    text: str  # as it stands there
    numeral: Numeral
    percent: bool
    section: str  # its role
    key: str = ""  # the name before it; "": none
    iterations: tuple[float, ...] = ()
    span: tuple[float, float] | None = None  # iterations from, to
    version: int | None = None  # that is named beside it
    near: tuple[str, ...] = ()  # words of its clause that may be names
    alone: bool = False  # no other number in its clause
    extreme: bool = False  # its clause speaks of the lowest or the highest


def claims(text: str, lines: Sequence[Line]) -> list[Claim]:
    """In the parts that tell of results: findings, record, learning; and observations, of the last version."""
    shown = Source(text, MARKDOWN).shown
    found: list[Claim] = []
    for role, first, last in _paragraphs(lines):
        start, end = lines[first].start, lines[last].end
        for sentence in sentences_of(shown, start, end):
            for piece in _pieces(shown, sentence):
                found += _of_sentence(shown, piece, role)
    return sorted(found, key=lambda claim: claim.start)


def _pieces(shown: str, sentence: Span) -> Iterator[Span]:
    """A sentence without an end is cut where a space is: every number looks at all of its sentence."""
    start, end = sentence
    while end - start > LONGEST:
        cut = shown.rfind(" ", start + LONGEST // 2, start + LONGEST)
        cut = cut if cut > 0 else start + LONGEST
        yield start, cut
        start = cut
    yield start, end


def _paragraphs(lines: Sequence[Line]) -> Iterator[tuple[str, int, int]]:
    """Items and paragraphs: role, first and last line. Tables and headings are none."""
    roles = _roles(lines)
    first: int | None = None
    for at in range(len(lines) + 1):
        line = lines[at] if at < len(lines) else None
        plain = line is not None and line.kind == "text" and not line.inside and _is_prose(line.text)
        if first is not None and (not plain or roles[at] != roles[first] or item_at(lines, at)):
            yield roles[first], first, at - 1
            first = None
        if plain and first is None and roles[at]:
            first = at


def _is_prose(text: str) -> bool:
    bare = text.strip()
    return bool(bare) and not bare.startswith(("|", "#"))


def _roles(lines: Sequence[Line]) -> list[str]:
    found = [""] * len(lines)
    parts: list[Section] = sections(lines)
    for role in (OBSERVATIONS, FINDINGS, RECORD, LEARNING):
        for section in of_role(parts, role):
            found[section.first : section.end] = [role] * (section.end - section.first)
    return found


def _of_sentence(shown: str, sentence: Span, role: str) -> Iterator[Claim]:
    start, end = sentence
    piece = shown[start:end]
    named = [(match, start + match.start("value"), start + match.end("value")) for match in _NAMED.finditer(piece)]
    taken = [(begin, stop) for _, begin, stop in named]
    taken += [(start + each.start(), start + each.end()) for each in _ITERATIONS.finditer(piece)]
    covered = {at for begin, stop in taken for at in range(begin, stop)}
    bare = [number for number in scan(_masked(piece)) if start + number.start not in covered]
    spans = [*((begin, stop) for _, begin, stop in named), *((start + each.start, start + each.end) for each in bare)]
    clauses = clauses_of(shown, sentence, spans)
    around = _Around(shown, sentence, clauses)
    for match, begin, stop in named:
        read = read_numeral(match["value"])
        if read and not match["key"].lower().startswith("dev_v"):
            numeral = Numeral(begin, stop, *read)
            whole = shown[start + match.start("key") : stop] + (match["percent"] or "")
            yield around.claim(numeral, whole, bool(match["percent"]), role, key_of(match["key"]))
    crowds = Counter(around.clause(begin) for begin, _ in spans)
    for number in bare:
        if number.pair or _COMPARED.search(piece, max(0, number.start - 20), number.start):
            continue
        numeral = _shifted(number, start)
        crowd = crowds[around.clause(numeral.start)]
        yield around.claim(
            numeral, shown[numeral.start : start + number.end], number.percent, role, "", alone=crowd == 1
        )


def _masked(piece: str) -> str:
    """Numbers within code count here: backticks are the only marks that are blanked."""
    return piece.replace("`", " ")


def _shifted(number: Number, by: int) -> Numeral:
    first = number.numerals[0]
    return Numeral(first.start + by, first.end + by, first.value, first.format)


class _Around:
    """What is named near a number, in its sentence."""

    def __init__(self, shown: str, sentence: Span, clauses: Sequence[Span]) -> None:
        self._shown, self._sentence, self._clauses = shown, sentence, clauses
        start, end = sentence
        self._starts = [begin for begin, _ in clauses]
        self._iterations = [(start + each.start(), each) for each in _ITERATIONS.finditer(shown[start:end])]
        self._versions = [(start + each.start(), each) for each in _VERSION.finditer(shown[start:end])]

    def clause(self, at: int) -> Span:
        place = bisect_right(self._starts, at) - 1
        return self._clauses[place] if place >= 0 else self._sentence

    def claim(self, numeral: Numeral, text: str, percent: bool, role: str, key: str, *, alone: bool = False) -> Claim:
        clause = self.clause(numeral.start)
        single, span = self._iterations_of(numeral.start, clause)
        first, last = max(clause[0], numeral.start - NEAR), min(clause[1], numeral.start + NEAR)
        near = tuple(key_of(each) for each in _NAME.findall(self._shown, first, last))
        version = self._version_of(numeral.start, clause)
        extreme = _EXTREME.search(self._shown, first, last) is not None
        shown = text.replace("`", "").replace("*", "")
        return Claim(numeral.start, shown, numeral, percent, role, key, single, span, version, near, alone, extreme)

    def _iterations_of(self, at: int, clause: Span) -> tuple[tuple[float, ...], tuple[float, float] | None]:
        """The nearest before it in its sentence, else the first behind it in its clause."""
        before = [each for place, each in self._iterations if place < at]
        behind = [each for place, each in self._iterations if at < place < clause[1]]
        found = before[-1] if before else behind[0] if behind else None
        if found is None:
            return (), None
        if found["range"]:
            return (), (float(found["first"]), float(found["last"]))
        more = re.findall(r"[0-9]+", found["more"] or "")
        return tuple(map(float, [found["first"], *more])), None

    def _version_of(self, at: int, clause: Span) -> int | None:
        """Named in its own clause: before it, or right behind it."""
        within = [(place, each) for place, each in self._versions if clause[0] <= place < clause[1]]
        before = [each for place, each in within if place < at]
        found = before[-1] if before else within[0][1] if within else None
        return int(found["version"] or found["short"]) if found else None


def ratios(text: str, lines: Sequence[Line]) -> Iterator[tuple[int, str, float, float]]:
    """`163:120`: where, as it stands, and both numbers."""
    shown = Source(text, MARKDOWN).shown
    for _, first, last in _paragraphs(lines):
        for found in _RATIO.finditer(shown, lines[first].start, lines[last].end):
            yield found.start(), found[0], float(found["a"]), float(found["b"])
