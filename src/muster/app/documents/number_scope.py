"""The scope of a number: which quantities the words around it allow, from the row and column of its table or from its
sentence, and what forbids to bind it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from muster.app.documents.document_context import LONGEST_SENTENCE, DocumentContext, Sentence, TextSpan
from muster.app.documents.find_numbers import Number
from muster.app.documents.result_names import NamesFound, QuantityGroup
from muster.app.documents.text_layout import TextPlace
from muster.app.documents.vocabulary import COUNTER, FORMER, FROM, LEVEL, LIMIT, LIMIT_BEHIND, SPREAD_IS_OTHER, UNITS
from muster.text.phrases import phrase

NAME_FIELDS = ("all_configs", "splits", "metrics")
LONGEST = 4000  # characters of a heading that are looked at
NEVER_ENOUGH = 99  # digits: the value alone is never enough


@dataclass(frozen=True, slots=True)
class NumberScope:
    groups: tuple[QuantityGroup, ...] = ()  # what the names near allow
    rivals: tuple[QuantityGroup, ...] = ()  # what they would allow, were only the certain names believed
    exact: bool = False  # the place alone tells which one it is
    forbidden: str = ""  # why it must not be bound
    ignored: bool = False  # a name or a count: no result
    least: int = NEVER_ENOUGH  # digits that make the value enough
    stat: str = ""  # sd or n, where the text says so
    seed: str = ""
    metric: bool = False  # a metric is named near
    percent: bool = False
    spread: str = ""  # what ± stands for, where the text says so: sd or other
    loose: bool = False  # several configs are named near, or none for certain
    former: bool = False  # the text speaks of a former state
    note: str = ""


def union_of_names(names: Sequence[NamesFound], kind: str) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for each in names:
        found |= getattr(each, kind)
    return found


def nearest_named(above: Sequence[NamesFound], kind: str) -> frozenset[str]:
    """From the nearest that names one. A part of a config's name counts in its own sentence or cell only."""
    kind = "configs" if kind == "all_configs" else kind
    return next((found for each in above if (found := getattr(each, kind))), frozenset())


def certain_config(above: Sequence[NamesFound]) -> frozenset[str]:
    """The config that the nearest of these names, if it names one and every word of it is understood."""
    for each in above:
        if each.all_configs:
            return each.configs if len(each.all_configs) == 1 and each.understood else frozenset()
    return frozenset()


def statistic_named(stats: frozenset[str]) -> str:
    return "sd" if stats == {"sd"} else ""


def spread_meaning(texts: Sequence[str], stats: frozenset[str]) -> str:
    if any(_tells_another_spread(text[:LONGEST]) for text in texts):
        return "other"
    return "sd" if "sd" in stats else ""


def note_about_best(near: Sequence[NamesFound], groups: Sequence[QuantityGroup]) -> str:
    if any(each.at_best for each in near) and groups:
        return f"there is no {groups[0].metric}@best: read as {groups[0].metric}"
    return ""


def why_only_some_seeds(seeds: frozenset[str], counts: frozenset[int], groups: Sequence[QuantityGroup]) -> str:
    """Why it is no number over all seeds."""
    if len(seeds) > 1:
        return f"it is about seeds {', '.join(sorted(seeds))} only"
    declared = {quantity.n for group in groups for quantity in group.stats.values()}
    if counts and declared and not counts & declared:
        return f"it is about {phrase('count.seed', n=min(counts))} only"
    return ""


def speaks_of_former_state(texts: Sequence[str]) -> bool:
    return any(_tells_of_former(text[:LONGEST]) for text in texts)


@lru_cache(maxsize=256)  # one heading may stand over all numbers of a text
def _tells_of_former(text: str) -> bool:
    return FORMER.search(text) is not None


@lru_cache(maxsize=256)
def _tells_another_spread(text: str) -> bool:
    return SPREAD_IS_OTHER.search(text) is not None


