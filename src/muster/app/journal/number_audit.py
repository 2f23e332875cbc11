"""The audit of a journal's numbers: those that a person wrote, with the name, iteration, version or stage around
them, which agree with the artifacts, disagree, or can't be traced.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.app.documents.document_context import TextSpan, split_clauses, split_sentences
from muster.app.documents.find_numbers import (
    UNSIGNED,
    Number,
    Numeral,
    numeral_prints_as,
    read_numeral,
    scale_value,
    scan_numbers,
    significant_digits,
    write_numeral,
)
from muster.app.documents.text_layout import MARKDOWN, TextSource
from muster.app.documents.text_tables import TextCell, TextRow
from muster.app.journal.journal_points import list_item_at
from muster.app.journal.journal_tables import format_iteration, format_metric_value
from muster.app.journal.journal_text import (
    FINDINGS,
    LEARNING,
    OBSERVATIONS,
    RECORD,
    JournalLine,
    JournalSection,
    find_iteration_column,
    find_sections,
    find_stage_column,
    metric_key_of,
    pipe_tables_in,
    sections_of_role,
    titles_of_table,
    value_in_cell,
)
from muster.app.journal.journal_versions import journal_name
from muster.app.journal.metric_index import KnownNumber, MetricIndex

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
LONGEST_PIECE = 2000  # characters of a sentence
NEAR_LETTERS = 200  # characters on either side that a name may stand in
_EXTREME = re.compile(r"最[低高小大差好]|\b(?:lowest|highest|min(?:imum)?|max(?:imum)?|worst|best|least|most)\b", re.I)
_COMPARED = re.compile(r"[<>≤≥＜＞]=?\s?`?\**$")


@dataclass(frozen=True, slots=True)
class WrittenNumber:
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


def find_written_numbers(text: str, lines: Sequence[JournalLine]) -> list[WrittenNumber]:
    """In the parts that tell of results: findings, record, learning; and observations, of the last version."""
    shown = TextSource(text, MARKDOWN).shown
    found: list[WrittenNumber] = []
    for role, first, last in _prose_by_role(lines):
        start, end = lines[first].start, lines[last].end
        for sentence in split_sentences(shown, start, end):
            for piece in _cut_long_sentence(shown, sentence):
                found += _numbers_in_sentence(shown, piece, role)
    return sorted(found, key=lambda claim: claim.start)


def _cut_long_sentence(shown: str, sentence: TextSpan) -> Iterator[TextSpan]:
    """A sentence without an end is cut where a space is: every number looks at all of its sentence."""
    start, end = sentence
    while end - start > LONGEST_PIECE:
        cut = shown.rfind(" ", start + LONGEST_PIECE // 2, start + LONGEST_PIECE)
        cut = cut if cut > 0 else start + LONGEST_PIECE
        yield start, cut
        start = cut
    yield start, end


def _prose_by_role(lines: Sequence[JournalLine]) -> Iterator[tuple[str, int, int]]:
    """Items and paragraphs: role, first and last line. Tables and headings are none."""
    roles = _roles_by_line(lines)
    first: int | None = None
    for at in range(len(lines) + 1):
        line = lines[at] if at < len(lines) else None
        plain = line is not None and line.kind == "text" and not line.inside and _is_prose_line(line.text)
        if first is not None and (not plain or roles[at] != roles[first] or list_item_at(lines, at)):
            yield roles[first], first, at - 1
            first = None
        if plain and first is None and roles[at]:
            first = at


def _is_prose_line(text: str) -> bool:
    bare = text.strip()
    return bool(bare) and not bare.startswith(("|", "#"))


def _roles_by_line(lines: Sequence[JournalLine]) -> list[str]:
    found = [""] * len(lines)
    parts: list[JournalSection] = find_sections(lines)
    for role in (OBSERVATIONS, FINDINGS, RECORD, LEARNING):
        for section in sections_of_role(parts, role):
            found[section.first : section.end] = [role] * (section.end - section.first)
    return found


def _numbers_in_sentence(shown: str, sentence: TextSpan, role: str) -> Iterator[WrittenNumber]:
    start, end = sentence
    piece = shown[start:end]
    named = [(match, start + match.start("value"), start + match.end("value")) for match in _NAMED.finditer(piece)]
    taken = [(begin, stop) for _, begin, stop in named]
    taken += [(start + each.start(), start + each.end()) for each in _ITERATIONS.finditer(piece)]
    covered = {at for begin, stop in taken for at in range(begin, stop)}
    bare = [number for number in scan_numbers(_without_backticks(piece)) if start + number.start not in covered]
    spans = [*((begin, stop) for _, begin, stop in named), *((start + each.start, start + each.end) for each in bare)]
    clauses = split_clauses(shown, sentence, spans)
    around = _NumberSurroundings(shown, sentence, clauses)
    for match, begin, stop in named:
        read = read_numeral(match["value"])
        if read and not match["key"].lower().startswith("dev_v"):
            numeral = Numeral(begin, stop, *read)
            whole = shown[start + match.start("key") : stop] + (match["percent"] or "")
            yield around.claim(numeral, whole, bool(match["percent"]), role, metric_key_of(match["key"]))
    crowds = Counter(around.clause(begin) for begin, _ in spans)
    for number in bare:
        if number.pair or _COMPARED.search(piece, max(0, number.start - 20), number.start):
            continue
        numeral = _shift_numeral(number, start)
        crowd = crowds[around.clause(numeral.start)]
        yield around.claim(
            numeral, shown[numeral.start : start + number.end], number.percent, role, "", alone=crowd == 1
        )


def _without_backticks(piece: str) -> str:
    """Numbers within code count here: backticks are the only marks that are blanked."""
    return piece.replace("`", " ")


def _shift_numeral(number: Number, by: int) -> Numeral:
    first = number.numerals[0]
    return Numeral(first.start + by, first.end + by, first.value, first.format)


class _NumberSurroundings:
    """What is named near a number, in its sentence."""

    def __init__(self, shown: str, sentence: TextSpan, clauses: Sequence[TextSpan]) -> None:
        self._shown, self._sentence, self._clauses = shown, sentence, clauses
        start, end = sentence
        self._starts = [begin for begin, _ in clauses]
        self._iterations = [(start + each.start(), each) for each in _ITERATIONS.finditer(shown[start:end])]
        self._versions = [(start + each.start(), each) for each in _VERSION.finditer(shown[start:end])]

    def clause(self, at: int) -> TextSpan:
        place = bisect_right(self._starts, at) - 1
        return self._clauses[place] if place >= 0 else self._sentence

    def claim(
        self, numeral: Numeral, text: str, percent: bool, role: str, key: str, *, alone: bool = False
    ) -> WrittenNumber:
        clause = self.clause(numeral.start)
        single, span = self._iterations_of(numeral.start, clause)
        first, last = max(clause[0], numeral.start - NEAR_LETTERS), min(clause[1], numeral.start + NEAR_LETTERS)
        near = tuple(metric_key_of(each) for each in _NAME.findall(self._shown, first, last))
        version = self._version_of(numeral.start, clause)
        extreme = _EXTREME.search(self._shown, first, last) is not None
        shown = text.replace("`", "").replace("*", "")
        return WrittenNumber(
            numeral.start, shown, numeral, percent, role, key, single, span, version, near, alone, extreme
        )

    def _iterations_of(self, at: int, clause: TextSpan) -> tuple[tuple[float, ...], tuple[float, float] | None]:
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

    def _version_of(self, at: int, clause: TextSpan) -> int | None:
        """Named in its own clause: before it, or right behind it."""
        within = [(place, each) for place, each in self._versions if clause[0] <= place < clause[1]]
        before = [each for place, each in within if place < at]
        found = before[-1] if before else within[0][1] if within else None
        return int(found["version"] or found["short"]) if found else None


def find_written_ratios(text: str, lines: Sequence[JournalLine]) -> Iterator[tuple[int, str, float, float]]:
    """`163:120`: where, as it stands, and both numbers."""
    shown = TextSource(text, MARKDOWN).shown
    for _, first, last in _prose_by_role(lines):
        for found in _RATIO.finditer(shown, lines[first].start, lines[last].end):
            yield found.start(), found[0], float(found["a"]), float(found["b"])


AGREES, DISAGREES, UNTRACED = "agrees", "disagrees", "untraced"
FINDING_STATES = (AGREES, DISAGREES, UNTRACED)
_REDUCED = ("mean", "lowest", "highest")  # of a range, in this order for each run
MOST_KNOWN_NAMED = 4
LEAST_NAMELESS_DIGITS = 3  # that a number without a name must have to be taken for another


@dataclass(frozen=True, slots=True)
class JournalFinding:
    start: int
    text: str
    state: str
    because: str = ""
    should: str = ""


def audit_journal_numbers(
    text: str, lines: Sequence[JournalLine], version: int, books: Mapping[int, MetricIndex]
) -> list[JournalFinding]:
    """`books`: by version; what a text says of another version is looked up there, if it is known."""
    last = max((each for each in books if each < version), default=version - 1)
    found = [
        each for claim in find_written_numbers(text, lines) if (each := _finding_of_number(claim, version, last, books))
    ]
    found += _findings_in_tables(lines, version, last, books)
    found += _findings_of_ratios(text, lines, books.get(version))
    return sorted(found, key=lambda each: each.start)


def _finding_of_number(
    claim: WrittenNumber, version: int, last: int, books: Mapping[int, MetricIndex]
) -> JournalFinding | None:
    about = claim.version or (last if claim.section == OBSERVATIONS else version)
    book = books.get(about)
    if not book:
        return (
            _finding_untraced(claim, f"{journal_name(about)}: none of its runs is known here")
            if _is_worth_tracing(claim)
            else None
        )
    return _finding_of_named(claim, book) if claim.key else _finding_of_nameless(claim, book)


def _is_worth_tracing(claim: WrittenNumber) -> bool:
    """A whole number without a name may be anything."""
    return bool(claim.key or claim.percent or claim.numeral.format.decimals)


# -- with a name


def _finding_of_named(claim: WrittenNumber, book: MetricIndex) -> JournalFinding:
    if metric := book.metric(claim.key):
        return _finding_of_metric(claim, metric, book)
    settings, facts = book.settings(claim.key), book.facts(claim.key)
    values = [each for _, known in settings for each in known]
    like = book.metric_like(claim.key)
    measured = _finding_of_metric(claim, like, book) if like else None
    if measured and measured.state == AGREES:
        return measured
    if hit := _matching_known(claim, [*values, *facts]):
        return _finding_that_agrees(claim, hit)
    known = [*values, *facts]
    if measured:
        others = f"; or one of {_list_known_numbers(claim, known)}" if known else ""
        return measured if not known else _finding_untraced(claim, measured.because + others)
    if len(known) == 1:
        return _finding_that_disagrees(claim, known[0])
    return _finding_untraced(
        claim, f"it may be {_list_known_numbers(claim, known)}" if known else f"no artifact has a {claim.key}"
    )


def _list_known_numbers(claim: WrittenNumber, known: Sequence[KnownNumber]) -> str:
    return ", ".join(f"{each.name} {_known_as_written(claim, each)}" for each in known[:MOST_KNOWN_NAMED])


def _finding_of_metric(claim: WrittenNumber, metric: str, book: MetricIndex) -> JournalFinding:
    if claim.span:
        known = book.between(metric, *claim.span)
        if known:
            hit = _matching_known(claim, known if claim.extreme else known[:: len(_REDUCED)])
            return _finding_that_agrees(claim, hit) if hit else _finding_that_disagrees(claim, known[0])
    elif claim.iterations:
        known = book.at(metric, claim.iterations, claim.near)
        if known:
            hit = _matching_known(claim, known)
            return _finding_that_agrees(claim, hit) if hit else _finding_that_disagrees(claim, known[0])
        told = ", ".join(map(format_iteration, claim.iterations))
        return _finding_untraced(claim, f"{metric} has no value at iter {told}")
    if hit := _matching_known(claim, book.of(metric)):
        return _finding_that_agrees(claim, hit)
    near = book.nearest(metric, claim.numeral.value / (100 if claim.percent else 1))
    told = f"; the nearest is {_known_as_written(claim, near)} ({near.name})" if near else ""
    return _finding_untraced(claim, f"{metric} never had this value{told}")


# -- without


def _finding_of_nameless(claim: WrittenNumber, book: MetricIndex) -> JournalFinding | None:
    """By its place, where one metric and one iteration are named and no other number; else by its value alone."""
    if not _is_worth_tracing(claim):
        return None
    metrics = list(dict.fromkeys(metric for word in claim.near if (metric := book.metric_like(word))))
    if len(metrics) == 1 and claim.alone and len(claim.iterations) == 1 and not claim.span:
        known = book.at(metrics[0], claim.iterations, claim.near)
        if known:
            hit = _matching_known(claim, known)
            return _finding_that_agrees(claim, hit) if hit else _finding_that_disagrees(claim, known[0])
    for metric in metrics:
        if hit := _matching_known(claim, book.of(metric)):
            return _finding_that_agrees(claim, hit)
    if significant_digits(claim.numeral.value, claim.numeral.format) >= LEAST_NAMELESS_DIGITS and (
        hit := _matching_known(claim, list(book.everything()))
    ):
        return _finding_that_agrees(claim, hit)
    return _finding_untraced(claim, "no artifact has this value")


# -- tables and ratios


def _findings_in_tables(
    lines: Sequence[JournalLine], version: int, last: int, books: Mapping[int, MetricIndex]
) -> Iterator[JournalFinding]:
    own = [line for line in lines if not line.inside]
    observed = [
        (lines[part.first].start, lines[part.end - 1].end)
        for part in sections_of_role(find_sections(lines), OBSERVATIONS)
    ]
    for rows in pipe_tables_in(own):
        start = rows[0].cells[0].start if rows[0].cells else 0
        about = last if any(begin <= start < end for begin, end in observed) else version
        if book := books.get(about):
            yield from _findings_in_table(rows, book)


def _findings_in_table(rows: Sequence[TextRow], book: MetricIndex) -> Iterator[JournalFinding]:
    titles = titles_of_table(rows)
    at, stage = find_iteration_column(titles), find_stage_column(titles)
    if at is None:
        return
    metrics = {place: book.metric_like(title) for place, title in enumerate(titles) if place not in (at, stage)}
    for row in rows[1:]:
        place = value_in_cell(row.cells[at].text.strip("*` ")) if at < len(row.cells) else None
        stages = [row.cells[stage].text.strip("*` ")] if stage is not None and stage < len(row.cells) else []
        for column, metric in metrics.items():
            if place is not None and metric and column < len(row.cells):
                yield from _findings_in_cell(row.cells[column], metric, place, stages, book)


def _findings_in_cell(
    cell: TextCell, metric: str, place: float, stages: Sequence[str], book: MetricIndex
) -> Iterator[JournalFinding]:
    bare = cell.text.strip("*` ")
    read = read_numeral(bare.rstrip("%％ "))
    if read is None:
        return
    numeral = Numeral(cell.start, cell.end, *read)
    claim = WrittenNumber(cell.start, bare, numeral, bare.endswith(("%", "％")), "", metric, (place,))
    known = book.at(metric, [place], stages)
    if not known:
        yield _finding_untraced(claim, f"{metric} has no value at iter {format_iteration(place)}")
    else:
        hit = _matching_known(claim, known)
        yield _finding_that_agrees(claim, hit) if hit else _finding_that_disagrees(claim, known[0])


def _findings_of_ratios(text: str, lines: Sequence[JournalLine], book: MetricIndex | None) -> Iterator[JournalFinding]:
    counts = {each.value: each for each in book.everything() if each.name.startswith("events.")} if book else {}
    for start, shown, a, b in find_written_ratios(text, lines):
        if a in counts and b in counts:
            yield JournalFinding(start, shown, AGREES, f"{counts[a].name} and {counts[b].name} ({counts[a].source})")


# -- what they share


def _matching_known(claim: WrittenNumber, known: Sequence[KnownNumber]) -> KnownNumber | None:
    return next((each for each in known if _value_fits_number(claim, each.value)), None)


def _value_fits_number(claim: WrittenNumber, value: float) -> bool:
    return math.isfinite(value) and numeral_prints_as(
        claim.numeral, scale_value(value, 100) if claim.percent else value
    )


def _known_as_written(claim: WrittenNumber, known: KnownNumber) -> str:
    value = known.value
    if not math.isfinite(value):
        return format_metric_value(value)
    shown = write_numeral(scale_value(value, 100) if claim.percent else value, claim.numeral.format)
    return shown + ("%" if claim.percent else "")


def _finding_that_agrees(claim: WrittenNumber, known: KnownNumber) -> JournalFinding:
    return JournalFinding(claim.start, claim.text, AGREES, f"{known.name} ({known.source})")


def _finding_that_disagrees(claim: WrittenNumber, known: KnownNumber) -> JournalFinding:
    return JournalFinding(
        claim.start, claim.text, DISAGREES, f"{known.name} ({known.source})", _known_as_written(claim, known)
    )


def _finding_untraced(claim: WrittenNumber, because: str) -> JournalFinding:
    return JournalFinding(claim.start, claim.text, UNTRACED, because)
