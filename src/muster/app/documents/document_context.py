"""A text with all that is known about it: its numbers, their places, and its sentences and clauses, English and
Chinese. A full stop or comma inside a number ends nothing.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from muster.app.documents.find_numbers import MARK, Number, half_printed_step, numeral_prints_as, scan_numbers
from muster.app.documents.result_names import NameReader, NamesFound, QuantityIndex
from muster.app.documents.text_layout import TextLayout, TextPlace, TextSource
from muster.app.documents.vocabulary import UNITS

TextSpan = tuple[int, int]

_ENDS = re.compile(r"[。！？!?]|(?<![\s.])\.(?=[*_`)\]}\"'”’]*(?:\s|$))|[\"”」』](?=[ \t]*\r?\n)|\n[ \t]*\r?\n")
_SHORTENED = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|cf|vs|etc|al|approx|resp|fig|figs|eq|eqs|sec|tab|no|vol|ca|dr|prof|w\.r\.t|[A-Za-z])$",
    re.IGNORECASE,
)
_PARTS = re.compile(r"[,，;；]|\b(?:while|whereas)\b")


@dataclass(frozen=True, slots=True)
class Sentence:
    span: TextSpan
    clauses: list[TextSpan]


def split_sentences(text: str, start: int, end: int) -> Iterator[TextSpan]:
    """One follows the other, without gaps."""
    return _cut_at_pattern(_ENDS, text[start:end], start, ())


def split_clauses(text: str, span: TextSpan, numbers: Sequence[TextSpan]) -> list[TextSpan]:
    return list(_cut_at_pattern(_PARTS, text[span[0] : span[1]], span[0], numbers))


def _cut_at_pattern(pattern: re.Pattern[str], text: str, shift: int, kept: Sequence[TextSpan]) -> Iterator[TextSpan]:
    """`kept`: in order; nothing is cut within them."""
    at, next_ = 0, 0
    for found in pattern.finditer(text):
        begin, end = found.start() + shift, found.end() + shift
        if found[0] == "." and _SHORTENED.search(text, max(0, found.start() - 10), found.start()):
            continue
        while next_ < len(kept) and kept[next_][1] <= begin:
            next_ += 1
        if next_ < len(kept) and kept[next_][0] < end:
            continue
        yield at + shift, end
        at = found.end()
    if at < len(text):
        yield at + shift, len(text) + shift


LONGEST_SENTENCE = 4000  # characters of a sentence or a cell
_COUNT = re.compile(r"(?<![A-Za-z])[nN]\s*=\s*$")  # n=2
_BRACKET = re.compile(r"[ \t]?\([ \t]?")
_MARK = re.compile(MARK)
_BRACKET_END = re.compile(r"[ \t]?\)")


class DocumentContext:
    def __init__(self, source: TextSource, book: QuantityIndex, vocabulary: NameReader) -> None:
        self.source, self.book, self.vocabulary = source, book, vocabulary
        self.layout = TextLayout(source)
        self.numbers = self._joined(scan_numbers(source.bare))
        self._starts = [number.start for number in self.numbers]
        self._parted: tuple[int, array[int]] = (-1, array("q"))  # a place, and where its sentences begin
        self._current = Sentence((-1, -1), [])  # numbers come in order: one sentence after the other
        self._blanked: dict[TextSpan, str] = {}  # its parts

    def read(self, span: TextSpan, but: Number | None = None) -> NamesFound:
        """The names in a part of the text, without its numbers; counts such as the 2 of `seed 2` stay."""
        return self.vocabulary.read(self.blanked(span, but))

    def blanked(self, span: TextSpan, but: Number | None = None) -> str:
        if but is not None or span not in self._blanked:
            found = self._without_numbers(span, but)
            if but is not None:
                return found
            self._blanked[span] = found
        return self._blanked[span]

    def _without_numbers(self, span: TextSpan, but: Number | None) -> str:
        shown = self.source.shown
        pieces, at = [], span[0]
        for number in self.between(*span):
            if number is but or not number.plain_integer or self.is_count(number, span[0]):
                pieces.append(shown[at : number.start])
                at = number.end
        return " ".join([*pieces, shown[at : span[1]]])

    def between(self, start: int, end: int) -> list[Number]:
        return self.numbers[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def measured(self, span: TextSpan) -> list[Number]:
        """Numbers that may be results: the 5 of n=5 is none, nor is the 2 of `seed 2`."""
        return [number for number in self.between(*span) if not number.plain_integer]

    def is_count(self, number: Number, start: int) -> bool:
        """The 5 of n=5, or of n=5 seeds."""
        before = self.source.shown[max(start, number.start - 8) : number.start]
        if not number.plain_integer or not _COUNT.search(before):
            return False
        unit = UNITS.match(self.source.shown, number.end)
        return unit is None or unit["unit"].startswith("seed")

    def beside(self, number: Number, span: TextSpan) -> tuple[NamesFound, str]:
        """What stands between the number before and this one, and between this one and the next."""
        at = bisect_left(self._starts, number.start)
        begin, end = span
        if at and self.numbers[at - 1].end > begin:
            begin = self.numbers[at - 1].end
        if at + 1 < len(self.numbers) and self.numbers[at + 1].start < end:
            end = self.numbers[at + 1].start
        shown = self.source.shown
        return self.vocabulary.read(shown[begin : number.start]), shown[number.end : end]

    def sentence(self, number: Number, place: TextPlace) -> Sentence:
        """The one that the number is in; without clauses if it is too long to be read."""
        if self._parted[0] != place.start:
            found = split_sentences(self.source.shown, place.start, place.end)
            self._parted = place.start, array("q", (start for start, _ in found))
        starts = self._parted[1]
        following = max(1, bisect_right(starts, number.start))
        span = starts[following - 1], starts[following] if following < len(starts) else place.end
        if span != self._current.span:
            self._blanked.clear()
            taken = [(each.start, each.end) for each in self.between(*span)]
            too_long = span[1] - span[0] > LONGEST_SENTENCE
            self._current = Sentence(span, [] if too_long else split_clauses(self.source.shown, span, taken))
        return self._current

    # -- `1.684 (0.741)` in a cell

    def _joined(self, numbers: Sequence[Number]) -> list[Number]:
        found: list[Number] = []
        for number in numbers:
            before = found[-1] if found else None
            if before and not (before.pair or number.pair or number.mark) and self._brackets(before, number):
                found[-1] = self._bracketed(before, number)
            else:
                found.append(number)
        return found

    def _bracketed(self, mean: Number, spread: Number) -> Number:
        closed = _BRACKET_END.match(self.source.bare, spread.end)
        end = closed.end() if closed else spread.end
        mark = _MARK.match(self.source.bare, end)
        numerals = (*mean.numerals, *spread.numerals)
        return replace(mean, end=mark.end() if mark else end, numerals=numerals, mark=mark[0] if mark else "")

    def _brackets(self, mean: Number, spread: Number) -> bool:
        """Whether the second is the first one's spread: the column says so, or some result has both."""
        bare = self.source.bare
        if not (_BRACKET.fullmatch(bare, mean.end, spread.start) and _BRACKET_END.match(bare, spread.end)):
            return False
        place = self.layout.at(mean.start)
        if place is None or not place.cell:
            return False
        if "sd" in self.vocabulary.read(" | ".join(place.column)).stats:
            return True
        head, tail = mean.numerals[0], spread.numerals[0]
        step = half_printed_step(head.value, head.format)
        for group in self.book.near("mean", head.value - step, head.value + step):
            sd = group.stats.get("sd")
            if sd and any(numeral_prints_as(tail, value) for value in (sd.value, *sd.earlier)):
                return True
        return False