_COUNTS = re.compile(r"\W*(?:[nNk]|(?:#|number of|no\. of)?\s*seeds|种子数|样本数)\W*", re.IGNORECASE)
LEAST_DIGITS_IN_CELL = 3


def resolve_in_cell(context: DocumentContext, number: Number, place: TextPlace) -> NumberScope:
    names = (*place.row, *place.column)
    if place.title or max(place.end - place.start, *map(len, names), 0) > LONGEST_SENTENCE:
        return NumberScope(ignored=True)
    read = context.vocabulary.read
    span = (place.start, place.end)
    titles = " | ".join(place.column)
    row, column, rest = read(" | ".join(place.row)), read(titles), context.read(span, but=number)
    near = (row, column, rest)
    above = [read(text) for text in place.above]
    counted = context.is_count(number, place.start) or (number.plain_integer and _COUNTS.fullmatch(titles) is not None)
    foreign = "" if counted else _foreign_in_table(row, column, place)
    seeds = union_of_names(near, "seeds")
    fields = {kind: union_of_names(near, kind) or nearest_named(above, kind) for kind in NAME_FIELDS}
    groups = tuple(context.book.select(*(fields[kind] for kind in NAME_FIELDS)))
    forbidden = foreign
    if not counted:
        counts = row.counts | column.counts | rest.counts
        forbidden = (
            foreign or _forbidden_in_table(row, column, place, near) or why_only_some_seeds(seeds, counts, groups)
        )
    told = bool(union_of_names(near, "all_configs") or certain_config(above)) and bool(fields["metrics"])
    others = [each for each in context.measured(span) if each is not number]
    understood = row.understood and (column.understood or counted) and (rest.understood or counted)
    return NumberScope(
        groups=groups,
        rivals=groups,
        exact=bool(place.row and place.column and understood and told and len(groups) == 1)
        and not (forbidden or (others and not counted)),
        forbidden=forbidden,
        ignored=bool(foreign),
        least=LEAST_DIGITS_IN_CELL,
        stat="n" if counted else statistic_named(union_of_names(near, "stats")),
        seed="" if counted else next(iter(seeds), ""),
        metric=bool(fields["metrics"]),
        percent=number.percent or column.percent or row.percent,
        spread=spread_meaning([*place.column, *place.row, *place.above[:2]], union_of_names(near, "stats")),
        former=speaks_of_former_state([*place.row, *place.column, *place.above[:3]]),
        note=note_about_best(near, groups),
    )


def _foreign_in_table(row: NamesFound, column: NamesFound, place: TextPlace) -> str:
    """Why it is none of the campaign's results at all."""
    if column.foreign or (row.foreign and not row.all_configs):
        return f"{column.foreign or row.foreign} is no result"
    if place.column and not (column.any or column.derived or column.change):
        return f"its column names nothing that is known: {' '.join(place.column)}"
    return ""


def _forbidden_in_table(row: NamesFound, column: NamesFound, place: TextPlace, near: Sequence[NamesFound]) -> str:
    derived = row.derived or column.derived or row.change or column.change
    if derived:
        return f"a difference or another statistic ({derived})"
    if column.scaled or row.scaled:
        return "it is shown in another unit"
    if row.strange or column.strange:
        return f"a name that is not known: {' '.join(place.row if row.strange else place.column)}"
    if place.row and not row.any:
        return f"its row names nothing that is known: {' '.join(place.row)}"
    if column.unknown and not union_of_names(near, "metrics"):
        return f"its column names no metric that is known: {' '.join(place.column)}"
    if column.superlative:
        return "it is about whichever config is best or worst"
    return ""


LEAST_DIGITS_NAMED = 3  # where config and metric are named
LEAST_ALONE = 4  # hyperparameters have fewer
_ASSIGNED = re.compile(r"([^\s=≈:：,，;；()（）|]+)\s*[=≈]\s*$")
_IN_ORDER = re.compile(r"\brespectively\b|分别|依次", re.IGNORECASE)
_BEHIND = re.compile(r"\s?[(（]([^()（）]{1,60})[)）]")
_OPENED = re.compile(r"[(（]\s*$")
_QUOTES = (('"', '"'), ("“", "”"), ("「", "」"), ("『", "』"), ("``", "''"))


