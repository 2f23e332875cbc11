"""The scope of a number in a table: its row and its column say what it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from muster.report.documents.context import LONGEST, Context
from muster.report.documents.names import Names
from muster.report.documents.numbers import Number
from muster.report.documents.places import Place
from muster.report.documents.scope import (
    FIELDS,
    Scope,
    best_note,
    first,
    is_former,
    seeds_only,
    spread_of,
    stat_of,
    sure,
    union,
)

_COUNTS = re.compile(r"\W*(?:[nNk]|(?:#|number of|no\. of)?\s*seeds|种子数|样本数)\W*", re.IGNORECASE)
LEAST_DIGITS = 3


def in_cell(context: Context, number: Number, place: Place) -> Scope:
    names = (*place.row, *place.column)
    if place.title or max(place.end - place.start, *map(len, names), 0) > LONGEST:
        return Scope(ignored=True)
    read = context.vocabulary.read
    span = (place.start, place.end)
    titles = " | ".join(place.column)
    row, column, rest = read(" | ".join(place.row)), read(titles), context.read(span, but=number)
    near = (row, column, rest)
    above = [read(text) for text in place.above]
    counted = context.is_count(number, place.start) or (number.plain_integer and _COUNTS.fullmatch(titles) is not None)
    foreign = "" if counted else _foreign(row, column, place)
    seeds = union(near, "seeds")
    fields = {kind: union(near, kind) or first(above, kind) for kind in FIELDS}
    groups = tuple(context.book.select(*(fields[kind] for kind in FIELDS)))
    forbidden = foreign
    if not counted:
        counts = row.counts | column.counts | rest.counts
        forbidden = foreign or _forbids(row, column, place, near) or seeds_only(seeds, counts, groups)
    told = bool(union(near, "all_configs") or sure(above)) and bool(fields["metrics"])
    others = [each for each in context.measured(span) if each is not number]
    understood = row.understood and (column.understood or counted) and (rest.understood or counted)
    return Scope(
        groups=groups,
        rivals=groups,
        exact=bool(place.row and place.column and understood and told and len(groups) == 1)
        and not (forbidden or (others and not counted)),
        forbidden=forbidden,
        ignored=bool(foreign),
        least=LEAST_DIGITS,
        stat="n" if counted else stat_of(union(near, "stats")),
        seed="" if counted else next(iter(seeds), ""),
        metric=bool(fields["metrics"]),
        percent=number.percent or column.percent or row.percent,
        spread=spread_of([*place.column, *place.row, *place.above[:2]], union(near, "stats")),
        former=is_former([*place.row, *place.column, *place.above[:3]]),
        note=best_note(near, groups),
    )


def _foreign(row: Names, column: Names, place: Place) -> str:
    """Why it is none of the campaign's results at all."""
    if column.foreign or (row.foreign and not row.all_configs):
        return f"{column.foreign or row.foreign} is no result"
    if place.column and not (column.any or column.derived or column.change):
        return f"its column names nothing that is known: {' '.join(place.column)}"
    return ""


def _forbids(row: Names, column: Names, place: Place, near: Sequence[Names]) -> str:
    derived = row.derived or column.derived or row.change or column.change
    if derived:
        return f"a difference or another statistic ({derived})"
    if column.scaled or row.scaled:
        return "it is shown in another unit"
    if row.strange or column.strange:
        return f"a name that is not known: {' '.join(place.row if row.strange else place.column)}"
    if place.row and not row.any:
        return f"its row names nothing that is known: {' '.join(place.row)}"
    if column.unknown and not union(near, "metrics"):
        return f"its column names no metric that is known: {' '.join(place.column)}"
    if column.superlative:
        return "it is about whichever config is best or worst"
    return ""
