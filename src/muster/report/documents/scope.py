"""What the text around a number says about it: which quantities its names allow, and what forbids to bind it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from muster.report.documents import aliases
from muster.report.documents.names import Names, Vocabulary
from muster.report.documents.numbers import Number, scan
from muster.report.documents.places import Layout, Place
from muster.report.documents.quantity import Book, Group
from muster.report.documents.sentences import Sentence, Span, clauses_of, sentences_of
from muster.report.documents.source import Source

_COUNT = re.compile(r"(?<![A-Za-z])[nN]\s*=\s*$")  # n=2
_ASSIGNED = re.compile(r"([^\s=≈:：,，;；()（）|]+)\s*[=≈]\s*$")
_IN_ORDER = re.compile(r"\brespectively\b|分别|依次", re.IGNORECASE)
LONGEST = 4000  # characters of a sentence or a cell
_BRACKET = re.compile(r"[ \t]?\([ \t]?")
_BRACKET_END = re.compile(r"[ \t]?\)")


@dataclass(frozen=True, slots=True)
class Scope:
    groups: tuple[Group, ...] = ()  # what the names near allow
    exact: bool = False  # the place alone tells which one it is
    forbidden: str = ""  # why it must not be bound
    ignored: bool = False  # a name or a count: no result
    named: bool = False  # something of the campaign is named near
    stat: str = ""  # sd or n, where the text says so
    seed: str = ""
    percent: bool = False
    spread: str = ""  # what ± stands for, where the text says so: sd or other
    note: str = ""


class Context:
    """A text with all its numbers, each of which can be asked for its scope."""

    def __init__(self, source: Source, book: Book, vocabulary: Vocabulary) -> None:
        self.source, self.book, self.vocabulary = source, book, vocabulary
        self.layout = Layout(source)
        self.numbers = self._joined(scan(source.bare))
        self._starts = [number.start for number in self.numbers]
        self._words = {word for metric in vocabulary.metrics for word in re.findall(r"[a-z]+", metric.lower())}
        self._parted: tuple[int, list[Span]] = (-1, [])

    def scope(self, number: Number) -> Scope:
        place = self.layout.at(number.start)
        if place is None:
            return Scope(ignored=True)
        return self._in_cell(number, place) if place.cell else self._in_prose(number, place)

    # -- cells

    def _in_cell(self, number: Number, place: Place) -> Scope:
        if place.title or place.end - place.start > LONGEST:
            return Scope(ignored=True)
        read = self.vocabulary.read
        row, column = read(" | ".join(place.row)), read(" | ".join(place.column))
        inside = self._between(place.start, place.end)
        rest = read(self._without(inside, place.start, place.end))
        near = (row, column, rest)
        above = [read(text) for text in place.above]
        counted = self._is_count(number, place.start)
        foreign = "" if counted else _foreign_cell(row, column, place)
        forbidden = foreign or ("" if counted else _forbids_cell(row, column, place, near))
        seeds = _union(near, "seeds")
        if len(seeds) > 1:
            forbidden = forbidden or f"it is about seeds {', '.join(sorted(seeds))} only"
        fields = {kind: _union(near, kind) or _first(above, kind) for kind in ("all_configs", "splits", "metrics")}
        groups = self._allowed(fields)
        told = _union(near, "all_configs") or _sure(above)
        others = [each for each in inside if each is not number and not self._is_count(each, place.start)]
        understood = row.understood and column.understood and (rest.understood or counted)
        exact = bool(
            place.row and place.column and understood and told and fields["metrics"] and len(groups) == 1 and not others
        )
        return Scope(
            groups=groups,
            exact=exact and not forbidden,
            forbidden=forbidden,
            ignored=bool(foreign),
            named=row.any or column.any,
            stat="n" if counted else _stat(_union(near, "stats")),
            seed=next(iter(seeds), ""),
            percent=number.percent or column.percent or row.percent,
            spread=_spread([*place.column, *place.row, *place.above[:1]], _union(near, "stats")),
            note=_best_note(near, groups),
        )

    def _joined(self, numbers: list[Number]) -> list[Number]:
        """`1.684 (0.741)` in a column of mean and std is one number."""
        found: list[Number] = []
        for number in numbers:
            before = found[-1] if found else None
            if before and not (before.pair or number.pair or number.mark) and self._brackets(before, number):
                end = _BRACKET_END.match(self.source.bare, number.end)
                numerals = (*before.numerals, *number.numerals)
                found[-1] = replace(before, end=end.end() if end else number.end, numerals=numerals)
            else:
                found.append(number)
        return found

    def _brackets(self, mean: Number, spread: Number) -> bool:
        bare = self.source.bare
        if not (_BRACKET.fullmatch(bare, mean.end, spread.start) and _BRACKET_END.match(bare, spread.end)):
            return False
        place = self.layout.at(mean.start)
        return place is not None and "sd" in self.vocabulary.read(" | ".join(place.column)).stats

    # -- prose

    def _in_prose(self, number: Number, place: Place) -> Scope:
        sentence = self._sentence(number, place)
        if not sentence.clauses:
            return Scope(forbidden="its sentence is too long to be read", ignored=number.plain_integer)
        clause = next((each for each in sentence.clauses if each[0] <= number.start < each[1]), sentence.span)
        before, after = self._beside(number, clause)
        read = self.vocabulary.read
        here, whole = read(self._blanked(clause)), read(self._blanked(sentence.span))
        above = [read(text) for text in place.above]
        fields = {
            kind: getattr(here, kind) or getattr(whole, kind) or _first(above, kind)
            for kind in ("all_configs", "splits", "metrics")
        }
        groups = self._allowed(fields)
        counted = self._is_count(number, place.start)
        seeds = here.seeds or (whole.seeds if len(whole.seeds) > 1 else frozenset())
        foreign = "" if counted else self._foreign_prose(before, after)
        forbidden = foreign or ("" if counted else _forbids_prose(before, here, whole, seeds))
        exact = not forbidden and len(groups) == 1 and self._tells(sentence, clause, here, whole, above)
        return Scope(
            groups=groups,
            exact=exact and (counted or not number.plain_integer),
            forbidden=forbidden,
            ignored=bool(foreign) or (number.plain_integer and not counted),
            named=here.any or whole.any or any(each.any for each in above),
            stat="n" if counted else _stat(before.stats),
            seed=next(iter(seeds), "") if len(seeds) == 1 else "",
            percent=number.percent,
            spread=_spread([self._blanked(sentence.span)], whole.stats),
            note=_best_note((here,), groups),
        )

    def _foreign_prose(self, before: Names, after: str) -> str:
        """Why it is none of the campaign's results at all."""
        if found := aliases.COUNTER.search(before.text):
            return f"it counts: {found[0].strip()}"
        if before.last == "foreign":
            return f"{before.foreign} is no result"
        if (assigned := _ASSIGNED.search(before.text)) and not self._is_ours(assigned[1]):
            return f"{assigned[1]} is no result"
        unit = aliases.UNITS.match(after)
        if unit and unit["unit"].lower() not in self._words:
            return f"it is followed by {unit['unit']!r}"
        return ""

    def _is_ours(self, word: str) -> bool:
        names = self.vocabulary.read(word)
        return bool(names.metrics or names.all_configs or names.splits or names.stats)

    def _tells(self, sentence: Sentence, clause: Span, here: Names, whole: Names, above: Sequence[Names]) -> bool:
        """Whether this place can mean one quantity only, whatever the value is: every word near is understood."""
        if not here.understood or here.superlative or _IN_ORDER.search(self._blanked(sentence.span)):
            return False
        if len(self._measured(clause)) != 1 or not (here.metrics or whole.metrics or _first(above, "metrics")):
            return False
        if here.weak or (not here.configs and whole.weak):
            return False  # full may be just a word
        if len(whole.configs) > 1:
            return len(here.configs) == 1 and self._parallel(sentence)
        inherits = not here.configs or not here.metrics
        if whole.configs:
            return not inherits or whole.understood
        return bool(_sure(above))

    def _parallel(self, sentence: Sentence) -> bool:
        """Each clause has one config and one number, or neither."""
        for clause in sentence.clauses:
            configs = len(self.vocabulary.read(self._blanked(clause)).all_configs)
            if configs != len(self._measured(clause)) or configs > 1:
                return False
        return True

    def _measured(self, span: Span) -> list[Number]:
        return [number for number in self._between(*span) if not self._is_count(number, span[0])]

    def _beside(self, number: Number, clause: Span) -> tuple[Names, str]:
        """What stands between the number before and this one, and between this one and the next."""
        at = bisect_left(self._starts, number.start)
        begin, end = clause
        if at and self.numbers[at - 1].end > begin:
            begin = self.numbers[at - 1].end
        if at + 1 < len(self.numbers) and self.numbers[at + 1].start < end:
            end = self.numbers[at + 1].start
        shown = self.source.shown
        return self.vocabulary.read(shown[begin : number.start]), shown[number.end : end]

    def _sentence(self, number: Number, place: Place) -> Sentence:
        if self._parted[0] != place.start:  # numbers come in order: one place after the other
            self._parted = place.start, sentences_of(self.source.shown, place.start, place.end)
        spans = self._parted[1]
        span = spans[max(0, bisect_right(spans, number.start, key=lambda each: each[0]) - 1)]
        if span[1] - span[0] > LONGEST:
            return Sentence(span, [])
        taken = [(each.start, each.end) for each in self._between(*span)]
        return Sentence(span, clauses_of(self.source.shown, span, taken))

    # -- both

    def _allowed(self, fields: dict[str, frozenset[str]]) -> tuple[Group, ...]:
        return tuple(self.book.select(fields["all_configs"], fields["splits"], fields["metrics"]))

    def _between(self, start: int, end: int) -> list[Number]:
        return self.numbers[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def _is_count(self, number: Number, start: int) -> bool:
        """The 5 of n=5."""
        return (
            number.plain_integer
            and _COUNT.search(self.source.shown[max(start, number.start - 8) : number.start]) is not None
        )

    def _blanked(self, span: Span) -> str:
        return self._without(self._between(*span), *span)

    def _without(self, numbers: Sequence[Number], start: int, end: int) -> str:
        pieces, at = [], start
        for number in numbers:
            pieces.append(self.source.shown[at : number.start])
            at = number.end
        return " ".join([*pieces, self.source.shown[at:end]])


def _foreign_cell(row: Names, column: Names, place: Place) -> str:
    """Why it is none of the campaign's results at all."""
    if column.foreign or (row.foreign and not row.any):
        return f"{column.foreign or row.foreign} is no result"
    if place.column and not (column.any or column.derived):
        return f"its column names nothing that is known: {' '.join(place.column)}"
    return ""


def _forbids_cell(row: Names, column: Names, place: Place, near: Sequence[Names]) -> str:
    titles = " ".join(place.column)
    if row.derived or column.derived:
        return f"a difference or another statistic ({row.derived or column.derived})"
    if column.scaled or row.scaled:
        return "it is shown in another unit"
    if row.strange or column.strange:
        return f"the name goes on: {' '.join((row if row.strange else column).unknown)}"
    if place.row and not row.any:
        return f"its row names nothing that is known: {' '.join(place.row)}"
    if column.unknown and not _union(near, "metrics"):
        return f"its column names no metric that is known: {titles}"
    if column.superlative:
        return "it is about whichever config is best or worst"
    return ""


def _forbids_prose(before: Names, here: Names, whole: Names, seeds: frozenset[str]) -> str:
    if before.derived and not aliases.LEVEL.search(before.text):
        return f"a difference or another statistic ({before.derived})"
    if (here.superlative or whole.superlative) and not whole.all_configs:
        return "it is about whichever config is best or worst"
    if len(seeds) > 1:
        return f"it is about seeds {', '.join(sorted(seeds))} only"
    return ""


def _union(names: Sequence[Names], kind: str) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for each in names:
        found |= getattr(each, kind)
    return found


def _first(above: Sequence[Names], kind: str) -> frozenset[str]:
    """From the nearest that names one. A part of a config's name counts in its own sentence or cell only."""
    kind = "configs" if kind == "all_configs" else kind
    return next((found for each in above if (found := getattr(each, kind))), frozenset())


def _sure(above: Sequence[Names]) -> frozenset[str]:
    """The config that the nearest of these names, if it names one and every word of it is understood."""
    for each in above:
        if each.all_configs:
            return each.configs if len(each.all_configs) == 1 and each.understood else frozenset()
    return frozenset()


def _stat(stats: frozenset[str]) -> str:
    return "sd" if stats == {"sd"} else ""


def _spread(texts: Sequence[str], stats: frozenset[str]) -> str:
    if any(aliases.SPREAD_IS_OTHER.search(text) for text in texts):
        return "other"
    return "sd" if "sd" in stats else ""


def _best_note(near: Sequence[Names], groups: Sequence[Group]) -> str:
    if any(each.at_best for each in near) and groups:
        return f"there is no {groups[0].metric}@best: read as {groups[0].metric}"
    return ""