def resolve_in_sentence(context: DocumentContext, number: Number, place: TextPlace) -> NumberScope:
    sentence = context.sentence(number, place)
    if not sentence.clauses:
        return NumberScope(forbidden="its sentence is too long to be read", ignored=number.plain_integer)
    clause = next(each for each in sentence.clauses if number.start < each[1])
    before, after = context.beside(number, clause)
    here, whole = context.read(clause), context.read(sentence.span)
    above = [context.vocabulary.read(text) for text in place.above]
    own = {kind: _trusted_names(context, sentence, clause, here, kind) for kind in NAME_FIELDS}
    fields = {kind: own[kind] or getattr(whole, kind) or nearest_named(above, kind) for kind in NAME_FIELDS}
    beside = _config_in_brackets(context, before, after)
    if beside:
        fields["all_configs"] = beside
    groups = tuple(context.book.select(*(fields[kind] for kind in NAME_FIELDS)))
    certain = {kind: own[kind] or _certain_names(context, sentence, kind, whole, above) for kind in NAME_FIELDS}
    certain["all_configs"] = beside or certain["all_configs"]
    counted = context.is_count(number, place.start)
    seeds = here.seeds or (whole.seeds if len(whole.seeds) > 1 else frozenset())
    foreign = "" if counted else _foreign_in_prose(context, before, after, here)
    forbidden = foreign
    if not counted:
        forbidden = (
            foreign or _forbidden_in_prose(before, here, whole) or why_only_some_seeds(seeds, whole.counts, groups)
        )
    if not forbidden and _is_in_quotation(context.source.shown, place.start, number.start):
        forbidden = "it stands in a quotation"
    exact = (
        not forbidden and len(groups) == 1 and _place_tells_quantity(context, sentence, clause, here, whole, certain)
    )
    return NumberScope(
        groups=groups,
        rivals=tuple(context.book.select(*(certain[kind] for kind in NAME_FIELDS))),
        exact=exact and (counted or not number.plain_integer),
        forbidden=forbidden,
        ignored=bool(foreign) or (number.plain_integer and not counted),
        least=_least_digits_needed(
            context, (sentence.span[0], number.start), before, here, whole, certain["all_configs"]
        ),
        stat="n" if counted else statistic_named(before.stats),
        seed=next(iter(seeds), "") if len(seeds) == 1 and not counted else "",
        metric=bool(fields["metrics"]),
        percent=number.percent,
        spread=spread_meaning([context.blanked(sentence.span)], whole.stats),
        former=speaks_of_former_state([context.blanked(sentence.span), *place.above[:1]])
        or FROM.search(before.text) is not None,
        loose=len(certain["all_configs"]) != 1,
        note=note_about_best((here,), groups),
    )


def _trusted_names(
    context: DocumentContext, sentence: Sentence, clause: TextSpan, here: NamesFound, kind: str
) -> frozenset[str]:
    """Names of the number's own clause, unless they go on from one before: `v2_baseline, v2_u_only share 1.684`."""
    own: frozenset[str] = getattr(here, kind)
    for before in sentence.clauses[: sentence.clauses.index(clause)] if own else ():
        if getattr(context.read(before), kind) and not context.measured(before):
            return frozenset()
    return own


def _certain_names(
    context: DocumentContext, sentence: Sentence, kind: str, whole: NamesFound, above: Sequence[NamesFound]
) -> frozenset[str]:
    """Names from elsewhere may be about something else: `Compared with v2_full, the score is 1.7`.

    They count if their clauses are understood word for word."""
    named: frozenset[str] = getattr(whole, kind)
    if not named:
        return certain_config(above) if kind == "all_configs" else nearest_named(above, kind)
    clauses = [context.read(clause) for clause in sentence.clauses]
    return named if all(each.understood for each in clauses if getattr(each, kind)) else frozenset()


