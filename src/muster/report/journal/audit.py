"""Which numbers of a journal agree with the artifacts, which disagree, and which can't be traced."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.report.documents.format import read as read_numeral
from muster.report.documents.format import scaled, significant, write
from muster.report.documents.numbers import Numeral, prints_as
from muster.report.documents.tables import Cell, Row
from muster.report.journal.book import Book, Known
from muster.report.journal.claims import Claim, claims, ratios
from muster.report.journal.compose import name_of
from muster.report.journal.scan import Line
from muster.report.journal.sections import OBSERVATIONS, of_role, sections
from muster.report.journal.shown import iteration, number
from muster.report.journal.told import iteration_column, stage_column, tables, titles_of, value_of

AGREES, DISAGREES, UNTRACED = "agrees", "disagrees", "untraced"
STATES = (AGREES, DISAGREES, UNTRACED)
_REDUCED = ("mean", "lowest", "highest")  # of a range, in this order for each run
NAMED = 4
DIGITS = 3  # that a number without a name must have to be taken for another


@dataclass(frozen=True, slots=True)
class Finding:
    start: int
    text: str
    state: str
    because: str = ""
    should: str = ""


def audit_numbers(text: str, lines: Sequence[Line], version: int, books: Mapping[int, Book]) -> list[Finding]:
    """`books`: by version; what a text says of another version is looked up there, if it is known."""
    last = max((each for each in books if each < version), default=version - 1)
    found = [each for claim in claims(text, lines) if (each := _of_claim(claim, version, last, books))]
    found += _of_tables(lines, version, last, books)
    found += _of_ratios(text, lines, books.get(version))
    return sorted(found, key=lambda each: each.start)


def _of_claim(claim: Claim, version: int, last: int, books: Mapping[int, Book]) -> Finding | None:
    about = claim.version or (last if claim.section == OBSERVATIONS else version)
    book = books.get(about)
    if not book:
        return _untraced(claim, f"{name_of(about)}: none of its runs is known here") if _worth(claim) else None
    return _named(claim, book) if claim.key else _bare(claim, book)


def _worth(claim: Claim) -> bool:
    """A whole number without a name may be anything."""
    return bool(claim.key or claim.percent or claim.numeral.format.decimals)


# -- with a name


def _named(claim: Claim, book: Book) -> Finding:
    if metric := book.metric(claim.key):
        return _of_metric(claim, metric, book)
    settings, facts = book.settings(claim.key), book.facts(claim.key)
    values = [each for _, known in settings for each in known]
    like = book.metric_like(claim.key)
    measured = _of_metric(claim, like, book) if like else None
    if measured and measured.state == AGREES:
        return measured
    if hit := _hit(claim, [*values, *facts]):
        return _agrees(claim, hit)
    known = [*values, *facts]
    if measured:
        others = f"; or one of {_several(claim, known)}" if known else ""
        return measured if not known else _untraced(claim, measured.because + others)
    if len(known) == 1:
        return _disagrees(claim, known[0])
    return _untraced(claim, f"it may be {_several(claim, known)}" if known else f"no artifact has a {claim.key}")


def _several(claim: Claim, known: Sequence[Known]) -> str:
    return ", ".join(f"{each.name} {_value(claim, each)}" for each in known[:NAMED])


def _of_metric(claim: Claim, metric: str, book: Book) -> Finding:
    if claim.span:
        known = book.between(metric, *claim.span)
        if known:
            hit = _hit(claim, known if claim.extreme else known[:: len(_REDUCED)])
            return _agrees(claim, hit) if hit else _disagrees(claim, known[0])
    elif claim.iterations:
        known = book.at(metric, claim.iterations, claim.near)
        if known:
            hit = _hit(claim, known)
            return _agrees(claim, hit) if hit else _disagrees(claim, known[0])
        told = ", ".join(map(iteration, claim.iterations))
        return _untraced(claim, f"{metric} has no value at iter {told}")
    if hit := _hit(claim, book.of(metric)):
        return _agrees(claim, hit)
    near = book.nearest(metric, claim.numeral.value / (100 if claim.percent else 1))
    told = f"; the nearest is {_value(claim, near)} ({near.name})" if near else ""
    return _untraced(claim, f"{metric} never had this value{told}")


# -- without


def _bare(claim: Claim, book: Book) -> Finding | None:
    """By its place, where one metric and one iteration are named and no other number; else by its value alone."""
    if not _worth(claim):
        return None
    metrics = list(dict.fromkeys(metric for word in claim.near if (metric := book.metric_like(word))))
    if len(metrics) == 1 and claim.alone and len(claim.iterations) == 1 and not claim.span:
        known = book.at(metrics[0], claim.iterations, claim.near)
        if known:
            hit = _hit(claim, known)
            return _agrees(claim, hit) if hit else _disagrees(claim, known[0])
    for metric in metrics:
        if hit := _hit(claim, book.of(metric)):
            return _agrees(claim, hit)
    if significant(claim.numeral.value, claim.numeral.format) >= DIGITS and (
        hit := _hit(claim, list(book.everything()))
    ):
        return _agrees(claim, hit)
    return _untraced(claim, "no artifact has this value")


# -- tables and ratios


def _of_tables(lines: Sequence[Line], version: int, last: int, books: Mapping[int, Book]) -> Iterator[Finding]:
    own = [line for line in lines if not line.inside]
    observed = [(lines[part.first].start, lines[part.end - 1].end) for part in of_role(sections(lines), OBSERVATIONS)]
    for rows in tables(own):
        start = rows[0].cells[0].start if rows[0].cells else 0
        about = last if any(begin <= start < end for begin, end in observed) else version
        if book := books.get(about):
            yield from _of_table(rows, book)


def _of_table(rows: Sequence[Row], book: Book) -> Iterator[Finding]:
    titles = titles_of(rows)
    at, stage = iteration_column(titles), stage_column(titles)
    if at is None:
        return
    metrics = {place: book.metric_like(title) for place, title in enumerate(titles) if place not in (at, stage)}
    for row in rows[1:]:
        place = value_of(row.cells[at].text.strip("*` ")) if at < len(row.cells) else None
        stages = [row.cells[stage].text.strip("*` ")] if stage is not None and stage < len(row.cells) else []
        for column, metric in metrics.items():
            if place is not None and metric and column < len(row.cells):
                yield from _of_cell(row.cells[column], metric, place, stages, book)


def _of_cell(cell: Cell, metric: str, place: float, stages: Sequence[str], book: Book) -> Iterator[Finding]:
    bare = cell.text.strip("*` ")
    read = read_numeral(bare.rstrip("%％ "))
    if read is None:
        return
    numeral = Numeral(cell.start, cell.end, *read)
    claim = Claim(cell.start, bare, numeral, bare.endswith(("%", "％")), "", metric, (place,))
    known = book.at(metric, [place], stages)
    if not known:
        yield _untraced(claim, f"{metric} has no value at iter {iteration(place)}")
    else:
        hit = _hit(claim, known)
        yield _agrees(claim, hit) if hit else _disagrees(claim, known[0])


def _of_ratios(text: str, lines: Sequence[Line], book: Book | None) -> Iterator[Finding]:
    counts = {each.value: each for each in book.everything() if each.name.startswith("events.")} if book else {}
    for start, shown, a, b in ratios(text, lines):
        if a in counts and b in counts:
            yield Finding(start, shown, AGREES, f"{counts[a].name} and {counts[b].name} ({counts[a].source})")


# -- what they share


def _hit(claim: Claim, known: Sequence[Known]) -> Known | None:
    return next((each for each in known if _fits(claim, each.value)), None)


def _fits(claim: Claim, value: float) -> bool:
    return math.isfinite(value) and prints_as(claim.numeral, scaled(value, 100) if claim.percent else value)


def _value(claim: Claim, known: Known) -> str:
    value = known.value
    if not math.isfinite(value):
        return number(value)
    shown = write(scaled(value, 100) if claim.percent else value, claim.numeral.format)
    return shown + ("%" if claim.percent else "")


def _agrees(claim: Claim, known: Known) -> Finding:
    return Finding(claim.start, claim.text, AGREES, f"{known.name} ({known.source})")


def _disagrees(claim: Claim, known: Known) -> Finding:
    return Finding(claim.start, claim.text, DISAGREES, f"{known.name} ({known.source})", _value(claim, known))


def _untraced(claim: Claim, because: str) -> Finding:
    return Finding(claim.start, claim.text, UNTRACED, because)