def _config_in_brackets(context: DocumentContext, before: NamesFound, after: str) -> frozenset[str]:
    """The config of `0.999 (v2_full)` and of `v2_full (0.999)`."""
    inside = _BEHIND.match(after)
    named = context.vocabulary.read(inside[1]) if inside else before if _OPENED.search(before.text) else None
    return named.configs if named and len(named.all_configs) == 1 and not named.strange else frozenset()


def _least_digits_needed(
    context: DocumentContext,
    lead: TextSpan,
    before: NamesFound,
    here: NamesFound,
    whole: NamesFound,
    configs: frozenset[str],
) -> int:
    """How many digits make a value tell which result it is. Words that are not known may say that it is none.

    `lead`: all of the sentence that stands before it."""
    if not here.metrics and before.open_end:
        return NEVER_ENOUGH
    if whole.all_configs and whole.metrics and (here.all_configs or here.metrics):
        return LEAST_DIGITS_NAMED if len(configs) == 1 else LEAST_ALONE  # of several, or of none for certain
    if not (whole.any or here.understood) or not context.read(lead).understood:
        return NEVER_ENOUGH
    return LEAST_DIGITS_NAMED if before.metrics else LEAST_ALONE


def _foreign_in_prose(context: DocumentContext, before: NamesFound, after: str, here: NamesFound) -> str:
    """Why it is none of the campaign's results at all."""
    if found := COUNTER.search(before.text):
        return f"it counts: {found[0].strip()}"
    if before.last == "foreign" or (before.foreign and not here.all_configs):
        return f"{before.foreign} is no result"
    if (assigned := _ASSIGNED.search(before.text)) and not _names_the_campaign(context.vocabulary.read(assigned[1])):
        return f"{assigned[1]} is no result"
    if LIMIT.search(before.text) or LIMIT_BEHIND.match(after):
        return "others are held against it"
    unit = UNITS.match(after)
    if unit and unit["unit"].lower() not in context.vocabulary.words_of_metrics:
        return f"it is followed by {unit['unit']!r}"
    return ""


def _names_the_campaign(names: NamesFound) -> bool:
    return bool(names.metrics or names.all_configs or names.splits or names.stats)


def _forbidden_in_prose(before: NamesFound, here: NamesFound, whole: NamesFound) -> str:
    if here.longer:
        return "a name that is not known: a config's with something behind or before it"
    if before.derived or (before.change and not LEVEL.search(before.text)):
        return f"a difference or another statistic ({before.derived or before.change})"
    if (here.superlative or whole.superlative) and not whole.all_configs:
        return "it is about whichever config is best or worst"
    return ""


def _is_in_quotation(text: str, start: int, at: int) -> bool:
    """Somebody's words are not ours to change."""
    before = text[max(start, at - LONGEST_SENTENCE) : at]
    for opens, closes in _QUOTES:
        if opens == closes:
            if before.count(opens) % 2:
                return True
        elif before.rfind(opens) > before.rfind(closes):
            return True
    return False


def _place_tells_quantity(
    context: DocumentContext,
    sentence: Sentence,
    clause: TextSpan,
    here: NamesFound,
    whole: NamesFound,
    certain: Mapping[str, frozenset[str]],
) -> bool:
    """Whether this place can mean one quantity only, whatever the value is: every word near is understood."""
    if not here.understood or here.superlative or _IN_ORDER.search(context.blanked(sentence.span)):
        return False
    if len(context.measured(clause)) != 1 or not certain["metrics"]:
        return False
    if here.weak or (not here.configs and whole.weak):
        return False  # full may be just a word
    if len(whole.configs) > 1:
        return len(here.configs) == 1 and _clauses_are_parallel(context, sentence)
    return len(certain["all_configs"]) == 1


def _clauses_are_parallel(context: DocumentContext, sentence: Sentence) -> bool:
    """Each clause has one config and one number, or neither."""
    for clause in sentence.clauses:
        configs = len(context.read(clause).all_configs)
        if configs != len(context.measured(clause)) or configs > 1:
            return False
    return True
